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

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.adapters.disk_space import require_space
from hiernorm.adapters.hloc_matcher import NearestNeighbor
from hiernorm.extras import import_extra
from hiernorm.matching import DescriptorSet
from hiernorm.progress import ProgressCallback
from hiernorm.storage.errors import DamagedError, LockedError

INT16 = np.iinfo(np.int16).max
"""Largest keypoint that hloc's int16 can name."""

__all__ = ["NearestNeighbor", "match_features", "pair_name"]


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
        take either. A warning says so, once.
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
        with _named_damage(matches):
            todo = [
                pair
                for pair in _each_once(wanted)
                if overwrite or (not _complete(out, pair) and not _complete(out, pair[::-1]))
            ]
        kept: dict[str, DescriptorSet] = {}
        warned = False
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
            with _named_damage(matches):
                narrow = _write(out, (one, other), found)
            if not (narrow or warned):
                warned = True
                warnings.warn(
                    f"{matches}: {one!r} or {other!r} has more than {INT16:,} keypoints, so "
                    "matches0 is int32 there and not hloc's int16",
                    stacklevel=2,
                )
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


@contextmanager
def _named_damage(file: Path | str) -> Iterator[None]:
    """Name the file where HDF5 finds damage inside of it; its own errors do not."""
    try:
        yield
    except (KeyError, MemoryError, OSError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DamagedError(
            f"{file} is damaged ({error}). Move it away and make it again"
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
    with _named_damage(file):
        there = name in opened and "descriptors" in opened[name]
        rows = np.asarray(opened[name]["descriptors"]) if there else None
    if rows is None:
        raise KeyError(f"{file} has no descriptors of {name!r}: extract its features first")
    try:
        if rows.ndim != 2:
            raise ValueError(f"expected the shape (D, N), got {rows.shape}")
        return DescriptorSet(rows.T, threads=threads)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{file}: descriptors of {name!r}: {error}") from error


def _write(out: Any, pair: tuple[str, str], found: Mapping[str, npt.NDArray[Any]]) -> bool:
    """Write a pair; returns whether int16 can name its keypoints.

    ``matches0`` comes last, so that a pair that has it is whole.
    """
    name = pair_name(*pair)
    if name in out:
        del out[name]
    group = out.create_group(name)
    group.create_dataset("matching_scores0", data=found["matching_scores0"].astype(np.float16))
    rows = found["matches0"]
    narrow = len(rows) <= INT16 and int(rows.max(initial=-1)) <= INT16
    group.create_dataset("matches0", data=rows.astype(np.int16) if narrow else rows)
    out.flush()
    return narrow


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
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text (byte {error.start:,}): expected two names a line"
        ) from None
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        if len(words) != 2:
            raise ValueError(f"{path}, line {number}: expected two names, found {line.strip()!r}")
        pairs.append((words[0], words[1]))
    return pairs
