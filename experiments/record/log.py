"""The log of a record: which step was run when, at which commit, for how long, beside what load."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

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
    """The finished steps of a folder.

    Parameters
    ----------
    file
        A JSON file, written after every step.
    earlier
        The record of an earlier run, for estimates.
    """

    def __init__(self, file: Path, earlier: Path = EARLIER) -> None:
        self._file = file
        found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        self.entries = {name: Entry(**fields) for name, fields in found.items()}
        steps = read_record(earlier).result["steps"] if earlier.exists() else {}
        self._earlier = {name: float(fields["seconds"]) for name, fields in steps.items()}

    def note(self, step: Step, entry: Entry) -> None:
        """Keep a finished step."""
        self.entries[step.name] = entry
        write_file(self._file, json.dumps(self.to_result(), indent=1) + "\n")

    def to_result(self) -> dict[str, dict[str, object]]:
        """For a record."""
        return {name: asdict(entry) for name, entry in self.entries.items()}

    def minutes(self, step: Step) -> tuple[float, bool]:
        """How long a step takes, and whether a run has told."""
        if step.name in self.entries:
            return self.entries[step.name].seconds / 60, True
        if step.name in self._earlier:
            return self._earlier[step.name] / 60, True
        return step.minutes, False

    def state(self, step: Step) -> str:
        """`done`, or why it is not."""
        entry = self.entries.get(step.name)
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
