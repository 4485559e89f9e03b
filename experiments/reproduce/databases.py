"""Databases of real patches and their queries, described by the variant under test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from experiments.harness.patches import (
    SYMMETRIES,
    Backbone,
    Source,
    find_photos,
    photo_sources,
    scene_source,
    spread_source,
    turned_source,
)
from experiments.reproduce.networks import Variant
from experiments.reproduce.options import Options
from hiernorm.learn.phototour import PhotoTour
from hiernorm.reference import Float32Array, Int64Array

FIRST, STRIDE = 5, 10
"""Every tenth image is one that queries come from, beginning with the sixth."""


@dataclass(frozen=True)
class Split:
    """A scene's patches as queries and as entries.

    Attributes
    ----------
    queries : (m,) int64
        Rows of the scene.
    matches : (m,) int64
        For each query a row that shows the same point in another view.
    entries : (n,) int64
        Rows that databases may have: none of a query's own view.
    images : frozenset of int
        Images held out whole; empty where patches are held out one by one.
    """

    queries: Int64Array
    matches: Int64Array
    entries: Int64Array
    images: frozenset[int]


def split_scene(scene: PhotoTour, most: int, seed: int = 0) -> Split:
    """Choose at most ``most`` queries, each of a point that the other patches show too.

    Where the scene says of which image each patch is, some images are held out whole, so that no
    database holds a query's own view. Official scenes do not say it: there the queries' patches
    alone are held out.

    Parameters
    ----------
    scene
        With ``interest.txt``, whose first column is the image, or without.
    most
        Queries.
    seed
        Of their choice.
    """
    points = scene.points
    images = None if scene.interest is None else scene.interest[:, 0].astype(np.int64)
    if images is not None and (held := _held_out(images)):
        away = np.isin(images, list(held))
        split = _choose(points, np.flatnonzero(away), np.flatnonzero(~away), most, seed, held)
        if len(split.queries) >= min(most, len(points) // (2 * STRIDE)):
            return split
    rng = np.random.default_rng([seed, 1])
    _, first = np.unique(points, return_index=True)
    asked = rng.permutation(first)[: max(1, min(most, len(first) // 2))]
    rest = np.setdiff1d(np.arange(len(points)), asked)
    return _choose(points, asked, rest, most, seed, frozenset())


def _held_out(images: Int64Array) -> frozenset[int]:
    """Images to hold out: every tenth, or the last of a few; none if there is one image only."""
    known = np.unique(images)
    if len(known) < 2:
        return frozenset()
    return frozenset(int(i) for i in (known[FIRST::STRIDE] if len(known) > FIRST else known[-1:]))


def _choose(
    points: Int64Array,
    candidates: Int64Array,
    entries: Int64Array,
    most: int,
    seed: int,
    images: frozenset[int],
) -> Split:
    """Draw queries among the candidates whose point has an entry."""
    known, first = np.unique(points[entries], return_index=True)
    candidates = candidates[np.isin(points[candidates], known)]
    queries = np.random.default_rng(seed).permutation(candidates)[:most]
    matches = entries[first[np.searchsorted(known, points[queries])]]
    return Split(queries, matches, entries, images)


@dataclass(frozen=True)
class Database:
    """What is searched, and for what.

    Attributes
    ----------
    entries : (n, 128) float32
        Descriptors of patches, none of them a query's own view.
    queries : (m, 128) float32
        Patches of the scene, each of a point that the database shows in another view.
    keypoints : (p, 128) float32
        Patches at any keypoint of photos that the database has not: with and without a match, as
        an application meets them. Empty where there are no photos.
    kinds : dict of str to int
        How many entries are of which kind: see :class:`experiments.harness.patches.Source`.
    own
        How many of the entries come from the scene under test.
    """

    entries: Float32Array
    queries: Float32Array
    keypoints: Float32Array
    kinds: dict[str, int]
    own: int


class Databases:
    """Puts databases together: the same patches for every variant.

    Parameters
    ----------
    options
        Scenes, sizes and seed.
    say
        Hears what is being described.
    """

    def __init__(self, options: Options, say: Callable[[str], None] = lambda doing: None) -> None:
        self._options = options
        self._say = say
        self.scene = cache(self._open)
        self.split = cache(self._split)

    def _open(self, name: str) -> PhotoTour:
        return PhotoTour(self._options.folder_of(name), name)

    def _split(self, name: str) -> Split:
        return split_scene(self.scene(name), self._options.size.more_queries, self._options.seed)

    def scene_features(self, name: str, backbone: Backbone) -> Float32Array:
        """Features of all patches of a scene."""
        return backbone.features(scene_source(self.scene(name)))

    def build(self, name: str, variant: Variant, entries: int) -> Database:
        """A database of so many entries for the queries of a scene.

        The first patches that the sources give, or as many drawn from the first
        ``section_entries`` of them if that is more; of each of the timed queries one match is
        always among them.
        """
        scene, split, backbone = self.scene(name), self.split(name), variant.backbone
        timed = split.matches[: self._options.size.queries]
        chosen, kinds, own = [], Counter[str](), 0
        for source, rows in self._draw(name, backbone, entries, np.unique(timed)):
            features = backbone.features(source)[rows]
            chosen.append(variant.describe(features).descriptors)
            kinds[source.kind] += len(rows)
            own += len(rows) * (source.scene == name)
        asked = self.scene_features(scene.scene, backbone)[split.queries]
        return Database(
            np.concatenate(chosen),
            variant.describe(asked).descriptors,
            self._keypoints(name, variant),
            dict(kinds),
            own,
        )

    def _draw(
        self, name: str, backbone: Backbone, entries: int, matches: Int64Array
    ) -> Iterator[tuple[Source, Int64Array]]:
        """Sources and the rows of each that a database takes."""
        pool = max(entries, self._options.size.section_entries)
        gathered: list[tuple[Source, Int64Array]] = []
        total = 0
        for source, rows in self._sources(name, backbone):
            rows = rows[: pool - total]
            gathered.append((source, rows))
            total += len(rows)
            if total == pool:
                break
        else:
            if total < entries:
                raise ValueError(
                    f"the scenes and photos of {self._options.data} give {total:,} patches, turned "
                    f"ones included; a database needs {entries:,}: add photos/<scene>/ to it"
                )
        wanted = np.random.default_rng([self._options.seed, entries]).permutation(total)[:entries]
        is_chosen = np.zeros(total, bool)
        is_chosen[wanted] = True
        # The scene's own patches are the first source, and matches are rows of it.
        _, labelled = gathered[0]
        must = np.flatnonzero(np.isin(labelled, matches))[:entries]
        missing = must[~is_chosen[must]]
        surplus = np.setdiff1d(wanted, must, assume_unique=True)[: len(missing)]
        is_chosen[surplus], is_chosen[missing] = False, True
        first = 0
        for source, rows in gathered:
            taken = rows[is_chosen[first : first + len(rows)]]
            first += len(rows)
            if len(taken):
                yield source, taken

    def _sources(self, name: str, backbone: Backbone) -> Iterator[tuple[Source, Int64Array]]:
        """All sources of a database in order, with the rows that it may have."""
        base: list[tuple[Source, Int64Array]] = []
        for source, rows in self._base_sources(name):
            if rows is None:
                self._say(f"features of {source.name}")
                rows = np.arange(len(backbone.features(source)))
            base.append((source, rows))
            yield source, rows
        for number in SYMMETRIES:
            for source, rows in base:
                self._say(f"features of {source.name}, turned")
                yield turned_source(source, number), rows

    def _base_sources(self, name: str) -> Iterator[tuple[Source, Int64Array | None]]:
        """Sources as they are; rows are given where some of them must stay out."""
        options = self._options
        others = [s for s in (*options.tests, options.train) if s != name]
        yield scene_source(self.scene(name)), self.split(name).entries
        own = [(name, photo) for photo in self._usable_photos(name)]
        folders = [*others, *(f for f in self._photo_folders() if f not in (name, *others))]
        rest = [(folder, photo) for folder in folders for photo in self._usable_photos(folder)]
        for source in photo_sources(own, rest, options.size.entries):
            yield source, None
        for other in others:
            held = self.split(other).entries if other in options.tests else None
            yield scene_source(self.scene(other)), held

    def _photo_folders(self) -> list[str]:
        folder = self._options.data / "photos"
        return sorted(f.name for f in folder.iterdir() if f.is_dir()) if folder.is_dir() else []

    def _usable_photos(self, name: str) -> list[Path]:
        photos = find_photos(self._options.data, name)
        held = self._held_photos(name)
        return [photo for number, photo in enumerate(photos) if number not in held]

    def _held_photos(self, name: str) -> frozenset[int]:
        """Numbers of the photos that queries of a test scene come from.

        A scene whose images are more than its photos was made from drawn views of them: then no
        photo is a query's own view.
        """
        if name not in self._options.tests:
            return frozenset()
        photos, interest = find_photos(self._options.data, name), self.scene(name).interest
        if interest is None or interest[:, 0].max() >= len(photos):
            return frozenset()
        return self.split(name).images

    def _keypoints(self, name: str, variant: Variant) -> Float32Array:
        photos = find_photos(self._options.data, name)
        held = sorted(self._held_photos(name))
        if not held:
            return np.empty((0, 128), np.float32)
        count = -(-self._options.size.queries // len(held))
        sources = [spread_source(photos[number], name, count) for number in held]
        rows = [variant.describe(variant.backbone.features(s)).descriptors for s in sources]
        return np.concatenate(rows)[: self._options.size.queries]
