"""The log of a record: which step was run when, at which commit, for how long, beside what load."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.harness.command import ROOT
from experiments.harness.records import read_record, write_file
from experiments.record.plan import Step
from experiments.record.quiet import BUSY_SHARE

PROJECT = ROOT.parent
EARLIER = ROOT / "record" / "results" / "record.json"
EXPLORER = (":!src/hiernorm/cli/explore.py", ":!src/hiernorm/vision/explore")
"""The page that shows a collection: no study runs it."""

CODE = (
    *("src", "cpp", "CMakeLists.txt", "pyproject.toml", "experiments/harness"),
    *(":!*.md", *EXPLORER),
)
"""What a result depends on, beside the folder of its study."""

RENDERING = ("*/tables.py", "speed/goals.py", "speed/picture.py", "speed/render.py")
"""Files of studies that read results and make none."""


@dataclass(frozen=True)
class Entry:
    """One finished step."""

    commit: str
    date: str
    seconds: float
    load: float | None
    """Share of the processors that other processes used meanwhile; None if unknown."""


class Log:
    """The finished steps of a folder, and of the record whose results the project has.

    Parameters
    ----------
    file
        A JSON file, written after every step.
    earlier
        That record: its steps count until the folder has them; None for no other.
    """

    def __init__(self, file: Path, earlier: Path | None = EARLIER) -> None:
        self._file = file
        self._own = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        kept = earlier is not None and earlier.exists()
        self._earlier = read_record(earlier).result["steps"] if earlier and kept else {}

    def entry(self, step: Step) -> Entry | None:
        """The last run of a step, if there was one."""
        fields = self.to_result().get(step.name)
        return None if fields is None else Entry(**fields)

    def note(self, step: Step, entry: Entry) -> None:
        """Keep a finished step."""
        self._own[step.name] = asdict(entry)
        write_file(self._file, json.dumps(self._own, indent=1) + "\n")

    def to_result(self) -> dict[str, dict[str, Any]]:
        """For a record."""
        return {**self._earlier, **self._own}

    def minutes(self, step: Step) -> tuple[float, bool]:
        """How long a step takes, and whether a run has told."""
        entry = self.entry(step)
        return (step.minutes, False) if entry is None else (entry.seconds / 60, True)

    def state(self, step: Step) -> str:
        """`done`, or why it is not."""
        entry = self.entry(step)
        if entry is None:
            return "to do"
        if not same_code(entry.commit, step):
            return f"to do again: the code has changed since {entry.commit[:12]}"
        if is_loaded(step, entry):
            return f"to do again: other processes used {entry.load:.0%} of the machine"
        return "done"


def is_loaded(step: Step, entry: Entry) -> bool:
    """Whether other processes disturbed a timing."""
    return step.timing and step.alone and entry.load is not None and entry.load > BUSY_SHARE


def same_code(commit: str, step: Step) -> bool:
    """Whether nothing that a step depends on has changed since a commit."""
    rendering = (f":!experiments/{file}" for file in RENDERING)
    paths = (*CODE, f"experiments/{step.study}/*.py", *rendering)
    return _git("diff", "--quiet", commit, "HEAD", "--", *paths).returncode == 0


def head_commit() -> str:
    """The commit of the clone."""
    done = _git("rev-parse", "HEAD")
    if done.returncode:
        raise RuntimeError("not a clone: a result without its commit does not count")
    return done.stdout.strip()


def changed_files() -> list[str]:
    """Tracked files that differ from the commit."""
    lines = _git("status", "--porcelain", "--untracked-files=no").stdout.splitlines()
    return [line[3:] for line in lines]


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(PROJECT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
