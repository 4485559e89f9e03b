"""Training on another device: asked for by name, consistent, and free to move.

There is no such device here. PyTorch's device "meta" stands in for one: its tensors have shapes but
no values, and an operation on tensors of two devices is an error, as on a real machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from hiernorm.cli.app import app
from hiernorm.learn import TrainingRun, TrainingSettings, load_sets
from hiernorm.learn.devices import find_device
from hiernorm.learn.objective import Objective
from hiernorm.learn.run import STATE
from hiernorm.learn.train import take_step, validate
from patch_scenes import write_scene

ELSEWHERE = torch.device("cuda", 0)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> TrainingSettings:
    scene = write_scene(tmp_path_factory.mktemp("data") / "tiny")
    return TrainingSettings(data=(str(scene),), batch=8, validation=0.25, loss="hardest")


def test_devices_that_are_not_here_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert find_device("cuda:0") == ELSEWHERE
    with pytest.raises(ValueError, match=r"no device 'cuda:1' .*: it has cpu \(1\), cuda \(1\)$"):
        find_device("cuda:1")
    with pytest.raises(ValueError, match=r"no device 'mps'"):
        find_device("mps")
    for name in ("gpu", "xpu", ""):
        with pytest.raises(ValueError, match=f"one of cpu, cuda, mps, got '{name}'"):
            find_device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="cuda is here")
def test_the_command_refuses_a_missing_device_before_it_works(
    settings: TrainingSettings, tmp_path: Path
) -> None:
    line = ["train", "--data", settings.data[0], "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(app, [*line, "--device", "cuda"])
    assert result.exit_code == 1
    assert "no device 'cuda'" in result.stderr
    assert not (tmp_path / "run").exists()


def test_all_tensors_of_a_step_are_on_the_device(
    settings: TrainingSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = load_sets(settings)
    monkeypatch.setattr("hiernorm.learn.run.find_device", torch.device)
    monkeypatch.setattr(torch.Tensor, "item", lambda tensor: 1.0)  # there are no values
    run = TrainingRun.start(settings, sets[0], device="meta")
    assert run.device == torch.device("meta")
    objective = Objective(settings, run.device)
    take_step(run, sets[0], objective, steps=4)
    assert validate(run, sets[1], objective) == 1
    moments = run.optimizer.state[next(run.network.parameters())]
    assert moments["exp_avg"].device == run.device
    with pytest.raises(RuntimeError, match=r"device"):
        objective(run.network, sets[0].draw(settings, 0, 0))


def test_a_state_of_another_device_continues_here(
    settings: TrainingSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = load_sets(settings)
    run = TrainingRun.start(settings, sets[0])
    take_step(run, sets[0], Objective(settings), steps=4)
    with monkeypatch.context() as there:
        there.setattr(torch.serialization, "location_tag", lambda storage: str(ELSEWHERE))
        run.save(tmp_path)
    with pytest.raises(RuntimeError, match="deserialize object on a CUDA device"):
        torch.load(tmp_path / STATE, weights_only=True)
    moved = TrainingRun.load(tmp_path)
    assert moved.device == torch.device("cpu")
    for each in (run, moved):
        take_step(each, sets[0], Objective(settings), steps=4)
    same: Any = zip(run.network.parameters(), moved.network.parameters(), strict=True)
    for weights, loaded in same:
        np.testing.assert_array_equal(loaded.detach().numpy(), weights.detach().numpy())
