"""A collection's table and database belong together: the identity of the database says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cv2", reason="needs hiernorm[vision]")
pytest.importorskip("pyarrow", reason="needs hiernorm[vision]")
pytest.importorskip("skimage", reason="needs hiernorm[data]")

import pyarrow.parquet
from click.testing import CliRunner

import hiernorm
from hiernorm.cli.app import app
from hiernorm.models import load_model
from hiernorm.vision.collection import Collection
from hiernorm.vision.features import PhotoFeatures
from hiernorm.vision.frames import Frames
from photo_sets import RECIPE, write_photos

KEYPOINTS = 20


def features(seed: int) -> PhotoFeatures:
    """Features of no photo: the same ids for every seed, other descriptors."""
    rng = np.random.default_rng(seed)
    frames = Frames(*rng.uniform(10, 90, (4, KEYPOINTS)))
    rows = hiernorm.normalize(rng.standard_normal((KEYPOINTS, 128)), 16, 1 / 8)
    return PhotoFeatures(100, 100, frames, rows, load_model(RECIPE.model).digest)


def make(path: Path, seed: int) -> Collection:
    collection = Collection.create(path, RECIPE, load_model(RECIPE.model))
    collection.put([(path.parent / "photo.png", "a" * 64, features(seed))])
    return collection


def swap(path: Path, other: Path) -> None:
    """Put the database of another collection beside the table of ``path``."""
    shutil.rmtree(path)
    shutil.copytree(other, path)


def forget_identity(path: Path) -> None:
    """Make the table one of a version that did not write the identity."""
    file = path.with_suffix(".parquet")
    table = pyarrow.parquet.read_table(file)
    about = json.loads(table.schema.metadata[b"hiernorm"])
    del about["database"]
    metadata = {b"hiernorm": json.dumps(about).encode()}
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), file)


def test_the_database_of_another_collection_is_refused(tmp_path: Path) -> None:
    first, second = make(tmp_path / "a.hn", 1), make(tmp_path / "b.hn", 2)
    np.testing.assert_array_equal(first.ids, second.ids)
    swap(tmp_path / "a.hn", tmp_path / "b.hn")
    with pytest.raises(ValueError, match=r"a\.parquet belongs to the database .*, a\.hn is"):
        Collection.open(tmp_path / "a.hn")
    with pytest.raises(ValueError, match="do not belong together"):  # opened before the swap
        first.put([(tmp_path / "more.png", "b" * 64, features(3))])
    photo = write_photos(tmp_path / "photos")[0]
    result = CliRunner().invoke(app, ["locate", str(photo), "--in", str(tmp_path / "a.hn")])
    assert result.exit_code == 1
    assert "put the database back" in result.output


def test_a_database_without_identity_is_refused_if_the_table_names_one(tmp_path: Path) -> None:
    make(tmp_path / "a.hn", 1)
    old = tmp_path / "old.hn"
    shutil.copytree(Path(__file__).parents[1] / "golden" / "v1" / "plain-ip.hn", old)
    swap(tmp_path / "a.hn", old)
    with pytest.raises(ValueError, match=r"a\.hn is one without identity"):
        Collection.open(tmp_path / "a.hn")


def test_what_the_collection_and_its_owner_do_keeps_it_together(tmp_path: Path) -> None:
    collection = make(tmp_path / "a.hn", 1)
    collection.put([(tmp_path / "photo.png", "b" * 64, features(2))])
    collection.compact()
    with hiernorm.Database.open(tmp_path / "a.hn") as db:
        db.snapshot(tmp_path / "restored.hn")
    swap(tmp_path / "a.hn", tmp_path / "restored.hn")
    restored = Collection.open(tmp_path / "a.hn")
    np.testing.assert_array_equal(
        restored.database.reconstruct(restored.ids), features(2).descriptors
    )


def test_a_table_of_an_earlier_version_is_read_and_gets_the_identity(tmp_path: Path) -> None:
    make(tmp_path / "a.hn", 1)
    make(tmp_path / "b.hn", 2)
    forget_identity(tmp_path / "a.hn")
    Collection.open(tmp_path / "a.hn").put([(tmp_path / "more.png", "b" * 64, features(3))])
    assert len(Collection.open(tmp_path / "a.hn")) == 2
    swap(tmp_path / "a.hn", tmp_path / "b.hn")
    with pytest.raises(ValueError, match="do not belong together"):
        Collection.open(tmp_path / "a.hn")
