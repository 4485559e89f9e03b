"""Location: which photos of a collection show the same place as another photo."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiernorm.array_types import Int64Array
from hiernorm.vision.collection import Collection
from hiernorm.vision.features import Description
from hiernorm.vision.photo_match import Pairing, pair_photos

NEIGHBOURS = 5
"""Exact nearest neighbours that each descriptor votes for."""
CANDIDATES = 10
"""Photos with the most votes, which are verified geometrically."""
CONVINCING, SHARE = 15, 0.25
"""A photo is said to show the place from this many inliers on, if they are this share of its
matches: among some hundred matches of unrelated photos, chance agrees with about one in six."""


@dataclass(frozen=True)
class Candidate:
    """A photo of the collection that may show the place.

    Attributes
    ----------
    photo
        Its number in the collection.
    votes
        Descriptors of the query that have one of their nearest neighbours in it.
    inliers
        Matches that agree with one epipolar geometry.
    pairing
        The matches themselves.
    """

    photo: int
    votes: int
    inliers: int
    pairing: Pairing

    @property
    def convincing(self) -> bool:
        """Whether more matches agree than chance would bring about."""
        return self.inliers >= max(CONVINCING, SHARE * len(self.pairing.matches))


def locate(
    collection: Collection,
    query: Description,
    *,
    neighbours: int = NEIGHBOURS,
    candidates: int = CANDIDATES,
    leave_out: int | None = None,
    threads: int | None = None,
) -> list[Candidate]:
    """Find the photos that show what ``query`` shows, the best first.

    Every descriptor of the query votes for the photos of its exact nearest neighbours; the photos
    with the most votes are matched with the query. Those where more matches agree than chance would
    bring about come first, by their number; the others follow by votes, since among them the number
    of matches that agree is chance.

    Parameters
    ----------
    collection
        Where to look.
    query
        The photo, described as the collection's photos were.
    neighbours, candidates
        How many votes a descriptor has, and how many photos are verified.
    leave_out
        Number of a photo of the collection that must not be found, such as the query itself.
    threads
        Of search and matching.
    """
    ids = collection.ids
    if leave_out is not None:
        ids = ids[collection.photos_of(ids) != leave_out]
    if len(ids) == 0 or len(query.frames) == 0:
        return []
    everything = len(ids) == len(collection.database)
    hits = collection.database.search(
        query.descriptors, neighbours, where=None if everything else ids, threads=threads
    )
    found = []
    votes = count_votes(collection, hits.ids)
    for photo in np.lexsort((np.arange(len(votes)), -votes))[:candidates]:
        if votes[photo] == 0:
            break
        of_photo, frames = collection.keypoints_of(int(photo))
        size = collection.photos[photo]
        other = Description(
            size.width, size.height, frames, collection.database.reconstruct(of_photo)
        )
        pairing = pair_photos(query, other, geometry="fundamental", threads=threads)
        found.append(Candidate(int(photo), int(votes[photo]), pairing.agreement.count, pairing))
    return rank(found)


def rank(candidates: list[Candidate]) -> list[Candidate]:
    """The convincing ones by inliers, then the others by votes."""

    def order(c: Candidate) -> tuple[int, ...]:
        if c.convincing:
            return 0, -c.inliers, -c.votes, c.photo
        return 1, -c.votes, -c.inliers, c.photo

    return sorted(candidates, key=order)


def count_votes(collection: Collection, neighbours: Int64Array) -> Int64Array:
    """Votes of each photo: rows of ``neighbours`` ``(m, k)`` with at least one id in it."""
    there = neighbours >= 0
    photos = collection.photos_of(neighbours[there])
    voter = np.nonzero(there)[0]
    once = np.unique(np.column_stack((voter, photos)), axis=0)
    return np.bincount(once[:, 1], minlength=len(collection)).astype(np.int64)
