"""hloc with exact matches: its feature and match files, and a matcher of its shape.

hloc keeps the descriptors of a photo as ``(D, N)`` in ``features.h5``. In ``matches.h5`` it keeps,
for each keypoint of the first photo of a pair, the keypoint of the second that matches, or -1.

>>> import numpy as np
>>> from hiernorm.adapters.hloc import NearestNeighbor
>>> rows = np.eye(3, dtype=np.float32)
>>> found = NearestNeighbor()({"descriptors0": rows[:, :2], "descriptors1": rows[:, ::-1]})
>>> found["matches0"].tolist(), found["matching_scores0"].tolist()
([2, 1], [1.0, 1.0])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.adapters.disk_space import require_space
from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.extras import import_extra
from hiernorm.index import Index
from hiernorm.matching import DescriptorSet
from hiernorm.progress import ProgressCallback
from hiernorm.storage.errors import DamagedError, LockedError

INT16 = np.iinfo(np.int16).max
"""Largest keypoint that hloc's int16 can name."""


@dataclass(frozen=True)
class NearestNeighbor:
    """hloc's ``nearest_neighbor`` matcher, exact and in linear memory.

    Parameters
    ----------
    ratio_threshold
        Keep a match if its Euclidean distance is at most this share of the second best's; None or 0
        for no test. As in hloc, there is no test if either photo has one keypoint.
    distance_threshold
        Largest Euclidean distance of a match; None or 0 for any.
    do_mutual_check
        Whether both must be the nearest of each other.
    threads
        As for :class:`hiernorm.Index`.
    """

    ratio_threshold: float | None = None
    distance_threshold: float | None = None
    do_mutual_check: bool = True
    threads: int | None = None

    def __call__(self, data: Mapping[str, npt.ArrayLike]) -> dict[str, npt.NDArray[Any]]:
        """Match ``descriptors0`` ``(D, N)`` with ``descriptors1`` ``(D, M)``.

        hloc's own calls have a batch: ``(B, D, N)`` and ``(B, D, M)`` give results ``(B, N)``.

        Returns
        -------
        dict
            ``matches0`` ``(N,)`` int32, -1 for none, and ``matching_scores0`` ``(N,)`` float32:
            (similarity + 1) / 2 of the nearest, and 0 where it fails a threshold. As in hloc, the
            mutual check leaves the scores as they are.
        """
        names = ("descriptors0", "descriptors1")
        first, second = (np.asarray(data[name]) for name in names)
        if first.ndim != second.ndim or first.ndim not in (2, 3) or len(first) != len(second):
            raise ValueError(
                f"{names[0]} and {names[1]} must be (D, N) and (D, M), or both with a batch B in "
                f"front, got {first.shape} and {second.shape}"
            )
        if first.ndim == 2:
            return self._match_columns(first, second)
        found = [self._match_columns(*both) for both in zip(first, second, strict=True)]
        return {name: np.stack([one[name] for one in found]) for name in found[0]}

    def _match_columns(
        self, first: npt.NDArray[Any], second: npt.NDArray[Any]
    ) -> dict[str, npt.NDArray[Any]]:
        return self.match(*(DescriptorSet(one.T, threads=self.threads) for one in (first, second)))

    def match(self, first: DescriptorSet, second: DescriptorSet) -> dict[str, npt.NDArray[Any]]:
        """Match sets whose indexes are kept."""
        matches = np.full(len(first), -1, np.int32)
        scores = np.zeros(len(first), np.float32)
        if len(first) and len(second):
            tested = bool(self.ratio_threshold) and min(len(first), len(second)) > 1
            found, similarities = self._one_way(first.rows, second.index, tested)
            passed = np.flatnonzero(found >= 0)
            scores[passed] = (similarities[passed] + 1) / 2
            if self.do_mutual_check:
                back, _ = self._one_way(second.rows, first.index, tested)
                passed = passed[back[found[passed]] == passed]
            matches[passed] = found[passed]
        return {"matches0": matches, "matching_scores0": scores}

    def _one_way(
        self, queries: Float32Array, index: Index, tested: bool
    ) -> tuple[Int64Array, Float32Array]:
        """The nearest of each query, -1 where a test fails, and its similarity."""
        hits = index.search(queries, 2 if tested else 1, threads=self.threads)
        squares = 2 * (1 - hits.scores)
        passed = np.ones(len(queries), np.bool_)
        if tested and self.ratio_threshold is not None:
            passed &= squares[:, 0] <= self.ratio_threshold**2 * squares[:, 1]
        if self.distance_threshold:
            passed &= squares[:, 0] <= self.distance_threshold**2
        return np.where(passed, hits.ids[:, 0], -1), hits.scores[:, 0].astype(np.float32)


