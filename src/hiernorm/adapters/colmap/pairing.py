"""Which pairs of images are matched: all, neighbours in the order of names, or those of a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

from hiernorm._files import replacing
from hiernorm.adapters.colmap.database import Pair, StoredImage


def exhaustive_pairs(images: Sequence[StoredImage]) -> list[Pair]:
    """All pairs, by id."""
    return list(combinations(sorted(image.image_id for image in images), 2))


def sequential_pairs(images: Sequence[StoredImage], overlap: int) -> list[Pair]:
    """Each image with the ``overlap`` that follow it in the order of names, as in a video.

    Examples
    --------
    >>> images = [StoredImage(i, f"{i}.jpg", 0) for i in (1, 2, 3, 4)]
    >>> sequential_pairs(images, 2)
    [(1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]
    """
    if overlap < 1:
        raise ValueError(f"overlap must be at least 1, got {overlap}")
    ids = [image.image_id for image in sorted(images, key=lambda image: image.name)]
    near = ((ids[i], j) for i in range(len(ids)) for j in ids[i + 1 : i + 1 + overlap])
    return _in_order(near)


def read_pairs(path: Path | str, images: Sequence[StoredImage]) -> list[Pair]:
    """The pairs of a file with two names a line, as COLMAP and hloc write them.

    Empty lines and lines that begin with # are left out; so are repetitions, in either order.
    """
    ids = {image.name: image.image_id for image in images}
    found = []
    for number, line in enumerate(Path(path).read_text().splitlines(), start=1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if len(words) != 2:
            raise ValueError(f"{path}, line {number}: expected two names, found {line.strip()!r}")
        for word in words:
            if word not in ids:
                raise ValueError(f"{path}, line {number}: no image {word!r} in the database")
        if words[0] != words[1]:
            found.append((ids[words[0]], ids[words[1]]))
    return _in_order(found)


def write_pairs(path: Path | str, pairs: Iterable[Pair], images: Sequence[StoredImage]) -> None:
    """Write pairs as names, two a line; as a whole or not at all."""
    names = {image.image_id: image.name for image in images}
    lines = [f"{names[a]} {names[b]}\n" for a, b in pairs]
    with replacing(Path(path), durable=False) as fresh:
        fresh.write_text("".join(lines))


def _in_order(pairs: Iterable[Pair]) -> list[Pair]:
    """Pairs with the smaller id first, each once, by id."""
    return sorted({(min(pair), max(pair)) for pair in pairs})
