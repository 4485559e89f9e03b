"""`make bench`: run the benchmark, write its report, show it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from experiments.harness.command import (
    EXISTING_FILE,
    Experiment,
    graphs_option,
    only_graphs_option,
    out_option,
    results_folder,
)
from experiments.harness.comparison import Report
from experiments.harness.progress import Bar
from experiments.harness.records import Record, read_record, write_file
from experiments.speed.cases import FULL, LARGE, QUICK, SMOKE
from experiments.speed.picture import draw_picture
from experiments.speed.render import render_report
from experiments.speed.run import Options, keep_all_graphs, run
from hiernorm.threads import thread_count

SCALES = {"full": FULL, "quick": QUICK, "large": LARGE, "smoke": SMOKE}

PIPED_WIDTH = 130
"""Columns of the tables where there is no terminal to fit."""


@click.command("speed", cls=Experiment)
@click.option("--quick", "scale", flag_value="quick", help="Up to 99,000 entries, K=16, a=1/8.")
@click.option("--large", "scale", flag_value="large", help="Up to 2,000,000 entries.")
@click.option("--smoke", "scale", flag_value="smoke", help="600 entries: only to see it work.")
@click.option("--data", type=EXISTING_FILE, help="Descriptors (n, d) in a .npy file.")
@click.option("--queries", type=EXISTING_FILE, help="Queries for --data; else every 50th row.")
@click.option(
    "--hn",
    is_flag=True,
    help="With --data: also normalise the vectors to K=16, a=1/8. Unless they were trained for it, "
    "this changes their neighbours.",
)
@click.option("--only", multiple=True, metavar="TEXT", help="Cases whose name contains TEXT.")
@click.option("--rounds", type=click.IntRange(min=1), help="Interleaved rounds per group.")
@click.option("--threads", type=click.IntRange(min=1), help="Measured beside one thread.")
@click.option("--seed", default=0, show_default=True, help="Seed of vectors and graphs.")
@graphs_option
@only_graphs_option
@out_option
@click.option("--from", "earlier", type=EXISTING_FILE, help="Show and redraw a bench.json.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, no tables.")
def main(
    scale: str | None,
    data: Path | None,
    queries: Path | None,
    hn: bool,
    only: tuple[str, ...],
    rounds: int | None,
    threads: int | None,
    seed: int,
    graphs: Path | None,
    only_graphs: bool,
    out: Path | None,
    earlier: Path | None,
    as_json: bool,
) -> None:
    """Compare our engines with FAISS, hnswlib, USearch and NumPy.

    All methods search the same vectors in one process, with one thread and then with all. They
    take turns in interleaved rounds; a ratio compares times of the same round with FAISS
    IndexFlatIP. Our engines must return the exhaustive answer bit for bit, or the run stops.

    The sizes are 1,000, 5,000, 99,000 and 500,000 entries. To keep the run bearable not all is
    measured everywhere: all peers at K=16, a=1/8 and K=8, a=1/32 (hnswlib, slow to build, at the
    former only, at the fastest setting for recall 0.99 and 0.999 that other queries than the timed
    ones chose; Panorama reported at the best of 4, 8 and 16 levels); at the other points our
    engines and FAISS flat, one thread, k=1; at 2,000,000 entries the two points only. Plain
    vectors are measured at 99,000 entries. More than an hour on two cores; --quick: some minutes.

    Cases build-... time the building alone, as a user calls it: no thread is held.

    Cases tutorial-... are the data of FAISS's first tutorial, which no rotation orders.

    Case names: K16-a1/8-n99000, plain-n99000, tutorial-n100000-d64; for example --only plain
    or --only n5000.
    """
    if queries is not None and data is None:
        raise click.UsageError("--queries needs --data")
    if hn and data is None:
        raise click.UsageError("--hn is for --data")
    if earlier is not None:
        record = read_record(earlier)
        _draw(record, earlier.parent)
    else:
        sizes = SCALES[scale or "full"]
        effort = sizes.effort if rounds is None else replace(sizes.effort, rounds=rounds)
        options = Options(
            scale=replace(sizes, effort=effort),
            threads=thread_count(threads),
            seed=seed,
            only=only,
            database_file=data,
            queries_file=queries,
            graphs=graphs,
            hn=hn,
        )
        if only_graphs:
            keep_all_graphs(options)
            return
        with Bar() as progress:
            record = run(options, progress)
        _write(record, results_folder("speed", out, smoke=scale == "smoke"))
    if as_json:
        click.echo(record.to_json(), nl=False)
    else:
        width = None if sys.stdout.isatty() else PIPED_WIDTH
        Console(width=width).print(render_report(record))


def _write(record: Record, folder: Path) -> None:
    """Write bench.json, then draw bench.png from what was written."""
    file = folder / "bench.json"
    write_file(file, record.to_json())
    _draw(read_record(file), folder)
    click.echo(f"report: {file}", err=True)


def _draw(record: Record, folder: Path) -> None:
    try:
        draw_picture(Report.from_result(record.result), folder / "bench.png")
    except ImportError:
        click.echo("bench.png not drawn: pip install 'hiernorm[bench]'", err=True)


if __name__ == "__main__":
    main()
