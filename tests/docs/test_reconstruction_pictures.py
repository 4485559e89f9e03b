"""The pictures of the reconstruction guide show the model whose numbers the guide prints.

Numbers and pictures come from one run: `python tests/support/guides.py` writes both.
"""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest

from guides import COPY
from paths import ROOT

GUIDE = ROOT / "docs" / "guides" / "reconstruction.md"


@pytest.fixture(scope="module")
def shown():
    """What the page of the model shows: names, points, colours and the lines of cameras."""
    text = (ROOT / "docs" / "images" / "room.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r"^const data = (.*);$", text, re.MULTILINE)[1])
    array = {
        name: np.frombuffer(base64.b64decode(data[name]), kind)
        for name, kind in (("points", "<f4"), ("colours", "u1"), ("lines", "<f4"))
    }
    return data["names"], {
        "points": array["points"].reshape(-1, 3),
        "colours": array["colours"].reshape(-1, 3),
        "lines": array["lines"].reshape(-1, 8, 2, 3),
    }


def printed(name: str) -> int:
    """A number of the first command of the guide."""
    return int(re.search(rf"^{name} +([\d,]+)$", GUIDE.read_text(encoding="utf-8"), re.M)[1])


def test_the_page_has_the_photos_and_points_that_the_guide_prints(shown):
    names, arrays = shown
    assert len(names) == len(arrays["lines"]) == printed("registered") == printed("photos")
    assert len(arrays["points"]) == printed("points")


def test_the_picture_shows_the_model_of_the_page(shown):
    pytest.importorskip("cv2", reason="needs OpenCV")
    from hiernorm.vision.drawing import read_colour
    from hiernorm.vision.sparse_model import SparseModel, draw_model

    names, arrays = shown
    rim = arrays["lines"][:, 4:, 0].astype(np.float64)
    along, down = rim[:, 1] - rim[:, 0], rim[:, 2] - rim[:, 1]
    axes = [axis / np.linalg.norm(axis, axis=1, keepdims=True) for axis in (along, down)]
    rotations = np.stack((*axes, np.cross(*axes)), axis=1)
    centres = arrays["lines"][:, 0, 0].astype(np.float64)
    points = arrays["points"].astype(np.float64)
    drawn = draw_model(SparseModel(points, arrays["colours"], centres, rotations, tuple(names)))
    picture = read_colour(ROOT / "docs" / "images" / "room.png")
    assert picture.shape == drawn.shape
    # The page has float32 values, so a dot or a line may be drawn one pixel further.
    differ, filled = (picture != drawn).any(axis=2), (picture < 255).any(axis=2)
    assert differ.sum() < 0.1 * filled.sum()


def test_the_guide_says_which_files_are_its_pictures():
    copied = dict(COPY.findall(GUIDE.read_text(encoding="utf-8")))
    assert copied == {
        "model/model.png": "../images/room.png",
        "model/model.html": "../images/room.html",
    }
