"""`hiernorm cluster build`, `search`, `info`, `check`: sharded databases on Ray."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from hiernorm.cli.help import examples, option
from hiernorm.cli.info import echo_facts
from hiernorm.cli.options import (
    ALPHA,
    EXISTING_FILE,
    HITS,
    JSON,
    MAJOR,
    METRIC,
    SOURCES,
    echo_result,
    former_name,
)
from hiernorm.cli.payload import CONDITION, read_where
from hiernorm.cli.progress import progress_bar, working
from hiernorm.cli.requirements import needs
from hiernorm.cli.search import echo_damage, echo_hits
from hiernorm.cli.vectors import read_vectors
from hiernorm.distributed import ShardedDatabase
from hiernorm.distributed import build as build_shards
from hiernorm.distributed.location import Location
from hiernorm.distributed.session import connect
from hiernorm.extras import import_extra
from hiernorm.settings import Metric

DATABASE = click.argument("database", metavar="DATABASE")
ADDRESS = option(
    "--address",
    metavar="HOST:PORT",
    show_default="RAY_ADDRESS, else a new local Ray",
    help="Address of the Ray cluster.",
)
LOCAL = option("--local", metavar="FOLDER", help="Copy shards to this folder on each node.")
RAY = needs("ray", "ray", "pyarrow")
DEADLINE = option(
    "--deadline",
    default=60.0,
    metavar="SECONDS",
    help="How long to wait for the answers of shards.",
)


@click.group()
def cluster() -> None:
    """Build and search databases in shards on many machines.

    The answers are those of one database, bit for bit.

    DATABASE is a folder that all nodes see. With --local a search also takes a URI such as
    s3://bucket/name. FILE is .parquet, .npy, .npz or .safetensors and may be larger than memory.
    """


@cluster.command(epilog=examples("hiernorm cluster build words.hn embeddings.parquet --shards 4"))
@DATABASE
@SOURCES
@option("--shards", required=True, type=click.IntRange(min=1), help="Number of shards.")
@MAJOR
@ALPHA
@METRIC
@ADDRESS
@JSON
@RAY
def build(
    database: str,
    sources: tuple[Path, ...],
    shards: int,
    major: int | None,
    alpha: float | None,
    metric: Metric,
    address: str | None,
    as_json: bool,
) -> None:
    """Make a sharded database from files of vectors.

    Run the command again to continue a build that was interrupted.
    """
    with _ray(address), progress_bar("split, then fill") as report:
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
    echo_result(as_json, text, path=database, entries=count, shards=shards)


@cluster.command(epilog=examples("hiernorm cluster search words.hn queries.npy -k 5"))
@DATABASE
@click.argument("queries", type=EXISTING_FILE)
@HITS
@CONDITION
@option("--allow-partial", is_flag=True, help="Answer without shards that do not respond.")
@ADDRESS
@LOCAL
@DEADLINE
@JSON
@RAY
def search(
    database: str,
    queries: Path,
    k: int,
    where: str | None,
    allow_partial: bool,
    address: str | None,
    local: str | None,
    deadline: float,
    as_json: bool,
) -> None:
    """Find the k best entries of every query in a file of vectors.

    The command prints a header and a line per hit: the query's row in the file and the hit's rank,
    both from 0, the hit's id and its score, separated by tabs.
    """
    rows = read_vectors(queries)
    with _opened(database, address, local, deadline) as db:
        hits = db.search(
            rows, k, where=read_where(where, db.string_keys), allow_partial=allow_partial
        )
    missing = hits.certificate.missing
    if missing is not None:
        click.echo(f"not exact: without {missing}", err=True)
    echo_hits(hits, k, as_json, missing_shards=[] if missing is None else list(missing.shards))


@cluster.command(epilog=examples("hiernorm cluster info words.hn"))
@DATABASE
@ADDRESS
@LOCAL
@DEADLINE
@JSON
@RAY
def info(
    database: str, address: str | None, local: str | None, deadline: float, as_json: bool
) -> None:
    """Show what is in a sharded database."""
    with _opened(database, address, local, deadline) as db:
        echo_facts(db.info(), as_json)


@cluster.command(epilog=examples("hiernorm cluster check words.hn"))
@DATABASE
@ADDRESS
@LOCAL
@DEADLINE
@JSON
@RAY
def check(
    database: str, address: str | None, local: str | None, deadline: float, as_json: bool
) -> None:
    """Read all files on all nodes and list what is damaged.

    The exit code is 3 if anything is.
    """
    with _opened(database, address, local, deadline) as db:
        with working(f"reading {database}"):
            found = db.check()
        echo_damage(found, database, as_json)


cluster.add_command(former_name(check, "verify"))


@contextmanager
def _ray(address: str | None) -> Iterator[None]:
    """Connect to Ray inside the block; an existing connection is kept."""
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
    Location(database).read_manifest()  # a wrong name is an error before Ray is started
    with _ray(address), ShardedDatabase.open(database, local=local, deadline=deadline) as db:
        yield db
