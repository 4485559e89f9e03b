"""Tracks: keypoints of several photos that show one point, from matches of photos in pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hiernorm.array_types import Int64Array
from hiernorm.vision.frames import Frames


def link_matches(
    sizes: Sequence[int], matches: dict[tuple[int, int], Int64Array]
) -> list[Int64Array]:
    """Join matches into tracks; a track that sees one photo twice is wrong somewhere: left out.

    Parameters
    ----------
    sizes
        Keypoints of each photo.
    matches
        For photos ``(i, j)``: ``(n, 2)`` keypoints of i and of j that show one point.

    Returns
    -------
    list of (views, 2) int64
        Photo and keypoint of each view, by photo; the tracks of most views first, then by their
        first view.

    Examples
    --------
    >>> pairs = {(0, 1): np.array([[0, 5], [1, 6]]), (1, 2): np.array([[5, 3]])}
    >>> [track.tolist() for track in link_matches([10, 10, 10], pairs)]
    [[[0, 0], [1, 5], [2, 3]], [[0, 1], [1, 6]]]
    """
    starts = np.concatenate(([0], np.cumsum(sizes)))
    parents = np.arange(starts[-1])

    def root(node: int) -> int:
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = int(parents[node])
        return node

    for (i, j), pairs in sorted(matches.items()):
        for a, b in pairs + starts[[i, j]]:
            # The smaller root wins: the result does not depend on the order of the matches.
            first, second = sorted((root(int(a)), root(int(b))))
            parents[second] = first
    roots = np.array([root(node) for node in range(len(parents))], np.int64)
    order = np.argsort(roots, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(roots[order])) + 1) if len(order) else []
    tracks = []
    for nodes in groups:
        photos = np.searchsorted(starts, nodes, side="right") - 1
        if len(nodes) > 1 and len(np.unique(photos)) == len(photos):
            tracks.append(np.column_stack((photos, nodes - starts[photos])))
    return sorted(tracks, key=lambda track: (-len(track), track[0].tolist()))


def keep_apart(
    tracks: Sequence[Int64Array], frames: Sequence[Frames], distance: float
) -> list[Int64Array]:
    """Leave out tracks that come too near, in any photo, to one before them.

    Parameters
    ----------
    tracks
        As :func:`link_matches` returns them; earlier ones win.
    frames
        Keypoints of each photo.
    distance
        Least distance of two tracks, in sigmas of the finer keypoint.

    Examples
    --------
    >>> photo = Frames([10, 12, 90], [10, 10, 10], [2, 2, 2], [0, 0, 0])
    >>> tracks = [np.array([[0, row], [1, row]]) for row in range(3)]
    >>> [track[0, 1].item() for track in keep_apart(tracks, [photo, photo], 4.0)]
    [0, 2]
    """
    taken: list[list[int]] = [[] for _ in frames]
    kept = []
    for track in tracks:
        if all(_is_free(frames[photo], taken[photo], row, distance) for photo, row in track):
            kept.append(track)
            for photo, row in track:
                taken[photo].append(row)
    return kept


def _is_free(frames: Frames, taken: list[int], row: int, distance: float) -> bool:
    rows = np.array(taken, np.int64)
    apart = np.hypot(frames.x[rows] - frames.x[row], frames.y[rows] - frames.y[row])
    finer = np.minimum(frames.sigma[rows], frames.sigma[row])
    return bool((apart >= distance * finer).all())
