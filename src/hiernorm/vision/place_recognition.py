"""Place recognition: which photos of a collection show the same place as another photo."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hiernorm._deprecation import renamed_attribute
from hiernorm.array_types import Int64Array
from hiernorm.vision.collection import Collection
from hiernorm.vision.features import PhotoFeatures, require_same_model
from hiernorm.vision.photo_match import PhotoMatch, match_photos

NEIGHBOURS = 5
"""Votes per descriptor: its exact nearest neighbours."""
CANDIDATES = 10
"""Number of photos, by votes, that are verified geometrically."""


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
    match
        The matches and their geometry.
    """

    photo: int
    votes: int
    inliers: int
    match: PhotoMatch
    pairing = renamed_attribute("pairing", "match")

    @property
    def convincing(self) -> bool:
        """Whether more matches agree than by chance."""
        return self.match.evidence.convincing


def locate(
    collection: Collection,
    query: PhotoFeatures,
    *,
    neighbours: int = NEIGHBOURS,
    candidates: int = CANDIDATES,
    leave_out: int | None = None,
    threads: int | None = None,
) -> list[Candidate]:
    """Find the photos that show what ``query`` shows, the best first.

    Every descriptor of the query votes for the photos of its exact nearest neighbours; the photos
    with the most votes are matched with the query. Convincing photos come first, by inliers. The
    others follow by votes, since their number of inliers is chance.

    Parameters
    ----------
    collection
        The photos to search.
    query
        The photo, described as the collection's photos were: ValueError for another model.
    neighbours, candidates
        Votes per descriptor, and the number of photos that are verified.
    leave_out
        Number of a photo of the collection to leave out, such as the query itself.
    threads
        Threads of search and matching.
    """
    require_same_model(query.model_digest, collection.model_digest)
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
        other = PhotoFeatures(
            size.width,
            size.height,
            frames,
            collection.database.reconstruct(of_photo),
            collection.model_digest,
        )
        match = match_photos(query, other, geometry="fundamental", threads=threads)
        found.append(Candidate(int(photo), int(votes[photo]), match.geometry.count, match))
    return rank_candidates(found)


def rank_candidates(candidates: list[Candidate]) -> list[Candidate]:
    """Convincing candidates by inliers, then the others by votes."""

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
