"""hloc's nearest-neighbour matcher, exact: its configuration, its tensors and its answers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hiernorm.array_types import Float32Array, Int64Array
from hiernorm.index import Index
from hiernorm.matching import DescriptorSet

NAME = "nearest_neighbor"
"""Of the matcher in hloc's configurations."""
KEYS = ("ratio_threshold", "distance_threshold", "do_mutual_check")
"""Of hloc's configuration of it."""
NUMBERS = (int, float, np.integer, np.floating)
INPUTS = ("descriptors0", "descriptors1")


@dataclass(frozen=True, init=False)
class NearestNeighbor:
    """hloc's ``nearest_neighbor`` matcher, exact and in linear memory.

    Parameters
    ----------
    ratio_threshold
        Keep a match if its Euclidean distance is at most this share of the second best's; None or 0
        for no test. As in hloc, there is no test if either photo has one keypoint. Or a
        configuration of hloc, with these names as keys: ``{"ratio_threshold": 0.8}``.
    distance_threshold
        Largest Euclidean distance of a match; None or 0 for any.
    do_mutual_check
        Whether both must be the nearest of each other.
    threads
        As for :class:`hiernorm.Index`.
    """

    ratio_threshold: float | None = None
    distance_threshold: float | None = None
    do_mutual_check: bool = True
    threads: int | None = None

    def __init__(
        self,
        ratio_threshold: float | Mapping[str, Any] | None = None,
        distance_threshold: float | None = None,
        do_mutual_check: bool = True,
        threads: int | None = None,
    ) -> None:
        conf = {"distance_threshold": distance_threshold, "do_mutual_check": do_mutual_check}
        if isinstance(ratio_threshold, Mapping):
            conf |= {"ratio_threshold": None, **_known_keys(ratio_threshold)}
        else:
            conf["ratio_threshold"] = ratio_threshold
        _check_values(conf)
        for name, value in {**conf, "threads": threads}.items():
            object.__setattr__(self, name, value)

    def __call__(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Match ``descriptors0`` ``(D, N)`` with ``descriptors1`` ``(D, M)``.

        hloc's own calls have a batch: ``(B, D, N)`` and ``(B, D, M)`` give results ``(B, N)``. They
        have tensors of torch: those give tensors on their device, ``matches0`` as int64.

        Returns
        -------
        dict
            ``matches0`` ``(N,)`` int32, -1 for none, and ``matching_scores0`` ``(N,)`` float32:
            (similarity + 1) / 2 of the nearest, and 0 where it fails a threshold. As in hloc, the
            mutual check leaves the scores as they are.
        """
        tensors = [_is_tensor(data[name]) for name in INPUTS]
        if all(tensors):
            return self._match_tensors(*(data[name] for name in INPUTS))
        if any(tensors):
            one, other = INPUTS if tensors[0] else INPUTS[::-1]
            raise ValueError(f"{one} is a tensor of torch, {other} is not: pass both in one kind")
        first, second = (np.asarray(data[name]) for name in INPUTS)
        if first.ndim != second.ndim or first.ndim not in (2, 3) or len(first) != len(second):
            raise ValueError(
                f"{INPUTS[0]} and {INPUTS[1]} must be (D, N) and (D, M), or both with a batch B in "
                f"front, got {first.shape} and {second.shape}"
            )
        if first.ndim == 2:
            return self._match_columns(first, second)
        found = [self._match_columns(*both) for both in zip(first, second, strict=True)]
        return {name: np.stack([one[name] for one in found]) for name in found[0]}

    def _match_tensors(self, *tensors: Any) -> dict[str, Any]:
        """Results as tensors where the first tensor is."""
        torch = sys.modules["torch"]
        rows = [tensor.detach().to("cpu", torch.float32).numpy() for tensor in tensors]
        found = self(dict(zip(INPUTS, rows, strict=True)))
        made = {name: torch.from_numpy(array) for name, array in found.items()}
        made["matches0"] = made["matches0"].long()
        return {name: tensor.to(tensors[0].device) for name, tensor in made.items()}

    def _match_columns(
        self, first: npt.NDArray[Any], second: npt.NDArray[Any]
    ) -> dict[str, npt.NDArray[Any]]:
        return self.match(*(DescriptorSet(one.T, threads=self.threads) for one in (first, second)))

    def match(self, first: DescriptorSet, second: DescriptorSet) -> dict[str, npt.NDArray[Any]]:
        """Match sets whose indexes are kept."""
        matches = np.full(len(first), -1, np.int32)
        scores = np.zeros(len(first), np.float32)
        if len(first) and len(second):
            tested = bool(self.ratio_threshold) and min(len(first), len(second)) > 1
            found, similarities = self._one_way(first.rows, second.index, tested)
            passed = np.flatnonzero(found >= 0)
            scores[passed] = (similarities[passed] + 1) / 2
            if self.do_mutual_check:
                back, _ = self._one_way(second.rows, first.index, tested)
                passed = passed[back[found[passed]] == passed]
            matches[passed] = found[passed]
        return {"matches0": matches, "matching_scores0": scores}

    def _one_way(
        self, queries: Float32Array, index: Index, tested: bool
    ) -> tuple[Int64Array, Float32Array]:
        """The nearest of each query, -1 where a test fails, and its similarity."""
        hits = index.search(queries, 2 if tested else 1, threads=self.threads)
        squares = 2 * (1 - hits.scores)
        passed = np.ones(len(queries), np.bool_)
        if tested and self.ratio_threshold is not None:
            passed &= squares[:, 0] <= self.ratio_threshold**2 * squares[:, 1]
        if self.distance_threshold:
            passed &= squares[:, 0] <= self.distance_threshold**2
        return np.where(passed, hits.ids[:, 0], -1), hits.scores[:, 0].astype(np.float32)


def _known_keys(conf: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration of hloc without the name of the matcher; raises if it is of another."""
    if conf.get("name", NAME) != NAME:
        raise ValueError(f"the configuration is of the matcher {conf['name']!r}, expected {NAME!r}")
    unknown = sorted(str(key) for key in conf if key not in (*KEYS, "name"))
    if unknown:
        raise ValueError(
            f"no key {', '.join(map(repr, unknown))} in a configuration of {NAME}: expected some "
            f"of {', '.join(KEYS)}"
        )
    return {key: value for key, value in conf.items() if key != "name"}


def _check_values(conf: Mapping[str, Any]) -> None:
    for name, value in conf.items():
        if name == "do_mutual_check":
            if not isinstance(value, bool | np.bool_):
                raise TypeError(f"{name} must be true or false, got {value!r}")
        elif value is not None and (isinstance(value, bool) or not isinstance(value, NUMBERS)):
            raise TypeError(f"{name} must be a number or None, got {value!r}")
        elif value is not None and not value >= 0:
            raise ValueError(f"{name} must not be negative, got {value!r}")


def _is_tensor(value: object) -> bool:
    """Whether a value is a tensor of torch, which is not imported for this."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
