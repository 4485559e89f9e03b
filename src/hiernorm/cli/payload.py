"""Options of payload and string keys, and hits with columns."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from hiernorm.cli.help import option
from hiernorm.cli.options import EXISTING_FILE
from hiernorm.hits import Hits
from hiernorm.storage.database import Database
from hiernorm.storage.exporter import write_table
from hiernorm.storage.vector_files import load_npy

ALL = "all"
PAYLOAD = option(
    "--payload",
    "payload_file",
    type=EXISTING_FILE,
    help="Parquet file of payload columns, one row per vector.",
)
PAYLOAD_COLUMNS = option(
    "--payload-columns",
    metavar="NAMES",
    help='Payload columns of FILE itself, if it is Parquet: names with commas, or "all".',
)
STRING_KEYS = option(
    "--string-keys", is_flag=True, help="Entries are named by strings: ids are texts."
)
SHOWN_COLUMNS = option(
    "--columns", metavar="NAMES", help='Show payload columns of hits: names with commas, or "all".'
)
CONDITION = option(
    "--where",
    metavar="CONDITION",
    help="Search only entries for which this is true, such as \"lang = 'en' and year >= 2020\"; "
    "or only those in a file of ids, as for `add --ids` (- for stdin).",
)


def payload_of(payload_file: Path | None, names: str | None, sources: tuple[Path, ...]) -> Any:
    """What ``Database.add`` takes as payload."""
    if payload_file is not None and names is not None:
        raise click.UsageError("give --payload or --payload-columns, not both")
    if payload_file is not None and len(sources) > 1:
        raise click.UsageError("--payload goes with one FILE")
    if names is not None:
        return True if names == ALL else _split(names)
    return payload_file


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",")]


def read_ids(file: Path | None, string_keys: bool) -> Any:
    """The ids, or string keys, of a file; None without one."""
    if file is None:
        return None
    if file.suffix == ".npy":
        return load_npy(file)
    text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    if string_keys:
        return text.splitlines()
    return parse_ids(text.split(), str(file))


def parse_ids(words: list[str], source: str) -> Any:
    """The integers in ``words``; a usage error names their ``source``."""
    ids = np.empty(len(words), np.int64)
    for position, word in enumerate(words):
        try:
            ids[position] = int(word)
        except (ValueError, OverflowError):
            raise click.BadParameter(f"{source}: ids are integers, got {word!r}") from None
    return ids


def read_where(where: str | None, string_keys: bool) -> Any:
    """A condition, or the ids in a file."""
    if where is None or (where != "-" and not Path(where).is_file()):
        return where
    return read_ids(Path(where), string_keys)


def shown_columns(names: str | None, db: Database) -> list[str]:
    """The columns of ``--columns``, which the database must have."""
    if names is None:
        return []
    wanted = list(db.columns) if names == ALL else _split(names)
    for name in wanted:
        if name not in db.columns:
            there = ", ".join(db.columns) or "none"
            raise click.BadParameter(f"there is no column {name!r}; columns are {there}")
    return wanted


def hits_table(hits: Hits, db: Database, columns: list[str]) -> Any:
    """An Arrow table of hits with these payload columns."""
    table = hits.to_arrow()
    renamed = [
        f"payload.{name}" if f"payload.{name}" in table.column_names else name for name in columns
    ]
    first = ["query", "rank", "key" if db.string_keys else "id", "score"]
    return table.select([*first, *renamed])


def echo_table(table: Any, k: int, exact: bool, as_json: bool) -> None:
    """Print a header and a line per hit, or one JSON object."""
    rows = table.to_pylist()
    if as_json:
        answers: list[list[dict[str, Any]]] = []
        for row in rows:
            while len(answers) <= row["query"]:
                answers.append([])
            answers[row["query"]].append(
                {k: v for k, v in row.items() if k not in ("query", "rank")}
            )
        click.echo(json.dumps({"k": k, "exact": exact, "answers": answers}, default=str))
        return
    click.echo("\t".join(table.column_names))
    for row in rows:
        click.echo(
            "\t".join(
                "" if v is None else repr(v) if isinstance(v, float) else str(v)
                for v in row.values()
            )
        )


def write_hits(out: Path, table: Any) -> None:
    """Write the table of hits to a Parquet file."""
    if out.suffix.lower() != ".parquet":
        raise click.UsageError("--columns with --out needs a .parquet file")
    write_table(out, table)
