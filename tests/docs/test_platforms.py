"""README and the page of installation list the platforms and Pythons that the workflow builds."""

from __future__ import annotations

import re
from typing import Any

import pytest

from paths import ROOT

yaml = pytest.importorskip("yaml", reason="needs hiernorm[test]")

NAMES = {
    "linux-x86_64": "Linux x86_64",
    "linux-aarch64": "Linux aarch64",
    "macos-arm64": "macOS arm64",
    "macos-x86_64": "macOS x86_64",
    "windows-amd64": "Windows x86_64",
    "windows-arm64": "Windows arm64",
}
"""Platforms in the words of the workflow and in those of pages."""


def built_platforms() -> list[dict[str, Any]]:
    """The platforms of the workflow `wheels`."""
    text = (ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8")
    included: list[dict[str, Any]] = yaml.safe_load(text)["jobs"]["wheels"]["strategy"]["matrix"][
        "include"
    ]
    return included


@pytest.mark.parametrize("page", ["README.md", "docs/start/install.md"])
def test_every_platform_of_the_workflow_has_one_row(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:Linux|macOS|Windows) \w+) \|", text, re.MULTILINE)
    assert sorted(rows) == sorted(NAMES[built["platform"]] for built in built_platforms())


def test_one_wheel_serves_python_3_12_and_later() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'wheel.py-api = "cp312"' in text
    built = re.search(r"^build = (\[.*\])$", text, re.MULTILINE)
    assert built is not None
    assert {"cp310", "cp311", "cp312", "cp314t"} <= set(re.findall(r"cp3\d+t?", built[1]))
