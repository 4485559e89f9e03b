"""HardNet with a choice of normalisation, from patches to descriptors."""

from __future__ import annotations

import torch
from kornia.feature import HardNet
from torch import Tensor, nn
from torch.nn import functional

from hiernorm.learn.layer import HierarchicalNorm

DIM = 128
"""Dimensions of a descriptor."""

SIZE = 32
"""Pixels of the network's input, each way; patches of twice that are halved first."""

NORMS = ("hn", "l2")


class PatchInput(nn.Module):
    """What happens to a patch before the first convolution, in training as in deployment.

    Patches of 64x64 are halved by the mean of every 2x2 pixels; then each patch loses its mean
    and is divided by its standard deviation, as in kornia's HardNet. It is part of the network,
    hence of its ONNX file: there is no second implementation to keep in step.

    Examples
    --------
    >>> import torch
    >>> PatchInput()(torch.rand(3, 1, 64, 64)).shape
    torch.Size([3, 1, 32, 32])
    """

    def forward(self, patches: Tensor) -> Tensor:
        """Take ``(n, 1, 32, 32)`` or ``(n, 1, 64, 64)``, return ``(n, 1, 32, 32)``."""
        size = patches.shape[-1]
        if patches.ndim != 4 or patches.shape[1] != 1 or patches.shape[2] != size:
            raise ValueError(f"patches must be (n, 1, 32, 32), got {tuple(patches.shape)}")
        if size == 2 * SIZE:
            patches = functional.avg_pool2d(patches, 2)
        elif size != SIZE:
            raise ValueError(f"patches must have 32x32 or 64x64 pixels, got {size}x{size}")
        return HardNet._normalize_input(patches)


class HNHardNet(HardNet):
    """kornia's ``HardNet`` with its final L2 normalisation replaced by Hierarchical Normalization.

    Weights are named as in HardNet, so the official checkpoints load: see
    :func:`hiernorm.learn.load_network`.

    Parameters
    ----------
    major, alpha
        Of :class:`HierarchicalNorm`; unused with ``norm="l2"``.
    norm
        ``"hn"``, or ``"l2"`` for the plain baseline, which equals kornia's HardNet.

    Examples
    --------
    >>> import torch
    >>> from hiernorm.learn import HNHardNet
    >>> HNHardNet(major=16, alpha=1 / 8).eval()(torch.rand(5, 1, 64, 64)).shape
    torch.Size([5, 128])
    """

    def __init__(self, major: int = 16, alpha: float = 1 / 8, norm: str = "hn") -> None:
        if norm not in NORMS:
            raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {norm!r}")
        super().__init__(pretrained=False)
        if norm == "hn" and major >= DIM:
            raise ValueError(f"major must be below {DIM}, got {major}")
        self.norm, self.major, self.alpha = norm, major, float(alpha)
        self.input = PatchInput()
        self.normalization = HierarchicalNorm(major, alpha) if norm == "hn" else L2Norm()

    def embed(self, patches: Tensor) -> Tensor:
        """Return the features before normalisation, ``(n, 128)``, of ``(n, 1, 64, 64)``."""
        prepared = self.input(patches).to(memory_format=torch.channels_last)
        features: Tensor = self.features(prepared).flatten(1)
        return features

    def forward(self, patches: Tensor) -> Tensor:
        """Describe patches ``(n, 1, 32, 32)`` or ``(n, 1, 64, 64)`` by ``(n, 128)``."""
        descriptors: Tensor = self.normalization(self.embed(patches))
        return descriptors


class L2Norm(nn.Module):
    """The normalisation of the plain HardNet: unit length."""

    def forward(self, features: Tensor) -> Tensor:
        """Normalise ``features (..., d)``."""
        return functional.normalize(features, dim=-1)
