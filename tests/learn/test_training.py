"""Training learns, repeats itself bit for bit, and resumes as if it had never stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from hiernorm._files import write_atomically
from hiernorm.cli.app import app
from hiernorm.cli.exit_codes import INTERRUPTED
from hiernorm.learn import (
    PatchSet,
    TrainingRun,
    TrainingSettings,
    load_network,
    load_sets,
    load_weights,
    train_network,
)
from hiernorm.learn.run import BEGUN, STATE
from hiernorm.learn.train import LOG, MODEL, learning_rate
from patch_scenes import write_scene


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scene of 24 points with 4 patches each."""
    return write_scene(tmp_path_factory.mktemp("scenes") / "tiny")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """One thread of torch: steps this small only wait for more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Quiet:
    """Hears all and says nothing; interrupts the process after so many steps, if told to."""

    def __init__(self, interrupt_after: int = -1) -> None:
        self.losses: list[float] = []
        self._left = interrupt_after

    def step(self, run: TrainingRun, steps: int) -> None:
        self.losses.append(run.means()["loss"])
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGINT)

    def epoch(self, run: TrainingRun) -> None:
        pass


def settings_for(scene: Path, **changes: Any) -> TrainingSettings:
    """A run of seconds."""
    base: dict[str, Any] = {"epochs": 2, "batch": 16, "learning_rate": 1e-3, "validation": 0.25}
    return TrainingSettings(data=(str(scene),), **base | changes)


def train_fully(settings: TrainingSettings, out: Path) -> TrainingRun:
    """Train from the start to the end."""
    sets = load_sets(settings)
    run = TrainingRun.start(settings, sets[0])
    assert train_network(run, sets, out, Quiet())
    return run


def assert_same_weights(a: Path, b: Path) -> None:
    """Both files hold the same bits."""
    assert a.read_bytes() == b.read_bytes()


EVERYTHING = {
    "loss": "hardest",
    "augment": ("flips", "turns", "shifts"),
    "decay": "linear",
    "major_weight": 0.5,
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "l2", "loss": "hardest", "augment": ("flips", "turns", "shifts")},
        {"major": 8, "alpha": 1 / 32, **EVERYTHING},
        {"loss": "hardest", "fpr_weight": 0.3, "spread_weight": 1.0},
        {"loss": "hardest", "spread_weight": 1.0, "phase2_weight": 0.3},
    ],
)
def test_a_few_steps_reduce_the_loss(scene: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    run = train_fully(settings_for(scene, epochs=4, **changes), tmp_path)
    # Epoch 0 is the start, whose batch normalisation has no statistics yet.
    losses = [e["validation_loss"] for e in run.history[1:]]
    assert losses[-1] < losses[0] - 0.1 * abs(losses[0]) or losses[-1] < 0.05
    assert [e["epoch"] for e in run.history] == list(range(5))
    assert run.history[-1]["positive"] < run.history[-1]["negative"]
    logged = [json.loads(line) for line in (tmp_path / LOG).read_text().splitlines()]
    assert logged == run.history
    assert load_network(tmp_path / MODEL).major == run.settings.major


@pytest.mark.parametrize("stop_after", [3, 4, 6])
def test_an_interrupted_run_ends_as_an_unbroken_one(
    scene: Path, tmp_path: Path, stop_after: int
) -> None:
    settings = settings_for(scene, epochs=2, **EVERYTHING)
    whole = train_fully(settings, tmp_path / "whole")
    sets = load_sets(settings)
    steps = sets[0].steps(settings.batch)
    assert steps == 4  # stops lie within an epoch, at its end, and in the next
    broken = TrainingRun.start(settings, sets[0])
    assert not train_network(broken, sets, tmp_path / "broken", Quiet(stop_after))
    resumed = TrainingRun.load(tmp_path / "broken")
    assert (resumed.epoch, resumed.step) in ((0, 3), (0, 4), (1, 2))
    assert train_network(resumed, sets, tmp_path / "broken", Quiet())
    for name, value in whole.network.state_dict().items():
        assert torch.equal(resumed.network.state_dict()[name], value), name
    assert_same_weights(tmp_path / "whole" / MODEL, tmp_path / "broken" / MODEL)
    for a, b in zip(whole.history, resumed.history, strict=True):
        assert a | {"patches_per_second": 0} == b | {"patches_per_second": 0}


def test_a_killed_run_resumes_from_its_last_epoch(scene: Path, tmp_path: Path) -> None:
    settings = settings_for(scene, epochs=2)
    whole = train_fully(settings, tmp_path / "whole")
    command = [
        sys.executable,
        "-c",
        "from hiernorm.cli import main; main()",
        "train",
        "--data",
        str(scene),
        "--batch",
        "16",
    ]
    command += ["--threads", "1", "--learning-rate", "1e-3", "--validation", "1/4", "--epochs", "2"]
    killed = tmp_path / "killed"
    process = subprocess.Popen([*command, "--out", str(killed)], stderr=subprocess.PIPE)
    while not (killed / STATE).exists():
        assert process.poll() is None or (killed / STATE).exists()
        time.sleep(0.02)
    process.kill()
    process.communicate()
    resume = ["train", "--resume", "--threads", "1", "--out", str(killed), "--json"]
    result = CliRunner().invoke(app, resume)
    assert result.exit_code == 0, result.output
    state = TrainingRun.load(killed)
    best = min(state.history, key=lambda record: record["validation_loss"])
    told = {"model": str(killed / MODEL), "epochs": 2, "best": best}
    assert json.loads(result.stdout.splitlines()[-1]) == told
    for name, value in whole.network.state_dict().items():
        assert torch.equal(state.network.state_dict()[name], value), name


def test_a_run_stopped_while_its_last_layers_are_trained_begins_them_again(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["train", "--threads", "1"]
    new = ["--data", str(scene), "--batch", "16", "--validation", "1/4"]
    new += ["--head-epochs", "1", "--epochs", "1"]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hiernorm.learn.run.train_head", interrupt)
        stopped = CliRunner().invoke(app, [*command, *new, "--out", str(tmp_path / "stopped")])
    assert stopped.exit_code == INTERRUPTED
    assert "--resume" in stopped.stderr
    assert not (tmp_path / "stopped" / STATE).exists()
    for options in (["--resume", "--out", "stopped"], [*new, "--out", "whole"]):
        options[-1] = str(tmp_path / options[-1])
        result = CliRunner().invoke(app, [*command, *options])
        assert result.exit_code == 0, result.output
    assert_same_weights(tmp_path / "stopped" / MODEL, tmp_path / "whole" / MODEL)


def test_the_seed_decides_everything(scene: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train_fully(settings_for(scene, epochs=1, seed=seed, **EVERYTHING), tmp_path / name)
    assert_same_weights(tmp_path / "a" / MODEL, tmp_path / "b" / MODEL)
    assert (tmp_path / "a" / MODEL).read_bytes() != (tmp_path / "c" / MODEL).read_bytes()


def test_fine_tuning_starts_from_rotated_weights_and_keeps_the_teachers_distances(
    scene: Path, tmp_path: Path
) -> None:
    train_fully(settings_for(scene, norm="l2", epochs=1), tmp_path / "base")
    weights = str(tmp_path / "base" / MODEL)
    settings = settings_for(
        scene,
        init=weights,
        teacher=weights,
        distill_weight=5.0,
        rotate="lda",
        freeze_statistics=True,
        learning_rate=1e-4,
        epochs=1,
        **{**EVERYTHING, "augment": ()},
    )
    tuned = train_fully(settings, tmp_path / "tuned")
    before, after = load_weights(weights), tuned.network.state_dict()
    for name in ("running_mean", "running_var"):
        assert torch.equal(after[f"features.16.{name}"], before[f"features.16.{name}"])
    assert not torch.equal(after["features.0.weight"], before["features.0.weight"])


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_head_alone_learns_without_touching_the_rest(
    scene: Path, tmp_path: Path, layers: int
) -> None:
    train_fully(settings_for(scene, norm="l2", epochs=1), tmp_path / "base")
    weights = str(tmp_path / "base" / MODEL)
    plain: dict[str, Any] = {"init": weights, "major": 4, "alpha": 0.0, "epochs": 0}
    plain |= {"loss": "hardest", "rotate": "pca", "teacher": weights, "distill_weight": 1.0}
    plain |= {"augment": ("flips", "turns", "shifts"), "freeze_statistics": True}
    start = train_fully(settings_for(scene, **plain), tmp_path / "start")
    head = {"head_epochs": 3, "head_layers": layers, "head_views": 2}
    tuned = train_fully(settings_for(scene, **plain, **head), tmp_path / "a")
    again = train_fully(settings_for(scene, **plain, **head), tmp_path / "b")
    assert tuned.history[0]["validation_loss"] < start.history[0]["validation_loss"]
    assert_same_weights(tmp_path / "a" / MODEL, tmp_path / "b" / MODEL)
    before, after = load_weights(weights), tuned.network.state_dict()
    convolutions = [
        i for i, m in enumerate(tuned.network.features) if isinstance(m, torch.nn.Conv2d)
    ]
    trained = {f"features.{i}.weight" for i in convolutions[-layers:]}
    changed = {n for n in before if not torch.equal(before[n], after[n])}
    assert {n for n in changed if n.endswith("weight")} == trained
    assert {int(n.split(".")[1]) for n in changed} == {
        *convolutions[-layers:],
        len(tuned.network.features) - 1,  # the rotation changes the statistics behind the last
    }
    assert again.epoch == 0


def test_stops_when_the_validation_loss_has_plateaued(scene: Path, tmp_path: Path) -> None:
    run = train_fully(
        settings_for(scene, epochs=9, learning_rate=0.0, patience=2, freeze_statistics=True),
        tmp_path,
    )
    losses = [e["validation_loss"] for e in run.history]
    assert run.epoch < 9
    assert np.argmin(losses) == len(losses) - 3


def test_batches_pair_patches_of_a_point_and_hold_points_out(scene: Path) -> None:
    settings = settings_for(scene, validation=0.25)
    train_set, held_out = load_sets(settings)
    everything = {p.tobytes() for s in (train_set, held_out) for p in s.tensors().numpy()}
    assert len(train_set) + len(held_out) == len(everything) == 96
    anchors = []
    for step in range(train_set.steps(16)):
        batch = train_set.draw(settings, 0, step)
        assert not torch.equal(batch.anchor, batch.positive)
        for a, p, n in zip(batch.anchor, batch.positive, batch.negative, strict=True):
            assert (a - p).abs().mean() < (a - n).abs().mean()
        anchors += [a.numpy().tobytes() for a in batch.anchor]
    assert len(set(anchors)) == len(anchors)


def test_learning_rate_falls_as_told() -> None:
    for decay, middle in (("none", 1.0), ("linear", 0.5), ("cosine", 0.5)):
        settings = TrainingSettings(data=("x",), decay=decay, learning_rate=1.0, epochs=10)
        assert learning_rate(settings, 0) == 1
        assert learning_rate(settings, 5) == pytest.approx(middle)


def test_the_papers_recipe_is_the_default() -> None:
    settings = TrainingSettings(data=("notredame",))
    assert (settings.loss, settings.margin, settings.learning_rate) == ("triplet", 1.0, 1e-4)
    assert (settings.batch, settings.total_epochs, settings.major) == (32, 30, 16)
    assert TrainingSettings(data=("notredame",), major=8).total_epochs == 10
    assert TrainingSettings.from_json(settings.to_json()) == settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"head_layers": 4}, "head_layers must be 1, 2 or 3, got 4"),
        ({"data": ()}, "at least one scene"),
        ({"loss": "softmax"}, "loss must be one of triplet, hardest, got 'softmax'"),
        ({"augment": ("blur",)}, "augment takes flips, turns, shifts, frames, light, got 'blur'"),
        ({"architecture": "vgg"}, "architecture must be one of hardnet, hynet, tfeat, got 'vgg'"),
        ({"sampling": "views"}, "sampling must be one of patches, points, got 'views'"),
        ({"places_per_batch": 2}, "places_per_batch is for sampling 'points'"),
        ({"batch": 1}, "batch must be at least 2"),
        ({"validation": 1.0}, "validation must be a share between 0 and 1"),
        ({"distill_weight": 1.0}, "distill_weight needs a teacher"),
        ({"norm": "l2", "rotate": "pca"}, "'l2' has no major"),
        ({"norm": "l2", "spread_weight": 1.0}, "'l2' has no major"),
        ({"norm": "l2", "phase2_weight": 1.0}, "'l2' has no major"),
    ],
)
def test_impossible_settings_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainingSettings(**{"data": ("x",), **changes})


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_freed_memory_is_kept_where_glibc_is_there() -> None:
    import platform

    code = "from hiernorm.learn.memory import keep_freed_memory; print(keep_freed_memory())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(platform.libc_ver()[0] == "glibc")


def test_files_are_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_atomically(tmp_path / "a", b"before")

    def fail(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        write_atomically(tmp_path / "a", b"after")
    assert (tmp_path / "a").read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_bad_states_and_data_have_their_errors(scene: Path, tmp_path: Path) -> None:
    (tmp_path / STATE).write_bytes(b"no state")
    with pytest.raises(ValueError, match="is no complete torch checkpoint"):
        TrainingRun.load(tmp_path)
    torch.save({"epoch": 1}, tmp_path / STATE)
    with pytest.raises(ValueError, match="is no training state: it has no"):
        TrainingRun.load(tmp_path)
    with pytest.raises(ValueError, match="two points with two patches each, got 0 of 3 patches"):
        PatchSet(np.zeros((3, 64, 64), np.uint8), np.arange(3))


def test_the_command_trains_logs_draws_and_exports(scene: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["--data", str(scene), "--major", "8", "--alpha", "1/32", "--batch", "16"]
    options += [
        "--epochs",
        "1",
        "--augment",
        "flips,turns",
        "--validation",
        "1/4",
        "--export",
        "--int8",
    ]
    result = CliRunner().invoke(app, ["train", *options, "--out", str(out), "--threads", "1"])
    assert result.exit_code == 0, result.output
    assert "epoch   1" in result.output
    assert "patches/s" in result.output
    names = {BEGUN, STATE, MODEL, LOG, "curves.png", "export.onnx", "export-int8.onnx"}
    assert {p.name for p in out.iterdir()} == names
    assert (out / "curves.png").read_bytes()[:4] == b"\x89PNG"
    again = CliRunner().invoke(app, ["train", *options, "--out", str(out)])
    assert again.exit_code == 2
    assert "--resume that run, or choose another --out" in again.output
    mixed = CliRunner().invoke(app, ["train", "--resume", "--batch", "8", "--out", str(out)])
    assert "--resume continues with the run's own settings" in mixed.output
