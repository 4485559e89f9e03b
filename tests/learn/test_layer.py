"""The torch layer does what hiernorm.normalize does, in every way that torch can run it."""

from __future__ import annotations

import io

import numpy as np
import onnxruntime
import pytest
import torch

import hiernorm
from hiernorm.learn import HierarchicalNorm
from support import random_rows

SPLITS = [(1, 0.0), (8, 1 / 32), (16, 1 / 8), (31, 0.5)]


@pytest.mark.parametrize(("major", "alpha"), SPLITS)
def test_agrees_with_numpy_to_float32_rounding(major: int, alpha: float) -> None:
    rows = random_rows(200, 32) * np.float32(37)
    ours = HierarchicalNorm(major, alpha)(torch.from_numpy(rows)).numpy()
    expected = hiernorm.normalize(rows, major, alpha)
    assert ours.dtype == np.float32
    # A few roundings of 2^-24 relative to parts of at most unit length.
    np.testing.assert_allclose(ours, expected, rtol=4 * 2**-24, atol=2**-24)
    again = hiernorm.normalize(ours, major, alpha)
    np.testing.assert_allclose(again, expected, rtol=4 * 2**-24, atol=2**-24)


@pytest.mark.parametrize(("major", "alpha"), SPLITS)
def test_gradients_are_those_of_the_function(major: int, alpha: float) -> None:
    rows = torch.from_numpy(random_rows(3, 32)).double().requires_grad_()
    assert torch.autograd.gradcheck(HierarchicalNorm(major, alpha), (rows,))


@pytest.mark.parametrize("zeroed", [slice(0, 4), slice(4, 8), slice(0, 8)])
def test_is_finite_at_parts_of_zero_norm(zeroed: slice) -> None:
    rows = torch.from_numpy(random_rows(2, 8))
    rows[0, zeroed] = 0
    rows.requires_grad_()
    result = HierarchicalNorm(4, 0.25)(rows)
    result.square().sum().backward()
    assert torch.isfinite(result).all()
    assert torch.isfinite(rows.grad).all()
    assert (result[0, zeroed] == 0).all()


def test_alpha_zero_leaves_exactly_nothing_in_the_minor() -> None:
    rows = torch.from_numpy(random_rows(5, 8))
    rows[0, 5] = float("inf")
    result = HierarchicalNorm(4, 0.0)(rows)
    assert (result[:, 4:] == 0).all()
    np.testing.assert_allclose(result[:, :4].norm(dim=1).numpy(), 1, rtol=1e-6)


def test_takes_any_leading_dimensions() -> None:
    rows = torch.from_numpy(random_rows(24, 8))
    layer = HierarchicalNorm(4, 0.25)
    assert torch.equal(layer(rows.reshape(2, 3, 4, 8)).reshape(24, 8), layer(rows))
    assert torch.equal(layer(rows[0]), layer(rows)[0])


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_scripts_and_compiles() -> None:
    rows = torch.from_numpy(random_rows(6, 8))
    layer = HierarchicalNorm(4, 0.25)
    scripted = torch.jit.script(layer)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(scripted(rows), layer(rows))
    torch.testing.assert_close(compiled(rows), layer(rows))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_exports_to_onnx() -> None:
    rows = random_rows(6, 8)
    layer = HierarchicalNorm(4, 0.25)
    file = io.BytesIO()
    program = torch.onnx.export(layer, (torch.from_numpy(rows),), file, dynamo=False)
    assert program is None
    session = onnxruntime.InferenceSession(file.getvalue())
    (result,) = session.run(None, {session.get_inputs()[0].name: rows})
    np.testing.assert_allclose(result, layer(torch.from_numpy(rows)).numpy(), rtol=1e-6, atol=1e-7)


def test_refuses_impossible_splits() -> None:
    with pytest.raises(ValueError, match="major must be at least 1, got 0"):
        HierarchicalNorm(0, 0.5)
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\), got 1"):
        HierarchicalNorm(4, 1)
    with pytest.raises(ValueError, match="features have 4 dimensions; a major of 4 needs more"):
        HierarchicalNorm(4, 0.5)(torch.zeros(2, 4))
