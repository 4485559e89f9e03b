"""The first step of a bulk build: tasks of Ray Data partition the sources by shard."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.arrays import as_new_ids, as_rows
from hiernorm.distributed.build_journal import BuildJournal
from hiernorm.distributed.input_splits import InputSplit, read_split
from hiernorm.distributed.staging import write_parts
from hiernorm.extras import import_extra
from hiernorm.progress import BuildProgressCallback
from hiernorm.storage.manifest import Parameters

DATASET_BATCH = 4096
"""Rows of a dataset that one task partitions."""

Columns = dict[str, Any]


def partition_files(
    journal: BuildJournal,
    splits: list[InputSplit],
    parameters: Parameters,
    shards: int,
    progress: BuildProgressCallback,
) -> None:
    """Partition the input splits that are not in the journal yet."""
    counts = [split.entries for split in splits]
    total = None if None in counts else sum(count or 0 for count in counts)
    left = [asdict(split) for split in splits if split.number not in journal.splits]
    staging = str(journal.staging)
    progress("split", journal.entries, total)
    if not left:
        return

    def partition_batch(batch: Columns) -> Columns:
        splits = [InputSplit(**json.loads(str(text))) for text in batch["unit"]]
        return _as_column(
            [
                _partition(s.number, read_split(s), s.file, staging, parameters, shards)
                for s in splits
            ]
        )

    data = import_extra("ray.data", extra="ray")
    with without_progress_bars(data):
        table = data.from_items(
            [{"unit": json.dumps(split)} for split in left], override_num_blocks=len(left)
        )
        for record in _read_records(
            table.map_batches(partition_batch, batch_size=1, batch_format="numpy")
        ):
            journal.append(record)
            progress("split", journal.entries, total)


def partition_dataset(
    journal: BuildJournal,
    dataset: Any,
    parameters: Parameters,
    shards: int,
    progress: BuildProgressCallback,
) -> None:
    """Partition a dataset. An interrupted one starts again: its batches have no names."""
    if journal.splits:
        return
    staging = str(journal.staging)

    def partition_batch(batch: Columns) -> Columns:
        rows = np.stack([np.asarray(row) for row in batch["vectors"]])
        pieces = iter([(rows, batch["ids"])])
        return _as_column([_partition(0, pieces, "the dataset", staging, parameters, shards)])

    total_record: dict[str, Any] = {"unit": 0, "entries": 0, "largest_id": -1, "parts": []}
    data = import_extra("ray.data", extra="ray")
    with without_progress_bars(data):
        table = dataset.map_batches(partition_batch, batch_size=DATASET_BATCH, batch_format="numpy")
        for record in _read_records(table):
            total_record["entries"] += record["entries"]
            total_record["largest_id"] = max(total_record["largest_id"], record["largest_id"])
            total_record["parts"] += record["parts"]
            progress("split", total_record["entries"], None)
    journal.append(total_record)


def _partition(
    number: int,
    pieces: Iterator[tuple[Any, Any]],
    name: str,
    staging: str,
    parameters: Parameters,
    shards: int,
) -> dict[str, Any]:
    """Write the part files of one input split; returns its record, or what is wrong with it."""
    record: dict[str, Any] = {"unit": number, "entries": 0, "largest_id": -1, "parts": []}
    like = parameters.settings().make_core()
    try:
        for x, given in pieces:
            rows = as_rows("vectors", x, parameters.dim)
            ids = as_new_ids(given, len(rows))
            like.check(rows, np.arange(len(rows)))
            written = write_parts(Path(staging), ids, rows, shards)
            record["parts"] += [[shard, part] for shard, (part, _) in written.items()]
            record["entries"] += len(rows)
            record["largest_id"] = max(record["largest_id"], int(ids.max(initial=-1)))
    except (ValueError, TypeError) as error:
        return {"error": f"{name}: {error}"}
    return record


def _as_column(records: list[dict[str, Any]]) -> Columns:
    return {"record": np.array([json.dumps(record) for record in records], dtype=object)}


def _read_records(table: Any) -> Iterator[dict[str, Any]]:
    for row in table.iter_rows():
        record: dict[str, Any] = json.loads(row["record"])
        if "error" in record:
            raise ValueError(record["error"])
        yield record


@contextmanager
def without_progress_bars(data: Any) -> Iterator[None]:
    """Turn off the progress bars of Ray Data: progress is reported in entries."""
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
