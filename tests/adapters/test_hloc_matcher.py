"""hloc's matcher takes what hloc gives: its configurations and its tensors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hiernorm.adapters.hloc import NearestNeighbor

CONFS = {
    "NN-superpoint": {"distance_threshold": 0.7},
    "NN-ratio": {"ratio_threshold": 0.8},
    "NN-mutual": {},
}
"""hloc's own, by name; each has the name of the matcher and the mutual check too."""


def unit_columns(n: int, seed: int = 0):
    rows = np.random.default_rng(seed).standard_normal((n, 16))
    return np.float32(rows / np.linalg.norm(rows, axis=1, keepdims=True)).T


@pytest.mark.parametrize("name", CONFS)
def test_configurations_of_hloc_are_taken(name):
    conf = {"name": "nearest_neighbor", "do_mutual_check": True, **CONFS[name]}
    assert NearestNeighbor(conf) == NearestNeighbor(**CONFS[name])


def test_a_configuration_has_the_defaults_of_hloc_where_it_is_silent():
    assert NearestNeighbor({}) == NearestNeighbor(None, None, True)
    assert not NearestNeighbor({"do_mutual_check": False}).do_mutual_check
    assert NearestNeighbor({"ratio_threshold": 0.9}, threads=2).threads == 2


WRONG = {
    "misspelt": (
        {"ratio_treshold": 0.8},
        ValueError,
        "no key 'ratio_treshold' .* expected some of",
    ),
    "of another": ({"name": "superglue"}, ValueError, "'superglue', expected 'nearest_neighbor'"),
    "no number": ({"ratio_threshold": "0.8"}, TypeError, "ratio_threshold must be a number"),
    "negative": ({"distance_threshold": -1}, ValueError, "distance_threshold must not be negative"),
    "no number either": ({"distance_threshold": float("nan")}, ValueError, "must not be negative"),
    "no truth": ({"do_mutual_check": "no"}, TypeError, "do_mutual_check must be true or false"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_configuration_is_refused(case):
    conf, error, text = WRONG[case]
    with pytest.raises(error, match=text):
        NearestNeighbor(conf)


@pytest.mark.parametrize("batch", [True, False])
def test_tensors_give_tensors_and_arrays_give_arrays(batch):
    torch = pytest.importorskip("torch", reason="needs torch")
    first, second = unit_columns(30), unit_columns(40, 1)
    if batch:
        first, second = first[np.newaxis], second[np.newaxis]
    matcher = NearestNeighbor({"ratio_threshold": 0.95})
    arrays = matcher({"descriptors0": first, "descriptors1": second})
    made = matcher(
        {
            "descriptors0": torch.from_numpy(first).requires_grad_(),
            "descriptors1": torch.from_numpy(second),
            "image0": None,
        }
    )
    assert made["matches0"].dtype == torch.int64  # as hloc's
    for name, array in arrays.items():
        assert isinstance(array, np.ndarray)
        assert isinstance(made[name], torch.Tensor)
        assert made[name].device == torch.device("cpu")
        assert made[name].shape == ((1, 30) if batch else (30,))
        assert_array_equal(made[name].numpy(), array)


def test_half_precision_tensors_are_taken():
    torch = pytest.importorskip("torch", reason="needs torch")
    half = torch.from_numpy(unit_columns(30)).to(torch.bfloat16)
    made = NearestNeighbor()({"descriptors0": half, "descriptors1": half})
    assert made["matches0"].tolist() == list(range(30))


def test_results_are_where_the_tensors_are():
    torch = pytest.importorskip("torch", reason="needs torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    first = torch.from_numpy(unit_columns(30)).cuda()
    made = NearestNeighbor()({"descriptors0": first, "descriptors1": first})
    assert {tensor.device for tensor in made.values()} == {first.device}


def test_a_tensor_and_an_array_are_refused():
    torch = pytest.importorskip("torch", reason="needs torch")
    rows = unit_columns(5)
    with pytest.raises(ValueError, match="descriptors1 is a tensor of torch, descriptors0 is not"):
        NearestNeighbor()({"descriptors0": rows, "descriptors1": torch.from_numpy(rows)})
