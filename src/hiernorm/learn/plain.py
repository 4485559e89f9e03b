"""Plain networks, ours and of other authors: teachers, and baselines of the evaluation."""

from __future__ import annotations

from pathlib import Path

from kornia.feature import TFeat
from torch import Tensor, nn
from torch.nn import functional

from hiernorm.learn.checkpoint import load_weights, set_weights
from hiernorm.learn.network import HNHardNet, HNTFeat, PatchInput


class PlainTFeat(nn.Module):
    """kornia's TFeat on our patches, which are halved by means; it standardises them inside.

    Examples
    --------
    >>> import torch
    >>> PlainTFeat().eval()(torch.rand(5, 1, 64, 64)).shape
    torch.Size([5, 128])
    """

    title = "TFeat"

    def __init__(self) -> None:
        super().__init__()
        self.input = PatchInput(standardize=False)
        self.network = TFeat(pretrained=False)

    def forward(self, patches: Tensor) -> Tensor:
        """Describe patches ``(n, 1, 64, 64)`` by unit vectors ``(n, 128)``."""
        return functional.normalize(self.network(self.input(patches)), dim=-1)


def load_plain(source: str | Path) -> nn.Module:
    """Return a network that describes patches ``(n, 1, 64, 64)`` by unit vectors, ready to use.

    Parameters
    ----------
    source
        Weights of HardNet (see :func:`hiernorm.learn.load_weights`), of TFeat as kornia names
        them, or of TFeat's layers as HardNet's authors trained them (``classifier.*``).
    """
    weights = load_weights(source)
    if any(name.startswith("descr.") for name in weights):
        tfeat = PlainTFeat()
        tfeat.network.load_state_dict(weights)
        return tfeat.eval()
    network = HNTFeat(norm="l2") if "classifier.1.weight" in weights else HNHardNet(norm="l2")
    set_weights(network, weights, source)
    return network.eval()
