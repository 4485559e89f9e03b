"""Which pairs of images are matched: all, neighbours in the order of names, or those of a file."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import combinations
from pathlib import Path

from hiernorm._files import replacing
from hiernorm.adapters.colmap.records import Pair, StoredImage


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

    Empty lines and lines that begin with # are left out; so are repetitions, in either order. Names
    may have spaces, if a line can be read in one way only or has a tab between them.
    """
    ids = {image.name: image.image_id for image in images}
    found = []
    for number, line in enumerate(_read_lines(Path(path)), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            first, second = _split(line, ids)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        if first != second:
            found.append((ids[first], ids[second]))
    if not found:
        raise ValueError(f"{path} has no pairs: expected two names of images a line")
    return _in_order(found)


def write_pairs(path: Path | str, pairs: Iterable[Pair], images: Sequence[StoredImage]) -> None:
    """Write pairs as names, two a line; as a whole or not at all.

    A tab stands between names with spaces (:func:`pair_line`).
    """
    names = {image.image_id: image.name for image in images}
    lines = [f"{pair_line(names[a], names[b])}\n" for a, b in pairs]
    with replacing(Path(path), durable=False) as fresh:
        fresh.write_text("".join(lines), encoding="utf-8")


def pair_line(first: str, second: str) -> str:
    r"""Two names as a line of a file of pairs.

    COLMAP splits a line at its first two spaces. If a name has one, a tab stands between the names:
    :func:`read_pairs` reads the line, and COLMAP leaves it out with an error, as it finds no such
    images.

    Examples
    --------
    >>> pair_line("a.jpg", "b.jpg"), pair_line("my photo.jpg", "b.jpg")
    ('a.jpg b.jpg', 'my photo.jpg\tb.jpg')
    """
    for name in (first, second):
        if any(mark in name for mark in "\t\r\n") or name.startswith("#"):
            raise ValueError(
                f"a file of pairs cannot hold the name {name!r}: it has a tab or a line break, or "
                "begins with #. Rename the image, or choose pairs without a file"
            )
    return f"{first}\t{second}" if has_spaces(first, second) else f"{first} {second}"


def has_spaces(*names: str) -> bool:
    """Whether a name has a space, so that COLMAP cannot read it from a file of pairs."""
    return any(character.isspace() for name in names for character in name)


def _read_lines(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text (byte {error.object[error.start]:#04x} at {error.start}): "
            "expected two names of images a line"
        ) from None
    return [line.rstrip("\r") for line in text.split("\n")]


def _split(line: str, known: Container[str]) -> tuple[str, str]:
    """The two names of a line."""
    tabbed = line.split("\t")
    if len(tabbed) == 2 and tabbed[0] in known and tabbed[1] in known:
        return tabbed[0], tabbed[1]
    spaces = [at for at, character in enumerate(line) if character.isspace()]
    cuts = {(line[:at].strip(), line[at:].strip()) for at in spaces}
    ways = [cut for cut in cuts if cut[0] in known and cut[1] in known]
    if len(ways) == 1:
        return ways[0]
    if ways:
        raise ValueError(
            f"{line.strip()!r} can be read in {len(ways)} ways: put a tab between the names"
        )
    words = tabbed if len(tabbed) == 2 else line.split()
    if len(words) != 2:
        raise ValueError(f"expected two names of images in the database, found {line.strip()!r}")
    unknown = next(word.strip() for word in words if word.strip() not in known)
    raise ValueError(f"no image {unknown!r} in the database")


def _in_order(pairs: Iterable[Pair]) -> list[Pair]:
    """Pairs with the smaller id first, each once, by id."""
    return sorted({(min(pair), max(pair)) for pair in pairs})
