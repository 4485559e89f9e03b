"""The notebooks run from top to bottom and print what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="needs nbclient")
pytest.importorskip("ipykernel", reason="needs ipykernel")
pytest.importorskip("sklearn", reason="needs hiernorm[test]")
pytest.importorskip("cv2", reason="needs hiernorm[test]")
pytest.importorskip("skimage", reason="needs hiernorm[test]")

from guides import differences
from notebooks import compare
from paths import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
MOST_BYTES = 20_000


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_notebook_prints_what_it_shows(file: Path) -> None:
    steps = list(compare(file))
    assert any(step.shown for step in steps)
    wrong = [problem for problem in map(differences, steps) if problem]
    assert not wrong, "\n".join(wrong)


def test_notebooks_are_small_and_have_no_pictures_inside() -> None:
    assert [file.stem for file in NOTEBOOKS] == ["embeddings", "photos"]
    for file in NOTEBOOKS:
        text = file.read_text(encoding="utf-8")
        assert len(text) < MOST_BYTES
        assert "image/png" not in text
