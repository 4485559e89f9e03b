"""The run of a record: one step after the other, each in a process of its own."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from experiments.harness.command import ROOT
from experiments.harness.machine import LoadWatch
from experiments.harness.records import Recorder
from experiments.record.log import EARLIER, PROJECT, Entry, Log, changed_files, head_commit
from experiments.record.plan import PLAN, Folders, Step
from experiments.record.quiet import Say, busiest_processes, wait_until_quiet

SHOWN = (".json", ".jsonl", ".md", ".html", ".png")
"""What is kept of a folder of results; networks and features are not."""

TAIL = 20
"""Lines of the log that a failed step shows."""


@dataclass(frozen=True)
class Options:
    """What the user asked for.

    Attributes
    ----------
    budget
        Minutes; steps that would take longer are left out. None: no limit.
    patience
        Minutes to wait for a quiet machine before each timing.
    smoke
        Everything small, with any load, from any tree.
    """

    budget: float | None
    patience: float
    smoke: bool


class Record:
    """Runs steps, and says what is left.

    Parameters
    ----------
    steps
        In the order of the plan.
    folders, options
        Where, and how.
    say
        Hears every line.
    """

    def __init__(self, steps: Sequence[Step], folders: Folders, options: Options, say: Say) -> None:
        self.steps = steps
        self.folders = folders
        self.options = options
        self.say = say
        self.log = Log(folders.out / "log.json", None if options.smoke else EARLIER)
        self._failed: set[str] = set()

    def missing(self, step: Step) -> str | None:
        """Why a step cannot run, or None."""
        if "data" in step.needs and self.folders.data is None:
            return "needs --data"
        needed = [other for other in self.steps if other.name in step.needs]
        reasons = (
            f"needs {other.name}"
            for other in needed
            if other.name in self._failed or self.missing(other) is not None
        )
        return next(reasons, None)

    def left(self) -> list[Step]:
        """Steps with results that are not done, what they need, and what was chosen alone."""
        served = {need for s in self.steps for need in s.needs}
        wanted: set[str] = set()
        for step in reversed(self.steps):  # what a step needs stands before it
            asked = step.name in wanted or step.name not in served
            if asked if step.prepares else self.log.state(step) != "done":
                wanted.update((step.name, *step.needs))
        return [step for step in self.steps if step.name in wanted]

    def show(self) -> None:
        """Say every step with its state and time, and the time that is left."""
        for step in self.steps:
            minutes, measured = self.log.minutes(step)
            state = "prepares others" if step.prepares else self.log.state(step)
            known = "as measured" if measured else "an estimate"
            reason = self.missing(step)
            self.say(f"{step.name:18} {minutes:6.1f} min, {known:11}  {reason or state}")
        left = self.left()
        minutes = sum(self.log.minutes(step)[0] for step in left)
        self.say(f"left: {len(left)} of {len(self.steps)} steps, about {minutes:.0f} minutes")

    def run(self) -> bool:
        """Run what is left; whether all of it succeeded."""
        commit = head_commit()
        start = time.monotonic()
        for step in self.left():
            spent = (time.monotonic() - start) / 60
            minutes = self.log.minutes(step)[0]
            reason = self.missing(step)
            if reason is None and spent + minutes > (self.options.budget or math.inf):
                reason = f"{minutes:.0f} minutes do not fit into the budget"
            if reason is not None:
                self.say(f"{step.name}: left out, {reason}")
                self._failed.add(step.name)
                continue
            if not self._may_begin(step, commit):
                return False
            self.say(f"{step.name}: begins, about {minutes:.0f} minutes")
            self._run_step(step, commit)
            rest = sum(self.log.minutes(other)[0] for other in self.left())
            self.say(f"left: about {rest:.0f} minutes")
        return not self._failed

    def _may_begin(self, step: Step, commit: str) -> bool:
        """Whether the tree is as committed and, for a timing, the machine quiet."""
        if self.options.smoke:
            return True
        changed = changed_files()
        if changed:
            self.say(f"changed files, the first is {changed[0]}: commit, then run again")
            return False
        if head_commit() != commit:
            self.say(f"the commit is no longer {commit[:12]}: run again")
            return False
        if step.timing and not wait_until_quiet(60 * self.options.patience, self.say):
            self.say(f"{step.name} does not begin; busiest: {', '.join(busiest_processes())}")
            return False
        return True

    def _run_step(self, step: Step, commit: str) -> None:
        folder = self.folders.results(step)
        folder.mkdir(parents=True, exist_ok=True)
        output = self.folders.out / f"{step.name}.log"
        watch, start = LoadWatch(), time.monotonic()
        with output.open("w", encoding="utf-8") as stream:
            done = subprocess.run(
                self.command(step), cwd=PROJECT, stdout=stream, stderr=stream, check=False
            )
        seconds = time.monotonic() - start
        absent = [name for name in step.results if not (folder / name).exists()]
        if done.returncode or absent:
            lines = output.read_text(encoding="utf-8").splitlines()[-TAIL:]
            what = f"exit code {done.returncode}" if done.returncode else f"no {absent[0]}"
            self.say("\n".join([f"{step.name}: failed, {what}; the end of {output}:", *lines]))
            self._failed.add(step.name)
            return
        date = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self.log.note(step, Entry(commit, date, round(seconds, 1), watch.other_processes()))
        self.say(f"{step.name}: finished in {seconds / 60:.1f} minutes, {self._verdict(step)}")

    def _verdict(self, step: Step) -> str:
        return "ready for others" if step.prepares else self.log.state(step)

    def command(self, step: Step) -> list[str]:
        """What is run for a step."""
        small = step.smoke if self.options.smoke else ""
        arguments = self.folders.fill(f"{step.arguments} {small}")
        out = []
        if not step.prepares:
            out = ["--out", str(self.folders.results(step) / Path(step.results[0]).parent)]
        return [sys.executable, "-m", f"experiments.{step.module}", *arguments, *out]

    def install(self) -> None:
        """Put the results of all steps that are done into the project, and render its pages."""
        recorder = Recorder("record")  # before the results that it puts there change the tree
        for step in PLAN:
            if not step.prepares and self.log.state(step) == "done":
                copy_results(self.folders.results(step), ROOT / step.study / "results")
        recorder.write(EARLIER, {"steps": self.log.to_result()})
        subprocess.run([sys.executable, "-m", "experiments.tables"], cwd=PROJECT, check=True)


def copy_results(source: Path, target: Path) -> list[Path]:
    """Copy what pages show from a folder of results; return what was written."""
    written = []
    for file in sorted(source.rglob("*")):
        if file.is_file() and file.suffix in SHOWN:
            place = target / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
            written.append(place)
    return written
