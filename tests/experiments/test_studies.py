"""The studies of real features: what they are made of, and that each writes what its page shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("faiss", reason="needs hiernorm[bench]")
pytest.importorskip("torch", reason="needs hiernorm[train]")
pytest.importorskip("onnxruntime", reason="needs hiernorm[vision]")
pytest.importorskip("skimage", reason="needs hiernorm[vision]")

from hiernorm.scenes.embedded import embedded_photos

SCRIPTS = Path(__file__).parents[1] / "benchmarks"
PHOTOS = 6


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPTS / script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "photos" / "all").mkdir(parents=True)
    for photo in embedded_photos()[:PHOTOS]:
        (folder / "photos" / "all" / photo.name).write_bytes(photo.read_bytes())
    sizes = ("--entries", 175, "--queries", 20, "--keypoints", 10)
    done = run("features.py", "--data", folder, *sizes, "--out", folder)
    assert done.returncode == 0, done.stderr
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
        "features.py", "--data", study, "--entries", 9999, "--keypoints", 10, "--out", study / "x"
    )
    assert done.returncode == 1
    assert "the photos give 1,200 patches" in done.stderr


def test_plain_sets_are_measured_by_every_method(study: Path) -> None:
    files = f"patches={study / 'features.npy'},{study / 'queries.npy'}"
    done = run("plain.py", "--set", files, "--scale", "smoke", "--out", study / "plain")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((study / "plain" / "plain.json").read_text())["sets"]
    assert (row["n"], row["dim"]) == (175, 128)
    for k in ("k=1", "k=10"):
        assert len(row[k]["microseconds"]) == 7
        assert min(row[k]["microseconds"].values()) > 0
        assert row[k]["work"]["hiernorm, no cells"]["scanned"] == 1.0
