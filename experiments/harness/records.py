"""The store of finished runs: one JSON each, with all that is needed to make it again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from hiernorm.bench.machine import Bystanders, describe_machine
from hiernorm.learn.checkpoint import write_atomically

Result = dict[str, Any]


class Store:
    """Finished runs in a folder.

    A run that was interrupted has no file and is made again; one that is finished is read, unless
    it was made with other settings.

    Parameters
    ----------
    folder
        ``<run>.json`` each, in folders by part.
    settings
        What results depend on; see :meth:`hiernorm.reproduce.options.Options.settings`.
    force
        Take no run as finished that this store has not made itself.

    Examples
    --------
    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()), {"seed": 0})
    >>> store.make("part/run", lambda: {"answer": 42})["answer"]
    42
    >>> store.find("part/run")["answer"], store.find("part/other")
    (42, None)
    """

    def __init__(self, folder: Path, settings: dict[str, Any], force: bool = False) -> None:
        self._folder = folder
        self._settings = settings
        self._force = force
        self._made: set[str] = set()

    def find(self, name: str) -> Result | None:
        """The result of a finished run, or None."""
        record = self.read(name)
        return None if record is None else record["result"]

    def read(self, name: str) -> dict[str, Any] | None:
        """The whole record of a finished run, or None."""
        if self._force and name not in self._made:
            return None
        try:
            record: dict[str, Any] = json.loads(self._file(name).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return record if record.get("settings") == self._settings else None

    def make(self, name: str, run: Callable[[], Result]) -> Result:
        """Run and keep the result; the file appears when it is complete."""
        bystanders, start = Bystanders(), time.perf_counter()
        result = run()
        record = {
            "name": name,
            "settings": self._settings,
            "seconds": round(time.perf_counter() - start, 3),
            "share_of_other_processes": bystanders.share(),
            "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
            "machine": _machine(),
            "result": result,
        }
        text = json.dumps(record, indent=1, allow_nan=False)
        write_atomically(self._file(name), text.encode())
        self._made.add(name)
        # As it will be read another time: numbers and texts, no tuples.
        back: Result = json.loads(text)["result"]
        return back

    def records(self) -> list[dict[str, Any]]:
        """All finished runs of these settings, in the order of their names."""
        names = (
            file.relative_to(self._folder).with_suffix("").as_posix()
            for file in sorted(self._folder.rglob("*.json"))
        )
        return [record for record in map(self.read, names) if record is not None]

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"


@cache
def _machine() -> dict[str, Any]:
    """Machine, versions, commit and instruction set: the same for all runs of a process."""
    return describe_machine()
