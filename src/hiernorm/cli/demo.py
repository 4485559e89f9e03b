"""`hiernorm demo`: from photographs to exact neighbours, with proof, speed and a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

import hiernorm
from hiernorm import synthetic
from hiernorm._files import replacing
from hiernorm.cli.help import examples, option
from hiernorm.cli.options import EXISTING_FOLDER, JSON, MODEL, NEW_FOLDER
from hiernorm.cli.progress import working
from hiernorm.cli.requirements import needs
from hiernorm.demo.engines import EngineComparison, compare_engines
from hiernorm.demo.page import render_page
from hiernorm.demo.pipeline import DemoResult, K, run_demo
from hiernorm.learn.scenes.embedded import embedded_photos
from hiernorm.learn.scenes.maker import SceneSettings
from hiernorm.vision.photos import list_photos

POINTS = 500
"""Keypoints per photo: enough to see the speed, few enough for a minute or two."""

VIEWS = K + 1
"""Views of each point: one query, and as many neighbours as are shown."""

MAJOR = 16
ALPHA = 1 / 8
SYNTHETIC_K = 10


@click.command(
    epilog=examples(
        "hiernorm demo", "hiernorm demo --photos photos --out demo", "hiernorm demo --synthetic"
    )
)
@option(
    "--photos", type=EXISTING_FOLDER, show_default="those of scikit-image", help="Folder of photos."
)
@MODEL
@option("--points", default=POINTS, type=click.IntRange(min=1), help="Maximum keypoints per photo.")
@option("--small", is_flag=True, help="Take 50 keypoints per photo, for a quick check.")
@option(
    "--synthetic", "is_synthetic", is_flag=True, help="Search synthetic vectors instead of photos."
)
@option("--seed", default=0, type=click.IntRange(min=0), help="Seed of the random numbers.")
@option(
    "-o",
    "--out",
    type=NEW_FOLDER,
    default=Path("demo"),
    help="Folder of the page, index.html.",
)
@JSON
@needs("demo", "cv2", "onnxruntime", "sklearn", when=lambda given: not given["is_synthetic"])
@needs(
    "demo",
    "skimage",
    when=lambda given: not given["is_synthetic"] and given["photos"] is None,
)
def demo(
    photos: Path | None,
    model: str,
    points: int,
    small: bool,
    is_synthetic: bool,
    seed: int,
    out: Path,
    as_json: bool,
) -> None:
    """Find the exact nearest neighbours of patches of photographs.

    The demo makes a scene from photos and describes its patches with a trained model. It searches
    the last view of every point among the others, compares the answers with exhaustive search and
    the descriptor with SIFT, and writes a page with the results.

    With --synthetic it searches synthetic vectors, which takes seconds and needs no other package.
    """
    console = Console(quiet=as_json)
    if is_synthetic:
        cases = _show_synthetic(console, small, seed)
        if as_json:
            click.echo(json.dumps({"cases": cases}))
        return
    with working("") as show:
        result = run_demo(
            embedded_photos() if photos is None else list_photos(photos),
            hiernorm.load_model(model),
            SceneSettings(points=50 if small else points, views=VIEWS, seed=seed),
            say=show,
        )
    _show_outcome(console, result)
    page = _write_page(render_page(result), out)
    console.print(f"\n[bold]pictures and proof:[/] {page}", soft_wrap=True, highlight=False)
    if as_json:
        click.echo(json.dumps(_figures(result) | {"page": str(page)}))
    if result.missed:
        raise RuntimeError(
            f"NumPy found a better neighbour for {result.missed} queries; please report it"
        )


def _figures(result: DemoResult) -> dict[str, Any]:
    return {
        "patches": result.patches,
        "points": result.points,
        "entries": result.entries,
        "queries": result.queries,
        "missed": result.missed,
        "engines": _engine_figures(result.comparison),
        "fpr95": {quality.name: quality.fpr95 for quality in result.qualities},
    }


def _engine_figures(comparison: EngineComparison) -> dict[str, Any]:
    return {
        engine.name: {
            "phase2_share": float(engine.hits.certificate.phase2_share.mean()),
            "microseconds": engine.seconds * 1e6,
        }
        for engine in comparison.engines
    }


def _write_page(html: str, folder: Path) -> Path:
    """Write the page; a page that opens is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    with replacing(page, durable=False) as fresh:
        fresh.write_text(html, encoding="utf-8")
    return page


