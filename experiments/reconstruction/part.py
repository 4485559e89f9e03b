"""A part of the study: runs that are measured once each and kept, with what each was made from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.harness.records import Recorder, read_record
from hiernorm.storage.lock import WriterLock

Run = dict[str, Any]
WAIT_SECONDS = 60.0
"""How long a process waits for others that add their runs to the file."""


class Part:
    """The runs of one file of results; those that are in it are not measured again.

    Several processes may measure at once: each adds its runs to those of the others.

    Parameters
    ----------
    file
        The record: its result has a list ``runs``.
    seed, settings
        What all runs depend on. Runs that were made with others are dropped.
    again
        Measure runs that are there once more; each replaces the old one when it is finished.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "times.json"
    >>> for _ in range(2):
    ...     part = Part(file, 0, {"side": 2000})
    ...     part.measure({"scene": "castle"}, lambda: {"seconds": print("measured") or 3.5})
    measured
    >>> part.runs[0]["scene"], part.runs[0]["seconds"]
    ('castle', 3.5)
    """

    def __init__(
        self, file: Path, seed: int, settings: dict[str, Any], again: bool = False
    ) -> None:
        self._file = file
        self._again = again
        self._seed = seed
        self._settings = settings
        self.runs = self._read()

    def _read(self) -> list[Run]:
        if not self._file.exists():
            return []
        record = read_record(self._file)
        if record.settings != self._settings or record.seed != self._seed:
            return []
        runs: list[Run] = record.result["runs"]
        return runs

    def has(self, key: Run) -> bool:
        """Whether a run is there."""
        return any(all(run.get(name) == key[name] for name in key) for run in self.runs)

    def needs(self, key: Run) -> bool:
        """Whether a run has to be measured."""
        return self._again or not self.has(key)

    def measure(self, key: Run, work: Callable[[], Run]) -> None:
        """Measure a run and write the file, unless the run is there and not asked for again."""
        if not self.needs(key):
            return
        recorder = Recorder("reconstruction", self._seed, self._settings, self._file.stem)
        found = work()
        made = recorder.record({})
        share = made.load["other_processes"]
        run = {**key, **found, "made_at": made.made_at, "other_processes": share}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with WriterLock(self._file.parent, WAIT_SECONDS, f"{self._file.stem}.lock"):
            self.runs = self._read()  # another process may have added some meanwhile
            if self._again:
                self.runs = [old for old in self.runs if not _is_replaced(old, key)]
            if not self.has(key):
                self.runs.append(run)
                recorder.write(self._file, {"runs": self.runs})


def _is_replaced(run: Run, key: Run) -> bool:
    """Whether a run measured what ``key`` names; of methods in turns, one of them at the least."""
    return all(
        bool(set(run[name]) & set(value)) if isinstance(value, list) else run.get(name) == value
        for name, value in key.items()
    )
