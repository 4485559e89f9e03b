"""Turn a trained network's last layer so that its leading directions become the major."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hiernorm.array_types import Float64Array
from hiernorm.learn.network import DIM, PatchNetwork

RIDGE = 3.0
"""Added to the variance within points, in units of its mean. Without it LDA prefers directions in
which patches of a point hardly differ, whether or not points do: they carry a hundredth of the
energy and generalise badly. Chosen on points held out; see docs/notes/2026-11-models.md."""

CHUNK = 1024
"""Patches described at a time."""


def rotate_network(
    network: PatchNetwork, patches: Tensor, points: npt.NDArray[np.int64], method: str
) -> None:
    """Turn the features before normalisation, in place, so that the best directions lead.

    The rotation is folded into the last convolution and the statistics of the batch normalisation
    behind it, so no layer is added. Those statistics then carry the scale of each direction: train
    on with ``freeze_statistics``, or they are lost.

    Parameters
    ----------
    network
        Its last layer is changed.
    patches, points
        Training data, ``(n, 1, 64, 64)`` and the point of each patch.
    method
        ``"pca"``: directions of the largest variance of the unit descriptors first; a rotation, so
        inner products of the features stay the same. ``"lda"``: the major are the directions where
        points differ most compared with the patches of one point, scaled in proportion to the
        inverse of the latter; the minor is what is orthogonal to them.
    """
    features = embed_all(network, patches)
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    if method == "pca":
        rotation = principal_directions(units)
    else:
        rotation = separating_directions(units, points, network.major)
    network.turn(rotation)


@torch.no_grad()
def embed_all(network: PatchNetwork, patches: Tensor) -> Float64Array:
    """Return the features before normalisation of uint8 patches, float64 ``(n, 128)``."""
    network.eval()
    chunks = [network.embed(p.to(torch.float32) / 255) for p in torch.split(patches, CHUNK)]
    return torch.cat(chunks).double().numpy()


def principal_directions(units: Float64Array) -> Float64Array:
    """Return an orthogonal ``(128, 128)``: rows are directions, largest second moment first."""
    _, vectors = np.linalg.eigh(units.T @ units / len(units))
    return np.ascontiguousarray(vectors[:, ::-1].T)


def separating_directions(
    units: Float64Array, points: npt.NDArray[np.int64], major: int
) -> Float64Array:
    """Return ``(128, 128)``: the first ``major`` rows are LDA's directions, best first.

    LDA's directions are not orthogonal to one another. The other rows are an orthonormal basis of
    what is orthogonal to all of them, by variance.
    """
    _, labels, counts = np.unique(points, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), DIM))
    np.add.at(sums, labels, units)
    centres = sums / counts[:, None]
    inner = units - centres[labels]
    within = inner.T @ inner / len(units)
    between = units.T @ units / len(units) - within
    # Generalised eigenproblem between v = lambda within v, by whitening with `within`.
    scales, axes = np.linalg.eigh(within + RIDGE * np.trace(within) / DIM * np.eye(DIM))
    whiten = axes / np.sqrt(scales)
    _, directions = np.linalg.eigh(whiten.T @ between @ whiten)
    leading = whiten @ directions[:, ::-1][:, :major]
    # Any scale would do for the normalisation; this one keeps shares of energy comparable.
    leading *= np.sqrt(major) / np.linalg.norm(leading)
    basis, _ = np.linalg.qr(leading, mode="complete")
    rest = basis[:, major:]
    moment = units.T @ units / len(units)
    rest = rest @ np.linalg.eigh(rest.T @ moment @ rest)[1][:, ::-1]
    return np.ascontiguousarray(np.concatenate([leading, rest], axis=1).T)
