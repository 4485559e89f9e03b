"""The model of shards on Ray: what can be said without measuring; and the benchmark runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("click", reason="needs hiernorm[cli]")

from experiments.harness.records import read_record
from experiments.shards import model
from paths import ROOT


def _costs(**changes):
    values = {
        "client_call": 1.0,
        "server_call": 2.0,
        "wait_call": 4.0,
        "merge_call": 8.0,
        "merge_hit": 0.0,
        "scan_unit": 1.0,
        "scan_power": 1.0,
    }
    return model.Costs(**{**values, **changes})


def test_one_batch_takes_the_sum_of_its_steps():
    found = model.simulate(_costs(), model.Plan(1, 16, 1.0, 1, 1, 10))
    assert found == {"seconds": 31.0, "latency": 31.0}
    again = model.simulate(_costs(), model.Plan(1, 16, 1.0, 1, 3, 10))
    assert again == {"seconds": 93.0, "latency": 31.0}


def test_shards_share_cores_or_have_their_own():
    # Two calls sent, half the entries each: side by side on two cores, one after another on one.
    two = model.simulate(_costs(), model.Plan(2, 16, 2.0, 1, 1, 10))
    assert two["seconds"] == 2 + 4 + (8 + 2) + 8
    one = model.simulate(_costs(), model.Plan(2, 16, 1.0, 1, 1, 10))
    assert one["seconds"] == 2 + 4 + 2 * (8 + 2) + 8


def test_batches_in_flight_hide_what_is_waited_for():
    costs = _costs(wait_call=100.0, merge_call=1.0)
    alone = model.simulate(costs, model.Plan(1, 1, 1.0, 1, 8, 10))["seconds"]
    many = model.simulate(costs, model.Plan(1, 1, 1.0, 8, 8, 10))["seconds"]
    assert alone == 8 * 105
    assert many < alone / 4


def test_a_power_goes_through_both_points():
    unit, power = model.fit_power({100: 2.0, 10_000: 20.0})
    assert power == pytest.approx(0.5)
    assert unit * 100**power == pytest.approx(2.0)


def test_more_than_a_segment_takes_its_multiple():
    costs = _costs(scan_power=0.5)
    assert costs.scan(4 * 2**20) == pytest.approx(4 * costs.scan(2**20))


@pytest.mark.ray
def test_the_benchmark_writes_what_its_page_shows(tmp_path):
    pytest.importorskip("ray", reason="needs hiernorm[ray]")
    words = [sys.executable, "-m", "experiments.shards", "--smoke", "--out", tmp_path]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    subprocess.run(words, check=True, cwd=ROOT, env=environment)
    report = read_record(tmp_path / "shards.json").result
    assert set(report["workers"]) == {"1", "2"}
    for found in report["workers"].values():
        assert found["measured"]["queries_per_second"] > 0
        assert found["predicted"]["queries_per_second"] > 0
    assert {row["entries"] for row in report["carried"]} == {1e9, 1e11}
