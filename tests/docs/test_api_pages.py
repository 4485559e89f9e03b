"""Every public name stands on the page of its module."""

from __future__ import annotations

import importlib
import re

import pytest

from paths import ROOT

REFERENCE = ROOT / "docs" / "reference"
PAGES = {
    "hiernorm": ("api", "models"),
    "hiernorm.adapters": ("adapters",),
    "hiernorm.distributed": ("distributed",),
    "hiernorm.learn": ("learn",),
    "hiernorm.models": ("models",),
    "hiernorm.vision": ("vision",),
}
NO_PAGE = {"__version__", "reference"}
"""A string; a module with a page of its own."""
BLOCK = re.compile(
    r"^::: (?P<path>[\w.]+)(?:\n    options:\n      heading: (?P<heading>[\w.]+))?", re.M
)


@pytest.mark.parametrize("module", PAGES)
def test_every_public_name_is_on_its_page(module: str) -> None:
    text = "".join((REFERENCE / f"{page}.md").read_text("utf-8") for page in PAGES[module])
    listed = {block["heading"] or block["path"] for block in BLOCK.finditer(text)}
    public = set(importlib.import_module(module).__all__) - NO_PAGE
    missing = {name for name in public if not {f"{module}.{name}", f"hiernorm.{name}"} & listed}
    assert not missing, f"{missing} of {module} are on none of {PAGES[module]}"
