"""Which images see the same place: votes by exact nearest neighbours over all images."""

from __future__ import annotations

import numpy as np

from hiernorm.adapters.colmap.database import ColmapDatabase
from hiernorm.adapters.colmap.matcher import common_type
from hiernorm.adapters.colmap.records import Pair
from hiernorm.array_types import Float32Array, Int64Array, UInt8Array
from hiernorm.index import Index
from hiernorm.progress import ProgressCallback

NEIGHBOURS = 5
"""Votes per descriptor: its exact nearest neighbours in other images."""
FEATURES = 1000
"""Descriptors of each image that vote and are voted for."""


def retrieve_pairs(
    database: ColmapDatabase,
    top: int,
    *,
    features: int = FEATURES,
    neighbours: int = NEIGHBOURS,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
) -> list[Pair]:
    """Each image with the ``top`` images that it has the most votes for.

    One index holds descriptors of all images. Every descriptor votes for the images of its nearest
    neighbours outside its own image, once for each image. The neighbours are exact, so the pairs
    are the same on every machine. No vocabulary tree is trained or downloaded.

    Parameters
    ----------
    database
        A database with descriptors of one type.
    top
        Images per image; ties go to the smaller id.
    features
        Descriptors of an image that take part, spread evenly over those that it has: memory grows
        with the number of images, by about a megabyte each at 1,000 SIFT.
    neighbours
        Neighbours that a descriptor votes for.
    threads
        As for :class:`hiernorm.Index`.
    progress
        Called with the images done and their number.

    Returns
    -------
    Pairs of ids, the smaller one first, by id.
    """
    if top < 1:
        raise ValueError(f"top must be at least 1, got {top}")
    images = [image.image_id for image in database.images() if image.descriptors]
    common_type(database, [(image, image) for image in images])
    parts = [_spread(database.descriptors(image), features) for image in images]
    if len(images) < 2:
        return []
    starts = np.concatenate(([0], np.cumsum([len(part) for part in parts])))
    index = Index(parts[0].shape[1], threads=threads)
    index.add(np.concatenate(parts).astype(np.float32))
    owners = np.repeat(np.arange(len(images)), np.diff(starts))
    found: set[Pair] = set()
    for number, part in enumerate(parts):
        others = np.flatnonzero(owners != number)
        rows = part.astype(np.float32)
        hits = index.search(rows, min(neighbours, len(others)), where=others, threads=threads)
        for other in _most_voted(owners[hits.ids], len(images))[:top]:
            pair = sorted((images[number], images[other]))
            found.add((pair[0], pair[1]))
        if progress is not None:
            progress(number + 1, len(images))
    return sorted(found)


def _spread(rows: UInt8Array | Float32Array, count: int) -> UInt8Array | Float32Array:
    """At most ``count`` rows, spread evenly."""
    if len(rows) <= count:
        return rows
    return rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]


def _most_voted(photos: Int64Array, count: int) -> Int64Array:
    """Numbers of the photos that have votes, by votes; ``photos`` ``(m, k)`` are the votes."""
    voters = np.repeat(np.arange(len(photos)), photos.shape[1])
    once = np.unique(np.column_stack((voters, photos.ravel())), axis=0)
    votes = np.bincount(once[:, 1], minlength=count)
    order = np.lexsort((np.arange(count), -votes))
    return order[votes[order] > 0]
