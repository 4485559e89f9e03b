"""Databases of real patches and their queries, described by the variant under test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from hiernorm.learn.phototour import PhotoTour
from hiernorm.reference import Float32Array, Int64Array
from hiernorm.reproduce.features import Body
from hiernorm.reproduce.holdout import Split, split_scene
from hiernorm.reproduce.options import Options
from hiernorm.reproduce.sources import (
    SYMMETRIES,
    Source,
    find_photos,
    photo_sources,
    scene_source,
    spread_source,
    turned_source,
)
from hiernorm.reproduce.variants import Variant


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
        How many entries are of which kind: see :class:`hiernorm.reproduce.sources.Source`.
    own
        How many of the entries come from the scene under test.
    """

    entries: Float32Array
    queries: Float32Array
    keypoints: Float32Array
    kinds: dict[str, int]
    own: int


class Warehouse:
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
        return PhotoTour(self._options.data, name)

    def _split(self, name: str) -> Split:
        return split_scene(self.scene(name), self._options.size.more_queries, self._options.seed)

    def scene_features(self, name: str, body: Body) -> Float32Array:
        """Features of all patches of a scene."""
        return body.features(scene_source(self.scene(name)))

    def build(self, name: str, variant: Variant, entries: int) -> Database:
        """A database of so many entries for the queries of a scene.

        The first patches that the sources give, or as many drawn from the first
        ``section_entries`` of them if that is more; of each of the timed queries one match is
        always among them.
        """
        scene, split, body = self.scene(name), self.split(name), variant.body
        timed = split.matches[: self._options.size.queries]
        chosen, kinds, own = [], Counter[str](), 0
        for source, rows in self._draw(name, body, entries, np.unique(timed)):
            features = body.features(source)[rows]
            chosen.append(variant.describe(features).descriptors)
            kinds[source.kind] += len(rows)
            own += len(rows) * (source.scene == name)
        asked = self.scene_features(scene.scene, body)[split.queries]
        return Database(
            np.concatenate(chosen),
            variant.describe(asked).descriptors,
            self._keypoints(name, variant),
            dict(kinds),
            own,
        )

    def describe_all(self, body: Body) -> None:
        """Compute all features that the largest databases of both test scenes need."""
        for name in self._options.tests:
            for _ in self._draw(name, body, self._options.size.entries, np.empty(0, np.int64)):
                pass

    def _draw(
        self, name: str, body: Body, entries: int, matches: Int64Array
    ) -> Iterator[tuple[Source, Int64Array]]:
        """Sources and the rows of each that a database takes."""
        pool = max(entries, self._options.size.section_entries)
        gathered: list[tuple[Source, Int64Array]] = []
        total = 0
        for source, rows in self._sources(name, body):
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

    def _sources(self, name: str, body: Body) -> Iterator[tuple[Source, Int64Array]]:
        """All sources of a database in order, with the rows that it may have."""
        base: list[tuple[Source, Int64Array]] = []
        for source, rows in self._base_sources(name):
            if rows is None:
                self._say(f"features of {source.name}")
                rows = np.arange(len(body.features(source)))
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
        rows = [variant.describe(variant.body.features(s)).descriptors for s in sources]
        return np.concatenate(rows)[: self._options.size.queries]
