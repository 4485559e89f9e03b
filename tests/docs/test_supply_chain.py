"""What the project is built and tested with is pinned: actions to commits, packages to versions."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import pytest

from paths import ROOT

yaml = pytest.importorskip("yaml", reason="needs pyyaml")
requirements = pytest.importorskip("packaging.requirements", reason="needs packaging")
utils = pytest.importorskip("packaging.utils", reason="needs packaging")

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED_ACTION = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_commit_and_says_its_version(workflow: Any) -> None:
    used = re.findall(r"uses: (.*)", workflow.read_text())
    assert used
    for action in used:
        assert PINNED_ACTION.fullmatch(action), action


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_have_the_least_permissions(workflow: Any) -> None:
    found = yaml.safe_load(workflow.read_text())
    assert found["permissions"] == {"contents": "read"}
    for name, job in found["jobs"].items():
        expected = {"id-token": "write"} if name == "publish" else None
        assert job.get("permissions") == expected, name
        for step in job["steps"]:
            if "actions/checkout@" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


def _pinned() -> set[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [requirements.Requirement(line) for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"==[\w.+]+", str(each.specifier)) for each in found)
    return {utils.canonicalize_name(each.name) for each in found}


def _needed(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> None:
    """Follow what an installed package with extras requires, on this machine."""
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    try:
        lines = distribution(name).requires or []
    except PackageNotFoundError:
        return
    for line in lines:
        needed = requirements.Requirement(line)
        if needed.marker is not None and not any(
            needed.marker.evaluate({"extra": extra}) for extra in extras or {""}
        ):
            continue
        _needed(utils.canonicalize_name(needed.name), frozenset(needed.extras), seen)


@pytest.mark.parametrize("extra", ["test", "demo"])
def test_all_that_the_two_commands_install_is_pinned(extra: str) -> None:
    seen: set[tuple[str, frozenset[str]]] = set()
    _needed("hiernorm", frozenset({extra}), seen)
    names = {name for name, _ in seen} - {"hiernorm"}
    assert len(names) > 20
    assert names <= _pinned()


def test_the_build_tools_are_pinned() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert not re.findall(r"\$\(PIP\) install (?!-c constraints.txt|--no-deps)", makefile)
    assert {"cmake", "ninja", "nanobind", "pip", "scikit-build-core"} <= _pinned()
