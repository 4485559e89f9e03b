"""`hiernorm train`: train a descriptor network on scenes of patches."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from rich.progress import MofNCompleteColumn, TaskID

from hiernorm._files import write_atomically
from hiernorm.cli.exit_codes import INTERRUPTED
from hiernorm.cli.help import F, examples, option
from hiernorm.cli.options import JSON, NEW_FOLDER, SCENE, SHARE, THREADS
from hiernorm.cli.progress import make_progress, progress_bar
from hiernorm.cli.requirements import needs
from hiernorm.extras import import_extra
from hiernorm.threads import thread_count

if TYPE_CHECKING:
    from hiernorm.learn.run import TrainingRun

CURVES = "curves.png"


def _weight(name: str, what: str) -> Callable[[F], F]:
    """The option for the weight of a part of the loss, which is 0 unless given."""
    return option(name, type=float, show_default="0", help=f"Weight of {what}.")


@click.command(
    epilog=examples(
        "hiernorm train --data scene.zip --out run", "hiernorm train --resume --out run"
    )
)
@option(
    "--data",
    multiple=True,
    type=SCENE,
    help="Train on this scene, a folder or a zip. May be repeated.",
)
@option(
    "-o",
    "--out",
    required=True,
    type=NEW_FOLDER,
    help="Folder of the run.",
)
@option("--resume", is_flag=True, help="Continue the run in --out with its own settings.")
@option(
    "--architecture",
    type=click.Choice(["hardnet", "hynet", "tfeat"]),
    show_default="hardnet",
    help="Architecture of the network.",
)
@option(
    "--norm",
    type=click.Choice(["hn", "l2"]),
    show_default="hn",
    help="Normalisation of the descriptors. l2 gives the plain baseline.",
)
@option("--major", type=click.IntRange(1, 127), show_default="16", help="K, the size of the major.")
@option("--alpha", type=SHARE, show_default="1/8", help="The minor's share of energy.")
@option(
    "--init",
    multiple=True,
    metavar="WEIGHTS",
    show_default="random weights",
    help="Start from a file, a model of the package, 'liberty' or 'hardnet++'. Repeat it to start "
    "from the mean of several.",
)
@option(
    "--loss",
    type=click.Choice(["triplet", "hardest"]),
    show_default="triplet",
    help="Loss function.",
)
@_weight("--fpr-weight", "the logarithm of FPR@95")
@option("--margin", type=float, show_default="1.0", help="Margin of the loss.")
@option("--learning-rate", type=float, show_default="1e-4", help="Learning rate of Adam.")
@option(
    "--decay",
    type=click.Choice(["none", "linear", "cosine"]),
    show_default="none",
    help="Decay of the learning rate to zero.",
)
@option("--batch", type=click.IntRange(min=2), show_default="32", help="Number of pairs per batch.")
@option(
    "--epochs", type=click.IntRange(min=0), show_default="30; 10 for K=8", help="Maximum epochs."
)
@option(
    "--patience",
    type=click.IntRange(min=0),
    show_default="5",
    help="Stop after this many epochs without a better one. 0 means never.",
)
@option(
    "--augment",
    metavar="LIST",
    show_default="none",
    help="Augment patches by any of flips,turns,shifts,frames,light.",
)
@option(
    "--sampling",
    type=click.Choice(["patches", "points"]),
    show_default="patches",
    help="Draw each patch once per epoch, or points balanced over scenes.",
)
@option(
    "--places-per-batch",
    type=click.IntRange(min=0),
    show_default="0",
    help="With --sampling points: scenes per batch. 0 means all.",
)
@option(
    "--development",
    multiple=True,
    type=SCENE,
    help="Select the best epoch by FPR@95 on this scene. May be repeated.",
)
@option(
    "--shift",
    type=click.IntRange(min=1),
    show_default="2",
    help="With --augment shifts: maximum shift in pixels of 64.",
)
@option("--validation", type=SHARE, show_default="0.1", help="Share of points held out.")
@option(
    "--rotate",
    type=click.Choice(["none", "pca", "lda"]),
    show_default="none",
    help="Rotate the last layer before training.",
)
@_weight("--major-weight", "the same loss on the major alone")
@_weight("--spread-weight", "the spread of the majors")
@_weight("--phase2-weight", "the logarithm of the share that Phase 2 evaluates")
@_weight("--second-order-weight", "SOSNet's regularisation")
@option(
    "--teacher",
    multiple=True,
    metavar="WEIGHTS",
    help="Distil the distances of this plain network. May be repeated.",
)
@_weight("--distill-weight", "the distillation loss")
@option(
    "--freeze-statistics",
    is_flag=True,
    default=None,
    help="Keep the statistics of batch normalisation.",
)
@option(
    "--head-epochs",
    type=click.IntRange(min=0),
    show_default="0",
    help="Train the last layers alone for this many epochs first.",
)
@option(
    "--head-layers",
    type=click.IntRange(1, 3),
    show_default="1",
    help="Number of last layers that --head-epochs trains.",
)
@option(
    "--head-views",
    type=click.IntRange(1, 8),
    show_default="4",
    help="Variants of each patch in the training of the last layers.",
)
@option(
    "--head-patches",
    type=click.IntRange(min=2),
    show_default="100000",
    help="Maximum patches in the training of the last layers; 100,000 take 1.6 GB per variant, or "
    "3.3 GB with --head-layers 3.",
)
@option(
    "--head-learning-rate",
    type=float,
    show_default="1e-3",
    help="Learning rate of the last layers alone.",
)
@option("--seed", type=click.IntRange(min=0), show_default="0", help="Seed of everything random.")
@THREADS
@option(
    "--device",
    default="cpu",
    metavar="DEVICE",
    help="Device of torch: cpu, cuda, cuda:1 and so on, or mps. Only cpu is tested by us.",
)
@option("--export", is_flag=True, help="Also write the model as ONNX, for deployment.")
@option("--int8", is_flag=True, help="With --export: also write it with weights of 8 bits.")
@JSON
@needs("train", "torch", "kornia", "safetensors", "onnx", "onnxruntime")
@needs("train", "cv2", "matplotlib", "sklearn")
def train(
    data: tuple[str, ...],
    out: Path,
    resume: bool,
    threads: int | None,
    device: str,
    export: bool,
    int8: bool,
    as_json: bool,
    augment: str | None,
    **options: Any,
) -> None:
    """Train a descriptor network with Hierarchical Normalization.

    The defaults train HardNet as the paper does. The command writes into --out: settings.json,
    state.pth (after every epoch and on Ctrl-C), model.safetensors (the best network on points held
    out), log.jsonl and curves.png. With --device cpu the same options give the same bits. A run may
    continue on another device.
    """
    torch = import_extra("torch", extra="train")
    torch.set_num_threads(thread_count(threads))
    import_extra("hiernorm.learn.devices", extra="train").find_device(device)
    modules = {
        name: import_extra(f"hiernorm.learn.{name}", extra="train")
        for name in (
            "batches",
            "checkpoint",
            "export",
            "memory",
            "pictures",
            "quantization",
            "run",
            "settings",
            "train",
        )
    }
    if int8 and not export:
        raise click.UsageError("--int8 is for --export")
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if augment is not None:
        given["augment"] = tuple(name for name in augment.split(",") if name)
    runs = modules["run"]
    state = out / runs.STATE
    if resume:
        if data or given:
            raise click.UsageError("--resume continues with the run's own settings: give no others")
        settings = runs.begun_settings(out)
    else:
        if not data:
            raise click.UsageError("name a scene with --data, or continue a run with --resume")
        if state.exists():
            raise click.UsageError(f"{state} exists: --resume that run, or choose another --out")
        settings = modules["settings"].TrainingSettings(data=data, **given)
    if settings is None:
        run = runs.TrainingRun.load(out, device=device)
        sets = modules["batches"].load_sets(run.settings)
    else:
        sets = modules["batches"].load_sets(settings)
        runs.note_begun(out, settings)
        run = _start(runs, settings, sets[0], out, device)
    modules["memory"].keep_freed_memory()
    with _TrainingProgress() as progress:
        finished = modules["train"].train_network(run, sets, out, progress)
    if run.history:
        modules["pictures"].draw_curves(run.history, out / CURVES)
    if not finished:
        _stop(out, "continues")
    model = out / modules["train"].MODEL
    if export:
        modules["export"].export_network(modules["checkpoint"].load_network(model), out / "export")
    if int8:
        patches = (
            sets[0].sample(modules["quantization"].CALIBRATION_PATCHES).tensors()[:, 0].numpy()
        )
        content = (out / "export.onnx").read_bytes()
        quantized = modules["quantization"].quantize_onnx(content, patches)
        write_atomically(out / "export-int8.onnx", quantized)
    best = min(run.history, key=runs.merit)
    if as_json:
        click.echo(json.dumps({"model": str(model), "epochs": run.epoch, "best": best}))
        return
    click.echo(
        f"{model}: validation loss {best['validation_loss']:.4f} after epoch {best['epoch']} "
        f"of {run.epoch}"
    )


def _start(runs: Any, settings: Any, train_set: Any, out: Path, device: str) -> TrainingRun:
    """Start a run, which trains the last layers if that is asked for."""
    try:
        with progress_bar("last layers", "steps") as report:
            run: TrainingRun = runs.TrainingRun.start(settings, train_set, report, device=device)
    except KeyboardInterrupt:
        _stop(out, "trains the last layers from their start")
    return run


def _stop(out: Path, what: str) -> NoReturn:
    """Say what a run that was interrupted does when it is resumed."""
    click.echo(f"interrupted; `hiernorm train --resume --out {out}` {what}", err=True)
    raise click.exceptions.Exit(INTERRUPTED)


class _TrainingProgress:
    """A bar per epoch with loss, distances and speed; a line for each epoch that is done."""

    def __init__(self) -> None:
        self._bars = make_progress(MofNCompleteColumn())
        self._task = TaskID(0)

    def __enter__(self) -> _TrainingProgress:
        self._bars.start()
        self._task = self._bars.add_task("")
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def step(self, run: TrainingRun, steps: int) -> None:
        """Show a step."""
        text = f"epoch {run.epoch + 1} of {run.settings.total_epochs}  {_figures(run.means())}"
        self._bars.update(self._task, completed=run.step, total=steps, description=text)

    def epoch(self, run: TrainingRun) -> None:
        """Write a line."""
        record = run.history[-1]
        self._bars.console.print(
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
