"""The plan for plain vectors: whether codes pay, or every row is better read at once.

Codes pay where they rule most entries out. Where they do not, the cascade reads most rows after
their codes, and the flat scan, which reads rows in order and shares them between queries, is
faster. The plan is made by searching a sample and counting. Answers never depend on it.
"""

from __future__ import annotations

import numpy as np

from hiernorm import _core
from hiernorm.array_types import Float32Array
from hiernorm.certificate import STEPS, read_stats
from hiernorm.rotation import PROBES
from hiernorm.settings import EXACT

SCAN_NS_PER_SLOT = 0.03
"""Time of one byte of codes in the scan of a batch, in nanoseconds; measured, as what follows."""
SURVIVOR_NS = 25.0
"""Time of an entry that the scan does not rule out, and more for each of its dimensions."""
SURVIVOR_NS_PER_DIM = 0.16
FLAT_NS_PER_DIM = 0.1
"""Time of one dimension of an entry in a flat scan; between those of single queries and batches."""


TRIAL_HITS = 5
"""Of a trial: a row that serves as a query finds itself first."""


def prefers_flat(sample: _core.Index, rows: Float32Array) -> bool:
    """Whether a flat scan of such vectors is expected to be faster than the cascade.

    Parameters
    ----------
    sample
        A native index of ``rows``, which are a sample of the entries.
    rows
        ``(n, d)``.
    """
    encoding = sample.encoding()
    assert encoding is not None
    d = rows.shape[1]
    survivor_ns = SURVIVOR_NS + SURVIVOR_NS_PER_DIM * d
    scan_ns = (encoding.major + 1) * SCAN_NS_PER_SLOT
    cascade_ns = scan_ns + survivors(sample, rows) * survivor_ns
    return bool(FLAT_NS_PER_DIM * d < cascade_ns)


def survivors(sample: _core.Index, rows: Float32Array) -> float:
    """The share of ``rows`` that the scan does not rule out, where some of them are the queries."""
    n = len(rows)
    probes = rows[np.linspace(0, n - 1, min(PROBES, n)).astype(np.int64)]
    _, _, stats, _, _ = sample.search(probes, TRIAL_HITS, EXACT, 1, 0)
    work, _ = read_stats(stats)
    return float(work[:, STEPS.index("sifted")].mean() / n)
