"""COLMAP with exact matches: read and write its database, match, verify, map.

Matching reads and writes COLMAP's SQLite file by itself and needs NumPy only. Verification and
mapping are COLMAP's own, through pycolmap (extra ``colmap``).

>>> from hiernorm.adapters.colmap import MatchingOptions
>>> MatchingOptions().max_ratio, MatchingOptions().max_distance, MatchingOptions().cross_check
(0.8, 0.7, True)
"""

from hiernorm.adapters.colmap.comparison import Comparison, PairComparison, compare_matches
from hiernorm.adapters.colmap.database import ColmapDatabase
from hiernorm.adapters.colmap.mapping import map_database
from hiernorm.adapters.colmap.matcher import MatchingReport, match_database
from hiernorm.adapters.colmap.options import DescriptorType, MatchingOptions
from hiernorm.adapters.colmap.pairing import (
    exhaustive_pairs,
    read_pairs,
    sequential_pairs,
    write_pairs,
)
from hiernorm.adapters.colmap.records import StoredImage
from hiernorm.adapters.colmap.retrieval import retrieve_pairs
from hiernorm.adapters.colmap.verification import verify_pairs

__all__ = [
    "ColmapDatabase",
    "Comparison",
    "DescriptorType",
    "MatchingOptions",
    "MatchingReport",
    "PairComparison",
    "StoredImage",
    "compare_matches",
    "exhaustive_pairs",
    "map_database",
    "match_database",
    "read_pairs",
    "retrieve_pairs",
    "sequential_pairs",
    "verify_pairs",
    "write_pairs",
]
