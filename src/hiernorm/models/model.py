"""A trained network in an ONNX file: patches in, descriptors out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float32Array, UInt8Array
from hiernorm.arrays import as_count
from hiernorm.extras import import_extra
from hiernorm.normalize import normalize
from hiernorm.reference import canonical_norm
from hiernorm.threads import thread_count

SIZES = (32, 64)
"""Pixels of a patch, each way, that the networks take."""

BATCH = 128
"""Patches described at a time by default: more gains no speed and costs memory."""


PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "mps": "CoreMLExecutionProvider",
}
"""Devices, and what onnxruntime calls them."""


def available_models() -> list[str]:
    """Return the names of the models that ship with the package.

    Examples
    --------
    >>> import hiernorm
    >>> hiernorm.available_models()
    ['hardnet', 'hn16', 'hn16-int8', 'hn8']
    """
    folder = resources.files("hiernorm.models")
    return sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".onnx"))


def load_model(name: str | Path, *, threads: int | None = None, device: str = "cpu") -> Model:
    """Load a model that ships with the package, or an ONNX file that ``hiernorm train`` wrote.

    Parameters
    ----------
    name
        ``"hardnet"`` (plain), ``"hn16"`` (K=16, alpha=1/8, the recommended one), ``"hn16-int8"``
        (the same in 8 bits: faster), ``"hn8"`` (K=8, alpha=1/32), or the path of an ``.onnx`` file.
    threads
        Threads of onnxruntime; by default as many as an index uses.
    device
        One of :data:`PROVIDERS`: ``"cpu"``, ``"cuda"`` or ``"mps"``. Only the first is tested by
        us; descriptors of others may differ from its own in the last bits.

    Examples
    --------
    >>> import hiernorm
    >>> hiernorm.load_model("hn8")
    Model('hn8', norm='hn', major=8, alpha=0.03125)
    """
    content = read_model(name)
    return Model(content, Path(name).stem, threads=threads, device=device)


def read_model(name: str | Path) -> bytes:
    """Return the bytes of a model that ships with the package, or of an ONNX file."""
    if str(name) in available_models():
        return (resources.files("hiernorm.models") / f"{name}.onnx").read_bytes()
    path = Path(name)
    if path.suffix != ".onnx":
        raise ValueError(
            f"no model {str(name)!r}: the package has {', '.join(available_models())}; "
            "or give the path of an .onnx file"
        )
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    return path.read_bytes()


class Model:
    """A network that describes patches.

    Parameters
    ----------
    content
        The bytes of an ONNX file as :func:`hiernorm.learn.export_network` writes it.
    name
        Name of the model, also in errors.
    threads
        Threads of onnxruntime.
    device
        One of :data:`PROVIDERS`. ValueError if onnxruntime cannot use it here.

    Attributes
    ----------
    norm
        ``"hn"`` or ``"l2"``.
    major, alpha
        Parameters of an index for the descriptors; None for a plain model.
    digest
        SHA-256 of the file, which identifies the model of descriptors.
    nbytes
        Size of the file.
    """

    def __init__(
        self, content: bytes, name: str, *, threads: int | None = None, device: str = "cpu"
    ) -> None:
        runtime = import_extra("onnxruntime", extra="vision")
        providers = find_providers(device)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = thread_count(threads)
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = runtime.InferenceSession(content, options, providers=providers)
        except Exception as error:  # onnxruntime's own errors have no common public base
            raise ValueError(f"{name} is no complete ONNX model: {error}") from error
        # onnxruntime only warns, and takes the processor, if a device's libraries are missing.
        if providers[0] not in self._session.get_providers():
            raise ValueError(f"onnxruntime could not start {providers[0]} for device {device!r}")
        properties = self._session.get_modelmeta().custom_metadata_map
        if properties.get("norm") not in ("hn", "l2"):
            raise ValueError(f"{name} does not say its normalisation; it is no model of hiernorm")
        self.name = name
        self.nbytes = len(content)
        self.digest = hashlib.sha256(content).hexdigest()
        self.norm: str = properties["norm"]
        self.major = int(properties["major"]) if self.norm == "hn" else None
        self.alpha = float(properties["alpha"]) if self.norm == "hn" else None

    def __repr__(self) -> str:
        """Show what it is."""
        if self.norm == "l2":
            return f"Model({self.name!r}, norm='l2')"
        return f"Model({self.name!r}, norm='hn', major={self.major}, alpha={self.alpha:g})"

    def describe(
        self, patches: npt.ArrayLike, *, batch_size: int = BATCH, progress: bool = False
    ) -> Float32Array:
        """Describe patches by unit vectors, ready for an index.

        Parameters
        ----------
        patches
            ``(n, 64, 64)`` or ``(n, 32, 32)``, grey: uint8, or floats of any range. The network
            removes brightness and contrast.
        batch_size
            Patches at a time.
        progress
            Show a bar on stderr.

        Returns
        -------
        float32 ``(n, 128)``. Those of an HN model have passed through
        :func:`hiernorm.normalize`, so parts have exactly the norms that an index expects.
        """
        return self.normalize(self.features(patches, batch_size=batch_size, progress=progress))

    def features(
        self, patches: npt.ArrayLike, *, batch_size: int = BATCH, progress: bool = False
    ) -> Float32Array:
        """Return what the network computes before normalisation, float32 ``(n, 128)``."""
        rows = as_patches(patches)
        batch_size = as_count("batch_size", batch_size)
        features = np.empty((len(rows), 128), np.float32)
        for start in _starts(len(rows), batch_size, progress):
            batch = network_input(rows[start : start + batch_size])
            (features[start : start + batch_size],) = self._session.run(
                ["features"], {"patches": batch}
            )
        return features

    def normalize(self, features: Float32Array) -> Float32Array:
        """Normalise features ``(n, 128)`` as this model's descriptors are."""
        if len(features) == 0:
            return features
        if self.major is not None and self.alpha is not None:
            return normalize(features, self.major, self.alpha)
        norms = canonical_norm(features)[:, np.newaxis]
        return (features.astype(np.float64) / np.maximum(norms, 1e-12)).astype(np.float32)


