"""Hierarchical Normalization at the end of a sentence-transformers model."""

from __future__ import annotations

from typing import Any

from sentence_transformers.base.modules import Module
from torch import Tensor

from hiernorm.learn.layer import HierarchicalNorm

EMBEDDING = "sentence_embedding"


class HNText(Module):
    """The last module of a text model: scales major and minor as HN does.

    It replaces ``Normalize``. Train (or fine-tune) with it, so that the model learns to put the
    most important features into the major. A model that was not trained with it loses quality. It
    is saved and loaded with the model.

    Parameters
    ----------
    major, alpha
        As in :class:`hiernorm.learn.HierarchicalNorm`, and in the :class:`hiernorm.Index` of the
        embeddings.

    Examples
    --------
    >>> import torch
    >>> from hiernorm.adapters import HNText
    >>> HNText(major=2, alpha=0.25)({"sentence_embedding": torch.tensor([[3.0, 4.0, 0.0, 2.0]])})
    {'sentence_embedding': tensor([[0.5196, 0.6928, 0.0000, 0.5000]])}
    """

    config_keys = ["major", "alpha"]  # noqa: RUF012

    def __init__(self, major: int = 64, alpha: float = 1 / 8) -> None:
        super().__init__()
        self.major = major
        self.alpha = float(alpha)
        self.normalization = HierarchicalNorm(major, alpha)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Normalise the sentence embeddings ``(n, d)`` of ``features`` in place."""
        embeddings: Tensor = features[EMBEDDING]
        features[EMBEDDING] = self.normalization(embeddings)
        return features

    def save(
        self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any
    ) -> None:
        """Write the parameters; there are no weights."""
        self.save_config(output_path)
