"""Debian's Chromium for tests that open pages."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def browser() -> Iterator[Any]:
    """Headless Chromium; where HIERNORM_REQUIRE_BROWSER is set, missing is failing."""
    missing = pytest.fail if os.environ.get("HIERNORM_REQUIRE_BROWSER") else pytest.skip
    try:
        playwright = importlib.import_module("playwright.sync_api")
    except ImportError:
        missing("needs playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        missing("needs the package chromium")
    with playwright.sync_playwright() as driver:
        program = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield program
        program.close()
