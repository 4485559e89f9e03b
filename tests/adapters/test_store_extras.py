"""Without its framework a store says what to install."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "extra", "package"),
    [
        ("langchain", "langchain", "langchain_core"),
        ("llama_index", "llama-index", "llama_index.core"),
        ("haystack", "haystack", "haystack"),
    ],
)
def test_a_missing_framework_is_named_with_its_extra(module, extra, package, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.delitem(sys.modules, f"hiernorm.adapters.{module}", raising=False)
    monkeypatch.setattr(
        "hiernorm.extras.find_spec", lambda name: None if name == package else find(name)
    )
    with pytest.raises(ImportError, match=rf"{package}.*hiernorm\[{extra}\]"):
        importlib.import_module(f"hiernorm.adapters.{module}")
