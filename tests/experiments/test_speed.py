"""The benchmark from end to end at its smallest size, and its parts. Nothing here is timed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("click", reason="needs hiernorm[cli]")
pytest.importorskip("rich", reason="needs hiernorm[cli]")
pytest.importorskip("threadpoolctl", reason="needs hiernorm[bench]")

import click
from click.testing import CliRunner

from experiments.harness import conditions, methods, opponents
from experiments.harness.comparison import Case, DisagreementError, Report
from experiments.harness.conditions import Group
from experiments.harness.points import ALL_POINTS
from experiments.harness.records import Record, Recorder, read_record
from experiments.harness.timing import Timing, ratios, recall
from experiments.speed import data, kernels
from experiments.speed.__main__ import main
from experiments.speed.cases import FULL, LARGE, SMOKE, plan_cases, plan_file_cases, plan_groups
from experiments.speed.goals import Goal, check_goals, fastest_rival, select
from experiments.speed.picture import draw_picture
from experiments.speed.run import Options, run
from experiments.speed.tables import render_kernels

PNG = b"\x89PNG\r\n\x1a\n"


class Silence:
    """Progress that nobody hears, but that adds up."""

    def __init__(self) -> None:
        self.total = self.done = 0.0

    def start(self, total: float) -> None:
        self.total = total

    def say(self, doing: str) -> None:
        pass

    def advance(self, share: float) -> None:
        self.done += share


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """One smoke run through the command line: its folder and what it printed."""
    pytest.importorskip("faiss", reason="needs hiernorm[bench]")
    folder = tmp_path_factory.mktemp("bench")
    arguments = ["--smoke", "--threads", "1", "--only", "K16", "--out", str(folder)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return folder, result


@pytest.fixture(scope="module")
def record(smoke):
    return read_record(smoke[0] / "bench.json")


@pytest.fixture(scope="module")
def report(record):
    return Report.from_result(record.result)


def test_run_writes_json_and_picture(smoke):
    pytest.importorskip("matplotlib", reason="needs hiernorm[bench]")
    folder, _ = smoke
    assert (folder / "bench.json").stat().st_size > 1000
    assert (folder / "bench.png").read_bytes().startswith(PNG)


def test_tables_name_methods_and_goals(smoke):
    _, result = smoke
    for text in ("hiernorm", "cascade", "Phase-2 share", "Goals", "not measured"):
        assert text in result.output


def test_record_says_where_and_how_it_was_made(record):
    for name in ("cpu", "cores", "caches", "isa"):
        assert name in record.machine
    assert record.versions["numpy"] == np.__version__
    assert record.versions["hiernorm"]
    assert record.commit is None or len(record.commit) == 40
    assert record.date
    assert set(record.load) == {"other_processes", "average"}
    assert record.seed == record.settings["seed"] == 0
    assert record.command.startswith("python -m experiments.speed --smoke --threads 1 --only K16")
    assert "/" not in record.command


def test_every_method_is_measured_in_every_group(report):
    case = plan_cases(SMOKE, ("K16",))[0]
    groups = {(row.manner, row.k, row.threads) for row in report.measurements}
    assert groups == {(g.manner, g.k, g.threads) for g in plan_groups(case, 1)}
    names = {row.method for row in report.measurements}
    assert len(report.measurements) == len(groups) * len(names)
    assert {"hiernorm cascade", "hiernorm paper", "hiernorm exhaustive", "NumPy"} <= names


def test_measurements_are_complete(report):
    for row in report.measurements:
        assert row.seconds > 0
        assert min(row.seconds_rounds) <= row.seconds <= max(row.seconds_rounds)
        assert row.speedup_low <= row.speedup <= row.speedup_high
        assert 0 <= row.recall <= 1
        if row.family == "flat":
            assert row.speedup == 1


def test_our_engines_have_full_recall(report):
    own = [row for row in report.measurements if row.method.startswith("hiernorm")]
    assert own
    assert all(row.recall == 1 for row in own)


def test_record_survives_json(record, report):
    assert Record.from_json(record.to_json()) == record
    assert Report.from_result(record.result) == report


def test_record_of_another_format_is_refused():
    with pytest.raises(ValueError, match="expected a record of format 1, got 99"):
        Record.from_json(json.dumps({"format": 99}))


def test_earlier_report_is_shown_and_redrawn_without_measuring(smoke, tmp_path):
    pytest.importorskip("matplotlib", reason="needs hiernorm[bench]")
    text = (smoke[0] / "bench.json").read_text()
    (tmp_path / "bench.json").write_text(text)
    result = CliRunner().invoke(main, ["--from", str(tmp_path / "bench.json"), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.output) == json.loads(text)
    assert (tmp_path / "bench.png").read_bytes().startswith(PNG)


def test_picture_of_an_empty_report_is_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="needs hiernorm[bench]")
    empty = Report(missing={})
    draw_picture(empty, tmp_path / "empty.png")
    assert (tmp_path / "empty.png").read_bytes().startswith(PNG)


def test_run_without_peers_reports_them_missing(monkeypatch):
    found = conditions.import_optional
    for module in (conditions, methods, opponents):
        monkeypatch.setattr(
            module, "import_optional", lambda name: found(name) if name == "threadpoolctl" else None
        )
    progress = Silence()
    scale = replace(SMOKE, sizes=(200,), plain_size=200, points=ALL_POINTS)
    options = Options(scale, threads=1)
    report = Report.from_result(run(options, progress).result)
    assert set(report.missing) == {"FAISS", "hnswlib", "USearch"}
    assert all("pip install 'hiernorm[bench]'" in reason for reason in report.missing.values())
    assert {row.family for row in report.measurements} == {
        "cascade", "paper", "exhaustive", "numpy",
    }  # fmt: skip
    assert all(row.speedup is None for row in report.measurements)
    assert progress.done == pytest.approx(progress.total)


def test_disagreement_stops_the_run(monkeypatch):
    honest = methods.Hiernorm.hits

    def wrong(self, queries, group):
        hits = honest(self, queries, group)
        if self.family == "cascade":
            hits.ids = hits.ids + 1
        return hits

    monkeypatch.setattr(methods.Hiernorm, "hits", wrong)
    options = Options(replace(SMOKE, sizes=(200,)), threads=1, only=("K16",))
    with pytest.raises(DisagreementError, match="hiernorm cascade differs"):
        run(options, Silence())


def test_real_descriptors_are_read_from_files(tmp_path):
    rows = np.random.default_rng(0).standard_normal((300, 32)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    options = Options(SMOKE, threads=1, database_file=tmp_path / "rows.npy")
    record = run(options, Silence())
    report = Report.from_result(record.result)
    assert {row.n for row in report.measurements} == {300 - 300 // 50}
    assert record.settings["database_file"] == "rows.npy"


def test_vectors_of_a_file_are_altered_only_when_that_is_asked_for():
    names = [case.name for case in plan_file_cases(300, SMOKE)]
    assert names == ["plain-n300"]
    assert [case.name for case in plan_file_cases(300, SMOKE, hn=True)] == ["K16-a1/8-n300", *names]
    assert CliRunner().invoke(main, ["--hn"]).exit_code == 2


def test_files_of_different_dimensions_are_refused(tmp_path):
    for name, dim in (("rows", 32), ("queries", 16)):
        np.save(tmp_path / f"{name}.npy", np.ones((60, dim), dtype=np.float32))
    options = Options(
        SMOKE,
        threads=1,
        database_file=tmp_path / "rows.npy",
        queries_file=tmp_path / "queries.npy",
    )
    with pytest.raises(ValueError, match=r"queries\.npy has 16 dimensions, .*rows\.npy has 32"):
        run(options, Silence())


def test_plan_measures_peers_at_the_recommended_points_of_every_size():
    cases = plan_cases(LARGE)
    assert [c.n for c in cases if c.graph] == [*LARGE.sizes, LARGE.plain_size]
    assert {c.point for c in cases if c.n == 2_000_000} == {(16, 1 / 8), (8, 1 / 32)}
    assert len([c for c in cases if c.n == 500_000]) == len(FULL.points)


def test_all_methods_find_the_same_entries():
    """Every adapter returns (queries, k) ids, in each manner; exact ones the exhaustive ids."""
    case = Case(500, (16, 1 / 8), peers=True, graph=True)
    database, queries = data.draw(case, queries=20, seed=3)
    engines = methods.own_engines(case.point)
    peers = (*methods.exact_peers(everything=True), *methods.graph_methods())
    for method in (*engines, *peers):
        method.build(database, seed=0)
        for manner in ("single", "batch"):
            for k in (1, 10):
                group = Group(manner, k, 1)
                with conditions.hold(1, manner):
                    true = engines[0].prepare(group)(queries)
                    ids = method.prepare(group)(queries)
                assert ids.shape == (20, k)
                if method.family != "hnswlib":
                    assert recall(ids, true, k) == 1


def test_recall_counts_found_neighbours():
    true = np.array([[1, 2], [3, 4]])
    assert recall(np.array([[1, 9], [4, 3]]), true, k=2) == 0.75
    assert recall(np.array([[1, 9], [4, 3]]), true, k=1) == 0.5


def test_ratios_compare_the_rounds_that_both_took_part_in():
    assert ratios(Timing((4.0, 6.0, 8.0), 1), Timing((2.0, 2.0), 1)) == [2.0, 3.0]


@pytest.mark.parametrize(
    ("measured", "more_is_better", "verdict"),
    [
        (None, True, "not measured"),
        (3.0, True, "missed"),
        (5.0, True, "floor"),
        (10.0, True, "aim"),
    ],
)
def test_goal_verdicts(measured, more_is_better, verdict):
    assert Goal("speed", "x", 5, 10, more_is_better, measured).verdict == verdict


def test_goals_where_less_is_better():
    assert Goal("overhead", "us", 10, 3, False, 2.0).verdict == "aim"
    assert Goal("overhead", "us", 10, 3, False, 12.0).verdict == "missed"


def test_rival_of_hnswlib_is_the_one_that_was_tuned_for_the_recall(report):
    rows = select(report.measurements, 600, (16, 1 / 8), "single", 1, 1)
    tuned = {row.target: row for row in rows if row.family == "hnswlib"}
    assert set(tuned) == {0.99, 0.999}
    assert fastest_rival(rows, "hnswlib") is tuned[0.999]
    assert fastest_rival(rows, "hnswlib", recall=0.99) is tuned[0.99]
    assert all("ef=" in row.setting for row in tuned.values())


def test_rival_of_hnswlib_that_was_not_tuned_is_the_smallest_ef_with_the_recall(report):
    rows = select(report.measurements, 600, (16, 1 / 8), "single", 1, 1)
    base = rows[0]
    variants = [
        replace(base, family="hnswlib", method=f"ef={ef}", seconds=float(ef), recall=found)
        for ef, found in ((10, 0.9), (50, 0.9995), (100, 1.0))
    ]
    assert fastest_rival(variants, "hnswlib").method == "ef=50"
    assert fastest_rival(variants[:1], "hnswlib") is None


def test_goals_are_found_in_a_report(report):
    as_if_large = [replace(row, n=99_000) for row in report.measurements]
    goals = {goal.name: goal for goal in check_goals(replace(report, measurements=as_if_large))}
    assert goals["99,000 entries: over FAISS flat"].measured is not None
    assert goals["99,000 entries: speed of k=10 over k=1"].measured is not None
    assert goals["500,000 entries: over FAISS flat"].measured is None


def test_a_goal_that_compares_times_has_both(report):
    as_if_large = [replace(row, n=99_000) for row in report.measurements]
    for goal in check_goals(replace(report, measurements=as_if_large)):
        if goal.measured is None or "99,000" not in goal.name:
            assert goal.times is None
        elif "flat" not in goal.name:
            other, own = goal.times
            assert goal.measured == other / own


def test_queries_without_data_are_refused(tmp_path):
    file = tmp_path / "queries.npy"
    file.touch()
    result = CliRunner().invoke(main, ["--queries", str(file)])
    assert result.exit_code == 2
    assert "--queries needs --data" in result.output


def test_cases_that_do_not_exist_are_named():
    with pytest.raises(ValueError, match="no case matches no-such-case; there are"):
        plan_cases(SMOKE, ("no-such-case",))


def test_the_time_to_build_is_a_case_of_its_own():
    pytest.importorskip("faiss", reason="needs hiernorm[bench]")
    options = Options(scale=SMOKE, threads=1, only=("build-",))
    report = Report.from_result(run(options, Silence()).result)
    assert report.measurements == []
    assert [row.case for row in report.builds[::2]] == [case.name for case in SMOKE.builds]
    assert {row.method for row in report.builds} == {"hiernorm cascade", "FAISS IndexFlatIP"}
    assert all(row.seconds > 0 for row in report.builds)


def test_uniform_vectors_are_timed_beside_faiss():
    pytest.importorskip("faiss", reason="needs hiernorm[bench]")
    options = Options(scale=SMOKE, threads=1, only=("tutorial-",))
    report = Report.from_result(run(options, Silence()).result)
    assert {row.case for row in report.measurements} >= {case.name for case in SMOKE.uniform}
    assert {row.method for row in report.builds} == {"hiernorm cascade", "FAISS IndexFlatL2"}
    ours = [row for row in report.measurements if row.family == "cascade"]
    assert {(row.manner, row.k) for row in ours} == {("single", 4), ("batch", 4)}
    assert all(row.recall == 1.0 and row.speedup is not None for row in ours)


def test_cycles_of_kernels_are_kept_and_shown(tmp_path: Path) -> None:
    rows = [
        {
            "kernel": "scan",
            "family": family,
            "slots": 16,
            "entries": 2048,
            "queries": queries,
            "cycles": 8 / queries,
        }
        for family in ("avx2", "neon")
        for queries in (1, 4)
    ]
    program = tmp_path / "kernel_benchmark"
    lines = "".join(f"echo '{json.dumps(row)}'\n" for row in rows)
    program.write_text(f"#!/bin/sh\n{lines}")
    program.chmod(0o755)
    result = kernels.measure(program, rounds=1)
    assert result == {"rows": rows}
    file = tmp_path / "kernels.json"
    Recorder("speed", name="kernels").write(file, result)
    table = render_kernels(file)
    assert table.rows == [["16", "32 KiB", "8.0", "2.0", "8.0", "2.0"]]


def test_a_missing_build_is_named(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="no build of the package"):
        kernels.build_program(tmp_path)
