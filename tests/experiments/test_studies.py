"""The studies of real features: what they are made of, and that each writes what its page shows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("faiss", reason="needs hiernorm[bench]")
pytest.importorskip("torch", reason="needs hiernorm[train]")
pytest.importorskip("onnxruntime", reason="needs hiernorm[vision]")
pytest.importorskip("skimage", reason="needs hiernorm[vision]")

import click
from click.testing import CliRunner, Result

from experiments.growth.features import main as features
from experiments.harness.records import read_record
from experiments.match.__main__ import main as match
from experiments.match.__main__ import measure_all
from experiments.photos.pairs import main as pairs
from experiments.photos.places import main as places
from experiments.plain.__main__ import main as plain
from experiments.quality.__main__ import main as quality
from hiernorm.learn.scenes.embedded import embedded_photos
from patch_scenes import write_scene

PHOTOS = 6


def run(main: click.Command, *arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "photos" / "all").mkdir(parents=True)
    for photo in embedded_photos()[:PHOTOS]:
        (folder / "photos" / "all" / photo.name).write_bytes(photo.read_bytes())
    sizes = ("--entries", 175, "--queries", 20, "--keypoints", 10)
    done = run(features, "--data", folder, *sizes, "--out", folder)
    assert done.exit_code == 0, done.output
    return folder


def test_features_are_of_keypoints_then_of_other_scales_then_turned(study: Path) -> None:
    made = json.loads((study / "made.json").read_text())
    assert made["photos"] == PHOTOS - 1
    assert made["queries_from"] == 1
    assert made["patches"] == {"keypoints": 50, "other scales": 100, "turned": 25}
    features, queries = np.load(study / "features.npy"), np.load(study / "queries.npy")
    assert features.shape == (175, 128)
    assert queries.shape == (20, 128)
    assert len(np.unique(features, axis=0)) == 175


def test_photos_that_give_too_little_say_how_much_they_give(study: Path) -> None:
    done = run(
        features, "--data", study, "--entries", 9999, "--keypoints", 10, "--out", study / "x"
    )
    assert done.exit_code == 1
    assert "the photos give 1,200 patches" in done.output


def test_plain_sets_are_measured_by_every_method(study: Path) -> None:
    files = f"patches={study / 'features.npy'},{study / 'queries.npy'}"
    done = run(plain, "--set", files, "--smoke", "--out", study / "plain")
    assert done.exit_code == 0, done.output
    (row,) = read_record(study / "plain" / "plain.json").result["sets"]
    assert (row["n"], row["dim"]) == (175, 128)
    for k in ("k=1", "k=10"):
        assert len(row[k]["microseconds"]) == 9
        assert row[k]["recall"]["FAISS IndexFlatIP"] == 1.0
        assert min(row[k]["microseconds"].values()) > 0
        assert row[k]["work"]["hiernorm, no cells"]["scanned"] == 1.0


def test_quality_is_judged_and_timed_for_every_family(study: Path) -> None:
    for scene in ("castle", "brighton", "fox", "monstree"):
        write_scene(study / scene)
    folders = ("--data", study, "--study", study)
    done = run(quality, *folders, "--smoke", "--out", study / "quality")
    assert done.exit_code == 0, done.output
    rows = read_record(study / "quality" / "quality.json").result["rows"]
    assert len(rows) == 2 * 4
    for row in rows:
        assert set(row["fpr95"]) == {"fox", "monstree"}
        assert row["microseconds"] > 0
    assert (study / "quality" / "quality.png").read_bytes()[:4] == b"\x89PNG"


def test_matchers_agree_on_the_pairs(study: Path) -> None:
    done = run(match, "--smoke", "--out", study)
    assert done.exit_code == 0, done.output
    rows = read_record(study / "match.json").result["rows"]
    assert not [row for row in rows if "failure" in row]
    for kind in ("hn", "plain"):
        assert len({row["digest"] for row in rows if row["kind"] == kind}) == 1


def test_a_matcher_that_does_not_finish_is_not_tried_with_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []

    def run_one(method: str, kind: str, n: int, limit: float) -> dict[str, object]:
        tried.append((method, kind, n))
        slow = {"failure": "stopped"} if method == "opencv" and kind == "uint8" else {}
        return {"method": method, "kind": kind, "n": n, **slow}

    monkeypatch.setattr("experiments.match.__main__.run", run_one)
    rows = measure_all((10, 20), limit=1)
    assert len(rows) == 18
    assert len(tried) == 17
    assert ("opencv", "uint8", 20) not in tried
    assert rows[-1]["failure"] == "not tried: 10 did not finish"


def test_every_photo_is_looked_for(study: Path) -> None:
    done = run(places, "--photos", study / "photos", "--smoke", "--workers", 1, "--out", study)
    assert done.exit_code == 0, done.output
    result = read_record(study / "places.json").result
    assert len(result["queries"]) == result["summary"]["photos"] == PHOTOS
    assert str(study) not in json.dumps(result)


def test_pairs_need_data_or_an_earlier_run(study: Path) -> None:
    done = run(pairs, "--smoke", "--out", study)
    assert done.exit_code == 2
    assert "give --data, or --render" in done.output
