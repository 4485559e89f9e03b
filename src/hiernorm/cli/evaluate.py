"""`hiernorm evaluate`: how well descriptors match patches, as table, JSON and picture."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

import hiernorm
from hiernorm.cli.help import examples, option
from hiernorm.cli.options import JSON, NEW_FOLDER, SCENE, THREADS
from hiernorm.cli.progress import working
from hiernorm.cli.requirements import needs
from hiernorm.extras import import_extra
from hiernorm.learn.describers import load_describer
from hiernorm.learn.evaluate import Result, evaluate_scenes, to_json
from hiernorm.learn.phototour import PhotoTour
from hiernorm.learn.sift import WINDOW

PIPED_WIDTH = 130
OUR_MODELS = ("hardnet", "hn16", "hn16-int8", "hn8")
DEFAULT_MODELS = ("sift", "rootsift", *OUR_MODELS)


@click.command(
    epilog=examples(
        "hiernorm evaluate --data scene.zip",
        "hiernorm evaluate --data scene.zip --model run/model.safetensors --against daisy vgg",
    )
)
@option(
    "--data",
    multiple=True,
    required=True,
    type=SCENE,
    help="Evaluate on this scene, a folder or a zip. May be repeated.",
)
@option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    show_default="sift, rootsift, hardnet, hn16, hn16-int8, hn8",
    help="Evaluate sift, rootsift, a model of the package, or an .onnx or .safetensors file. "
    "May be repeated.",
)
@option(
    "--against",
    multiple=True,
    metavar="DESCRIPTOR",
    help="Compare with vgg, boostdesc, beblid, teblid, daisy, sift, rootsift, or label=FILE for "
    "a network of ours or weights of HardNet, TFeat or HardTFeat. Several names may follow.",
)
@click.argument("more", nargs=-1, metavar="[DESCRIPTOR]...")
@option(
    "--window",
    default=WINDOW,
    type=click.IntRange(min=1),
    help="Width of SIFT in pixels.",
)
@option("--rounds", default=1000, type=click.IntRange(min=1), help="Number of bootstrap samples.")
@option("--seed", default=0, type=click.IntRange(min=0), help="Seed of bootstrap and queries.")
@THREADS
@option(
    "-o",
    "--out",
    type=NEW_FOLDER,
    help="Write the report as JSON and the ROC curves as PNG into this folder.",
)
@JSON
@needs("evaluate", "cv2", "onnxruntime", "sklearn")
@needs("evaluate", "matplotlib", when=lambda given: given["out"] is not None)
@needs("train", "torch", "kornia", "onnx", "safetensors", when=lambda given: _names_weights(given))
def evaluate(
    data: tuple[str, ...],
    models: tuple[str, ...],
    against: tuple[str, ...],
    more: tuple[str, ...],
    window: int,
    rounds: int,
    seed: int,
    threads: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure FPR@95 of models and of SIFT on scenes of patches.

    The database of the Phase-2 measurement holds half of the scene's points. Phase 2 is the share
    of entries that Algorithm 1 evaluates in full. It is given for queries of points that the
    database holds, and for queries of the other points.
    """
    if more and not against:
        raise click.UsageError(f"got unexpected {more[0]!r}: name descriptors after --against")
    named = models or (OUR_MODELS if against else DEFAULT_MODELS)
    console = Console(stderr=True)
    describers = [
        load_describer(name, window, threads, progress=console.is_terminal)
        for name in dict.fromkeys((*against, *more, *named))
    ]
    scenes = [PhotoTour.open(path) for path in data]
    with working("") as show:
        results = evaluate_scenes(scenes, describers, rounds, seed, show)
    report = to_json(results, version=hiernorm.__version__, rounds=rounds, seed=seed)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "evaluation.json").write_text(report, encoding="utf-8")
        pictures = import_extra("hiernorm.learn.pictures", extra="evaluate")
        pictures.draw_rocs(results, out / "roc.png")
        click.echo(f"report: {out / 'evaluation.json'}", err=True)
    if as_json:
        click.echo(report, nl=False)
    else:
        width = None if sys.stdout.isatty() else PIPED_WIDTH
        Console(width=width).print(_table(results))


def _names_weights(given: Mapping[str, Any]) -> bool:
    """Whether a model is a file of weights, which torch reads."""
    names = (*given["models"], *given["against"], *given["more"])
    return any("=" in name or Path(name).suffix == ".safetensors" for name in names)


def _table(results: list[Result]) -> Table:
    """Return the report as a table."""
    table = Table()
    columns = ("scene", "model", "FPR@95", "95% interval", "K", "alpha", "major energy")
    for column in (*columns, "phase 2, match", "no match"):
        table.add_column(column, justify="left" if column in ("scene", "model") else "right")
    for r in results:
        table.add_row(
            r.scene,
            r.model,
            f"{r.fpr95:.4f}",
            f"{r.low:.4f} to {r.high:.4f}",
            "" if r.major is None else str(r.major),
            "" if r.alpha is None else f"{r.alpha:g}",
            "" if r.energy is None else f"{r.energy:.1%}",
            "" if r.phase2 is None else f"{r.phase2.with_match:.3%}",
            "" if r.phase2 is None else f"{r.phase2.without_match:.3%}",
        )
    return table
