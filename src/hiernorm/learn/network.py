"""Networks with a choice of normalisation, from patches to descriptors."""

from __future__ import annotations

import torch
from kornia.feature import HardNet, HyNet
from torch import Tensor, nn
from torch.nn import functional

from hiernorm.array_types import Float64Array
from hiernorm.learn.layer import HierarchicalNorm

DIM = 128
"""Dimensions of a descriptor."""

SIZE = 32
"""Pixels of the network's input, each way; patches of twice that are halved first."""

NORMS = ("hn", "l2")


class PatchInput(nn.Module):
    """The preparation of a patch before the first convolution, in training and in deployment.

    Patches of 64x64 are halved by the mean of every 2x2 pixels; then each patch loses its mean
    and is divided by its standard deviation, as in kornia's HardNet. The preparation is part of the
    network and of its ONNX file: there is no second implementation.

    Parameters
    ----------
    standardize
        Whether mean and standard deviation are taken out; HyNet has a layer of its own for that.

    Examples
    --------
    >>> import torch
    >>> PatchInput()(torch.rand(3, 1, 64, 64)).shape
    torch.Size([3, 1, 32, 32])
    """

    def __init__(self, standardize: bool = True) -> None:
        super().__init__()
        self.standardize = standardize

    def forward(self, patches: Tensor) -> Tensor:
        """Take ``(n, 1, 32, 32)`` or ``(n, 1, 64, 64)``, return ``(n, 1, 32, 32)``."""
        size = patches.shape[-1]
        if patches.ndim != 4 or patches.shape[1] != 1 or patches.shape[2] != size:
            raise ValueError(f"patches must be (n, 1, 32, 32), got {tuple(patches.shape)}")
        if size == 2 * SIZE:
            patches = functional.avg_pool2d(patches, 2)
        elif size != SIZE:
            raise ValueError(f"patches must have 32x32 or 64x64 pixels, got {size}x{size}")
        return HardNet._normalize_input(patches) if self.standardize else patches


class L2Norm(nn.Module):
    """The normalisation of a plain network: unit length."""

    def forward(self, features: Tensor) -> Tensor:
        """Normalise ``features (..., d)``."""
        return functional.normalize(features, dim=-1)


def make_normalization(norm: str, major: int, alpha: float) -> nn.Module:
    """Return the last layer of a network: Hierarchical Normalization, or unit length."""
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {norm!r}")
    if norm == "l2":
        return L2Norm()
    if major >= DIM:
        raise ValueError(f"major must be below {DIM}, got {major}")
    return HierarchicalNorm(major, alpha)


