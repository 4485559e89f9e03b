"""HNHardNet is kornia's HardNet but for the normalisation, and reads weights from anywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from kornia.feature import HardNet
from safetensors.torch import save_file

import hiernorm
from hiernorm.learn import HNHardNet, load_network, load_weights, rotate_network, save_weights
from hiernorm.learn.network import PatchInput
from patch_scenes import draw_patches, random_patches
from random_networks import random_network


def patch_tensor(n: int, size: int = 64) -> torch.Tensor:
    return torch.from_numpy(random_patches(n, size=size))[:, None].float() / 255


@torch.no_grad()
def test_l2_equals_kornia() -> None:
    ours = random_network("l2")
    kornias = HardNet(pretrained=False).eval()
    kornias.load_state_dict(ours.state_dict())
    patches = patch_tensor(7, 32)
    assert torch.equal(ours(patches), kornias(patches))


@torch.no_grad()
def test_hn_normalises_the_same_features() -> None:
    network = random_network(major=8, alpha=1 / 32)
    patches = patch_tensor(5)
    expected = hiernorm.normalize(network.embed(patches).numpy(), 8, 1 / 32)
    np.testing.assert_allclose(network(patches).numpy(), expected, rtol=1e-6, atol=1e-7)


def test_patches_are_halved_by_means_and_standardised() -> None:
    patches = random_patches(3).astype(np.float64)
    halves = patches.reshape(3, 32, 2, 32, 2).mean(axis=(2, 4))
    expected = halves - halves.mean(axis=(1, 2), keepdims=True)
    expected /= halves.std(axis=(1, 2), keepdims=True, ddof=1)
    ours = PatchInput()(torch.from_numpy(patches)[:, None].float())
    np.testing.assert_allclose(ours[:, 0].numpy(), expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_brightness_and_contrast_do_not_matter() -> None:
    network = random_network()
    patches = patch_tensor(4)
    torch.testing.assert_close(network(3 * patches + 0.5), network(patches), rtol=0, atol=1e-4)


@pytest.mark.parametrize("shape", [(2, 1, 48, 48), (2, 3, 32, 32), (2, 32, 32), (2, 1, 32, 64)])
def test_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="patches must"):
        random_network()(torch.zeros(shape))


def test_loads_official_checkpoints(tmp_path: Path) -> None:
    weights = random_network("l2").state_dict()
    torch.save({"epoch": 9, "state_dict": weights}, tmp_path / "checkpoint_liberty_with_aug.pth")
    torch.save(weights, tmp_path / "bare.pth")
    for name in ("checkpoint_liberty_with_aug.pth", "bare.pth"):
        loaded = load_weights(tmp_path / name)
        assert all(torch.equal(loaded[k], weights[k]) for k in weights)
        HNHardNet().load_state_dict(loaded)


def test_downloads_through_kornia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = random_network("l2").state_dict()
    (tmp_path / "checkpoints").mkdir()
    torch.save({"state_dict": weights}, tmp_path / "checkpoints/checkpoint_liberty_with_aug.pth")
    monkeypatch.setattr("torch.hub._hub_dir", str(tmp_path))
    assert torch.equal(load_weights("liberty")["features.0.weight"], weights["features.0.weight"])


@pytest.mark.parametrize("norm", ["hn", "l2"])
def test_own_weights_come_back(tmp_path: Path, norm: str) -> None:
    network = random_network(norm, major=8, alpha=1 / 32)
    save_weights(tmp_path / "n.safetensors", network)
    again = load_network(tmp_path / "n.safetensors")
    patches = patch_tensor(3)
    assert repr(again) == repr(network)
    assert torch.equal(again(patches), network(patches))


def test_bad_weights_have_their_errors(tmp_path: Path) -> None:
    network = random_network()
    save_weights(tmp_path / "whole.safetensors", network)
    content = (tmp_path / "whole.safetensors").read_bytes()
    (tmp_path / "short.safetensors").write_bytes(content[:-100])
    with pytest.raises(ValueError, match=r"short\.safetensors is no complete safetensors file"):
        load_network(tmp_path / "short.safetensors")
    save_file({"a": torch.zeros(1)}, tmp_path / "bare.safetensors")
    with pytest.raises(ValueError, match="does not say its normalisation"):
        load_network(tmp_path / "bare.safetensors")
    save_file(
        {"a": torch.zeros(1)},
        tmp_path / "other.safetensors",
        metadata={"hiernorm": '{"norm": "l2"}'},
    )
    with pytest.raises(ValueError, match=r"other\.safetensors has no weights of HardNet"):
        load_network(tmp_path / "other.safetensors")
    (tmp_path / "text.pth").write_text("hello")
    with pytest.raises(ValueError, match=r"text\.pth is no complete torch checkpoint"):
        load_weights(tmp_path / "text.pth")
    with pytest.raises(FileNotFoundError, match=r"no such file: .*none\.pth"):
        load_weights(tmp_path / "none.pth")
    with pytest.raises(ValueError, match=r"no weights 'hardnett': expected a file, .*hn16"):
        load_weights("hardnett")


@torch.no_grad()
def turned(method: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Features of 40 points with 3 patches each, before and after a rotation for K=8."""
    network = random_network(major=8)
    patches, points = draw_patches(40, 3)
    tensor = torch.from_numpy(patches)[:, None]
    before = network.embed(tensor.float() / 255).double()
    rotate_network(network, tensor, points, method)
    return before, network.embed(tensor.float() / 255).double()


def unit(rows: torch.Tensor) -> torch.Tensor:
    return rows / rows.norm(dim=1, keepdim=True)


def test_pca_keeps_inner_products_and_fills_the_major() -> None:
    before, after = turned("pca")
    scale = float((before @ before.T).abs().max())
    torch.testing.assert_close(after @ after.T, before @ before.T, rtol=0, atol=1e-4 * scale)
    energies = unit(after).square().mean(dim=0)
    assert (energies[:-1] >= energies[1:] - 1e-9).all()
    moment = unit(before).T @ unit(before) / len(before)
    top = torch.linalg.eigvalsh(moment).flip(0)[:8].sum()
    assert float(energies[:8].sum()) == pytest.approx(float(top), rel=1e-4)


def test_lda_separates_points_in_the_major_and_keeps_the_rest_in_the_minor() -> None:
    before, after = turned("lda")

    def separation(rows: torch.Tensor) -> float:
        """Between-point over within-point variance of the major."""
        major = (rows[:, :8] / before.norm(dim=1, keepdim=True)).reshape(40, 3, 8)
        within = (major - major.mean(dim=1, keepdim=True)).square().sum()
        return float(major.mean(dim=1).square().sum() / within)

    assert separation(after) > 2 * separation(before)
    # The map is linear and loses nothing; its minor is an orthogonal projection.
    solved = torch.linalg.lstsq(after, before, driver="gelsd")
    torch.testing.assert_close(after @ solved.solution, before, rtol=0, atol=1e-3)
    assert float(after[:, 8:].norm()) <= float(before.norm()) * (1 + 1e-6)
