"""Exact and deterministic vector search.

An answer has the ids and the score bits of exhaustive search, on every run and machine:

>>> import numpy as np, hiernorm
>>> embeddings = np.random.default_rng(0).standard_normal((1000, 384))
>>> index = hiernorm.Index(dim=384)
>>> index.add(embeddings)
1000
>>> hits = index.search(embeddings[:2], k=10)
>>> hits.ids[:, 0].tolist(), bool(hits.certificate.exact.all())
([0, 1], True)

Vectors of a network that was trained for it, by Hierarchical Normalization (HN), are searched
faster: ``Index(dim, major=..., alpha=...)``. Do not use :func:`normalize` on other vectors: it
changes their nearest neighbours.
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
