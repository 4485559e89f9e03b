"""Weights and training states on disk: written whole or not at all, read with clear errors."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from kornia.feature.hardnet import urls
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from hiernorm._files import write_atomically
from hiernorm.extras import import_extra
from hiernorm.learn.network import NORMS, PatchNetwork, make_network
from hiernorm.models import available_models
from hiernorm.models.model import read_model

PRETRAINED = {"liberty": "liberty_aug", "hardnet++": "hardnet++"}
"""Official weights by the names that ``init`` takes, and kornia's names of them."""


DEFAULT = "hardnet"
"""The architecture of files that name none."""

METADATA = "hiernorm"
"""The entry of a safetensors file's metadata that says what the network is, as JSON."""


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


def save_weights(path: Path, network: PatchNetwork) -> None:
    """Write the network as safetensors, with norm, major and alpha as its metadata."""
    tensors = {name: tensor.cpu().contiguous() for name, tensor in network.state_dict().items()}
    # One entry: safetensors writes several in any order, and equal networks deserve equal bytes.
    metadata = {METADATA: json.dumps(describe_network(network))}
    write_atomically(path, save(tensors, metadata=metadata))


def describe_network(network: PatchNetwork) -> dict[str, str]:
    """Return what must be known besides the weights, as strings."""
    described = {} if network.architecture == DEFAULT else {"architecture": network.architecture}
    if network.norm == "l2":
        return {**described, "norm": "l2"}
    hierarchy = {"major": str(network.major), "alpha": repr(network.alpha)}
    return {**described, "norm": "hn", **hierarchy}


def load_weights(source: str | Path) -> dict[str, Tensor]:
    """Return HardNet's weights, float32, from a file or by an official name.

    Parameters
    ----------
    source
        A model that ships with the package, or an ``.onnx`` or ``.safetensors`` file of ours; an
        official ``.pth``, which has them under ``state_dict``; or ``"liberty"`` or
        ``"hardnet++"``, which kornia downloads.
    """
    if _is_onnx(source):
        return _read_onnx(source)[0]
    if str(source) in PRETRAINED:
        state = _download(PRETRAINED[str(source)])
    elif Path(source).suffix == ".safetensors":
        return _read_safetensors(source)[0]
    elif not Path(source).suffix and not Path(source).exists():
        raise ValueError(
            f"no weights {str(source)!r}: expected a file, {' or '.join(map(repr, PRETRAINED))}, "
            f"or a model of the package ({', '.join(available_models())})"
        )
    else:
        state = load_state(Path(source))
    weights = state.get("state_dict", state)
    return {name: t.float() if t.is_floating_point() else t for name, t in weights.items()}


def mean_weights(sources: Sequence[str | Path]) -> dict[str, Tensor]:
    """Return the mean of several networks' weights, each as :func:`load_weights` takes it.

    Networks that were trained from the same start with other seeds have a mean that is at least as
    good as each, if their statistics of batch normalisation were frozen.
    """
    first, *others = (load_weights(source) for source in sources)
    for source, weights in zip(sources[1:], others, strict=True):
        if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in first.items()}:
            raise ValueError(f"{source} has other weights than {sources[0]}: they have no mean")
    return {
        name: torch.stack([t, *(weights[name] for weights in others)]).mean(dim=0)
        if t.is_floating_point()
        else t
        for name, t in first.items()
    }


def load_network(source: str | Path) -> PatchNetwork:
    """Return a network, ready to describe.

    Parameters
    ----------
    source
        A model that ships with the package, or an ``.onnx`` or ``.safetensors`` file of ours.

    Examples
    --------
    >>> load_network("hn8").normalization
    HierarchicalNorm(major=8, alpha=0.03125)
    """
    read = _read_onnx if _is_onnx(source) else _read_safetensors
    weights, metadata = read(source)
    if metadata.get("norm") not in NORMS:
        raise ValueError(
            f"{source} does not say its normalisation: it is not a network of hiernorm; give "
            "weights of others as label=FILE, or read them by load_weights"
        )
    network = make_network(
        metadata.get("architecture", DEFAULT),
        int(metadata.get("major", 16)),
        float(metadata.get("alpha", 1 / 8)),
        metadata["norm"],
    )
    set_weights(network, weights, source)
    return network.eval()


def says_norm(path: Path) -> bool:
    """Whether a safetensors file is a network of ours: it says how descriptors are normalised."""
    return _read_safetensors(path)[1].get("norm") in NORMS


def set_weights(network: PatchNetwork, weights: dict[str, Tensor], source: str | Path) -> None:
    """Put weights into a network; the error names where they came from."""
    try:
        network.load_state_dict(network.complete_weights(weights))
    except RuntimeError as error:
        reason = shorten(" ".join(str(error).split()), 300, placeholder=" ...")
        raise ValueError(f"{source} has no weights of {network.title}: {reason}") from error


def _is_onnx(source: str | Path) -> bool:
    return str(source) in available_models() or Path(source).suffix == ".onnx"


def _read_safetensors(source: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = json.loads((file.metadata() or {}).get(METADATA, "{}"))
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no complete safetensors file: {error}") from error
    return {n: t.float() if t.is_floating_point() else t for n, t in tensors.items()}, metadata


def _read_onnx(source: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return what :func:`hiernorm.learn.export_network` put into an ONNX file."""
    onnx = import_extra("onnx", extra="train")
    try:
        model = onnx.load_from_string(read_model(source))
    except OSError:
        raise
    except Exception as error:  # protobuf's errors have no common public base
        raise ValueError(f"{source} is no complete ONNX model: {error}") from error
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    if metadata.get("weights") == "int8":
        name = Path(source).stem
        raise ValueError(f"{name} has weights of 8 bits: start from {name.removesuffix('-int8')}")
    weights = {}
    for tensor in model.graph.initializer:
        name = tensor.name.removeprefix("network.").removesuffix(".half")
        weights[name] = torch.from_numpy(onnx.numpy_helper.to_array(tensor).astype("float32"))
        if name.endswith("running_mean"):
            count = name.replace("running_mean", "num_batches_tracked")
            weights[count] = torch.tensor(0)
    return weights, metadata


def _download(name: str) -> dict[str, Any]:
    """Fetch official weights from where kornia has them, into torch's cache."""
    found: str | list[str] = urls[name]  # by kornia's version, one place or several
    failures = []
    for place in [found] if isinstance(found, str) else found:
        try:
            state: dict[str, Any] = torch.hub.load_state_dict_from_url(
                place, map_location="cpu", weights_only=True
            )
            return state
        except (OSError, RuntimeError) as error:
            failures.append(f"{place}: {error}")
    raise ConnectionError(
        f"could not download the weights {name!r}; give the path of a file instead: "
        + "; ".join(failures)
    )
