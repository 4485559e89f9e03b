"""The mistakes of a first hour: each is one line that names what is wrong, and makes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hiernorm.cli.app import app

VECTORS = {
    "build new.hn empty.npy": (2, "empty.npy holds no vectors"),
    "build new.hn objects.npy": (1, "objects.npy cannot be read: it holds Python objects"),
    "build new.hn complex.npy": (1, "complex.npy: vectors must be numbers"),
    "build new.hn single.npy": (1, "a single vector has (1, d)"),
    "build new.hn nan.npy": (1, "nan.npy: vectors row 0, dimension 0 is NaN"),
    "build new.hn notes.txt": (1, "vectors are read from .npy, .npz"),
    "build new.hn folder": (1, "vectors are read from .npy, .npz"),
    "build new.hn x.npy --alpha 1/8": (1, "alpha needs major"),
    "build new.hn x.npy --major 4 --alpha 1/8": (1, "major must be from 1 to 3"),
    "build db.hn x.npy": (1, "db.hn is a database already"),
    "add db.hn narrow.npy": (1, "vectors have 3 dimensions, the index has 4"),
    "add folder x.npy": (5, "`hiernorm build` makes one"),
    "search db.hn narrow.npy": (1, "queries have 3 dimensions, the index has 4"),
    "search db.hn empty.npy": (1, "empty.npy holds no vectors"),
    "search db.hn x.npy --where year>2000": (1, "there is no column 'year'"),
    "search db.hn x.npy --columns year": (2, "there is no column 'year'"),
    "search db.hn x.npy --out hits.txt": (1, "answers are written to .npz"),
    "search x.npy x.npy": (5, "x.npy is a file, a hiernorm database is a folder"),
    "delete db.hn 99": (1, "id 99 is not in the database"),
    "delete db.hn first": (2, "ids are integers, got 'first'"),
    "check x.npy": (5, "x.npy is a .npy file, not one that Index.save wrote"),
    "check folder": (5, "folder has no manifest.json"),
    "export db.hn copy.txt": (1, "vectors are written to .npy"),
    "advise x.npy": (1, "x.npy has 4 vectors; any search is fast below 1,000"),
    "advise empty.npy": (1, "empty.npy holds no vectors"),
    "advise x.npy --plot advice.txt": (2, "pictures are written as .png, .jpg, .pdf or .svg"),
    "demo --synthetic --seed -1": (2, "-1 is not in the range"),
    "colmap match x.npy": (5, "x.npy is not a database of COLMAP"),
    "serach db.hn x.npy": (2, "Did you mean 'search'?"),
}

PHOTOS = {
    "match notes.txt grey.png": (1, "notes.txt is not a picture"),
    "match grey.png grey.png -o matches.txt": (2, "pictures are written as .png, .jpg"),
    "match grey.png grey.png --model hn32": (1, "the package has hardnet, hn16"),
    "describe folder -o new.hn": (1, "no photo in folder"),
    "describe notes.txt -o new.hn": (1, "none of 1 files can be described"),
    "describe grey.png -o db.hn": (1, "it is no collection of photos"),
    "describe one -o one": (1, "it is no collection of photos"),
    "describe grey.png -o new.hn --model hn32": (1, "the package has hardnet, hn16"),
    "locate grey.png --in db.hn": (1, "it is no collection of photos"),
    "explore db.hn": (1, "it is no collection of photos"),
    "reconstruct folder -o new": (1, "no photo in folder"),
    "reconstruct one -o new": (1, "a reconstruction needs two photos or more"),
    "data make --photos folder --out new": (1, "no photo in folder"),
    "data make --photos folder --tracks --strong --out new": (2, "--strong is not for --tracks"),
    "data make --ratio 0.9 --out new": (2, "--ratio is for --tracks"),
    "demo --photos folder --out new": (1, "no photo in folder"),
    "evaluate --data folder": (1, "folder has no info.txt"),
    "evaluate --data x.npy": (2, "x.npy is no scene of patches"),
    "train --data folder --out new": (1, "folder has no info.txt"),
    "train --out new": (2, "name a scene with --data"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a database, and files that are not what a command expects."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hiernorm.cli.requirements.check_extra", lambda *_: None)
    np.save("x.npy", np.eye(4, dtype=np.float32))
    np.save("narrow.npy", np.eye(3, dtype=np.float32))
    np.save("single.npy", np.zeros(4, np.float32))
    np.save("empty.npy", np.zeros((0, 4), np.float32))
    np.save("complex.npy", np.zeros((2, 4), np.complex64))
    np.save("nan.npy", np.full((2, 4), np.nan, np.float32))
    np.save("objects.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    Path("notes.txt").write_text("hello", encoding="utf-8")
    os.mkdir("folder")
    assert CliRunner().invoke(app, ["build", "db.hn", "x.npy"]).exit_code == 0
    return tmp_path


def require_one_line(folder: Path, line: str, code: int, reason: str) -> None:
    before = sorted(folder.rglob("*"))
    result = CliRunner().invoke(app, line.split())
    assert result.exit_code == code, result.output
    assert reason in result.stderr
    assert len([text for text in result.stderr.splitlines() if text.startswith("Error: ")]) == 1
    assert result.stdout == ""
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("line", VECTORS)
def test_a_mistake_with_vectors_is_told_in_one_line(folder: Path, line: str) -> None:
    if line.endswith("--plot advice.txt"):
        pytest.importorskip("matplotlib", reason="needs hiernorm[plot]")
    require_one_line(folder, line, *VECTORS[line])


@pytest.mark.parametrize("line", PHOTOS)
def test_a_mistake_with_photos_is_told_in_one_line(folder: Path, line: str) -> None:
    cv2 = pytest.importorskip("cv2", reason="needs hiernorm[train]")
    for module in ("onnxruntime", "pycolmap", "pyarrow", "skimage", "starlette", "torch"):
        pytest.importorskip(module, reason="needs hiernorm[test]")
    os.mkdir("one")
    for name in ("grey.png", "one/grey.png"):
        cv2.imwrite(name, np.full((80, 80), 128, np.uint8))
    require_one_line(folder, line, *PHOTOS[line])


def test_other_settings_of_a_collection_are_named(folder: Path) -> None:
    cv2 = pytest.importorskip("cv2", reason="needs hiernorm[vision]")
    for module in ("onnxruntime", "pyarrow"):
        pytest.importorskip(module, reason="needs hiernorm[vision]")
    cv2.imwrite("grey.png", np.full((80, 80), 128, np.uint8))
    made = CliRunner().invoke(app, ["describe", "grey.png", "-o", "photos.hn"])
    assert made.output.endswith("photos.hn: 1 photo, 0 keypoints\n")
    require_one_line(
        folder,
        "describe grey.png -o photos.hn --model hn8",
        1,
        "photos.hn was described with model hn16; now model hn8 is asked for",
    )
