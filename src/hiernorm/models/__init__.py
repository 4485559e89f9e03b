"""Trained models that ship with the package, run by onnxruntime: no torch needed.

>>> import numpy as np, hiernorm
>>> model = hiernorm.load_model("hn16")
>>> patches = np.random.default_rng(0).integers(0, 256, (3, 64, 64), dtype=np.uint8)
>>> model.describe(patches).shape
(3, 128)
"""

from hiernorm.models.model import Model, available_models, load_model

__all__ = ["Model", "available_models", "load_model"]