class PatchNetwork(nn.Module):
    """The base of all networks: from patches to features to descriptors of a chosen norm.

    Attributes
    ----------
    architecture
        One of :data:`ARCHITECTURES`.
    title
        Name in errors.
    norm, major, alpha
        The normalisation, ``"hn"``, or ``"l2"`` for a plain network, and its parameters.
    """

    architecture: str
    title: str
    norm: str
    major: int
    alpha: float
    input: PatchInput
    normalization: nn.Module

    def embed(self, patches: Tensor) -> Tensor:
        """Return the features before normalisation, ``(n, 128)``, of ``(n, 1, 64, 64)``."""
        raise NotImplementedError

    def turn(self, rotation: Float64Array) -> None:
        """Multiply the features by ``rotation (128, 128)``, by changing the last layer."""
        raise NotImplementedError

    def split(self, layers: int) -> tuple[nn.Sequential, nn.Sequential]:
        """Return the modules before the last ``layers`` convolutions, and those from there on.

        The first take prepared patches, the second return the features before normalisation.
        """
        raise ValueError(
            f"the last layers alone are trained of HardNet and TFeat, not {self.title}"
        )

    def complete_weights(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Add weights that the files of other authors lack."""
        return weights

    def forward(self, patches: Tensor) -> Tensor:
        """Describe patches ``(n, 1, 32, 32)`` or ``(n, 1, 64, 64)`` by ``(n, 128)``."""
        descriptors: Tensor = self.normalization(self.embed(patches))
        return descriptors

    def _set_norm(self, norm: str, major: int, alpha: float, standardize: bool = True) -> None:
        self.normalization = make_normalization(norm, major, alpha)
        self.norm, self.major, self.alpha = norm, major, float(alpha)
        self.input = PatchInput(standardize)


class HNHardNet(PatchNetwork, HardNet):
    """kornia's ``HardNet`` with its final L2 normalisation replaced by Hierarchical Normalization.

    Weights are named as in HardNet, so the official checkpoints load: see
    :func:`hiernorm.learn.load_network`.

    Parameters
    ----------
    major, alpha
        Parameters of :class:`HierarchicalNorm`; unused with ``norm="l2"``.
    norm
        ``"hn"``, or ``"l2"`` for the plain baseline, which equals kornia's HardNet.

    Examples
    --------
    >>> import torch
    >>> from hiernorm.learn import HNHardNet
    >>> HNHardNet(major=16, alpha=1 / 8).eval()(torch.rand(5, 1, 64, 64)).shape
    torch.Size([5, 128])
    """

    architecture = "hardnet"
    title = "HardNet"

    def __init__(self, major: int = 16, alpha: float = 1 / 8, norm: str = "hn") -> None:
        HardNet.__init__(self, pretrained=False)
        self._set_norm(norm, major, alpha)

    def embed(self, patches: Tensor) -> Tensor:
        """Return the features before normalisation, ``(n, 128)``, of ``(n, 1, 64, 64)``."""
        prepared = self.input(patches).to(memory_format=torch.channels_last)
        features: Tensor = self.features(prepared).flatten(1)
        return features

    def turn(self, rotation: Float64Array) -> None:
        """Multiply the features by ``rotation (128, 128)``, by changing the last layer."""
        fold_rotation(self.features[-2], self.features[-1], rotation)

    def split(self, layers: int) -> tuple[nn.Sequential, nn.Sequential]:
        """Return the modules before the last ``layers`` convolutions, and those from there on."""
        # Groups of three: convolution, normalisation, ReLU; dropout before the last instead.
        first = len(self.features) - 3 * layers
        return self.features[:first], self.features[first:]


class HNHyNet(PatchNetwork, HyNet):
    """kornia's ``HyNet`` with a choice of normalisation; parameters as of :class:`HNHardNet`.

    Examples
    --------
    >>> import torch
    >>> HNHyNet(major=16, alpha=1 / 8).eval()(torch.rand(5, 1, 64, 64)).shape
    torch.Size([5, 128])
    """

    architecture = "hynet"
    title = "HyNet"

    def __init__(self, major: int = 16, alpha: float = 1 / 8, norm: str = "hn") -> None:
        HyNet.__init__(self, pretrained=False)
        self._set_norm(norm, major, alpha, standardize=False)

    def embed(self, patches: Tensor) -> Tensor:
        """Return the features before normalisation, ``(n, 128)``, of ``(n, 1, 64, 64)``."""
        features: Tensor = self.input(patches).to(memory_format=torch.channels_last)
        for layer in (*(getattr(self, f"layer{i}") for i in range(1, 7)), self.layer7):
            features = layer(features)
        return features.flatten(1)

    def turn(self, rotation: Float64Array) -> None:
        """Multiply the features by ``rotation (128, 128)``, by changing the last layer."""
        fold_rotation(self.layer7[-2], self.layer7[-1], rotation)


class HNTFeat(PatchNetwork):
    """TFeat's three convolutions as HardNet's authors trained them, and a linear layer behind.

    A sixth of HardNet's arithmetic. The linear layer is the identity at first; it gives the major
    its directions, which the hyperbolic tangent before it could not.

    Parameters
    ----------
    major, alpha, norm
        As of :class:`HNHardNet`.

    Examples
    --------
    >>> import torch
    >>> HNTFeat(major=16, alpha=1 / 8).eval()(torch.rand(5, 1, 64, 64)).shape
    torch.Size([5, 128])
    """

    architecture = "tfeat"
    title = "TFeat"

    def __init__(self, major: int = 16, alpha: float = 1 / 8, norm: str = "hn") -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 7),
            nn.Tanh(),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(32, 64, 6),
            nn.Tanh(),
        )
        self.classifier = nn.Sequential(nn.Dropout(0.1), nn.Conv2d(64, DIM, 8), nn.Tanh())
        self.head = nn.Conv2d(DIM, DIM, 1, bias=False)
        nn.init.dirac_(self.head.weight)
        self._set_norm(norm, major, alpha)

    def embed(self, patches: Tensor) -> Tensor:
        """Return the features before normalisation, ``(n, 128)``, of ``(n, 1, 64, 64)``."""
        prepared = self.input(patches).to(memory_format=torch.channels_last)
        features: Tensor = self.head(self.classifier(self.features(prepared))).flatten(1)
        return features

    @torch.no_grad()
    def turn(self, rotation: Float64Array) -> None:
        """Multiply the features by ``rotation (128, 128)``, by changing the last layer."""
        turned = torch.from_numpy(rotation) @ self.head.weight[:, :, 0, 0].double()
        self.head.weight.copy_(turned.float()[:, :, None, None])

    def split(self, layers: int) -> tuple[nn.Sequential, nn.Sequential]:
        """Return the modules before the last ``layers`` convolutions, and those from there on."""
        modules = nn.Sequential(*self.features, *self.classifier, self.head)
        first = (len(modules) - 1, len(self.features), 3)[layers - 1]
        return modules[:first], modules[first:]

    def complete_weights(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Add the identity as last layer to weights of other authors, which lack it."""
        return {"head.weight": nn.init.dirac_(torch.empty(DIM, DIM, 1, 1)), **weights}


NETWORKS: dict[str, type[HNHardNet] | type[HNHyNet] | type[HNTFeat]] = {
    "hardnet": HNHardNet,
    "hynet": HNHyNet,
    "tfeat": HNTFeat,
}
ARCHITECTURES = tuple(NETWORKS)


def make_network(architecture: str, major: int, alpha: float, norm: str) -> PatchNetwork:
    """Return a network with random weights.

    Examples
    --------
    >>> make_network("hardnet", 16, 1 / 8, "hn").normalization
    HierarchicalNorm(major=16, alpha=0.125)
    """
    if architecture not in NETWORKS:
        raise ValueError(
            f"architecture must be one of {', '.join(ARCHITECTURES)}, got {architecture!r}"
        )
    return NETWORKS[architecture](major, alpha, norm)


@torch.no_grad()
def fold_rotation(convolution: nn.Module, statistics: nn.Module, rotation: Float64Array) -> None:
    """Put ``R x`` behind a batch normalisation by changing it and the convolution before it."""
    assert isinstance(convolution, nn.Conv2d)
    assert isinstance(statistics, nn.BatchNorm2d)
    assert statistics.running_mean is not None
    assert statistics.running_var is not None
    # R diag(1/s) (W x - m) = (R diag(1/s) W) x - R diag(1/s) m, and a variance of one remains.
    turn = torch.from_numpy(rotation)
    turn = turn / (statistics.running_var.double() + statistics.eps).sqrt()
    turned = torch.einsum("ij,jklm->iklm", turn, convolution.weight.double())
    convolution.weight.copy_(turned.float())
    statistics.running_mean.copy_((turn @ statistics.running_mean.double()).float())
    statistics.running_var.fill_(1 - statistics.eps)
