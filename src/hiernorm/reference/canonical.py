"""Canonical scores, exhaustive search, and the paper's algorithm, as printed and made safe.

=============  ==================================================================================
paper          here
=============  ==================================================================================
``q, x_i``     a query ``(d,)`` and the rows of ``x`` ``(n, d)``, float32
``K``          ``major``: the first K dimensions carry ``1 - alpha`` of the energy
``alpha``      ``alpha``: the energy of the other ``d - K`` dimensions and the bound on their sum
``dot_K``      ``s``: inner products over the major alone
``b``          ``b``: the entry with the best major
``s_best``     ``s_best``: the best full score so far
=============  ==================================================================================

Scores are *canonical*: the product of two float32 is exact in float64, and the sum of the products
is taken in one fixed order. Results are ordered by (score descending, id ascending).
"""

from __future__ import annotations

import numpy as np

from hiernorm.array_types import Float32Array as Float32Array
from hiernorm.array_types import Float64Array as Float64Array
from hiernorm.array_types import Int64Array as Int64Array

LANES = 16
"""Product j of a sum goes to lane j mod 16."""


def canonical_dot(q: Float32Array, x: Float32Array) -> Float64Array:
    """Inner products of ``q`` ``(d,)`` with the rows of ``x`` ``(n, d)``: ``(n,)`` float64.

    Lane l adds the products l, l + 16, l + 32, ... in this order, starting from 0; then the upper
    half of the lanes is added to the lower half until one lane is left.

    Examples
    --------
    >>> import numpy as np
    >>> canonical_dot(np.float32([1, 2, 3]), np.float32([[1, 0, 1], [0, 1, 0]]))
    array([4., 2.])
    """
    return canonical_sum(x.astype(np.float64) * q.astype(np.float64))


def canonical_sum(products: Float64Array, lanes: int = LANES) -> Float64Array:
    """Sums of the rows of ``products`` ``(n, d)`` in the fixed order of :func:`canonical_dot`.

    Scores run in 16 ``lanes``; the squares of codes' errors, in bounds, run in 8.

    Examples
    --------
    >>> import numpy as np
    >>> canonical_sum(np.array([[0.5, 0.25], [1.0, 2.0]]))
    array([0.75, 3.  ])
    """
    n, d = products.shape
    sums = np.zeros((n, lanes))
    for first in range(0, d, lanes):
        part = products[:, first : first + lanes]
        sums[:, : part.shape[1]] += part
    half = lanes
    while half > 1:
        half //= 2
        sums = sums[:, :half] + sums[:, half:]
    return sums[:, 0]


def canonical_norm(x: Float32Array) -> Float64Array:
    """Norms of the rows of ``x`` ``(n, d)``: the roots of their canonical products with themselves.

    Examples
    --------
    >>> import numpy as np
    >>> canonical_norm(np.float32([[3, 4]]))
    array([5.])
    """
    norms: Float64Array = np.sqrt(canonical_sum(np.square(x.astype(np.float64))))
    return norms


def canonical_distance(q: Float32Array, x: Float32Array) -> Float64Array:
    """Squared distances of ``q`` ``(d,)`` to the rows of ``x`` ``(n, d)``: ``(n,)`` float64.

    Differences are taken in float64 and rounded, so are their squares; the sum is canonical.

    Examples
    --------
    >>> import numpy as np
    >>> canonical_distance(np.float32([1, 2]), np.float32([[1, 0], [4, 6]]))
    array([ 4., 25.])
    """
    return canonical_sum(np.square(q.astype(np.float64) - x.astype(np.float64)))


def canonical_scores(q: Float32Array, x: Float32Array, metric: str = "ip") -> Float64Array:
    """Scores of ``q`` ``(d,)`` against the rows of ``x`` ``(n, d)``: ``(n,)`` float64.

    Examples
    --------
    >>> import numpy as np
    >>> canonical_scores(np.float32([0, 2]), np.float32([[0, 3], [4, 3]]), "cosine")
    array([1. , 0.6])
    >>> canonical_scores(np.float32([0, 2]), np.float32([[0, 3], [4, 3]]), "l2")
    array([ -1., -17.])
    """
    if metric == "l2":
        return 0.0 - canonical_distance(q, x)
    dots = canonical_dot(q, x)
    if metric == "ip":
        return dots
    scores: Float64Array = dots / (canonical_norm(q[np.newaxis])[0] * canonical_norm(x))
    return scores


def rank(scores: Float64Array, ids: Int64Array) -> Int64Array:
    """Positions in the order of results: score descending, then id ascending.

    Examples
    --------
    >>> import numpy as np
    >>> rank(np.array([1.0, 2.0, 2.0]), np.array([7, 9, 8]))
    array([2, 1, 0])
    """
    return np.lexsort((ids, -scores))


def exhaustive_search(
    q: Float32Array, x: Float32Array, ids: Int64Array, k: int, metric: str = "ip"
) -> tuple[Int64Array, Float64Array]:
    """Ids and scores of the k best entries, best first; fewer if there are fewer.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.float32([[1, 0], [0, 1], [1, 1]])
    >>> exhaustive_search(np.float32([1, 0]), x, np.array([10, 11, 12]), k=2)
    (array([10, 12]), array([1., 1.]))
    """
    scores = canonical_scores(q, x, metric)
    best = rank(scores, ids)[:k]
    return ids[best], scores[best]


