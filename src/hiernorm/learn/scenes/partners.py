"""Partners of photos: which two are worth matching, by exact neighbours of few keypoints."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from hiernorm.array_types import Float32Array
from hiernorm.index import Index

VOTERS = 500
"""Keypoints of a photo that vote, and that can be voted for: the strongest."""

NEIGHBOURS = 8
"""Votes of a keypoint: for the photos of so many nearest keypoints."""


def choose_partners(descriptors: Sequence[Float32Array], partners: int) -> list[tuple[int, int]]:
    """Return pairs of photos ``(i, j)``, i < j: each with the ``partners`` most like it.

    Parameters
    ----------
    descriptors
        Of each photo, ``(n, d)``, the strongest keypoints first.
    partners
        How many; 0 or as many as there are photos means every two.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.random.default_rng(0).standard_normal((2, 200, 16), np.float32)
    >>> choose_partners([a, b, a, b], 1)
    [(0, 2), (1, 3)]
    """
    photos = len(descriptors)
    if partners == 0 or partners >= photos - 1:
        return list(combinations(range(photos), 2))
    voters = [rows[:VOTERS] for rows in descriptors]
    owners = np.repeat(np.arange(photos), [len(rows) for rows in voters])
    index = Index(descriptors[0].shape[1])
    index.add(np.concatenate(voters))
    # A keypoint is its own nearest neighbour, and others of its photo may be near as well.
    found = index.search(np.concatenate(voters), min(NEIGHBOURS + 1, len(index))).ids
    votes = np.zeros((photos, photos), np.int64)
    np.add.at(votes, (np.repeat(owners, found.shape[1]), owners[found].ravel()), 1)
    np.fill_diagonal(votes, -1)
    votes += votes.T
    chosen = np.argsort(-votes, axis=1, kind="stable")[:, :partners]
    rows = np.repeat(np.arange(photos), partners)
    couples = np.sort(np.column_stack((rows, chosen.ravel())), axis=1)
    return [(int(i), int(j)) for i, j in np.unique(couples, axis=0)]
