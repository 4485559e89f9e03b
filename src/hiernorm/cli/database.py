"""`hiernorm build`, `add`, `delete`, `compact`: changes of databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hiernorm._files import new_folder
from hiernorm.cli.help import examples, option
from hiernorm.cli.options import (
    ALPHA,
    DATABASE,
    FILE_OR_STDIN,
    JSON,
    MAJOR,
    METRIC,
    OUTPUT_FOLDER,
    SOURCES,
    echo_result,
)
from hiernorm.cli.payload import (
    PAYLOAD,
    PAYLOAD_COLUMNS,
    STRING_KEYS,
    parse_ids,
    payload_of,
    read_ids,
)
from hiernorm.cli.progress import progress_bar
from hiernorm.cli.requirements import PARQUET
from hiernorm.settings import Metric
from hiernorm.storage.database import Database
from hiernorm.storage.manifest import MANIFEST
from hiernorm.storage.sources import read_pieces

IDS = option(
    "--ids",
    "ids_file",
    type=FILE_OR_STDIN,
    help="File of ids: .npy, or text with one id per line. - means stdin.",
)
WAIT = option(
    "--wait",
    default=0.0,
    metavar="SECONDS",
    help="How long to wait for another writer.",
)


def _insert(
    db: Database, sources: tuple[Path, ...], ids_file: Path | None, payload: Any, replace: bool
) -> int:
    """Add each file as one change, as a whole or not at all."""
    ids = read_ids(ids_file, db.string_keys)
    if ids is not None and len(sources) > 1:
        raise click.UsageError("--ids goes with one FILE")
    count = 0
    for source in sources:
        insert = db.upsert if replace else db.add
        with progress_bar(source.name) as report, _naming(source):
            count += insert(source, ids, payload=payload, progress=report)
    return count


@contextmanager
def _naming(source: Path) -> Iterator[None]:
    """Begin the text of an error about vectors with the file that they come from."""
    try:
        yield
    except (TypeError, ValueError) as error:
        text = str(error)
        raise ValueError(text if str(source) in text else f"{source}: {text}") from error


@click.command(
    epilog=examples(
        "hiernorm build words.hn embeddings.npy",
        "hiernorm build words.hn embeddings.parquet --payload-columns lang,year --metric cosine",
    )
)
@click.argument("database", type=OUTPUT_FOLDER)
@SOURCES
@MAJOR
@ALPHA
@METRIC
@IDS
@STRING_KEYS
@PAYLOAD
@PAYLOAD_COLUMNS
@JSON
@PARQUET
def build(
    database: Path,
    sources: tuple[Path, ...],
    major: int | None,
    alpha: float | None,
    metric: Metric,
    ids_file: Path | None,
    string_keys: bool,
    payload_file: Path | None,
    payload_columns: str | None,
    as_json: bool,
) -> None:
    """Make a database from files of vectors.

    FILE is .npy, .npz, .safetensors or .parquet and may be larger than memory. Vectors are the
    matrix called "vectors", or the only one; ids are called "ids", or follow 0, 1, 2, ...
    """
    payload = payload_of(payload_file, payload_columns, sources)
    first, _ = next(read_pieces(sources[0]), (None, None))
    if first is None or first.ndim != 2:
        raise click.UsageError(f"{sources[0]} holds no vectors")
    dim = first.shape[1]
    del first
    if (database / MANIFEST).exists():
        raise FileExistsError(f"{database} is a database already: choose another folder")
    with (
        new_folder(database) as fresh,
        Database.create(
            fresh, dim, major=major, alpha=alpha, metric=metric, string_keys=string_keys
        ) as made,
    ):
        count = _insert(made, sources, ids_file, payload, replace=False)
    db = Database.open(database)
    echo_result(as_json, f"{database}: {count:,} vectors of {db.dim} dimensions", **db.info())


@click.command(
    epilog=examples("hiernorm add words.hn more.npy", "hiernorm add words.hn newer.npz --upsert")
)
@DATABASE
@SOURCES
@option("--upsert", is_flag=True, help="Replace entries with the same ids.")
@IDS
@PAYLOAD
@PAYLOAD_COLUMNS
@WAIT
@JSON
@PARQUET
def add(
    database: Path,
    sources: tuple[Path, ...],
    upsert: bool,
    ids_file: Path | None,
    payload_file: Path | None,
    payload_columns: str | None,
    wait: float,
    as_json: bool,
) -> None:
    """Add the vectors of files, each file as a whole or not at all.

    FILE is .npy, .npz, .safetensors or .parquet and may be larger than memory.
    """
    payload = payload_of(payload_file, payload_columns, sources)
    db = Database.open(database, lock_timeout=wait)
    count = _insert(db, sources, ids_file, payload, upsert)
    echo_result(
        as_json,
        f"{database}: {count:,} vectors added, {len(db):,} in all",
        added=count,
        **db.info(),
    )


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog=examples(
        "hiernorm delete words.hn 17 42", "hiernorm delete words.hn --ids old.txt --ignore-missing"
    ),
)
@DATABASE
@click.argument("ids", nargs=-1, metavar="[ID]...")
@IDS
@option("--ignore-missing", is_flag=True, help="Ignore ids that do not exist.")
@WAIT
@JSON
def delete(
    database: Path,
    ids: tuple[str, ...],
    ids_file: Path | None,
    ignore_missing: bool,
    wait: float,
    as_json: bool,
) -> None:
    """Delete entries by their ids, or by their string keys."""
    if (ids_file is None) == (not ids):
        raise click.UsageError("give ids, or --ids with a file of them")
    db = Database.open(database, lock_timeout=wait)
    given: Any = list(ids) if db.string_keys else parse_ids(list(ids), "ID")
    if ids_file is not None:
        given = read_ids(ids_file, db.string_keys)
    before = len(db)
    db.delete(given, ignore_missing=ignore_missing)
    count = before - len(db)
    echo_result(
        as_json,
        f"{database}: {count:,} entries deleted, {len(db):,} left",
        removed=count,
        **db.info(),
    )


@click.command(epilog=examples("hiernorm compact words.hn"))
@DATABASE
@option(
    "--salvage",
    is_flag=True,
    help="Of a damaged database, keep the entries that are provably intact and list the others.",
)
@WAIT
@JSON
def compact(database: Path, salvage: bool, wait: float, as_json: bool) -> None:
    """Rewrite a database in as few files as possible.

    What deleted entries took up becomes free. Answers stay the same.
    """
    if salvage:
        with progress_bar(database.name) as report:
            found = Database.salvage_folder(database, lock_timeout=wait, progress=report)
        lost = [{"file": e.file, "entries": e.count, "ids": e.ids.tolist()} for e in found.lost]
        lines = [f"{database}: {found.kept:,} entries kept, {found.lost_count:,} lost"]
        text = "\n".join([*lines, *(str(entries) for entries in found.lost)])
        echo_result(as_json, text, kept=found.kept, lost=lost, **Database.open(database).info())
        return
    db = Database.open(database, lock_timeout=wait)
    before = db.info()
    with progress_bar(database.name) as report:
        db.compact(progress=report)
    after = db.info()
    text = f"{before['segments']} segments are now {after['segments']}"
    saved = (before["bytes"] - after["bytes"]) / 2**20
    echo_result(as_json, f"{database}: {text}, {saved:,.1f} MiB less", **after)
