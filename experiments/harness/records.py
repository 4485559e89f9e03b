"""The one schema of results: what was found, by which command, at which commit, on what machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from experiments.harness.command import current_command
from experiments.harness.machine import LoadWatch, describe_machine, find_commit, list_versions
from hiernorm._files import write_atomically

FORMAT = 1

Result = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """One result, with all that is needed to make it again.

    Attributes
    ----------
    experiment, name
        The question; the run, where an experiment has several.
    command, seed, settings
        What was run, and what the result depends on.
    commit, clean
        Of the clone; whether its tracked files were as committed. None where nobody recorded it.
    date, seconds
        The end of the run in UTC, and how long it took.
    machine, versions, load
        See :mod:`experiments.harness.machine`.
    result
        Numbers and texts that tables and pictures are drawn from.
    """

    experiment: str
    name: str
    command: str | None
    seed: int | None
    commit: str | None
    clean: bool | None
    date: str | None
    seconds: float | None
    load: dict[str, Any]
    machine: dict[str, Any]
    versions: dict[str, Any]
    settings: dict[str, Any]
    result: Result = field(repr=False)

    def to_json(self) -> str:
        """The text of its file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Read a record back."""
        fields = json.loads(text)
        found = fields.pop("format", None)
        if found != FORMAT:
            raise ValueError(f"expected a record of format {FORMAT}, got {found}")
        return cls(**fields)

    @property
    def made_at(self) -> str:
        """The commit, marked where tracked files had changed; for reports."""
        return f"{self.commit}{' with changes' if self.clean is False else ''}"


def read_record(file: Path) -> Record:
    """The record in a file."""
    return Record.from_json(file.read_text(encoding="utf-8"))


def write_file(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all, even if the process dies."""
    write_atomically(path, text.encode())


class Recorder:
    """Makes the records of one run; create it before what is measured.

    Examples
    --------
    >>> record = Recorder("speed", seed=0).record({"answer": 42})
    >>> record.result, record.seed, sorted(record.load)
    ({'answer': 42}, 0, ['average', 'other_processes'])
    """

    def __init__(
        self,
        experiment: str,
        seed: int | None = None,
        settings: dict[str, Any] | None = None,
        name: str = "",
    ) -> None:
        self._experiment = experiment
        self._name = name
        self._seed = seed
        self._settings = settings or {}
        self._commit = find_commit()  # of the start: the clone may move on meanwhile
        self._watch = LoadWatch()
        self._start = time.perf_counter()

    def record(self, result: Result) -> Record:
        """What was found until now, with the machine and its load since the start."""
        commit, clean = self._commit
        made = Record(
            experiment=self._experiment,
            name=self._name,
            command=current_command(),
            seed=self._seed,
            commit=commit,
            clean=clean,
            date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            seconds=round(time.perf_counter() - self._start, 3),
            load=self._watch.describe(),
            machine=describe_machine(),
            versions=list_versions(),
            settings=self._settings,
            result=result,
        )
        # As it will be read another time: numbers and texts, no tuples.
        return Record.from_json(made.to_json())

    def write(self, file: Path, result: Result) -> Record:
        """Write what was found until now; the file appears when it is complete."""
        record = self.record(result)
        write_file(file, record.to_json())
        return record


class Store:
    """Finished runs in a folder, one record each.

    A run that was interrupted has no file and is made again; one that is finished is read, unless
    it was made with other settings.

    Parameters
    ----------
    folder
        ``<run>.json`` each, in folders by part.
    experiment
        The question.
    settings
        What results depend on.
    force
        Take no run as finished that this store has not made itself.

    Examples
    --------
    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()), "reproduce", {"seed": 0})
    >>> store.make("part/run", lambda: {"answer": 42})["answer"]
    42
    >>> store.find("part/run")["answer"], store.find("part/other")
    (42, None)
    """

    def __init__(
        self, folder: Path, experiment: str, settings: dict[str, Any], force: bool = False
    ) -> None:
        self._folder = folder
        self._experiment = experiment
        self._settings = settings
        self._force = force
        self._made: set[str] = set()

    def find(self, name: str) -> Result | None:
        """The result of a finished run, or None."""
        record = self.read(name)
        return None if record is None else record.result

    def read(self, name: str) -> Record | None:
        """The whole record of a finished run, or None."""
        if self._force and name not in self._made:
            return None
        try:
            record = read_record(self._file(name))
        except (FileNotFoundError, ValueError):  # a torn file is no JSON, which is a ValueError
            return None
        return record if record.settings == self._settings else None

    def make(self, name: str, run: Callable[[], Result]) -> Result:
        """Run and keep the result; the file appears when it is complete."""
        recorder = Recorder(self._experiment, self._settings.get("seed"), self._settings, name)
        record = recorder.write(self._file(name), run())
        self._made.add(name)
        return record.result

    def records(self) -> list[Record]:
        """All finished runs of these settings, in the order of their names."""
        names = (
            file.relative_to(self._folder).with_suffix("").as_posix()
            for file in sorted(self._folder.rglob("*.json"))
        )
        return [record for record in map(self.read, names) if record is not None]

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"
