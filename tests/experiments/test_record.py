"""The record: what it plans, when it begins, what counts as done, and what it installs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

pytest.importorskip("click", reason="needs hiernorm[cli]")
pytest.importorskip("threadpoolctl", reason="needs hiernorm[bench]")
pytest.importorskip("faiss", reason="needs hiernorm[bench]")

from click.testing import CliRunner

from experiments.harness.command import ROOT
from experiments.harness.records import Recorder
from experiments.record import log, run
from experiments.record.__main__ import main
from experiments.record.log import RENDERING, Entry, Log, head_commit
from experiments.record.plan import PLAN, Folders, Step, choose
from experiments.record.quiet import busiest_processes, wait_until_quiet
from experiments.record.run import Options, Record, copy_results
from experiments.tables.registry import find_tables

STEP = Step("filters", "filters", results=("filters.json",), minutes=3)
CALM = Options(budget=None, patience=0.0, smoke=False)

pytestmark = pytest.mark.skipif(not (ROOT.parent / ".git").exists(), reason="needs a clone")


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """Folders of a record that begins from nothing, whatever the project's own has done."""
    monkeypatch.setattr(run, "EARLIER", tmp_path / "none.json")
    return Folders(tmp_path / "out", tmp_path / "work", None)


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "changed_files", list)
    monkeypatch.setattr(run, "wait_until_quiet", lambda patience, say: True)


def entry(load: float | None = 0.01, seconds: float = 60.0, commit: str = "") -> Entry:
    return Entry(commit or head_commit(), "2026-01-01T00:00:00+00:00", seconds, load)


def test_every_table_of_a_page_has_a_step_of_the_record():
    made = {f"{step.study}/results/{name}" for step in PLAN for name in step.results}
    sources = {table.source.relative_to(ROOT).as_posix() for table in find_tables().values()}
    dated = {
        "growth/results/graphs.json",
        "models/results/scenes.json",
        "models/results/development.json",
        "models/results/longer/heads.json",
        "models/results/longer/held_out.json",
        "models/results/longer/ratio.json",
        "models/results/longer/scenes.json",
        "models/results/longer/whole.json",
        "models/results/means/heads.json",
        "models/results/means/held_out.json",
        "models/results/means/places/heads.json",
        "models/results/means/ratio.json",
        "models/results/rate/clean/held_out.json",
        "models/results/rate/hardnet/heads.json",
        "models/results/rate/hn16/heads.json",
        "models/results/rate/long/heads.json",
        "models/results/rate/noise/held_out.json",
        "models/results/rate/ratio.json",
        "models/results/all-points/again/heads.json",
        "models/results/all-points/eight-bits/development.json",
        "models/results/all-points/hn8-tight/heads.json",
        "models/results/all-points/hn8/heads.json",
        "models/results/all-points/hn8/search_time.json",
        "models/results/all-points/hn8/search_time_all5.json",
        "models/results/all-points/hn8/search_time_mix4.json",
        "models/results/all-points/hn16-all/heads.json",
        "models/results/all-points/hn16-some/heads.json",
        "models/results/all-points/plain-all/heads.json",
        "models/results/all-points/plain-some/heads.json",
        "models/results/all-points/quarter/heads.json",
        "models/results/all-points/quarter/ratio.json",
        "models/results/all-points/ratio.json",
        "models/results/all-points/search_time.json",
        "models/results/turned/group1/heads.json",
        "models/results/turned/group2/heads.json",
        "models/results/turned/ratio.json",
        "models/results/two-layers/development.json",
        "models/results/two-layers/scenes.json",
        "reproduce/results/recipes/tuned/REPORT.md",
        "record/results/record.json",
    }
    assert sources - made - dated == set()


@pytest.mark.parametrize("step", PLAN, ids=lambda step: step.name)
def test_every_step_is_a_command_that_takes_its_arguments(step: Step):
    module = ".".join(["experiments", step.module] + ["__main__"] * ("." not in step.module))
    command = pytest.importorskip(module).main
    known = {option for parameter in command.params for option in parameter.opts}
    words = f"{step.arguments} {step.smoke}".split()
    given = {word for word in words if word.startswith("--")}
    assert given <= known
    assert step.prepares or "--out" in known


def test_steps_come_with_what_they_need_and_in_the_order_of_the_plan():
    names = [step.name for step in choose(("plain", "descriptors"))]
    patches = ["features-hn16", "graphs-descriptors", "descriptors"]
    assert names == [*patches, "text-embeddings", "features-hardnet", "graphs-plain", "plain"]
    assert [step.name for step in choose(())] == [step.name for step in PLAN]
    assert [step.name for step in PLAN[:3]] == patches
    with pytest.raises(ValueError, match="no step 'sped': there are"):
        choose(("sped",))


def test_a_timing_waits_for_quiet_and_says_so():
    said: list[str] = []
    shares = iter([0.4, 0.3, 0.05])
    assert wait_until_quiet(60, said.append, lambda: next(shares))
    assert said == ["waiting: other processes use 40% of the machine, 5% is allowed"]
    assert not wait_until_quiet(0, said.append, lambda: 0.4)
    assert said[-1] == "other processes still use 40% of the machine, 5% is allowed"
    assert wait_until_quiet(0, said.append, lambda: None)


