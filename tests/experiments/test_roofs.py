"""Roofs are rates of this machine; bounds follow from what a certificate counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("faiss", reason="needs hiernorm[bench]")
pytest.importorskip("threadpoolctl", reason="needs hiernorm[bench]")

from click.testing import CliRunner

from experiments.growth import large
from experiments.growth.tables import render_large
from experiments.harness.conditions import Group
from experiments.harness.records import read_record
from experiments.roofs.__main__ import bound_of, flat_bound, main
from experiments.roofs.machine import Level, Roofs
from experiments.roofs.tables import render_cases, render_roofs

ROOFS = Roofs(
    (Level("L2", 1e6, 1e11, 1e9), Level("memory", float("inf"), 1e10, 1e8)),
    byte_products=1e11,
    double_products=1e10,
    float_products=1e11,
)


def test_the_bound_is_the_larger_of_bytes_and_products():
    work = {"scanned": 10_000.0, "sifted": 100.0, "tightened": 10.0, "settled": 1.0}
    found = bound_of(ROOFS, 10_000, 16, work)
    assert found["from"] == "L2"
    assert found["codes"] == pytest.approx(1.6)
    # 110 lines of codes and the 8 lines of one row, all from memory: 1.12 MB and 5.12 MB
    assert found["lines"] == pytest.approx(1.18)
    assert found["products"] == pytest.approx(1.6)
    assert found["bound"] == pytest.approx(2.78)
    assert found["by"] == "codes"
    assert found["bytes_read"] == 160_000 + 64 * (110 + 8)


def test_the_bound_of_exhaustive_search_is_its_rows_or_its_products():
    assert flat_bound(ROOFS, 100_000, Group("single", 1, 1)) == pytest.approx(5120)
    assert flat_bound(ROOFS, 100_000, Group("batch", 1, 1)) == pytest.approx(128)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_roofs_are_measured_and_shown(tmp_path: Path):
    done = CliRunner().invoke(main, ["--smoke", "--out", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    result = read_record(tmp_path / "roofs.json").result
    levels = result["roofs"]["levels"]
    assert levels[-1]["name"] == "memory"
    assert all(level["read"] > 1e8 and level["lines"] > 1e4 for level in levels)
    assert len(result["cases"]) == 8
    for row in result["cases"]:
        assert row["microseconds"] > 0
        assert row["bound"] > 0
    for table in (render_roofs, render_cases):
        shown = table(tmp_path / "roofs.json")
        assert all(len(row) == len(shown.head) for row in shown.rows)


def test_growth_to_large_sizes_is_measured_apart_and_shown(tmp_path: Path):
    arguments = ["--smoke", "--out", str(tmp_path)]
    done = CliRunner().invoke(large.main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    cases = read_record(tmp_path / "large.json").result["cases"]
    assert [case["point"] for case in cases] == ["K16-a1/8", "K8-a1/32"]
    for case in cases:
        assert [row["n"] for row in case["rows"]] == [1_000, 2_000]
        assert all(row["peak_bytes"] > row["bytes"] > 0 for row in case["rows"])
    shown = render_large(tmp_path / "large.json")
    assert all(len(row) == len(shown.head) for row in shown.rows)


def test_exponents_are_fitted_from_a_hundred_thousand_entries_on():
    names = [group.name for group in large.GROUPS]
    rows = [
        {
            "n": n,
            "microseconds": dict.fromkeys(names, n**0.5),
            "work": {f"k={k}": {"scanned": n**0.25} for k in (1, 10)},
        }
        for n in (100_000, 1_000_000, 10_000_000)
    ]
    found = large.fit(rows)
    assert found[names[0]] == pytest.approx(0.5)
    assert found["scanned k=10"] == pytest.approx(0.25)
