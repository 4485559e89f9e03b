"""`hiernorm search`, `check`, `export`: what databases hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from hiernorm.cli.help import examples, option
from hiernorm.cli.options import (
    DATABASE,
    EXISTING_FILE,
    HITS,
    JSON,
    OUTPUT_FILE,
    THREADS,
    echo_result,
)
from hiernorm.cli.payload import (
    CONDITION,
    SHOWN_COLUMNS,
    echo_table,
    hits_table,
    read_where,
    shown_columns,
    write_hits,
)
from hiernorm.cli.progress import progress_bar, working
from hiernorm.cli.requirements import PARQUET
from hiernorm.cli.vectors import read_vectors
from hiernorm.hits import Hits
from hiernorm.index import Index
from hiernorm.storage.database import Database
from hiernorm.storage.errors import DamagedError
from hiernorm.storage.exporter import write_arrays
from hiernorm.verification import Verification


@click.command(
    epilog=examples(
        "hiernorm search words.hn queries.npy -k 5",
        "hiernorm search words.hn queries.npy --where \"lang = 'en'\" --columns lang,year",
    )
)
@DATABASE
@click.argument("queries", type=EXISTING_FILE)
@HITS
@CONDITION
@SHOWN_COLUMNS
@THREADS
@option(
    "-o",
    "--out",
    type=OUTPUT_FILE,
    help="Write ids and scores to a .npz, .safetensors or .parquet file.",
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
    rows = read_vectors(queries)
    shown = shown_columns(columns, db)
    with working(f"searching {len(db):,} entries"):
        hits = db.search(rows, k, where=read_where(where, db.string_keys))
    if out is not None:
        if shown or db.string_keys:
            write_hits(out, hits_table(hits, db, shown))
            echo_result(as_json, f"{out}: {len(hits):,} queries", queries=len(hits), k=k)
            return
        write_arrays(out, {"ids": hits.ids, "scores": hits.scores})
        echo_result(as_json, f"{out}: {len(hits):,} queries, k = {k:,}", queries=len(hits), k=k)
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


@click.command(epilog=examples("hiernorm check words.hn"))
@DATABASE
@JSON
def check(database: Path, as_json: bool) -> None:
    """Read all files and list what is damaged.

    DATABASE is a folder, or a file that Index.save wrote. The exit code is 3 if anything is
    damaged.
    """
    opened = Index.load(database) if database.is_file() else Database.open(database)
    with working(f"reading {database.name}"):
        found = opened.check()
    echo_damage(found, str(database), as_json)


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


@click.command(epilog=examples("hiernorm export words.hn copy.npz"))
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
