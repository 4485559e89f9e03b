"""`hiernorm advise`: whether hiernorm is fast for one's vectors, measured on a sample of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from hiernorm._files import replacing
from hiernorm.arrays import as_rows
from hiernorm.cli.help import examples, option
from hiernorm.cli.options import EXISTING_FILE, HITS, JSON, METRIC, OutputPicture
from hiernorm.cli.progress import working
from hiernorm.cli.requirements import PARQUET, needs
from hiernorm.cli.vectors import read_vectors
from hiernorm.explanation import QUERIES, Explanation
from hiernorm.extras import import_extra
from hiernorm.index import Index
from hiernorm.settings import Metric

LEAST_ROWS = 1000
SERIES = ("#1b6ca8", "#b8b8b8")


@click.command(
    epilog=examples(
        "hiernorm advise embeddings.npy",
        "hiernorm advise embeddings.npy --queries queries.npy --plot advice.png",
    )
)
@click.argument("vectors", type=EXISTING_FILE)
@option(
    "--queries",
    type=EXISTING_FILE,
    show_default="vectors that are held out",
    help="File of typical queries.",
)
@METRIC
@HITS
@option(
    "--rows",
    "most",
    default=100_000,
    type=click.IntRange(min=LEAST_ROWS),
    help="Maximum number of vectors to try, evenly spread over the file.",
)
@JSON
@option(
    "--plot",
    type=OutputPicture(".png", ".jpg", ".pdf", ".svg"),
    help="Write a picture to this file: the spread of the energy, and the times.",
)
@PARQUET
@needs("plot", "matplotlib", when=lambda given: given["plot"] is not None)
def advise(
    vectors: Path,
    queries: Path | None,
    metric: Metric,
    k: int,
    most: int,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Measure whether search beats brute force on your vectors.

    VECTORS is an .npy, .safetensors or .parquet file. An index of the vectors, or of a sample of
    them, answers queries that are not in it. So does a scan of all rows. Both are exact.
    """
    with working(f"reading {vectors.name}"):
        rows = read_vectors(vectors)
    if len(rows) < LEAST_ROWS:
        raise click.ClickException(
            f"{vectors} has {len(rows):,} vectors; any search is fast below {LEAST_ROWS:,}"
        )
    sample = rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.int64)]
    if queries is None:
        held_out = np.zeros(len(sample), np.bool_)
        held_out[np.linspace(0, len(sample) - 1, QUERIES).astype(np.int64)] = True
        asked, sample = sample[held_out], sample[~held_out]
    else:
        asked = as_rows("queries", read_vectors(queries), rows.shape[1])[:QUERIES]
    index = Index(dim=rows.shape[1], metric=metric)
    with working(f"building an index of {len(sample):,} vectors") as show:
        index.add(sample)
        show("measuring queries")
        found = index.explain(asked, k)
    click.echo(json.dumps(found.facts()) if as_json else str(found))
    if plot is not None:
        draw(found, plot)
        if not as_json:
            click.echo(f"{plot} shows it")


def draw(found: Explanation, path: Path) -> None:
    """Draw the spread of the energy beside the times of a query into a picture."""
    figure = import_extra("matplotlib.figure", extra="plot").Figure(
        figsize=(10, 4), layout="constrained"
    )
    energy, times = figure.subplots(1, 2)
    _draw_energy(energy, found)
    _draw_times(times, found)
    figure.suptitle(found.verdict, fontsize="medium", wrap=True)
    with replacing(path, durable=False) as fresh:
        figure.savefig(fresh, dpi=150)


def _draw_energy(axes: Any, found: Explanation) -> None:
    dims = np.arange(1, found.dim + 1)
    axes.plot(dims, 100 * found.energy, color=SERIES[0])
    axes.plot(dims, 100 * dims / found.dim, color="grey", linewidth=0.8, linestyle=":")
    axes.annotate(
        "all dimensions alike", (found.dim * 0.62, 60), color="grey", fontsize="small", va="top"
    )
    if found.major is not None:
        share = 100 * found.energy[found.major - 1]
        axes.axvline(found.major, color="black", linewidth=0.8)
        axes.annotate(f" K = {found.major}: {share:.0f}%", (found.major, 3), fontsize="small")
    axes.set(
        xlabel="leading dimensions",
        ylabel="share of the energy in %",
        ylim=(0, 102),
        xlim=(0, None),
    )
    axes.set_title("How the energy is spread", fontsize="medium")


def _draw_times(axes: Any, found: Explanation) -> None:
    places = np.arange(2)
    own = [found.single_us, found.batch_us]
    flat = [found.flat_single_us, found.flat_batch_us]
    for shift, heights, label, color in (
        (-0.2, own, f"hiernorm ({found.engine})", SERIES[0]),
        (0.2, flat, "brute force", SERIES[1]),
    ):
        bars = axes.bar(places + shift, heights, 0.38, label=label, color=color)
        axes.bar_label(bars, fmt="{:,.0f}", fontsize="small")
    axes.set_xticks(places, ["single query", "in a batch"])
    axes.set(ylabel="microseconds per query")
    axes.set_title(
        f"{found.entries:,} vectors of {found.dim} dimensions, k = {found.k}", fontsize="medium"
    )
    axes.margins(y=0.15)
    axes.legend(fontsize="small")
