"""Models describe patches without torch, as torch would, and each bad input has its error."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from click.testing import CliRunner

import hiernorm
from hiernorm.cli.app import app
from hiernorm.learn import export_network, load_network
from hiernorm.learn.quantization import quantize_onnx
from hiernorm.models import Model
from patch_scenes import random_patches
from random_networks import random_network
from support import assert_same_bits

MODELS = hiernorm.available_models()
MEGABYTE = 10**6


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path, without suffix, of a network with random weights."""
    path = tmp_path_factory.mktemp("models") / "random"
    export_network(random_network(major=8, alpha=1 / 32), path)
    return path


def test_four_models_ship_once_each_with_cards_in_less_than_10_megabytes() -> None:
    assert MODELS == ["hardnet", "hn16", "hn16-int8", "hn8"]
    files = list(resources.files("hiernorm.models").iterdir())
    sizes = [len(f.read_bytes()) for f in files if f.name.endswith((".onnx", ".safetensors"))]
    assert len(sizes) == 4
    assert sum(sizes) < 10 * MEGABYTE
    for name in MODELS:
        card = (resources.files("hiernorm.models") / f"{name}.md").read_text(encoding="utf-8")
        for word in ("castle", "brighton", "hiernorm train", "FPR@95", "licence"):
            assert word in card, (name, word)


@pytest.mark.parametrize("name", [m for m in MODELS if m != "hn16-int8"])
def test_shipped_models_equal_their_weights_in_torch(name: str) -> None:
    model = hiernorm.load_model(name)
    network = load_network(name)
    patches = random_patches(6)
    with torch.no_grad():
        expected = network(torch.from_numpy(patches)[:, None].float() / 255).numpy()
    np.testing.assert_allclose(model.describe(patches), expected, rtol=0, atol=2e-5)
    splits = {"hardnet": (None, None), "hn16": (16, 1 / 8), "hn8": (8, 1 / 32)}
    assert (model.major, model.alpha) == splits[name]


def test_8_bits_change_descriptors_by_little_and_are_no_start_for_training() -> None:
    patches = random_patches(40)
    exact, coarse = (hiernorm.load_model(name).describe(patches) for name in ("hn16", "hn16-int8"))
    assert 0.95 < (exact * coarse).sum(axis=1).mean() < 1
    with pytest.raises(ValueError, match="hn16-int8 has weights of 8 bits: start from hn16"):
        load_network("hn16-int8")


def test_quantization_gives_the_same_bytes_again(exported: Path) -> None:
    content = exported.with_suffix(".onnx").read_bytes()
    first, second = (quantize_onnx(content, random_patches(64)) for _ in range(2))
    assert first == second
    model = Model(first, "random", threads=1)
    assert (model.major, model.alpha) == (8, 1 / 32)


@pytest.mark.parametrize("name", MODELS)
def test_shipped_models_tell_points_apart(name: str) -> None:
    """Two noisy views of a picture are nearer than views of different ones."""
    rng = np.random.default_rng(0)
    coarse = rng.uniform(60, 200, (40, 16, 16)).repeat(4, axis=1).repeat(4, axis=2)
    views = [np.clip(coarse + rng.normal(0, 8, coarse.shape), 0, 255) for _ in range(2)]
    first, second = (hiernorm.load_model(name).describe(v.astype(np.uint8)) for v in views)
    np.testing.assert_array_equal((first @ second.T).argmax(axis=1), np.arange(40))


@pytest.mark.parametrize("name", [m for m in MODELS if m != "hardnet"])
def test_descriptors_go_straight_into_an_index(name: str) -> None:
    model = hiernorm.load_model(name)
    descriptors = model.describe(random_patches(50))
    assert descriptors.dtype == np.float32
    index = hiernorm.Index(128, major=model.major, alpha=model.alpha)
    index.add(descriptors)
    hits = index.search(descriptors, k=1)
    np.testing.assert_array_equal(hits.ids[:, 0], np.arange(50))
    assert hits.certificate.exact.all()
    assert_same_bits(
        descriptors,
        hiernorm.normalize(model.features(random_patches(50)), model.major, model.alpha),
    )


def test_onnx_and_torch_agree(exported: Path) -> None:
    model = hiernorm.load_model(exported.with_suffix(".onnx"))
    network = load_network(exported.with_suffix(".onnx"))
    patches = random_patches(9)
    with torch.no_grad():
        tensor = torch.from_numpy(patches)[:, None].float() / 255
        np.testing.assert_allclose(
            model.features(patches), network.embed(tensor).numpy(), rtol=0, atol=1e-4
        )
        np.testing.assert_allclose(
            model.describe(patches), network(tensor).numpy(), rtol=0, atol=1e-5
        )
    assert repr(model) == "Model('random', norm='hn', major=8, alpha=0.03125)"


