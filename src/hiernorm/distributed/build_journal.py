"""The journal of a bulk build: what is done, so that an interrupted build can be continued."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hiernorm import _files

PLAN, JOURNAL = "plan.json", "done.jsonl"


class BuildJournal:
    """A plan, and a record for every input split whose part files are written.

    A record is appended after its task has returned, and counts when its line is complete. Part
    files without a record are not used.
    """

    def __init__(self, staging: Path, plan: dict[str, Any]) -> None:
        self.staging = staging
        self.splits: set[int] = set()
        self.parts: dict[int, list[str]] = {}
        self.entries = 0
        self.largest_id = -1
        staging.mkdir(exist_ok=True)
        plan = json.loads(json.dumps(plan))
        if not self.exists(staging):
            _files.replace_file(staging / PLAN, json.dumps(plan, indent=1).encode())
        elif json.loads((staging / PLAN).read_text(encoding="utf-8")) != plan:
            raise ValueError(
                f"{staging.parent} has a build of other sources or parameters that was "
                "interrupted: continue that one, or remove the folder"
            )
        self._read()

    @staticmethod
    def exists(staging: Path) -> bool:
        """Whether a build was started in this folder."""
        return (staging / PLAN).exists()

    def _read(self) -> None:
        path = self.staging / JOURNAL
        data = path.read_bytes() if path.exists() else b""
        complete = data[: data.rfind(b"\n") + 1]
        if complete != data:  # the last write was interrupted
            _files.replace_file(path, complete)
        for line in complete.splitlines():
            self._count(json.loads(line))

    def _count(self, record: dict[str, Any]) -> None:
        self.splits.add(record["unit"])
        self.entries += record["entries"]
        self.largest_id = max(self.largest_id, record["largest_id"])
        for shard, name in record["parts"]:
            self.parts.setdefault(shard, []).append(name)

    def append(self, record: dict[str, Any]) -> None:
        """Record an input split as done, durably."""
        with (self.staging / JOURNAL).open("ab") as file:
            file.write((json.dumps(record) + "\n").encode())
            file.flush()
            os.fsync(file.fileno())
        self._count(record)
