"""Collections of photos: incremental, the same for any number of workers, honest about failures."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cv2", reason="needs hiernorm[vision]")
pytest.importorskip("pyarrow", reason="needs hiernorm[vision]")
pytest.importorskip("skimage", reason="needs hiernorm[data]")

import cv2
import pyarrow.parquet
from click.testing import CliRunner

from hiernorm.cli.app import app
from hiernorm.matching import Matches
from hiernorm.models import load_model
from hiernorm.vision.collection import Collection
from hiernorm.vision.evidence import weigh_evidence
from hiernorm.vision.features import FeatureSettings, describe_photo
from hiernorm.vision.frames import Frames
from hiernorm.vision.geometry import TwoViewGeometry
from hiernorm.vision.ingest import find_photos, ingest_photos
from hiernorm.vision.photo_match import PhotoMatch, match_photos
from hiernorm.vision.photos import read_grey
from hiernorm.vision.place_recognition import Candidate, locate, rank_candidates
from photo_sets import RECIPE, read_photo, write_photos, write_view


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with photos/ and all.hn, described once."""
    folder = tmp_path_factory.mktemp("collection")
    files = write_photos(folder / "photos")
    ingest_photos(folder / "all.hn", files, RECIPE)
    return folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    """A copy that a test may change."""
    copy = tmp_path / "copy"
    shutil.copytree(made, copy)
    return copy


def test_the_table_says_where_each_descriptor_comes_from(made):
    table = pyarrow.parquet.read_table(made / "all.parquet")
    assert table.column_names == ["photo", "x", "y", "scale", "angle", "id"]
    collection = Collection.open(made / "all.hn")
    assert [photo.name for photo in collection.photos] == [
        "photos/astronaut.png",
        "photos/chelsea.png",
        "photos/coffee.png",
    ]
    np.testing.assert_array_equal(np.sort(collection.ids), collection.database.ids)
    described = describe_photo(made / "photos/chelsea.png", RECIPE)
    ids, frames = collection.keypoints_of(1)
    np.testing.assert_array_equal(frames.x, described.frames.x)
    np.testing.assert_array_equal(collection.database.reconstruct(ids), described.descriptors)
    assert set(collection.photos_of(ids).tolist()) == {1}
    np.testing.assert_array_equal(collection.frames_of(ids[::-1]).y, frames.y[::-1])
    assert (collection.database.major, collection.database.alpha) == (16, 1 / 8)


def test_known_photos_are_skipped_and_changed_ones_replaced(folder):
    files = find_photos([folder / "photos"])
    again = ingest_photos(folder / "all.hn", files, RECIPE)
    assert (len(again.unchanged), again.added, again.replaced) == (3, [], [])
    before = Collection.open(folder / "all.hn")
    old, _ = before.keypoints_of(1)
    kept, _ = before.keypoints_of(2)
    cv2.imwrite(str(files[1]), read_photo("chelsea")[:200])
    write_view(folder / "photos" / "new.png", "coffee")
    outcome = ingest_photos(folder / "all.hn", find_photos([folder / "photos"]), RECIPE)
    assert outcome.replaced == ["photos/chelsea.png"]
    assert outcome.added == ["photos/new.png"]
    after = Collection.open(folder / "all.hn")
    assert len(after) == 4
    assert not np.isin(old, after.ids).any()
    np.testing.assert_array_equal(after.keypoints_of(2)[0], kept)
    np.testing.assert_array_equal(np.sort(after.ids), after.database.ids)
    assert after.photos[1].height == 200


def test_workers_change_nothing(made, tmp_path):
    copy = tmp_path / "two"
    shutil.copytree(made / "photos", copy / "photos")
    ingest_photos(copy / "all.hn", find_photos([copy / "photos"]), RECIPE, workers=2)
    one, two = (Collection.open(path / "all.hn") for path in (made, copy))
    assert one.photos == two.photos
    assert one.database.digest == two.database.digest
    tables = [pyarrow.parquet.read_table(path / "all.parquet") for path in (made, copy)]
    assert tables[0].equals(tables[1])
    about = [json.loads(table.schema.metadata[b"hiernorm"]) for table in tables]
    assert about[0].pop("database") != about[1].pop("database")
    assert about[0] == about[1]