def find_providers(device: str) -> list[str]:
    """Return onnxruntime's names of a device and, for what it cannot do, of the processor.

    Examples
    --------
    >>> find_providers("cpu")
    ['CPUExecutionProvider']
    """
    if device not in PROVIDERS:
        raise ValueError(f"device must be one of {', '.join(PROVIDERS)}, got {device!r}")
    available = import_extra("onnxruntime", extra="vision").get_available_providers()
    if PROVIDERS[device] not in available:
        found = ", ".join(name for name, provider in PROVIDERS.items() if provider in available)
        raise ValueError(
            f"no device {device!r} for onnxruntime: this build of it has {found}"
            + (" (onnxruntime-gpu has cuda)" if device == "cuda" else "")
        )
    return list(dict.fromkeys((PROVIDERS[device], PROVIDERS["cpu"])))


def as_patches(patches: npt.ArrayLike) -> UInt8Array | Float32Array:
    """Return patches as ``(n, size, size)``, uint8 or finite float32, or raise.

    Examples
    --------
    >>> as_patches(np.zeros((2, 1, 64, 64), np.uint8)).shape
    (2, 64, 64)
    """
    rows = np.asarray(patches)
    if rows.ndim == 4 and rows.shape[1] == 1:
        rows = rows[:, 0]
    if rows.ndim != 3 or rows.shape[1] != rows.shape[2] or rows.shape[1] not in SIZES:
        raise ValueError(
            f"patches must have the shape (n, 64, 64) or (n, 32, 32), got {rows.shape}"
        )
    if rows.dtype == np.uint8:
        return rows
    if not np.issubdtype(rows.dtype, np.floating):
        raise TypeError(f"patches must be uint8 or floats, got {rows.dtype}")
    rows = rows.astype(np.float32, copy=False)
    finite = np.isfinite(rows).all(axis=(1, 2))
    if not finite.all():
        raise ValueError(f"patch {int(np.argmin(finite))} has NaN or infinity")
    return rows


def network_input(rows: UInt8Array | Float32Array) -> Float32Array:
    """Return the batch as the network takes it: float32 ``(n, 1, 64, 64)``."""
    if rows.shape[1] == SIZES[0]:
        # The network halves by means of 2x2 pixels, which undoes this exactly.
        rows = rows.repeat(2, axis=1).repeat(2, axis=2)
    batch = rows[:, np.newaxis].astype(np.float32)
    if rows.dtype == np.uint8:
        batch /= 255
    return batch


def _starts(count: int, batch_size: int, progress: bool) -> Iterator[int]:
    """Yield where each batch starts, with a bar if it is asked for."""
    starts = range(0, count, batch_size)
    if not progress:
        yield from starts
        return
    from hiernorm.cli.progress import progress_bar  # the library imports no rich before it is used

    with progress_bar("describing patches", unit="patches") as show:
        show(0, count)
        for start in starts:
            yield start
            show(min(start + batch_size, count), count)
