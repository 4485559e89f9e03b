"""Hierarchical Normalization, Eq. (1) of the paper, as a torch layer."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class HierarchicalNorm(nn.Module):
    """Scale the first ``major`` dimensions to norm sqrt(1 - alpha), the others to sqrt(alpha).

    A drop-in for an L2-normalisation layer. It agrees with :func:`hiernorm.normalize` to float32
    rounding; pass descriptors through that function before they enter an index, so that their
    bits are the same on every machine.

    Parameters
    ----------
    major
        K, the size of the major: at least 1, and below the size of the last dimension.
    alpha
        The share of energy in the minor: ``0 <= alpha < 1``. With ``alpha=0`` the minor becomes
        exactly zero, whatever it was.

    Examples
    --------
    >>> import torch
    >>> from hiernorm.learn import HierarchicalNorm
    >>> HierarchicalNorm(major=2, alpha=0.25)(torch.tensor([[3.0, 4.0, 0.0, 2.0]]))
    tensor([[0.5196, 0.6928, 0.0000, 0.5000]])
    """

    def __init__(self, major: int = 16, alpha: float = 1 / 8) -> None:
        super().__init__()
        if major < 1:
            raise ValueError(f"major must be at least 1, got {major}")
        if not 0 <= alpha < 1:
            raise ValueError(f"alpha must be in [0, 1), got {alpha}")
        self.major = major
        self.alpha = float(alpha)
        self.major_norm = math.sqrt(1 - alpha)
        self.minor_norm = math.sqrt(alpha)

    def forward(self, features: Tensor) -> Tensor:
        """Normalise ``features (..., d)``; the result has the same shape.

        A part of zero norm stays zero, with zero gradient.
        """
        if not torch.jit.is_tracing() and features.shape[-1] <= self.major:
            raise ValueError(
                f"features have {features.shape[-1]} dimensions; a major of {self.major} "
                "needs more than that"
            )
        major = scaled(features[..., : self.major], self.major_norm)
        rest = features[..., self.major :]
        minor = torch.zeros_like(rest) if self.alpha == 0 else scaled(rest, self.minor_norm)
        return torch.cat([major, minor], dim=-1)

    def extra_repr(self) -> str:
        """Show the parameters in the layer's repr."""
        return f"major={self.major}, alpha={self.alpha:g}"


def scaled(part: Tensor, target: float, smallest: float = 1e-12) -> Tensor:
    """Scale ``part (..., d)`` to norm ``target`` along its last dimension.

    Parts shorter than ``smallest`` are divided by it instead: they stay finite, as do gradients.
    """
    norms: Tensor = torch.linalg.vector_norm(part, dim=-1, keepdim=True)
    result: Tensor = part * (target / norms.clamp_min(smallest))
    return result
