"""Every example in a docstring of the package prints what stands there."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
from types import ModuleType

import pytest

WITHOUT_EXAMPLES = {"hiernorm._core"}


def list_modules(package: str) -> list[str]:
    """The package and all modules in it, found without importing them."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    folders = spec.submodule_search_locations or []
    found = [package]
    for module in pkgutil.iter_modules(folders, f"{package}."):
        found += list_modules(module.name) if module.ispkg else [module.name]
    return found


MODULES = [name for name in list_modules("hiernorm") if name not in WITHOUT_EXAMPLES]


def import_or_skip(name: str) -> ModuleType:
    """A module, unless a package is missing that only an extra brings."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if (error.name or "hiernorm").split(".")[0] == "hiernorm":
            raise
        pytest.skip(f"needs {error.name}")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(import_or_skip(name)).failed == 0


def test_all_packages_are_searched_for_examples() -> None:
    packages = {name.split(".")[1] for name in MODULES if name.count(".") >= 2}
    assert {"adapters", "demo", "distributed", "learn", "storage", "vision"} <= packages
    assert "hiernorm.index" in MODULES
