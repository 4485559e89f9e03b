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
from experiments.attack.tables import render_attacks, render_cost
from experiments.attack.victims import make_victim
from experiments.harness.records import read_record


def test_no_attack_succeeds(tmp_path: Path) -> None:
    arguments = ["--smoke", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = read_record(tmp_path / "reliability.json").result
    assert all(counts.get(bad, 0) == 0 for counts in found.values() for bad in ("wrong", "crashed"))
    flips = [counts for what, counts in found.items() if what.startswith("bytes changed")]
    assert all(counts["refused"] > 0 for counts in flips)
    rows = render_attacks(tmp_path / "reliability.json").rows
    assert {"bytes changed", "full disk", "two describers", "Ctrl-C"} <= {row[0] for row in rows}
    assert {row[3] for row in rows} == {"0"}


def test_the_cost_of_checks_is_measured(tmp_path: Path) -> None:
    arguments = ["--smoke", "--only", "cost", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    rows = render_cost(tmp_path / "cost.json").rows
    assert [row[0] for row in rows] == [
        "`'none'`",
        "`'settled'`",
        "`'touched'` (default)",
        "`'all'`",
    ]


def test_a_wrong_answer_is_seen(tmp_path: Path) -> None:
    victim = make_victim(tmp_path / "db", hierarchical=True, metric="ip", entries=60, seed=0)
    assert victim.ask() == "right"
    victim.ids[0, 0] += 1
    assert victim.ask() == "wrong"