def test_the_busiest_processes_are_named():
    command = [sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(command) as busy:
        try:
            found = busiest_processes(seconds=0.5, count=1000)
        finally:
            busy.kill()
    assert any(f"({busy.pid})" in process for process in found)


def test_a_step_is_done_if_its_code_is_the_same_and_nobody_disturbed_it(tmp_path: Path):
    made = Log(tmp_path / "log.json", earlier=tmp_path / "none")
    assert made.state(STEP) == "to do"
    made.note(STEP, entry())
    assert Log(tmp_path / "log.json", earlier=tmp_path / "none").state(STEP) == "done"
    made.note(STEP, entry(load=0.4))
    assert made.state(STEP) == "to do again: other processes used 40% of the machine"
    assert made.state(replace(STEP, timing=False)) == "done"
    assert made.state(replace(STEP, alone=False)) == "done"
    made.note(STEP, entry(commit="0" * 40))
    assert made.state(STEP).startswith("to do again: the code has changed")


def test_steps_of_the_record_that_the_project_has_count_until_they_are_run_again(tmp_path: Path):
    record, folder = tmp_path / "record.json", tmp_path / "log.json"
    earlier = {"filters": asdict(entry(seconds=60)), "match": asdict(entry(seconds=120))}
    Recorder("record").write(record, {"steps": earlier})
    made = Log(folder, record)
    assert made.state(STEP) == "done"
    made.note(STEP, entry(seconds=90))
    assert json.loads(folder.read_text()) == {"filters": asdict(entry(seconds=90))}
    assert Log(folder, record).to_result() == {
        "filters": asdict(entry(seconds=90)),
        "match": earlier["match"],
    }
    assert Log(tmp_path / "other.json", None).state(STEP) == "to do"


def test_files_that_only_render_exist():
    assert all(list(ROOT.glob(pattern)) for pattern in RENDERING)


def test_times_come_from_earlier_runs(tmp_path: Path):
    made = Log(tmp_path / "log.json", earlier=tmp_path / "none")
    assert made.minutes(STEP) == (3.0, False)
    made.note(STEP, entry(seconds=90))
    assert made.minutes(STEP) == (1.5, True)


def test_nothing_begins_in_a_tree_with_changes(folders: Folders, monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []
    monkeypatch.setattr(run, "changed_files", lambda: ["README.md"])
    assert not Record([STEP], folders, CALM, said.append).run()
    assert said == ["changed files, the first is README.md: commit, then run again"]


def test_nothing_is_timed_on_a_busy_machine(folders: Folders, monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []
    monkeypatch.setattr(run, "changed_files", list)
    monkeypatch.setattr(run, "wait_until_quiet", lambda patience, say: False)
    monkeypatch.setattr(run, "busiest_processes", lambda: ["90% train (7)"])
    assert not Record([STEP], folders, CALM, said.append).run()
    assert said == ["filters does not begin; busiest: 90% train (7)"]


@pytest.mark.usefixtures("clean")
def test_a_step_that_fails_shows_its_log_and_stops_those_that_need_it(folders: Folders):
    said: list[str] = []
    broken = Step("broken", "filters", "--no-such-option", timing=False)
    after = replace(STEP, name="after", needs=("broken",))
    assert not Record([broken, after], folders, CALM, said.append).run()
    assert any("No such option" in line for line in said)
    assert "after: left out, needs broken" in said


@pytest.mark.usefixtures("clean")
def test_a_budget_leaves_out_what_does_not_fit(folders: Folders):
    said: list[str] = []
    options = replace(CALM, budget=1.0)
    assert not Record([STEP], folders, options, said.append).run()
    assert said == ["filters: left out, 3 minutes do not fit into the budget"]


def test_what_prepares_others_runs_if_they_are_open_or_if_it_is_chosen_alone(folders: Folders):
    folders = replace(folders, data=folders.work)
    record = Record(choose(("descriptors",)), folders, CALM, print)
    prepared = ["features-hn16", "graphs-descriptors"]
    assert [step.name for step in record.left()] == [*prepared, "descriptors"]
    record.log.note(record.steps[2], entry())
    assert record.left() == []
    only = Record([step for step in record.steps if step.prepares], folders, CALM, print)
    assert [step.name for step in only.left()] == prepared
    alone = Record(choose(("features-hn16",)), folders, CALM, print)
    assert [step.name for step in alone.left()] == ["features-hn16"]


def test_steps_that_need_data_say_so(folders: Folders):
    said: list[str] = []
    Record(choose(("descriptors",)), folders, CALM, said.append).show()
    assert "needs --data" in said[0]
    assert "needs features-hn16" in said[1]
    assert "needs graphs-descriptors" in said[2]
    assert said[3].startswith("left: 3 of 3 steps, about ")


def test_a_small_record_runs_from_end_to_end_and_resumes(tmp_path: Path):
    arguments = ["--smoke", "--only", "filters", "--only", "checks", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "filters" / "filters.json").exists()
    assert (tmp_path / "checks" / "checks.json").exists()
    entries = json.loads((tmp_path / "log.json").read_text())
    assert set(entries) == {"filters", "checks"}
    assert "checks: finished" in done.output
    again = CliRunner().invoke(main, [*arguments, "--list"])
    assert "checks" in again.output
    (line,) = [line for line in again.output.splitlines() if line.startswith("checks")]
    assert line.endswith("done")
    assert "as measured" in line


def test_what_is_done_is_installed_without_networks(tmp_path: Path):
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "runs").mkdir(parents=True)
    for name in ("a.json", "runs/b.jsonl", "c.png", "net.safetensors", "log.txt"):
        (source / name).write_text(name)
    copy_results(source, target)
    found = {file.relative_to(target).as_posix() for file in target.rglob("*") if file.is_file()}
    assert found == {"a.json", "runs/b.jsonl", "c.png"}


def test_changed_files_are_those_that_git_tracks():
    assert all((ROOT.parent / name).suffix != ".pyc" for name in log.changed_files())


def test_unknown_steps_are_refused():
    done = CliRunner().invoke(main, ["--only", "sped", "--list"])
    assert done.exit_code == 2
    assert "no step 'sped'" in done.output
