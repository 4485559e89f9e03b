"""Adapters for kornia: a descriptor matcher, and a shipped model as a LAF descriptor."""

from __future__ import annotations

import numpy as np
import torch
from kornia.feature import LAFDescriptor
from torch import Tensor, nn

from hiernorm.learn.checkpoint import load_network
from hiernorm.matching import match_descriptors
from hiernorm.models import available_models
from hiernorm.vision.patches import SIZE, WINDOW

MODES = ("nn", "mnn", "snn", "smnn")
LAF_RADIUS = 6
"""Sigmas from the centre to the edge of a LAF of kornia's detectors."""


class HNDescriptorMatcher(nn.Module):
    """kornia's ``DescriptorMatcher``, by exact search and without the matrix of distances.

    Parameters
    ----------
    match_mode
        ``"nn"``, ``"mnn"`` (mutual), ``"snn"`` (ratio test) or ``"smnn"`` (both).
    th
        Threshold of the ratio test.

    Examples
    --------
    >>> import torch
    >>> from hiernorm.adapters import HNDescriptorMatcher
    >>> first = torch.eye(4)
    >>> distances, pairs = HNDescriptorMatcher("smnn", 0.9)(first, first.flip(0))
    >>> pairs.tolist()
    [[0, 3], [1, 2], [2, 1], [3, 0]]
    """

    def __init__(self, match_mode: str = "snn", th: float = 0.8) -> None:
        super().__init__()
        if match_mode.lower() not in MODES:
            raise ValueError(f"match_mode must be one of {', '.join(MODES)}, got {match_mode!r}")
        self.match_mode = match_mode.lower()
        self.th = th

    def forward(self, desc1: Tensor, desc2: Tensor) -> tuple[Tensor, Tensor]:
        """Match unit descriptors ``(n, d)`` and ``(m, d)``.

        Returns
        -------
        As kornia: distances (of a ratio test: ratios) ``(p, 1)`` and pairs ``(p, 2)``, in the order
        of ``desc1``. No gradient flows through them.
        """
        first, second = (desc.detach().cpu().float().numpy() for desc in (desc1, desc2))
        tested = self.match_mode in ("snn", "smnn")
        found = match_descriptors(
            first,
            second,
            mutual=self.match_mode in ("mnn", "smnn"),
            ratio=self.th if tested else None,
        )
        values = found.ratios if tested else np.sqrt(np.maximum(0.0, 2 - 2 * found.scores))
        distances = torch.from_numpy(values).to(desc1.device, desc1.dtype)
        return distances[:, None], torch.from_numpy(found.pairs).to(desc1.device)

    def extra_repr(self) -> str:
        """Show the parameters in the module's repr."""
        return f"match_mode={self.match_mode!r}, th={self.th:g}"


class HNDescriptor(LAFDescriptor):
    """A model that ships with the package, as the descriptor of kornia's ``LocalFeature``.

    Give ``LocalFeature`` the coefficient ``HNDescriptor.scaling_coef``: the models know patches 24
    sigmas wide, the frames of kornia's detectors span 12.

    Parameters
    ----------
    name
        One of :func:`hiernorm.available_models`.

    Examples
    --------
    >>> import torch
    >>> from kornia.feature import laf_from_center_scale_ori
    >>> from hiernorm.adapters import HNDescriptor
    >>> lafs = laf_from_center_scale_ori(torch.tensor([[[32.0, 32.0], [40.0, 30.0]]]))
    >>> HNDescriptor("hn16")(torch.rand(1, 1, 64, 64), lafs).shape
    torch.Size([1, 2, 128])
    """

    scaling_coef = WINDOW / 2 / LAF_RADIUS

    def __init__(self, name: str = "hn16") -> None:
        if name not in available_models():
            raise ValueError(f"no model {name!r}: the package has {', '.join(available_models())}")
        super().__init__(load_network(name), patch_size=SIZE, grayscale_descriptor=True)
