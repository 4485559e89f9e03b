"""`hiernorm bench`: run the benchmark, write its report, show it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from hiernorm.bench.cases import FULL, LARGE, QUICK, SMOKE
from hiernorm.bench.picture import draw_picture
from hiernorm.bench.render import render_report
from hiernorm.bench.report import Report
from hiernorm.bench.run import Options, run
from hiernorm.threads import thread_count

SCALES = {"full": FULL, "quick": QUICK, "large": LARGE, "smoke": SMOKE}

PIPED_WIDTH = 130
"""Columns of the tables where there is no terminal to fit."""

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--quick", "scale", flag_value="quick", help="Up to 99,000 entries, K=16, a=1/8.")
@click.option("--large", "scale", flag_value="large", help="Up to 2,000,000 entries.")
@click.option("--smoke", "scale", flag_value="smoke", help="600 entries: only to see it work.")
@click.option("--data", type=EXISTING_FILE, help="Descriptors (n, d) in a .npy file.")
@click.option("--queries", type=EXISTING_FILE, help="Queries for --data; else every 50th row.")
@click.option("--only", multiple=True, metavar="TEXT", help="Cases whose name contains TEXT.")
@click.option("--rounds", type=click.IntRange(min=1), help="Interleaved rounds per group.")
@click.option("--threads", type=click.IntRange(min=1), help="Measured beside one thread.")
@click.option("--seed", default=0, show_default=True, help="Seed of vectors and graphs.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("bench"),
    show_default=True,
    help="Folder for bench.json and bench.png.",
)
@click.option("--from", "earlier", type=EXISTING_FILE, help="Show and redraw a bench.json.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, no tables.")
def bench(
    scale: str | None,
    data: Path | None,
    queries: Path | None,
    only: tuple[str, ...],
    rounds: int | None,
    threads: int | None,
    seed: int,
    out: Path,
    earlier: Path | None,
    as_json: bool,
) -> None:
    """Compare our engines with FAISS, hnswlib, USearch and NumPy.

    All methods search the same vectors in one process, with one thread and then with all. They
    take turns in interleaved rounds; a ratio compares times of the same round with FAISS
    IndexFlatIP. Our engines must return the exhaustive answer bit for bit, or the run stops.

    The sizes are 1,000, 5,000, 99,000 and 500,000 entries. To keep the run bearable not all is
    measured everywhere: all peers at K=16, a=1/8 and K=8, a=1/32 (hnswlib, slow to build, at the
    former only; Panorama reported at the best of 4, 8 and 16 levels); at the other points our
    engines and FAISS flat, one thread, k=1; at 2,000,000 entries the two points only. Plain
    vectors are measured at 99,000 entries. More than an hour on two cores; --quick: some minutes.

    Case names: K16-a1/8-n99000, plain-n99000; for example --only plain or --only n5000.
    """
    if queries is not None and data is None:
        raise click.UsageError("--queries needs --data")
    if earlier is not None:
        report = Report.load(earlier)
        _draw(report, earlier.parent)
    else:
        sizes = SCALES[scale or "full"]
        options = Options(
            scale=sizes if rounds is None else replace(sizes, rounds=rounds),
            threads=thread_count(threads),
            seed=seed,
            only=only,
            database_file=data,
            queries_file=queries,
        )
        with _ProgressBar() as progress:
            report = run(options, progress)
        _write(report, out)
    if as_json:
        click.echo(report.to_json())
    else:
        width = None if sys.stdout.isatty() else PIPED_WIDTH
        Console(width=width).print(render_report(report))


def _write(report: Report, folder: Path) -> None:
    """Write bench.json, then draw bench.png from what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "bench.json"
    file.write_text(report.to_json(), encoding="utf-8")
    _draw(Report.load(file), folder)
    click.echo(f"report: {file}", err=True)


def _draw(report: Report, folder: Path) -> None:
    try:
        draw_picture(report, folder / "bench.png")
    except ImportError:
        click.echo("bench.png not drawn: pip install 'hiernorm[bench]'", err=True)


class _ProgressBar:
    """A bar with the time left, on stderr."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = TaskID(0)

    def __enter__(self) -> _ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def start(self, total: float) -> None:
        """Show an empty bar."""
        self._task = self._bar.add_task("", total=total)

    def say(self, doing: str) -> None:
        """Show what is being done."""
        self._bar.update(self._task, description=doing)

    def advance(self, share: float) -> None:
        """Fill the bar a little more."""
        self._bar.advance(self._task, share)