def test_progress_is_reported(made, tmp_path):
    seen = []
    files = find_photos([made / "photos"])[:2]
    ingest_photos(tmp_path / "x.hn", files, RECIPE, report=lambda *numbers: seen.append(numbers))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_unreadable_photos_are_reported_and_the_exit_code_says_so(folder):
    (folder / "photos" / "bad.jpg").write_bytes(b"no picture")
    (folder / "photos" / "empty.png").touch()
    command = ("describe", folder / "photos", "-o", folder / "all.hn", "--keypoints", 150)
    result = invoke(*command, "--json")
    assert result.exit_code == 6
    report = json.loads(result.stdout)
    assert set(report["failed"]) == {"photos/bad.jpg", "photos/empty.png"}
    assert len(report["unchanged"]) == report["photos"] == 3
    assert "skipped photos/bad.jpg: bad.jpg is not a picture" in result.stderr
    for name in ("bad.jpg", "empty.png"):
        (folder / "photos" / name).unlink()
    assert invoke(*command).exit_code == 0


def test_a_path_that_does_not_exist_makes_nothing(folder):
    for command in ("describe", "locate", "match"):
        there, missing = folder / "photos" / "coffee.png", folder / "phots"
        options = {
            "describe": (there, missing, "-o", folder / "new.hn"),
            "locate": (missing, "--in", folder / "all.hn"),
            "match": (there, missing),
        }
        result = invoke(command, *options[command])
        assert result.exit_code == 2
        assert "phots' does not exist" in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["all.hn", "all.parquet", "photos"]


def test_descriptors_of_a_killed_process_are_cleaned_up(folder):
    collection = Collection.open(folder / "all.hn")
    collection.database.add(collection.database.reconstruct(collection.ids[:5]))
    orphaned = Collection.open(folder / "all.hn")
    assert len(orphaned.database) == len(orphaned.ids) + 5
    write_view(folder / "photos" / "new.png", "coffee")
    ingest_photos(folder / "all.hn", find_photos([folder / "photos"]), RECIPE)
    after = Collection.open(folder / "all.hn")
    np.testing.assert_array_equal(np.sort(after.ids), after.database.ids)


def test_another_recipe_is_refused(folder):
    files = find_photos([folder / "photos"])
    for other in (FeatureSettings(limit=99), FeatureSettings(limit=150, model="hn8")):
        with pytest.raises(ValueError, match="use the same, or start a new collection"):
            ingest_photos(folder / "all.hn", files, other)


