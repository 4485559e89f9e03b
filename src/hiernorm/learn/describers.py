"""Describers of patches: models of the package, networks in files, descriptors of OpenCV."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hiernorm._deprecation import renamed_names
from hiernorm.array_types import Float32Array, UInt8Array
from hiernorm.extras import import_extra
from hiernorm.learn.opencv import WINDOWS, describe_opencv
from hiernorm.learn.sift import WINDOW, describe_sift
from hiernorm.models import Model, available_models, load_model
from hiernorm.threads import thread_count

CHUNK = 256
"""Patches that torch describes at a time."""

HAND_CRAFTED = ("sift", "rootsift")


@dataclass(frozen=True)
class PatchDescriptors:
    """Descriptors of all patches of a scene.

    Attributes
    ----------
    descriptors
        Unit vectors ``(n, d)``.
    features
        The vectors before normalisation, or None for a hand-crafted descriptor.
    major, alpha
        Parameters of the normalisation, or None for a plain one.
    """

    descriptors: Float32Array
    features: Float32Array | None = None
    major: int | None = None
    alpha: float | None = None


class Describer(Protocol):
    """A named function from patches to descriptors."""

    name: str

    def __call__(self, patches: UInt8Array) -> PatchDescriptors:
        """Describe uint8 patches ``(n, 64, 64)``."""


def load_describer(
    name: str, window: int = WINDOW, threads: int | None = None, progress: bool = False
) -> Describer:
    """Return the describer of this name.

    Parameters
    ----------
    name
        ``"sift"``, ``"rootsift"``; ``"vgg"``, ``"boostdesc"``, ``"beblid"``, ``"teblid"`` or
        ``"daisy"`` of OpenCV's contributed modules; a model that ships with the package; the path
        of an ``.onnx`` file or of a ``.safetensors`` file of ours (which needs torch); or
        ``"label=FILE"``, one of these files, or weights of a plain HardNet or TFeat.
    window
        Width of SIFT in pixels.
    threads, progress
        Threads of the model, and whether it shows a progress bar.

    Examples
    --------
    >>> load_describer("sift").name
    'sift-48'
    """
    if name in HAND_CRAFTED:
        return _Sift(name, window)
    if name in WINDOWS:
        return _OpenCV(name)
    label, _, file = name.partition("=")
    if file:
        if Path(file).suffix == ".onnx":
            return _Network(load_model(file, threads=threads), progress, label)
        if Path(file).suffix == ".safetensors" and _says_norm(Path(file)):
            return _Network(_load_safetensors(Path(file), threads), progress, label)
        return _Plain(label, Path(file), threads)
    if name in available_models() or Path(name).suffix == ".onnx":
        return _Network(load_model(name, threads=threads), progress)
    if Path(name).suffix == ".safetensors":
        return _Network(_load_safetensors(Path(name), threads), progress)
    choices = (*HAND_CRAFTED, *WINDOWS, *available_models())
    raise ValueError(
        f"no model {name!r}: give one of {', '.join(choices)}, an .onnx or .safetensors file, "
        "or label=FILE for weights of a plain network"
    )


class _Sift:
    def __init__(self, name: str, window: int) -> None:
        self.name = f"{name}-{window}"
        self._window = window
        self._root = name == "rootsift"

    def __call__(self, patches: UInt8Array) -> PatchDescriptors:
        return PatchDescriptors(describe_sift(patches, self._window, self._root))


class _OpenCV:
    def __init__(self, name: str) -> None:
        self.name = f"{name}-{WINDOWS[name]}"
        self._kind = name

    def __call__(self, patches: UInt8Array) -> PatchDescriptors:
        return PatchDescriptors(describe_opencv(patches, self._kind))


class _Plain:
    """A plain network in torch."""

    def __init__(self, label: str, file: Path, threads: int | None) -> None:
        self.name = label
        self._torch = import_extra("torch", extra="train")
        self._torch.set_num_threads(thread_count(threads))
        self._network = import_extra("hiernorm.learn.plain", extra="train").load_plain(file)

    def __call__(self, patches: UInt8Array) -> PatchDescriptors:
        torch = self._torch
        with torch.no_grad():
            chunks = torch.split(torch.from_numpy(patches)[:, None], CHUNK)
            rows = torch.cat([self._network(c.to(torch.float32) / 255) for c in chunks])
        return PatchDescriptors(rows.numpy())


class _Network:
    def __init__(self, model: Model, progress: bool, name: str | None = None) -> None:
        self._model = model
        self._progress = progress
        self.name = name or model.name

    def __call__(self, patches: UInt8Array) -> PatchDescriptors:
        model = self._model
        features = model.features(patches, progress=self._progress)
        return PatchDescriptors(model.normalize(features), features, model.major, model.alpha)


def _says_norm(path: Path) -> bool:
    """Whether a safetensors file is a network of ours, which may be none with unit vectors."""
    checkpoint = import_extra("hiernorm.learn.checkpoint", extra="train")
    return bool(checkpoint.says_norm(path))


def _load_safetensors(path: Path, threads: int | None) -> Model:
    """Load a network through the ONNX graph that it would ship as: one way to describe."""
    checkpoint = import_extra("hiernorm.learn.checkpoint", extra="train")
    export = import_extra("hiernorm.learn.export", extra="train")
    content = export.encode_onnx(checkpoint.load_network(path))
    return Model(content, name=path.stem, threads=threads)


__getattr__ = renamed_names(__name__, {"Description": "hiernorm.learn.describers:PatchDescriptors"})
