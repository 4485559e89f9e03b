"""`hiernorm cluster build`, `search`, `info`, `verify`: sharded databases on Ray."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np

from hiernorm.cli.database import JSON, PATH, SOURCES, echo_damage, echo_hits, say
from hiernorm.cli.info import echo_facts
from hiernorm.cli.progress import entries_bar
from hiernorm.cli.train import parse_share
from hiernorm.distributed import ShardedDatabase
from hiernorm.distributed import build as build_shards
from hiernorm.distributed.location import Location
from hiernorm.distributed.session import connect
from hiernorm.extras import import_extra
from hiernorm.settings import METRICS
from hiernorm.storage.sources import read_pieces

DATABASE = click.argument("database", metavar="DATABASE")
ADDRESS = click.option(
    "--address",
    metavar="HOST:PORT",
    help="Of the Ray cluster [RAY_ADDRESS, else a local Ray started on the fly].",
)
LOCAL = click.option("--local", metavar="FOLDER", help="Copy shards to this folder of each node.")
DEADLINE = click.option(
    "--deadline",
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="After which shards that do not answer are missing.",
)


@click.group()
def cluster() -> None:
    """Databases in shards, on many machines; exact all the same.

    DATABASE is a folder that all nodes see; for searching also a URI such as s3://bucket/name, with
    --local. FILE is .parquet, .npy, .npz or .safetensors and may be larger than memory.
    """


@cluster.command()
@DATABASE
@SOURCES
@click.option("--shards", required=True, type=click.IntRange(min=1), help="How many.")
@click.option("--major", type=click.IntRange(min=1), help="K of HN vectors; else chosen.")
@click.option("--alpha", type=parse_share, help="Energy split of HN vectors, such as 1/8.")
@click.option("--metric", type=click.Choice(METRICS), default="ip", show_default=True)
@ADDRESS
@JSON
def build(
    database: str,
    sources: tuple[Path, ...],
    shards: int,
    major: int | None,
    alpha: float | None,
    metric: str,
    address: str | None,
    as_json: bool,
) -> None:
    """Make a sharded database from files; the same command continues one that was interrupted."""
    with _ray(address), entries_bar("split, then fill") as report:
        count = build_shards(
            database,
            list(sources),
            shards=shards,
            major=major,
            alpha=alpha,
            metric=metric,
            progress=lambda step, done, total: report(done, total),
        )
    text = f"{database}: {count:,} vectors in {shards} shards"
    say(as_json, text, path=database, entries=count, shards=shards)


@cluster.command()
@DATABASE
@click.argument("queries", type=PATH)
@click.option("-k", default=10, show_default=True, type=click.IntRange(min=1), help="Hits a query.")
@click.option("--allow-partial", is_flag=True, help="Answer without shards that are missing.")
@ADDRESS
@LOCAL
@DEADLINE
@JSON
def search(
    database: str,
    queries: Path,
    k: int,
    allow_partial: bool,
    address: str | None,
    local: str | None,
    deadline: float,
    as_json: bool,
) -> None:
    """Find the k best entries of every query in a file of vectors.

    Prints a line per hit: query, rank, id, score, with tabs between them.
    """
    rows = np.concatenate([piece for piece, _ in read_pieces(queries)])
    with _opened(database, address, local, deadline) as db:
        hits = db.search(rows, k, allow_partial=allow_partial)
    missing = hits.certificate.missing
    if missing is not None:
        click.echo(f"not exact: without {missing}", err=True)
    echo_hits(hits, k, as_json, missing_shards=[] if missing is None else list(missing.shards))


@cluster.command()
@DATABASE
@ADDRESS
@LOCAL
@DEADLINE
@JSON
def info(
    database: str, address: str | None, local: str | None, deadline: float, as_json: bool
) -> None:
    """Show what is in a sharded database."""
    with _opened(database, address, local, deadline) as db:
        echo_facts(db.info(), as_json)


@cluster.command()
@DATABASE
@ADDRESS
@LOCAL
@DEADLINE
@JSON
def verify(
    database: str, address: str | None, local: str | None, deadline: float, as_json: bool
) -> None:
    """Read everything on all nodes and say what is not as it was written; exit code 3 if so."""
    with _opened(database, address, local, deadline) as db:
        echo_damage(db.verify(), database, as_json)


@contextmanager
def _ray(address: str | None) -> Iterator[None]:
    """Ray while the block runs; what was connected before stays so."""
    ray = import_extra("ray", extra="ray")
    ours = not ray.is_initialized()
    connect(address)
    try:
        yield
    finally:
        if ours:
            ray.shutdown()


@contextmanager
def _opened(
    database: str, address: str | None, local: str | None, deadline: float
) -> Iterator[ShardedDatabase]:
    Location(database).read_manifest()  # an error of the name, before Ray is started for it
    with _ray(address), ShardedDatabase.open(database, local=local, deadline=deadline) as db:
        yield db
