"""`hiernorm train`: train a descriptor network on scenes of patches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.progress import MofNCompleteColumn, TaskID

from hiernorm._files import write_atomically
from hiernorm.cli.exit_codes import INTERRUPTED
from hiernorm.cli.options import JSON, SCENE, SHARE
from hiernorm.cli.progress import make_progress, progress_bar
from hiernorm.cli.requirements import needs
from hiernorm.extras import import_extra
from hiernorm.threads import thread_count

if TYPE_CHECKING:
    from hiernorm.learn.run import TrainingRun

CURVES = "curves.png"


@click.command()
@click.option(
    "--data",
    multiple=True,
    type=SCENE,
    help="Train on this scene, a folder or a zip. May be repeated.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the run.",
)
@click.option("--resume", is_flag=True, help="Continue the run in --out with its own settings.")
@click.option(
    "--architecture",
    type=click.Choice(["hardnet", "hynet", "tfeat"]),
    help="Architecture of the network [hardnet].",
)
@click.option(
    "--norm",
    type=click.Choice(["hn", "l2"]),
    help="Normalisation of the descriptors. l2 gives the plain baseline [hn].",
)
@click.option("--major", type=click.IntRange(1, 127), help="K, the size of the major [16].")
@click.option("--alpha", type=SHARE, help="The minor's share of energy [1/8].")
@click.option(
    "--init",
    multiple=True,
    metavar="WEIGHTS",
    help="Start from a file, a model of the package, 'liberty' or 'hardnet++'. Repeat it to start "
    "from the mean of several [random weights].",
)
@click.option("--loss", type=click.Choice(["triplet", "hardest"]), help="Loss function [triplet].")
@click.option("--fpr-weight", type=float, help="Weight of the logarithm of FPR@95 [0].")
@click.option("--margin", type=float, help="Margin of the loss [1.0].")
@click.option("--learning-rate", type=float, help="Learning rate of Adam [1e-4].")
@click.option(
    "--decay",
    type=click.Choice(["none", "linear", "cosine"]),
    help="Decay of the learning rate to zero [none].",
)
@click.option("--batch", type=click.IntRange(min=2), help="Number of pairs per batch [32].")
@click.option("--epochs", type=click.IntRange(min=0), help="Maximum epochs [30; 10 for K=8].")
@click.option(
    "--patience",
    type=click.IntRange(min=0),
    help="Stop after this many epochs without a better one. 0 means never [5].",
)
@click.option(
    "--augment",
    metavar="LIST",
    help="Augment patches by any of flips,turns,shifts,frames,light [none].",
)
@click.option(
    "--sampling",
    type=click.Choice(["patches", "points"]),
    help="Draw each patch once per epoch, or points balanced over scenes [patches].",
)
@click.option(
    "--places-per-batch",
    type=click.IntRange(min=0),
    help="With --sampling points: scenes per batch. 0 means all [0].",
)
@click.option(
    "--development",
    multiple=True,
    type=SCENE,
    help="Select the best epoch by FPR@95 on this scene. May be repeated.",
)
@click.option(
    "--shift",
    type=click.IntRange(min=1),
    help="With --augment shifts: maximum shift in pixels of 64 [2].",
)
@click.option("--validation", type=SHARE, help="Share of points held out [0.1].")
@click.option(
    "--rotate",
    type=click.Choice(["none", "pca", "lda"]),
    help="Rotate the last layer before training [none].",
)
@click.option("--major-weight", type=float, help="Weight of the same loss on the major alone [0].")
@click.option("--spread-weight", type=float, help="Weight of the spread of the majors [0].")
@click.option("--second-order-weight", type=float, help="Weight of SOSNet's regularisation [0].")
@click.option(
    "--teacher",
    multiple=True,
    metavar="WEIGHTS",
    help="Distil the distances of this plain network. May be repeated.",
)
@click.option("--distill-weight", type=float, help="Weight of the distillation loss [0].")
@click.option(
    "--freeze-statistics",
    is_flag=True,
    default=None,
    help="Keep the statistics of batch normalisation.",
)
@click.option(
    "--head-epochs",
    type=click.IntRange(min=0),
    help="Train the last layers alone for this many epochs first [0].",
)
@click.option(
    "--head-layers",
    type=click.IntRange(1, 3),
    help="Number of last layers that --head-epochs trains [1].",
)
@click.option(
    "--head-views",
    type=click.IntRange(1, 8),
    help="Variants of each patch in the training of the last layers [4].",
)
@click.option(
    "--head-patches",
    type=click.IntRange(min=2),
    help="Maximum patches in the training of the last layers; 100,000 take 1.6 GB per variant, or "
    "3.3 GB with --head-layers 3 [100000].",
)
@click.option(
    "--head-learning-rate", type=float, help="Learning rate of the last layers alone [1e-3]."
)
@click.option("--seed", type=int, help="Seed of everything random [0].")
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads [all processors].")
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="Device of torch: cpu, cuda, cuda:1 and so on, or mps. Only cpu is tested by us.",
)
@click.option("--export", is_flag=True, help="Also write the model as ONNX, for deployment.")
@click.option("--int8", is_flag=True, help="With --export: also write it with weights of 8 bits.")
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

    The defaults train HardNet as the paper does. The command writes into --out: state.pth (after
    every epoch and on Ctrl-C), model.safetensors (the best network on points held out), log.jsonl
    and curves.png. With --device cpu the same options give the same bits. A run may continue on
    another device.
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
    state = out / modules["run"].STATE
    if resume:
        if data or given:
            raise click.UsageError("--resume continues with the run's own settings: give no others")
        run = modules["run"].TrainingRun.load(out, device=device)
        sets = modules["batches"].load_sets(run.settings)
    else:
        if not data:
            raise click.UsageError("name a scene with --data, or continue a run with --resume")
        if state.exists():
            raise click.UsageError(f"{state} exists: --resume that run, or choose another --out")
        settings = modules["settings"].TrainingSettings(data=data, **given)
        sets = modules["batches"].load_sets(settings)
        with progress_bar("last layers", "steps") as report:
            run = modules["run"].TrainingRun.start(settings, sets[0], report, device=device)
    out.mkdir(parents=True, exist_ok=True)
    modules["memory"].keep_freed_memory()
    with _TrainingProgress() as progress:
        finished = modules["train"].train_network(run, sets, out, progress)
    if run.history:
        modules["pictures"].draw_curves(run.history, out / CURVES)
    if not finished:
        click.echo(f"interrupted; `hiernorm train --resume --out {out}` continues", err=True)
        raise click.exceptions.Exit(INTERRUPTED)
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
    best = min(run.history, key=modules["run"].merit)
    if as_json:
        click.echo(json.dumps({"model": str(model), "epochs": run.epoch, "best": best}))
        return
    click.echo(
        f"{model}: validation loss {best['validation_loss']:.4f} after epoch {best['epoch']} "
        f"of {run.epoch}"
    )


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
