"""`hiernorm build`, `add`, `delete`, `search`, `check`, `compact`, `export`: on databases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from hiernorm._files import new_folder
from hiernorm.cli.options import (
    ALPHA,
    EXISTING_FILE,
    FILE_OR_STDIN,
    HITS,
    JSON,
    MAJOR,
    METRIC,
    OUTPUT_FILE,
    OUTPUT_FOLDER,
    PATH,
    SOURCES,
    former_name,
)
from hiernorm.cli.payload import (
    CONDITION,
    PAYLOAD,
    PAYLOAD_COLUMNS,
    SHOWN_COLUMNS,
    STRING_KEYS,
    echo_table,
    hits_table,
    parse_ids,
    payload_of,
    read_ids,
    read_where,
    shown_columns,
    write_hits,
)
from hiernorm.cli.progress import progress_bar
from hiernorm.cli.requirements import PARQUET
from hiernorm.hits import Hits
from hiernorm.index import Index
from hiernorm.settings import Metric
from hiernorm.storage.database import Database
from hiernorm.storage.errors import DamagedError
from hiernorm.storage.exporter import write_arrays
from hiernorm.storage.manifest import MANIFEST
from hiernorm.storage.sources import read_pieces
from hiernorm.verification import Verification

DATABASE = click.argument("database", type=PATH)
IDS = click.option(
    "--ids",
    "ids_file",
    type=FILE_OR_STDIN,
    help="File of ids: .npy, or text with one id per line. - means stdin.",
)
WAIT = click.option(
    "--wait",
    default=0.0,
    metavar="SECONDS",
    show_default=True,
    help="How long to wait for another writer.",
)


def echo_result(as_json: bool, text: str, **facts: Any) -> None:
    """Print the facts as JSON, or the text."""
    click.echo(json.dumps(facts) if as_json else text)


def _insert(
    db: Database, sources: tuple[Path, ...], ids_file: Path | None, payload: Any, replace: bool
) -> int:
    """Add each file as one change, as a whole or not at all."""
    ids = read_ids(ids_file, db.string_keys)
    if ids is not None and len(sources) > 1:
        raise click.UsageError("--ids goes with one FILE")
    count = 0
    for source in sources:
        with progress_bar(source.name) as report:
            insert = db.upsert if replace else db.add
            count += insert(source, ids, payload=payload, progress=report)
    return count


@click.command()
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


@click.command()
@DATABASE
@SOURCES
@click.option("--upsert", is_flag=True, help="Replace entries with the same ids.")
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


@click.command(context_settings={"ignore_unknown_options": True})
@DATABASE
@click.argument("ids", nargs=-1, metavar="[ID]...")
@IDS
@click.option("--ignore-missing", is_flag=True, help="Ignore ids that do not exist.")
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


@click.command()
@DATABASE
@click.argument("queries", type=EXISTING_FILE)
@HITS
@CONDITION
@SHOWN_COLUMNS
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads [all processors].")
@click.option(
    "--out", type=OUTPUT_FILE, help="Write ids and scores to a .npz, .safetensors or .parquet file."
)
@JSON
@PARQUET
def search(
    database: Path,
    queries: Path,
    k: int,
    where: str | None,
    columns: str | None,
    threads: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Find the k best entries of every query in a file of vectors.

    The command prints a header and a line per hit: the query's row in the file and the hit's rank,
    both from 0, the hit's id and its score, separated by tabs.
    """
    db = Database.open(database, threads=threads)
    rows = np.concatenate([piece for piece, _ in read_pieces(queries)])
    shown = shown_columns(columns, db)
    hits = db.search(rows, k, where=read_where(where, db.string_keys))
    if out is not None:
        if shown or db.string_keys:
            write_hits(out, hits_table(hits, db, shown))
            echo_result(as_json, f"{out}: {len(hits):,} queries", queries=len(hits), k=k)
            return
        write_arrays(out, {"ids": hits.ids, "scores": hits.scores})
        echo_result(as_json, f"{out}: {len(hits):,} queries, {k} hits each", queries=len(hits), k=k)
        return
    if shown or db.string_keys:
        exact = bool(hits.certificate.exact.all())
        echo_table(hits_table(hits, db, shown), k, exact, as_json)
        return
    echo_hits(hits, k, as_json)


def echo_hits(hits: Hits, k: int, as_json: bool, **facts: Any) -> None:
    """Print a header and a line per hit, or one JSON object with further facts."""
    found = [
        [(int(i), float(s)) for i, s in zip(*row, strict=True) if not np.isneginf(s)]
        for row in hits.queries()
    ]
    if as_json:
        answers = [[{"id": i, "score": s} for i, s in row] for row in found]
        exact = bool(hits.certificate.exact.all())
        click.echo(json.dumps({"k": k, "exact": exact, **facts, "answers": answers}))
        return
    click.echo("query\trank\tid\tscore")
    for query, row in enumerate(found):
        for rank, (entry, score) in enumerate(row):
            click.echo(f"{query}\t{rank}\t{entry}\t{score!r}")


@click.command()
@DATABASE
@JSON
def check(database: Path, as_json: bool) -> None:
    """Read all files and list what is damaged.

    DATABASE is a folder, or a file that Index.save wrote. The exit code is 3 if anything is
    damaged.
    """
    opened = Index.load(database) if database.is_file() else Database.open(database)
    echo_damage(opened.check(), str(database), as_json)


def echo_damage(found: Verification, database: str, as_json: bool) -> None:
    """Print what is damaged; raises DamagedError if anything is."""
    if as_json:
        click.echo(json.dumps({"ok": found.ok, "damage": found.differences}))
    else:
        for line in found.differences:
            click.echo(line)
    if not found.ok:
        raise DamagedError(f"{database} is damaged: restore it from a snapshot")
    if not as_json:
        click.echo(f"{database}: all is as it was written")


@click.command()
@DATABASE
@click.option(
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


@click.command()
@DATABASE
@click.argument("out", type=OUTPUT_FILE, metavar="FILE")
@JSON
@PARQUET
def export(database: Path, out: Path, as_json: bool) -> None:
    """Write all entries to a file, in ascending order of id.

    FILE is .npz, .safetensors, .parquet or .npy. A .npy file holds the vectors; the ids go to
    <name>.ids.npy beside it.
    """
    db = Database.open(database)
    with progress_bar(out.name) as report:
        files = [str(file) for file in db.export(out, progress=report)]
    echo_result(as_json, f"{len(db):,} entries: {', '.join(files)}", entries=len(db), files=files)


COMMANDS = (build, add, delete, search, check, former_name(check, "verify"), compact, export)