def test_batches_and_threads_change_no_bits(exported: Path) -> None:
    patches = random_patches(21)
    expected = hiernorm.load_model(exported.with_suffix(".onnx"), threads=1).describe(patches)
    for threads in (1, 2):
        model = hiernorm.load_model(exported.with_suffix(".onnx"), threads=threads)
        for batch_size in (1, 8, 100):
            assert_same_bits(model.describe(patches, batch_size=batch_size), expected)


def test_takes_patches_of_either_size_and_type(exported: Path) -> None:
    model = hiernorm.load_model(exported.with_suffix(".onnx"))
    small = random_patches(4, size=32)
    large = small.repeat(2, axis=1).repeat(2, axis=2)
    assert_same_bits(model.describe(small), model.describe(large))
    assert_same_bits(model.describe(large[:, np.newaxis]), model.describe(large))
    as_float = large.astype(np.float64) / 255
    np.testing.assert_allclose(model.describe(as_float), model.describe(large), rtol=0, atol=1e-5)
    assert model.describe(large[:0]).shape == (0, 128)


def test_shows_progress_when_asked(exported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = hiernorm.load_model(exported.with_suffix(".onnx"))
    patches = random_patches(3)
    assert_same_bits(model.describe(patches, progress=True), model.describe(patches))
    assert capsys.readouterr().out == ""


def test_bad_patches_have_their_errors(exported: Path) -> None:
    model = hiernorm.load_model(exported.with_suffix(".onnx"))
    for shape in ((64, 64), (2, 48, 48), (2, 64, 32), (2, 3, 64, 64)):
        with pytest.raises(ValueError, match=r"shape \(n, 64, 64\) or \(n, 32, 32\), got"):
            model.describe(np.zeros(shape, np.uint8))
    with pytest.raises(TypeError, match="patches must be uint8 or floats, got int32"):
        model.describe(np.zeros((2, 64, 64), np.int32))
    bad = np.zeros((3, 64, 64), np.float32)
    bad[1, 5, 5] = np.nan
    with pytest.raises(ValueError, match="patch 1 has NaN or infinity"):
        model.describe(bad)
    with pytest.raises(ValueError, match="batch_size"):
        model.describe(random_patches(1), batch_size=0)


def test_bad_models_have_their_errors(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="no model 'hn99': the package has hardnet, hn16, hn16-int8, hn8"
    ):
        hiernorm.load_model("hn99")
    with pytest.raises(FileNotFoundError, match=r"no such file: .*none\.onnx"):
        hiernorm.load_model(tmp_path / "none.onnx")
    content = exported.with_suffix(".onnx").read_bytes()
    (tmp_path / "short.onnx").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="short is no complete ONNX model"):
        hiernorm.load_model(tmp_path / "short.onnx")
    bare = onnx.load_from_string(content)
    del bare.metadata_props[:]
    onnx.save(bare, tmp_path / "bare.onnx")
    with pytest.raises(ValueError, match="bare does not say its normalisation"):
        hiernorm.load_model(tmp_path / "bare.onnx")


def test_describing_needs_no_torch() -> None:
    code = """
import sys
sys.modules["torch"] = None
import numpy as np, hiernorm
from hiernorm.learn import PhotoTour, make_pairs, load_describer
print(hiernorm.load_model("hn16", threads=1).describe(np.zeros((1, 64, 64), np.uint8)).shape)
try:
    from hiernorm.learn import HNHardNet
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "(1, 128)",
        "this needs torch: pip install 'hiernorm[train]'",
    ]


def test_a_device_that_is_not_here_is_an_error_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(ValueError, match=r"no device 'mps' for onnxruntime: .* has cpu"):
        hiernorm.load_model("hn8", device="mps")
    with pytest.raises(ValueError, match="device must be one of cpu, cuda, mps, got 'gpu'"):
        hiernorm.load_model("hn8", device="gpu")
    (tmp_path / "a.png").write_bytes(b"never read")
    line = ["describe", str(tmp_path / "a.png"), "-o", str(tmp_path / "new.hn")]
    result = CliRunner().invoke(app, [*line, "--device", "cuda"])
    assert result.exit_code == 1
    assert "no device 'cuda'" in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


def test_a_device_that_does_not_start_is_not_replaced_by_the_processor(monkeypatch):
    asked = []

    class WithoutLibraries(onnxruntime.InferenceSession):
        def __init__(self, content, options, providers):
            asked.append(providers)
            super().__init__(content, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "InferenceSession", WithoutLibraries)
    cuda, cpu = "CUDAExecutionProvider", "CPUExecutionProvider"
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [cuda, cpu])
    with pytest.raises(ValueError, match=f"could not start {cuda} for device 'cuda'"):
        hiernorm.load_model("hn8", device="cuda")
    assert asked == [[cuda, cpu]]
