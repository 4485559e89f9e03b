"""Exact and deterministic vector retrieval by Hierarchical Normalization.

>>> import numpy as np, hiernorm
>>> features = np.random.default_rng(0).standard_normal((1000, 128))
>>> x = hiernorm.normalize(features, major=16, alpha=1/8)
>>> index = hiernorm.Index(dim=128, major=16, alpha=1/8)
>>> index.add(x)
>>> hits = index.search(x[:2], k=3)
>>> hits.ids[:, 0].tolist(), bool(hits.certificate.exact.all())
([0, 1], True)
"""

from importlib.metadata import version as _version

from hiernorm import reference
from hiernorm.certificate import Certificate, QueryCertificate
from hiernorm.hits import Hits, RangeHits
from hiernorm.index import Index
from hiernorm.instruction_sets import available_isas, isa
from hiernorm.matching import Matches, match_descriptors
from hiernorm.models import Model, available_models, load_model
from hiernorm.normalize import normalize
from hiernorm.searchable import Searchable
from hiernorm.storage.database import Database
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.selection import Selection
from hiernorm.verification import Verification

__version__ = _version("hiernorm")

__all__ = [
    "Certificate",
    "Database",
    "DatabaseError",
    "Hits",
    "Index",
    "Matches",
    "Model",
    "QueryCertificate",
    "RangeHits",
    "Searchable",
    "Selection",
    "Verification",
    "__version__",
    "available_isas",
    "available_models",
    "isa",
    "load_model",
    "match_descriptors",
    "normalize",
    "reference",
]
