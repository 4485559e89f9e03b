"""Features of patches, computed once per network and kept on disk."""

from __future__ import annotations

import hashlib
import io
from functools import cached_property
from pathlib import Path

import numpy as np

from hiernorm.learn.checkpoint import write_atomically
from hiernorm.learn.describers import Describer, load_describer
from hiernorm.reference import Float32Array
from hiernorm.reproduce.sources import Source


class Body:
    """A network up to its normalisation, with a cache of what it computed.

    Parameters
    ----------
    weights
        A ``.safetensors`` file.
    cache
        Folder for features, one file per source: an interrupted reproduction computes none twice.
    threads
        Of the network.
    """

    def __init__(self, weights: Path, cache: Path, threads: int) -> None:
        self.weights = weights
        self._threads = threads
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()[:12]
        self._folder = cache / "features" / digest

    @cached_property
    def _describer(self) -> Describer:
        return load_describer(str(self.weights), threads=self._threads)

    def features(self, source: Source) -> Float32Array:
        """Features before normalisation of a source's patches, float32 ``(n, 128)``, mapped."""
        file = self._folder / f"{source.name}.npy"
        if not file.exists():
            rows = self._describer(source.cut()).features
            assert rows is not None
            buffer = io.BytesIO()
            np.save(buffer, rows)
            write_atomically(file, buffer.getvalue())
        mapped: Float32Array = np.load(file, mmap_mode="r", allow_pickle=False)
        return mapped