def test_a_damaged_or_missing_table_has_its_error(folder):
    table = folder / "all.parquet"
    content = table.read_bytes()
    for bad in (b"", content[:50], content[: len(content) // 2]):
        table.write_bytes(bad)
        with pytest.raises(ValueError, match="is no table of a collection, or damaged"):
            Collection.open(folder / "all.hn")
    table.write_bytes(content)
    collection = Collection.open(folder / "all.hn")
    collection.database.delete(collection.ids[:7])
    with pytest.raises(ValueError, match=r"does not have \(7 of 450\): they do not belong"):
        Collection.open(folder / "all.hn")
    table.unlink()
    with pytest.raises(FileNotFoundError, match="it is no collection of photos"):
        Collection.open(folder / "all.hn")
    with pytest.raises(FileNotFoundError, match="`hiernorm describe` makes one"):
        Collection.open(folder / "none.hn")


def test_unknown_keypoints_are_key_errors(made):
    collection = Collection.open(made / "all.hn")
    with pytest.raises(KeyError, match="no keypoint has the id 99999"):
        collection.frames_of(np.array([0, 99999]))


def test_ctrl_c_keeps_what_is_described(made, tmp_path):
    def stop_after_two(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    files = find_photos([made / "photos"])
    with pytest.raises(KeyboardInterrupt):
        ingest_photos(tmp_path / "new.hn", files, RECIPE, report=stop_after_two)
    assert len(Collection.open(tmp_path / "new.hn")) == 2
    continued = ingest_photos(tmp_path / "new.hn", files, RECIPE)
    assert len(continued.unchanged) == 2
    assert len(continued.added) == len(files) - 2


def test_a_photo_without_keypoints_is_in_the_collection(tmp_path):
    cv2.imwrite(str(tmp_path / "flat.png"), np.full((64, 64), 90, np.uint8))
    ingest_photos(tmp_path / "flat.hn", [tmp_path / "flat.png"], RECIPE)
    collection = Collection.open(tmp_path / "flat.hn")
    assert len(collection) == 1
    assert len(collection.ids) == 0
    described = describe_photo(tmp_path / "flat.png", RECIPE, load_model("hn16"))
    assert locate(collection, described) == []


def test_a_place_is_found_and_unknown_ones_are_not_claimed(made, tmp_path):
    picture = tmp_path / "found.jpg"
    view = write_view(tmp_path / "view.jpg", "astronaut")
    result = invoke("locate", view, "--in", made / "all.hn", "-o", picture, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["convincing"]
    assert report["found"][0]["photo"] == "photos/astronaut.png"
    assert report["found"][0]["inliers"] > 2 * report["found"][1]["inliers"]
    assert cv2.imread(str(picture)) is not None
    # Its own photo, left out of the collection's answer, is nowhere else.
    own = invoke("locate", made / "photos/coffee.png", "--in", made / "all.hn")
    assert own.exit_code == 7
    assert "no photo matches: of the best, " in own.stderr
    header, *rows, _ = own.stdout.splitlines()
    assert header.split() == ["verdict", "inliers", "matches", "votes", "photo"]
    assert rows
    assert all(row.startswith("no match ") for row in rows)
    assert "coffee" not in own.stdout


def test_votes_count_each_descriptor_once_for_a_photo(made):
    from hiernorm.vision.place_recognition import count_votes

    collection = Collection.open(made / "all.hn")
    first, second = (collection.keypoints_of(number)[0] for number in (0, 2))
    neighbours = np.array([[first[0], first[1]], [first[0], second[0]], [second[3], -1]])
    assert count_votes(collection, neighbours).tolist() == [2, 0, 2]


def candidate(photo: int, votes: int, inliers: int, matches: int) -> Candidate:
    places = np.column_stack((np.arange(matches), np.zeros(matches)))
    pairs, agreed = np.zeros((matches, 2), np.int64), np.arange(matches) < inliers
    known = Matches(pairs, np.zeros(matches), np.zeros(matches))
    geometry = TwoViewGeometry("fundamental", np.eye(3), agreed)
    evidence = weigh_evidence(geometry, places, places, 2.0, (1600, 1200), (1600, 1200))
    return Candidate(photo, votes, inliers, PhotoMatch(known, geometry, {}, evidence))


def test_what_chance_agrees_on_does_not_outrank_votes():
    chance = candidate(0, votes=85, inliers=17, matches=118)
    voted = candidate(1, votes=117, inliers=12, matches=117)
    few = candidate(2, votes=90, inliers=10, matches=20)
    assert [c.photo for c in rank_candidates([chance, voted, few])] == [1, 2, 0]
    proved = candidate(3, votes=40, inliers=31, matches=120)
    more = candidate(4, votes=30, inliers=131, matches=719)
    assert [c.photo for c in rank_candidates([chance, voted, few, proved, more])] == [4, 3, 1, 2, 0]
    assert [c.convincing for c in (chance, few, proved, more)] == [False, False, True, True]


def test_two_that_describe_at_once_lose_nothing_and_mix_nothing_up(folder, tmp_path):
    # Both have opened the collection before either of them adds its photo.
    first = Collection.open(folder / "all.hn")
    second = Collection.open(folder / "all.hn")
    photos = [write_view(folder / "photos" / f"view-{n}.png", n) for n in ("chelsea", "coffee")]
    features = [describe_photo(photo, RECIPE) for photo in photos]
    first.put([(photos[0], "a" * 64, features[0])])
    second.put([(photos[1], "b" * 64, features[1])])
    first.put([(photos[0], "c" * 64, features[0])])
    collection = Collection.open(folder / "all.hn")
    names = [photo.name for photo in collection.photos]
    assert len(names) == 5
    for photo, described in zip(photos, features, strict=True):
        ids, _ = collection.keypoints_of(names.index(f"photos/{photo.name}"))
        np.testing.assert_array_equal(collection.database.reconstruct(ids), described.descriptors)
    np.testing.assert_array_equal(np.sort(collection.ids), collection.database.ids)


def test_ids_of_descriptors_are_never_given_twice(folder):
    collection = Collection.open(folder / "all.hn")
    photo = write_view(folder / "photos" / "view.png", "chelsea")
    features = describe_photo(photo, RECIPE)
    collection.put([(photo, "a" * 64, features)])
    largest = int(collection.ids.max())
    f = features.frames
    nothing = Frames(f.x[:0], f.y[:0], f.sigma[:0], f.angle[:0])
    empty = replace(features, frames=nothing, descriptors=features.descriptors[:0])
    collection.put([(photo, "b" * 64, empty)])
    assert int(collection.ids.max()) == largest - len(f)
    collection.put([(photo, "c" * 64, features)])
    assert int(collection.ids.max()) == largest + len(f)


def test_features_of_another_model_are_refused(folder):
    collection = Collection.open(folder / "all.hn")
    query = describe_photo(folder / "photos" / "chelsea.png", RECIPE)
    other = replace(query, model_digest="0" * 64)
    assert locate(collection, query)[0].photo == 1
    with pytest.raises(ValueError, match="described by model 000000000000, compared with model"):
        locate(collection, other)
    with pytest.raises(ValueError, match="use one model"):
        match_photos(query, other)


def test_photos_that_cannot_be_described_are_skipped_and_named(folder, monkeypatch):
    decode = cv2.imdecode

    def too_large(content, flags):
        if len(content) == 3:
            raise cv2.error("image is too large")
        return decode(content, flags)

    monkeypatch.setattr(cv2, "imdecode", too_large)
    (folder / "photos" / "huge.png").write_bytes(b"big")
    odd = os.fsdecode(b"caf\xe9.png")
    shutil.copy(folder / "photos" / "chelsea.png", folder / "photos" / odd)
    result = invoke("describe", folder / "photos", "-o", folder / "new.hn", "--keypoints", 150)
    assert result.exit_code == 6, result.output
    assert "skipped photos/huge.png" in result.output
    assert "caf\\udce9.png: its name is not UTF-8: rename it" in result.output
    assert len(Collection.open(folder / "new.hn")) == 3


def test_a_file_that_is_larger_than_any_photo_is_skipped_and_not_read(folder, monkeypatch):
    monkeypatch.setenv("HIERNORM_PIXEL_LIMIT", "1000000")
    huge = folder / "photos" / "huge.png"
    huge.touch()
    os.truncate(huge, 1 << 36)  # sparse: it takes no room on the disk
    result = invoke("describe", folder / "photos", "-o", folder / "all.hn", "--keypoints", 150)
    assert result.exit_code == 6, result.output
    assert "skipped photos/huge.png" in result.output
    assert "68,719,476,736 bytes, at most 8,000,000 are read" in result.output
    with pytest.raises(ValueError, match="set HIERNORM_PIXEL_LIMIT to a larger number"):
        read_grey(huge)
