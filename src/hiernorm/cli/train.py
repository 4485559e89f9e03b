"""`hiernorm train`: train a descriptor network on scenes of patches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from hiernorm.cli.options import parse_share
from hiernorm.extras import import_extra
from hiernorm.threads import thread_count

if TYPE_CHECKING:
    from hiernorm.learn.run import Run

CURVES = "curves.png"


@click.command()
@click.option("--data", multiple=True, metavar="SCENE", help="Folder or zip; may be repeated.")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path))
@click.option("--resume", is_flag=True, help="Continue the run in --out with its own settings.")
@click.option("--architecture", type=click.Choice(["hardnet", "hynet", "tfeat"]), help="[hardnet]")
@click.option("--norm", type=click.Choice(["hn", "l2"]), help="l2: the plain baseline.")
@click.option("--major", type=click.IntRange(1, 127), help="K, the size of the major [16].")
@click.option("--alpha", type=parse_share, help="The minor's share of energy [1/8].")
@click.option(
    "--init",
    multiple=True,
    metavar="WEIGHTS",
    help="Start from a file, a model of the package, 'liberty' or 'hardnet++'; may be repeated: "
    "the mean of all. Otherwise random weights.",
)
@click.option("--loss", type=click.Choice(["triplet", "hardest", "ranking"]), help="[triplet]")
@click.option("--least-share", type=float, help="Of the ranking loss [0.03].")
@click.option("--margin", type=float, help="[1.0]")
@click.option("--learning-rate", type=float, help="Of Adam [1e-4].")
@click.option("--decay", type=click.Choice(["none", "linear", "cosine"]), help="[none]")
@click.option("--batch", type=click.IntRange(min=2), help="Pairs per batch [32].")
@click.option("--epochs", type=click.IntRange(min=0), help="At most [30; 10 for K=8].")
@click.option("--patience", type=click.IntRange(min=0), help="Epochs; 0: never stop early [5].")
@click.option("--augment", metavar="LIST", help="Any of flips,turns,shifts,frames,light [none].")
@click.option("--sampling", type=click.Choice(["patches", "points"]), help="[patches]")
@click.option("--places-per-batch", type=click.IntRange(min=0), help="With points; 0: all [0].")
@click.option(
    "--development",
    multiple=True,
    metavar="SCENE",
    help="Judge epochs by FPR@95 on this scene; may be repeated.",
)
@click.option("--shift", type=click.IntRange(min=1), help="Most pixels of 64 [2].")
@click.option("--validation", type=parse_share, help="Share of points held out [0.1].")
@click.option("--rotate", type=click.Choice(["none", "pca", "lda"]), help="Before training.")
@click.option("--major-weight", type=float, help="Of the same loss on the major [0].")
@click.option("--second-order-weight", type=float, help="Weight of SOSNet's regularisation [0].")
@click.option(
    "--teacher",
    multiple=True,
    metavar="WEIGHTS",
    help="Plain network whose distances are kept; may be repeated.",
)
@click.option("--distill-weight", type=float, help="How much they count [0].")
@click.option("--freeze-statistics", is_flag=True, default=None, help="Of batch normalisation.")
@click.option("--head-epochs", type=click.IntRange(min=0), help="Of the last layer alone [0].")
@click.option("--head-views", type=click.IntRange(1, 8), help="Variants of a patch for it [4].")
@click.option("--head-learning-rate", type=float, help="[1e-3]")
@click.option("--seed", type=int, help="[0]")
@click.option("--threads", type=click.IntRange(min=1), help="Of torch.")
@click.option("--export", is_flag=True, help="Also write the model as ONNX, for deployment.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def train(
    data: tuple[str, ...],
    out: Path,
    resume: bool,
    threads: int | None,
    export: bool,
    as_json: bool,
    augment: str | None,
    **options: Any,
) -> None:
    """Train HardNet with Hierarchical Normalization, by the paper's recipe unless told otherwise.

    Into --out go state.pth (after every epoch; Ctrl-C saves it too), model.safetensors (the best
    on points held out), log.jsonl and curves.png.
    """
    torch = import_extra("torch", extra="train")
    torch.set_num_threads(thread_count(threads))
    modules = {
        name: import_extra(f"hiernorm.learn.{name}", extra="train")
        for name in (
            "batches",
            "checkpoint",
            "export",
            "memory",
            "pictures",
            "run",
            "settings",
            "train",
        )
    }
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if augment is not None:
        given["augment"] = tuple(name for name in augment.split(",") if name)
    state = out / modules["run"].STATE
    if resume:
        if data or given:
            raise click.UsageError("--resume continues with the run's own settings: give no others")
        run = modules["run"].Run.load(out)
        sets = modules["batches"].load_sets(run.settings)
    else:
        if state.exists():
            raise click.UsageError(f"{state} exists: --resume that run, or choose another --out")
        settings = modules["settings"].Settings(data=data, **given)
        sets = modules["batches"].load_sets(settings)
        run = modules["run"].Run.start(settings, sets[0])
    out.mkdir(parents=True, exist_ok=True)
    modules["memory"].keep_freed_memory()
    with _Bar() as bar:
        finished = modules["train"].train_network(run, sets, out, bar)
    if run.history:
        modules["pictures"].draw_curves(run.history, out / CURVES)
    if not finished:
        click.echo(f"interrupted; `hiernorm train --resume --out {out}` continues", err=True)
        raise click.exceptions.Exit(130)
    model = out / modules["train"].MODEL
    if export:
        modules["export"].export_network(modules["checkpoint"].load_network(model), out / "export")
    best = min(run.history, key=modules["run"].merit)
    if as_json:
        click.echo(json.dumps({"model": str(model), "epochs": run.epoch, "best": best}))
        return
    click.echo(
        f"{model}: validation loss {best['validation_loss']:.4f} after epoch {best['epoch']} "
        f"of {run.epoch}"
    )


class _Bar:
    """A bar per epoch with loss, distances and speed; a line for each epoch that is done."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = TaskID(0)

    def __enter__(self) -> _Bar:
        self._bar.start()
        self._task = self._bar.add_task("")
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def step(self, run: Run, steps: int) -> None:
        """Show a step."""
        text = f"epoch {run.epoch + 1} of {run.settings.total_epochs}  {_figures(run.means())}"
        self._bar.update(self._task, completed=run.step, total=steps, description=text)

    def epoch(self, run: Run) -> None:
        """Write a line."""
        record = run.history[-1]
        self._console.print(
            f"epoch {record['epoch']:>3}  {_figures(record)}  "
            f"validation loss {record['validation_loss']:.4f}"
            + "".join(f"  {n} {rate:.4f}" for n, rate in record.get("development", {}).items()),
            highlight=False,
        )


def _figures(record: dict[str, Any]) -> str:
    return (
        f"loss {record['loss']:.4f}  positive {record['positive']:.3f}  "
        f"negative {record['negative']:.3f}  {record['patches_per_second']:,.0f} patches/s"
    )
