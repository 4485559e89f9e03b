"""The attack runs, and no attack succeeds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("click", reason="needs hiernorm[cli]")
if os.name == "nt":
    pytest.skip("mapped files cannot be changed there", allow_module_level=True)

from click.testing import CliRunner

from experiments.attack.__main__ import main
from experiments.attack.victims import make_victim
from experiments.harness.records import read_record


def test_no_attack_succeeds(tmp_path: Path) -> None:
    arguments = ["--smoke", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = read_record(tmp_path / "reliability.json").result
    assert all(counts.get("wrong", 0) == 0 for counts in found.values())
    flips = [counts for what, counts in found.items() if what.startswith("bytes changed")]
    assert all(counts["refused"] > 0 for counts in flips)


def test_a_wrong_answer_is_seen(tmp_path: Path) -> None:
    victim = make_victim(tmp_path / "db", hierarchical=True, metric="ip", entries=300, seed=0)
    assert victim.ask() == "right"
    victim.ids[0, 0] += 1
    assert victim.ask() == "wrong"
