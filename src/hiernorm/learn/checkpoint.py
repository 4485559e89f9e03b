"""Weights and training states on disk: written whole or not at all, read with clear errors."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import torch
from kornia.core.download import load_state_dict_from_url
from kornia.feature.hardnet import urls
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from hiernorm.learn.network import HNHardNet

PRETRAINED = {"liberty": "liberty_aug", "hardnet++": "hardnet++"}
"""Official weights by the names that ``init`` takes, and kornia's names of them."""


METADATA = "hiernorm"
"""The entry of a safetensors file's metadata that says what the network is, as JSON."""


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, even if the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write a training state: tensors, numbers, strings, and lists and dicts of them."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_atomically(path, buffer.getvalue())


def load_state(path: Path) -> dict[str, Any]:
    """Read what :func:`save_state` wrote, or an official checkpoint; no code in it is run."""
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # an unpickler may raise anything on bytes that are no pickle
        raise ValueError(f"{path} is no complete torch checkpoint: {error}") from error
    if not isinstance(state, dict):
        raise ValueError(f"{path} must hold a dict, got {type(state).__name__}")
    return state


def save_weights(path: Path, network: HNHardNet, half: bool = False) -> None:
    """Write the network as safetensors, with norm, major and alpha as its metadata."""
    tensors = {
        name: t.to(torch.float16 if half and t.is_floating_point() else t.dtype).contiguous()
        for name, t in network.state_dict().items()
    }
    # One entry: safetensors writes several in any order, and equal networks deserve equal bytes.
    metadata = {METADATA: json.dumps(describe_network(network))}
    write_atomically(path, save(tensors, metadata=metadata))


def describe_network(network: HNHardNet) -> dict[str, str]:
    """Return what must be known besides the weights, as strings."""
    if network.norm == "l2":
        return {"norm": "l2"}
    return {"norm": "hn", "major": str(network.major), "alpha": repr(network.alpha)}


def load_weights(source: str | Path) -> dict[str, Tensor]:
    """Return HardNet's weights, float32, from a file or by an official name.

    Parameters
    ----------
    source
        A ``.safetensors`` file of ours; an official ``.pth``, which has them under
        ``state_dict``; or ``"liberty"`` or ``"hardnet++"``, which kornia downloads.
    """
    if str(source) in PRETRAINED:
        state = _download(PRETRAINED[str(source)])
    elif Path(source).suffix == ".safetensors":
        return _read_safetensors(Path(source))[0]
    else:
        state = load_state(Path(source))
    weights = state.get("state_dict", state)
    return {name: t.float() if t.is_floating_point() else t for name, t in weights.items()}


def load_network(source: str | Path) -> HNHardNet:
    """Return the network of a ``.safetensors`` file of ours, ready to describe.

    Examples
    --------
    >>> network = load_network("run/model.safetensors")  # doctest: +SKIP
    """
    weights, metadata = _read_safetensors(Path(source))
    if metadata.get("norm") == "l2":
        network = HNHardNet(norm="l2")
    elif metadata.get("norm") == "hn":
        network = HNHardNet(int(metadata["major"]), float(metadata["alpha"]))
    else:
        raise ValueError(f"{source} does not say its normalisation; use load_weights")
    set_weights(network, weights, source)
    return network.eval()


def set_weights(network: HNHardNet, weights: dict[str, Tensor], source: str | Path) -> None:
    """Put weights into a network; the error names where they came from."""
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"{source} has no weights of HardNet: {error}") from error


def _read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = json.loads((file.metadata() or {}).get(METADATA, "{}"))
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no complete safetensors file: {error}") from error
    return {n: t.float() if t.is_floating_point() else t for n, t in tensors.items()}, metadata


def _download(name: str) -> dict[str, Any]:
    """Fetch official weights as kornia does, into torch's cache."""
    try:
        state: dict[str, Any] = load_state_dict_from_url(urls[name], map_location="cpu")
    except RuntimeError as error:
        raise ConnectionError(
            f"could not download the weights {name!r}; give the path of a file instead: {error}"
        ) from error
    return state