def flat_work(scores: Float64Array, k: int) -> int:
    """What a certificate of the flat scan counts as settled.

    These are the entries whose canonical score reaches the k-th best: the k hits, and entries that
    tie with the last of them. All others are ruled out by scores that rounding may have changed, of
    which nothing is counted. The count is therefore the same for every batch and instruction set.

    Examples
    --------
    >>> import numpy as np
    >>> flat_work(np.array([3.0, 1.0, 2.0, 2.0]), k=2)
    3
    """
    threshold = -np.inf if k > len(scores) else np.sort(scores)[::-1][k - 1]
    return int(np.count_nonzero(scores >= threshold))


def scans_flat(plan: list[int], k: int, queries: int) -> bool:
    """Whether a group of so many queries for k hits is scanned flat by an index with codes.

    ``plan`` says from how many queries on: its element i is for about 4**i hits, the last one also
    for more; 0 is never. The certificate then counts as :func:`flat_work` does, otherwise as
    :func:`cascade_search`.

    Examples
    --------
    >>> scans_flat([0, 40, 1], k=7, queries=40), scans_flat([0, 40, 1], k=8, queries=1)
    (True, True)
    """
    if not plan:
        return False
    least = plan[min(k.bit_length() // 2, len(plan) - 1)]
    return 0 < least <= queries


def exhaustive_range(
    q: Float32Array, x: Float32Array, ids: Int64Array, threshold: float, metric: str = "ip"
) -> tuple[Int64Array, Float64Array]:
    """Ids and scores of all entries with score >= threshold, best first.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.float32([[1, 0], [0, 1], [1, 1]])
    >>> exhaustive_range(np.float32([1, 0]), x, np.array([10, 11, 12]), threshold=0.5)
    (array([10, 12]), array([1., 1.]))
    """
    found, scores = exhaustive_search(q, x, ids, len(x), metric)
    inside = scores >= threshold
    return found[inside], scores[inside]


def algorithm_1(q: Float32Array, x: Float32Array, major: int, alpha: float) -> tuple[int, int]:
    """Algorithm 1 of the paper, step by step, as printed: real numbers, nominal ``alpha``.

    It is exact for vectors that satisfy Eq. (1) *exactly*. Float32 vectors do not; ``certified``
    below is what a computer needs.

    Returns
    -------
    The index of the nearest neighbour and the number of entries that were fully evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.float32([[0.6, 0.8, 0.0], [0.8, 0.6, 0.0], [1.0, 0.0, 0.0]])
    >>> algorithm_1(np.float32([1, 0, 0]), x, major=2, alpha=0.0)
    (2, 1)
    """
    # Step 1, phase 1: compute and store the major scores; b is their argmax, ties by index.
    s = canonical_dot(q[:major], x[:, :major])
    b = int(np.argmax(s))
    # Step 2: one full score.
    s_best = canonical_dot(q, x[b : b + 1])[0]
    best_idx = b
    evaluated = 1
    # Step 3, phase 2: all others in index order.
    for i in range(len(x)):
        if i == b or s[i] + alpha <= s_best:
            continue
        c = canonical_dot(q, x[i : i + 1])[0]
        evaluated += 1
        if c > s_best:
            s_best = c
            best_idx = i
    # Step 4.
    return best_idx, evaluated


def certified_bound(q: Float32Array, x: Float32Array, major: int) -> Float64Array:
    """Upper bounds on the canonical inner products of ``q`` with the rows of ``x``: ``(n,)``.

    The major's product plus the product of the *measured* minor norms (Cauchy-Schwarz), plus slack
    for every rounding: a float64 sum of d terms errs by less than ``d * 2**-53`` of the sum of
    their absolute values, which is at most ``|q| |x|``; there are fewer than 8 such sums and roots.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.float32([[0.6, 0.8, 0.0], [0.8, 0.0, 0.6]])
    >>> bool(np.all(certified_bound(x[0], x, major=2) >= canonical_dot(x[0], x)))
    True
    """
    minor_product = canonical_norm(q[np.newaxis, major:])[0] * canonical_norm(x[:, major:])
    norms = canonical_norm(q[np.newaxis])[0] * canonical_norm(x)
    slack = 8 * len(q) * 2.0**-53 * norms
    bounds: Float64Array = canonical_dot(q[:major], x[:, :major]) + minor_product + slack
    return bounds


def certified_search(
    q: Float32Array, x: Float32Array, ids: Int64Array, k: int, major: int
) -> tuple[Int64Array, Float64Array, int]:
    """The k best entries by two phases with certified bounds: Algorithm 1 made safe.

    An entry is skipped only if its bound is *below* the k-th best score: an equal one might still
    win its tie by id. Any finite vectors are searched exactly, HN or not.

    Returns
    -------
    Ids and scores as :func:`exhaustive_search`, and the number of entries fully evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.float32([[0.6, 0.8, 0.0], [0.8, 0.6, 0.0], [1.0, 0.0, 0.0]])
    >>> certified_search(np.float32([1, 0, 0]), x, np.arange(3), k=1, major=2)
    (array([2]), array([1.]), 1)
    """
    bound = certified_bound(q, x, major)
    first = np.argsort(-canonical_dot(q[:major], x[:, :major]), kind="stable")[:k]
    evaluated = {int(i): float(canonical_dot(q, x[i : i + 1])[0]) for i in first}
    for i in range(len(x)):
        kth_score = sorted(evaluated.values(), reverse=True)[:k][-1]
        if i not in evaluated and bound[i] >= kth_score:
            evaluated[i] = float(canonical_dot(q, x[i : i + 1])[0])
    positions = np.array(sorted(evaluated), dtype=np.int64)
    scores = np.array([evaluated[int(i)] for i in positions])
    best = rank(scores, ids[positions])[:k]
    return ids[positions][best], scores[best], len(evaluated)
