"""The first step of a build: sources are split into parts of shards, by tasks of Ray Data."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm import _core, _files
from hiernorm.arrays import as_ids, as_rows
from hiernorm.distributed.input_splits import Unit, read_unit
from hiernorm.distributed.staging import write_parts
from hiernorm.extras import import_extra
from hiernorm.storage.manifest import Parameters

PLAN, NOTES = "plan.json", "done.jsonl"
DATASET_BATCH = 4096

Report = Callable[[str, int, "int | None"], None]
Batch = dict[str, Any]


class Notes:
    """What a build has done: a plan, and a line for every unit whose parts are written.

    A line is written when its task has returned, and counts when it is complete: a part without a
    line is not used.
    """

    def __init__(self, staging: Path, plan: dict[str, Any]) -> None:
        self.staging = staging
        self.units: set[int] = set()
        self.parts: dict[int, list[str]] = {}
        self.entries = 0
        self.largest_id = -1
        staging.mkdir(exist_ok=True)
        plan = json.loads(json.dumps(plan))
        if not self.are_in(staging):
            _files.replace_file(staging / PLAN, json.dumps(plan, indent=1).encode())
        elif json.loads((staging / PLAN).read_text(encoding="utf-8")) != plan:
            raise ValueError(
                f"{staging.parent} has a build of other sources or parameters that was "
                "interrupted: continue that one, or remove the folder"
            )
        self._read()

    @staticmethod
    def are_in(staging: Path) -> bool:
        """Whether a build was begun here."""
        return (staging / PLAN).exists()

    def _read(self) -> None:
        path = self.staging / NOTES
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:  # a line that was being written
            _files.replace_file(path, whole)
        for line in whole.splitlines():
            self._count(json.loads(line))

    def _count(self, note: dict[str, Any]) -> None:
        self.units.add(note["unit"])
        self.entries += note["entries"]
        self.largest_id = max(self.largest_id, note["largest_id"])
        for shard, name in note["parts"]:
            self.parts.setdefault(shard, []).append(name)

    def add(self, notes: list[dict[str, Any]]) -> None:
        """Note units that are done, durably: all of them or (if the write is torn) the first."""
        text = "".join(json.dumps(note) + "\n" for note in notes)
        with (self.staging / NOTES).open("ab") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        for note in notes:
            self._count(note)


def split_files(
    notes: Notes, units: list[Unit], parameters: Parameters, shards: int, report: Report
) -> None:
    """Split the units that are not noted yet."""
    counts = [unit.entries for unit in units]
    total = None if None in counts else sum(count or 0 for count in counts)
    left = [asdict(unit) for unit in units if unit.number not in notes.units]
    staging = str(notes.staging)
    report("split", notes.entries, total)
    if not left:
        return

    def split(batch: Batch) -> Batch:
        units = [Unit(**json.loads(str(text))) for text in batch["unit"]]
        return _as_column(
            [_split(u.number, read_unit(u), u.file, staging, parameters, shards) for u in units]
        )

    data = import_extra("ray.data", extra="ray")
    with quiet(data):
        table = data.from_items(
            [{"unit": json.dumps(unit)} for unit in left], override_num_blocks=len(left)
        )
        for note in _results(table.map_batches(split, batch_size=1, batch_format="numpy")):
            notes.add([note])
            report("split", notes.entries, total)


def split_dataset(
    notes: Notes, dataset: Any, parameters: Parameters, shards: int, report: Report
) -> None:
    """Split a dataset; begun anew if it was interrupted, since its batches have no names."""
    if notes.units:
        return
    staging = str(notes.staging)

    def split(batch: Batch) -> Batch:
        rows = np.stack([np.asarray(row) for row in batch["vectors"]])
        pieces = iter([(rows, batch["ids"])])
        return _as_column([_split(0, pieces, "the dataset", staging, parameters, shards)])

    whole: dict[str, Any] = {"unit": 0, "entries": 0, "largest_id": -1, "parts": []}
    data = import_extra("ray.data", extra="ray")
    with quiet(data):
        table = dataset.map_batches(split, batch_size=DATASET_BATCH, batch_format="numpy")
        for note in _results(table):
            whole["entries"] += note["entries"]
            whole["largest_id"] = max(whole["largest_id"], note["largest_id"])
            whole["parts"] += note["parts"]
            report("split", whole["entries"], None)
    notes.add([whole])


def _split(
    number: int,
    pieces: Iterator[tuple[Any, Any]],
    name: str,
    staging: str,
    parameters: Parameters,
    shards: int,
) -> dict[str, Any]:
    """Write the parts of one unit; a note of them, or of what is wrong with its vectors."""
    note: dict[str, Any] = {"unit": number, "entries": 0, "largest_id": -1, "parts": []}
    settings = parameters.settings()
    alpha = float(settings.alpha or 0.0)
    like = _core.Index(settings.dim, settings.metric, "cascade", alpha, settings.cells)
    try:
        for x, given in pieces:
            rows = as_rows("vectors", x, parameters.dim)
            ids = as_ids(given, len(rows))
            like.check(rows, np.arange(len(rows)))
            written = write_parts(Path(staging), ids, rows, shards)
            note["parts"] += [[shard, part] for shard, (part, _) in written.items()]
            note["entries"] += len(rows)
            note["largest_id"] = max(note["largest_id"], int(ids.max(initial=-1)))
    except (ValueError, TypeError) as error:
        return {"error": f"{name}: {error}"}
    return note


def _as_column(notes: list[dict[str, Any]]) -> Batch:
    return {"note": np.array([json.dumps(note) for note in notes], dtype=object)}


def _results(table: Any) -> Iterator[dict[str, Any]]:
    for row in table.iter_rows():
        note: dict[str, Any] = json.loads(row["note"])
        if "error" in note:
            raise ValueError(note["error"])
        yield note


@contextmanager
def quiet(data: Any) -> Iterator[None]:
    """Without the bars of Ray Data: progress is reported in entries."""
    context = data.DataContext.get_current()
    before = context.enable_progress_bars
    logger = logging.getLogger("ray.data")
    level = logger.level
    context.enable_progress_bars = False
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.enable_progress_bars = before
        logger.setLevel(level)