def match_features(
    features: Path | str,
    pairs: Path | str | Iterable[tuple[str, str]],
    matches: Path | str,
    *,
    matcher: NearestNeighbor | None = None,
    features_ref: Path | str | None = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> int:
    """Match pairs of photos as ``hloc.match_features`` does; pairs that are there are kept.

    Parameters
    ----------
    features
        ``features.h5``: a group for each photo, with ``descriptors`` ``(D, N)``.
    pairs
        A file with two names a line, or the names.
    matches
        ``matches.h5``: made, or extended. ``matches0`` is int16 as hloc writes it, or int32 where
        a photo has more than 32,767 keypoints: hloc's int16 would overflow there, and its readers
        take either.
    matcher
        None for mutual nearest neighbours.
    features_ref
        Features of the second photos, if they are in another file.
    overwrite
        Whether pairs that are there are matched again.
    progress
        Called with the pairs done and their number.

    Returns
    -------
    The number of pairs that were matched.
    """
    h5py = import_extra("h5py", extra="colmap")
    matcher = matcher or NearestNeighbor()
    for file in (features, features_ref):
        if file is not None and not Path(file).is_file():
            raise FileNotFoundError(f"no features at {file}: expected a file of hloc")
    wanted = _read_names(Path(pairs)) if isinstance(pairs, str | Path) else list(pairs)
    Path(matches).parent.mkdir(parents=True, exist_ok=True)
    require_space(matches, 0, "HDF5")
    with (
        _open(h5py, features, "r") as first,
        _open(h5py, features_ref or features, "r") as second,
        _open(h5py, matches, "a") as out,
    ):
        todo = [
            pair
            for pair in _each_once(wanted)
            if overwrite or (not _complete(out, pair) and not _complete(out, pair[::-1]))
        ]
        kept: dict[str, DescriptorSet] = {}
        for done, (one, other) in enumerate(sorted(todo), start=1):
            if one not in kept:  # sorted: the first photo stays while its pairs last
                kept = {one: _descriptors(first, one, features, matcher.threads)}
            another = _descriptors(second, other, features_ref or features, matcher.threads)
            dims = [rows.rows.shape[1] for rows in (kept[one], another)]
            if dims[0] != dims[1]:
                raise ValueError(
                    f"{features}: descriptors of {one!r} have {dims[0]} dimensions, those of "
                    f"{other!r} {dims[1]}: extract the features of all photos in one way"
                )
            found = matcher.match(kept[one], another)
            require_space(matches, sum(rows.nbytes for rows in found.values()), "HDF5")
            _write(out, (one, other), found)
            if progress is not None:
                progress(done, len(todo))
    return len(todo)


def _open(h5py: Any, file: Path | str, mode: str) -> Any:
    """Open a file of hloc; one that cannot be opened is named, with what to do."""
    try:
        return h5py.File(str(file), mode)
    except BlockingIOError as error:
        raise LockedError(
            f"{file} is locked: another process has it open. Wait for it, then run this again; "
            "pairs that are matched already are kept"
        ) from error
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except OSError as error:
        raise DamagedError(
            f"{file} is no HDF5 file, or it is damaged ({error}). Move it away and make it again"
        ) from error


def pair_name(first: str, second: str) -> str:
    """The group of a pair, as hloc names it.

    Examples
    --------
    >>> pair_name("db/1.jpg", "query/2.jpg")
    'db-1.jpg/query-2.jpg'
    """
    return "/".join((first.replace("/", "-"), second.replace("/", "-")))


def _descriptors(opened: Any, name: str, file: Path | str, threads: int | None) -> DescriptorSet:
    if name not in opened or "descriptors" not in opened[name]:
        raise KeyError(f"{file} has no descriptors of {name!r}: extract its features first")
    try:
        rows = np.asarray(opened[name]["descriptors"])
        if rows.ndim != 2:
            raise ValueError(f"expected the shape (D, N), got {rows.shape}")
        return DescriptorSet(rows.T, threads=threads)
    except (ValueError, TypeError, OSError) as error:
        raise type(error)(f"{file}: descriptors of {name!r}: {error}") from error


def _write(out: Any, pair: tuple[str, str], found: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write a pair; ``matches0`` comes last, so that a pair that has it is whole."""
    name = pair_name(*pair)
    if name in out:
        del out[name]
    group = out.create_group(name)
    group.create_dataset("matching_scores0", data=found["matching_scores0"].astype(np.float16))
    rows = found["matches0"]
    narrow = len(rows) <= INT16 and rows.max(initial=-1) <= INT16
    group.create_dataset("matches0", data=rows.astype(np.int16) if narrow else rows)
    out.flush()


def _complete(out: Any, pair: tuple[str, str]) -> bool:
    """Whether a pair is there, under its name or the one that older versions of hloc gave it."""
    name = pair_name(*pair)
    older = "_".join(name.split("/"))
    return any(one in out and "matches0" in out[one] for one in (name, older))


def _each_once(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Pairs without repetitions, in either order."""
    seen: set[tuple[str, str]] = set()
    for one, other in pairs:
        if (other, one) not in seen:
            seen.add((one, other))
    return sorted(seen)


def _read_names(path: Path) -> list[tuple[str, str]]:
    pairs = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        if len(words) != 2:
            raise ValueError(f"{path}, line {number}: expected two names, found {line.strip()!r}")
        pairs.append((words[0], words[1]))
    return pairs