def _show_outcome(console: Console, result: DemoResult) -> None:
    console.print(
        f"[bold]{result.patches:,} patches of {result.points:,} points[/] from "
        f"{len(result.photos)} photos; {result.queries:,} queries among {result.entries:,} "
        f"entries, k={K}"
    )
    _show_engines(console, result.comparison)
    if not result.missed:
        console.print("NumPy in float64 found no better neighbour for any query.")
    table = Table()
    for column in ("descriptor", "FPR@95", "95% interval", "own point first"):
        table.add_column(column, justify="left" if column == "descriptor" else "right")
    for quality in result.qualities:
        table.add_row(
            quality.name,
            f"{quality.fpr95:.4f}",
            f"{quality.low:.4f} to {quality.high:.4f}",
            f"{quality.right:.1%}",
        )
    console.print(table)
    console.print(_certificate_panel(result.certificate, "certificate of one query"))
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in result.seconds.items())
    console.print(f"[dim]{steps}[/]", highlight=False)


def _show_synthetic(console: Console, small: bool, seed: int) -> dict[str, Any]:
    """Compare the engines on two kinds of vectors; return the figures of each."""
    figures: dict[str, Any] = {}
    n, m = (5_000, 50) if small else (100_000, 200)
    trained = synthetic.hierarchical(n, m, major=MAJOR, alpha=ALPHA, seed=seed)
    plain = synthetic.plain(n, m, seed=seed)
    cases = (
        ("hierarchically normalised vectors (K=16, a=1/8)", trained, MAJOR, ALPHA),
        ("plain vectors: no training, a lossless rotation is fitted instead", plain, None, None),
    )
    for name, data, major, alpha in cases:
        console.print(f"\n[bold]{n:,} {name}[/], {m} queries, k={SYNTHETIC_K}")
        found = compare_engines(data.database, data.queries, SYNTHETIC_K, major, alpha)
        _show_engines(console, found)
        certificate = found.best.hits.certificate
        console.print(_certificate_panel(certificate[0], "certificate of query 0"))
        figures["plain" if major is None else "hn"] = _engine_figures(found)
    return figures


def _show_engines(console: Console, comparison: EngineComparison) -> None:
    """Show the time of each engine; their answers have been compared already."""
    table = Table()
    names = ("engine", "same bits as exhaustive", "reach phase 2", "us per query")
    for column in (*names, "x exhaustive", "x NumPy"):
        table.add_column(column, justify="left" if column == "engine" else "right")
    for engine in comparison.engines:
        table.add_row(
            engine.name,
            "yes",
            f"{engine.hits.certificate.phase2_share.mean():.3%}",
            f"{engine.seconds * 1e6:,.0f}",
            f"{comparison.exhaustive.seconds / engine.seconds:.1f}",
            f"{comparison.numpy_seconds / engine.seconds:.1f}",
        )
    console.print(table)


def _certificate_panel(record: hiernorm.QueryCertificate, title: str) -> Panel:
    """Show the certificate of one query, step by step."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(justify="right")
    grid.add_column(style="dim")
    proof = "yes" if record.exact else f"no, within {record.gap:.3g}"
    rows = (
        ("entries", f"{record.entries:,}", "in the database"),
        ("scanned", f"{record.scanned:,}", "whose major was read"),
        ("sifted", f"{record.sifted:,}", "left by the bound on the major"),
        ("tightened", f"{record.tightened:,}", "left by the codes of the minor"),
        ("settled", f"{record.settled:,}", "scores computed in full"),
        ("k-th score", f"{record.kth_score:.9f}", "of the answer"),
        ("skipped bound", f"{record.skipped_bound:.9f}", "nothing skipped scores higher"),
        ("exact", proof, "proved for this query"),
        ("database", record.digest[:16], "SHA-256 of entries and parameters"),
    )
    for row in rows:
        grid.add_row(*row)
    return Panel(grid, title=title, expand=False)
