"""Every architecture describes, turns, trains, is saved and exported like HardNet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs hiernorm[train]")

import torch
from safetensors.torch import save_file

from hiernorm.learn import (
    TrainingSettings,
    load_describer,
    load_network,
    load_weights,
    save_weights,
)
from hiernorm.learn.checkpoint import mean_weights, set_weights
from hiernorm.learn.export import encode_onnx
from hiernorm.learn.losses import distillation_loss, second_order_loss
from hiernorm.learn.network import ARCHITECTURES, HNTFeat, PatchNetwork, make_network
from hiernorm.learn.plain import PlainTFeat, load_plain
from hiernorm.models import Model
from patch_scenes import draw_patches


def network_of(architecture: str, norm: str = "hn") -> PatchNetwork:
    """A network with random weights, and statistics that are not those of the first day."""
    torch.manual_seed(0)
    network = make_network(architecture, 16, 1 / 8, norm)
    network.train()(patches(32))
    return network.eval()


def patches(count: int) -> torch.Tensor:
    return torch.from_numpy(draw_patches(count, 1)[0])[:, None].float() / 255


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.no_grad()
def test_a_turn_multiplies_the_features(architecture: str) -> None:
    network = network_of(architecture)
    rotation, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((128, 128)))
    before = network.embed(patches(4)).double().numpy()
    network.turn(rotation)
    after = network.embed(patches(4)).double().numpy()
    np.testing.assert_allclose(after, before @ rotation.T, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.no_grad()
def test_what_is_saved_comes_back_and_runs_as_onnx(architecture: str, tmp_path: Path) -> None:
    network = network_of(architecture)
    file = tmp_path / "model.safetensors"
    save_weights(file, network)
    loaded = load_network(file)
    assert loaded.architecture == architecture
    np.testing.assert_array_equal(loaded(patches(4)).numpy(), network(patches(4)).numpy())
    model = Model(encode_onnx(network), "test", threads=1)
    raw = draw_patches(4, 1)[0]
    np.testing.assert_allclose(
        model.describe(raw), network(patches(4)).numpy(), rtol=1e-2, atol=2e-3
    )


def test_a_model_of_the_package_is_a_start_for_training() -> None:
    import hiernorm

    network = make_network("hardnet", 16, 1 / 8, "hn")
    set_weights(network, load_weights("hn16"), "hn16")
    raw = draw_patches(4, 1)[0]
    with torch.no_grad():
        ours = network.eval()(patches(4)).numpy()
    shipped = hiernorm.load_model("hn16", threads=1).describe(raw)
    np.testing.assert_allclose(ours, shipped, rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_weights_of_others_are_told_apart_by_their_names(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tfeat, hard = PlainTFeat().eval(), HNTFeat(norm="l2").eval()
    save_file(tfeat.network.state_dict(), tmp_path / "tfeat.safetensors")
    theirs = {n: t for n, t in hard.state_dict().items() if not n.startswith("head")}
    save_file(theirs, tmp_path / "hardtfeat.safetensors")
    for name, network in (("tfeat", tfeat), ("hardtfeat", hard)):
        loaded = load_plain(tmp_path / f"{name}.safetensors")
        np.testing.assert_array_equal(loaded(patches(4)).numpy(), network(patches(4)).numpy())
        described = load_describer(f"{name}={tmp_path / name}.safetensors", threads=1)
        assert described.name == name
        np.testing.assert_allclose(
            described(draw_patches(4, 1)[0]).descriptors, network(patches(4)).numpy(), atol=1e-6
        )


def test_training_from_hardtfeats_weights_starts_with_the_identity(tmp_path: Path) -> None:
    from hiernorm.learn.run import TrainingRun

    torch.manual_seed(0)
    theirs = {n: t for n, t in HNTFeat().state_dict().items() if not n.startswith("head")}
    save_file(theirs, tmp_path / "weights.safetensors")
    assert set(load_weights(tmp_path / "weights.safetensors")) == set(theirs)
    settings = TrainingSettings(
        data=("x",), architecture="tfeat", init=str(tmp_path / "weights.safetensors"), norm="l2"
    )
    network = TrainingRun.start(settings, None).network  # type: ignore[arg-type]
    assert torch.equal(network.head.weight[:, :, 0, 0], torch.eye(128))
    assert torch.equal(network.features[0].weight, theirs["features.0.weight"])


def test_distillation_does_not_mind_offset_and_scale_of_distances() -> None:
    torch.manual_seed(0)
    rows = torch.nn.functional.normalize(torch.randn(2, 20, 8), dim=-1)
    products = rows[0] @ rows[1].T
    apart = (2 - 2 * products).sqrt()
    shrunk = 1 - (0.1 + 0.5 * apart) ** 2 / 2  # distances of 0.1 + half of theirs
    assert distillation_loss(products, shrunk[None]).item() < 1e-8
    other = torch.nn.functional.normalize(torch.randn(2, 20, 8), dim=-1)
    assert distillation_loss(products, (other[0] @ other[1].T)[None]).item() > 1


def test_second_order_loss_compares_distances_among_rows() -> None:
    torch.manual_seed(0)
    rows = torch.nn.functional.normalize(torch.randn(10, 8), dim=-1)
    turn, _ = torch.linalg.qr(torch.randn(8, 8))
    assert second_order_loss(rows, rows @ turn).item() < 1e-3
    assert second_order_loss(rows, rows.roll(1, 0)).item() > 0.05


def test_a_run_starts_from_the_mean_of_several_networks(tmp_path: Path) -> None:
    from hiernorm.learn.run import TrainingRun

    files = []
    for seed in range(2):
        torch.manual_seed(seed)
        files.append(tmp_path / f"{seed}.safetensors")
        save_weights(files[-1], HNTFeat(norm="l2"))
    settings = TrainingSettings(
        data=("x",), architecture="tfeat", norm="l2", init=tuple(str(file) for file in files)
    )
    mean = TrainingRun.start(settings, None).network.state_dict()  # type: ignore[arg-type]
    for name, tensor in mean.items():
        first, second = (load_weights(file)[name] for file in files)
        torch.testing.assert_close(tensor, (first + second) / 2)
    save_weights(tmp_path / "other.safetensors", make_network("hardnet", 16, 1 / 8, "l2"))
    with pytest.raises(ValueError, match="they have no mean"):
        mean_weights([files[0], tmp_path / "other.safetensors"])


@pytest.mark.parametrize("architecture", ["hardnet", "tfeat"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_body_and_head_make_the_whole_network(architecture: str, layers: int) -> None:
    network = make_network(architecture, 16, 1 / 8, "hn").eval()
    patches = torch.rand(3, 1, 64, 64)
    body, head = network.split(layers)
    with torch.no_grad():
        prepared = network.input(patches).to(memory_format=torch.channels_last)
        assert torch.equal(head(body(prepared)).flatten(1), network.embed(patches))
    assert sum(isinstance(module, torch.nn.Conv2d) for module in head) == layers


def test_a_network_whose_head_is_not_trained_alone_says_so() -> None:
    with pytest.raises(ValueError, match="trained of HardNet and TFeat, not HyNet"):
        make_network("hynet", 16, 1 / 8, "hn").split(1)
