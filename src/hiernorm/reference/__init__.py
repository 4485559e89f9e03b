"""The executable specification, in plain NumPy.

Everything native equals what stands here: scores and answers bit for bit (:mod:`.canonical`), and
the counts of certificates (:mod:`.cascade`). No cleverness: both files are meant to be read in one
sitting.
"""

from hiernorm.reference.byte_matches import match_bytes
from hiernorm.reference.canonical import (
    LANES,
    Float32Array,
    Float64Array,
    Int64Array,
    algorithm_1,
    canonical_distance,
    canonical_dot,
    canonical_norm,
    canonical_scores,
    canonical_sum,
    certified_bound,
    certified_search,
    exhaustive_range,
    exhaustive_search,
    flat_work,
    rank,
    scans_flat,
)
from hiernorm.reference.cascade import Answer, cascade_search

__all__ = [
    "LANES",
    "Answer",
    "Float32Array",
    "Float64Array",
    "Int64Array",
    "algorithm_1",
    "canonical_distance",
    "canonical_dot",
    "canonical_norm",
    "canonical_scores",
    "canonical_sum",
    "cascade_search",
    "certified_bound",
    "certified_search",
    "exhaustive_range",
    "exhaustive_search",
    "flat_work",
    "match_bytes",
    "rank",
    "scans_flat",
]
