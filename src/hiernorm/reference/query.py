"""A query of the cascade, encoded: its codes, and what it adds to bounds.

The native counterparts are ``cpp/core/encode/query_view.cpp`` and ``encode/coded_query.cpp``. Sums
run in their order, so that cuts and bounds have the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hiernorm.reference.canonical import (
    LANES,
    Float32Array,
    Float64Array,
    Int64Array,
    canonical_dot,
    canonical_norm,
    canonical_sum,
)

ROUND_UP = 1.0 + 1e-9
"""Makes up for the rounding of norms."""
OFFSET, CODE_LIMIT, TAIL_LIMIT = 128, 127, 255
"""Codes are stored plus 128; the largest code of a value, and of a norm."""
PAIR_LIMIT, PARTIAL_LIMIT, BURST = 128, 32767, 32
"""Limits of int16 sums: of two neighbouring codes, of half the slots of a burst of 32."""
LOWEST, HIGHEST = -(2**31), 2**31 - 1

Codes = npt.NDArray[np.uint8]


class Norms(NamedTuple):
    """A row of the tensor ``norms``: the largest of a tile."""

    norm: float
    major_residual: float
    minor_residual: float
    major_coded: float
    minor_coded: float
    tail: float
    uncoded_tail: float
    stage_tail: float


def rows_of(blocks: Codes) -> Int64Array:
    """Codes ``(entries, slots)`` from blocks ``(blocks, groups, 16, 4)``, as they are stored."""
    rows: Int64Array = blocks.transpose(0, 2, 1, 3).reshape(-1, blocks.shape[1] * 4).astype(int)
    return rows


def squares(values: Float64Array) -> float:
    """The sum of squares, in 8 lanes."""
    return float(canonical_sum(np.square(values)[np.newaxis], 8)[0])


def root_up(value: float) -> float:
    """A norm from its square, not below the true one."""
    return float(np.sqrt(value) * ROUND_UP)


def encode(values: Float64Array, step: float) -> tuple[Int64Array, float]:
    """The nearest multiples of ``step``, and the sum of the squares of what is left."""
    codes = np.rint(values * (1.0 / step))
    return codes.astype(np.int64), squares(values - codes * step)


def largest_pair(values: Float64Array) -> float:
    """The largest |a| + |b| of two neighbours, the first at an even place."""
    even = np.append(np.abs(values), [0.0] * (len(values) % 2))
    return float((even[0::2] + even[1::2]).max(initial=0.0))


class Query:
    """The view of a query, its codes, and the slack of bounds."""

    def __init__(
        self, q: Float32Array, encoding: Mapping[str, Any], tensors: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        self.encoding = encoding
        self.major, self.tails = int(encoding["major"]), bool(encoding["entry_tails"])
        self.largest = Norms(*tensors["norms"].max(axis=0))
        self._view(q, tensors.get("rotation"))
        self._encode_major(tensors["major_codes"].shape[1] * 4)
        stages = [name for name in tensors if name.startswith("minor_codes.")]
        self._encode_minor([tensors[f"minor_codes.{i}"] for i in range(len(stages))])

    def _view(self, q: Float32Array, rotation: Float32Array | None) -> None:
        encoding, norm = self.encoding, float(canonical_norm(q[np.newaxis])[0])
        view = q.astype(np.float64) if rotation is None else canonical_dot(q, rotation)
        if encoding["metric"] == "cosine":
            view, norm = view / norm, 1.0
        depth = float(len(q) // LANES) + 16.0
        error = float(encoding["rotation_error"])
        self.margin = norm * ROUND_UP * (2.0 * depth * 2.0**-53 + error + 2.0**-40)
        self.offset = 0.0
        if encoding["metric"] == "l2":
            weight, base = float(encoding["weight"]), float(encoding["base_norm"])
            view = np.insert(2.0 * view, self.major - 1, weight)
            self.offset = norm * norm + encoding["centre"]
            beyond = norm * norm / base + base
            norm = root_up(4.0 * (norm * norm) + weight * weight + beyond * beyond)
            self.margin = norm * ROUND_UP * (16.0 * depth * 2.0**-53 + error + 2.0**-40)
        self.view = view
        self.major_norm = root_up(squares(view[: self.major]))
        self.minor_norm = root_up(squares(view[self.major :]))

    def _encode_major(self, slots: int) -> None:
        encoding, values = self.encoding, np.zeros(slots)
        values[: self.major] = self.view[: self.major]
        half_squares = np.zeros((-(-slots // BURST), 2))
        for slot in range(slots):
            half_squares[slot // BURST, slot // 2 % 2] += values[slot] * values[slot]
        tail = 0.0
        if self.tails:
            tail = self.minor_norm * (encoding["tail_step"] / encoding["major_step"])
            values[self.major] = tail
        half_norm = self.largest.major_coded / encoding["major_step"] * ROUND_UP
        half_norm = min(half_norm, CODE_LIMIT * 4.0)
        partial = half_norm * root_up(half_squares.max()) + TAIL_LIMIT * tail
        room = PARTIAL_LIMIT - 2.0 * half_norm - TAIL_LIMIT
        step = max(largest_pair(values) / (PAIR_LIMIT - 2), partial / room) * ROUND_UP or 1.0
        self.codes = np.zeros(slots, np.int64)
        self.codes[: self.major], error = encode(values[: self.major], step)
        self.major_error = root_up(error)
        self.tail_code = int(np.ceil(tail / step * ROUND_UP))
        self.scale = encoding["major_step"] * step

    def _encode_minor(self, stages: list[Codes]) -> None:
        encoding, first, parts = self.encoding, self.major, []
        for stage, codes in enumerate(stages):
            dims = codes.shape[1] - (stage + 1 < len(stages))
            parts.append(self.view[first : first + dims])
            first += dims
        pair = max(largest_pair(part) for part in parts)
        step = pair / (PAIR_LIMIT - 2) * ROUND_UP or 1.0
        encoded = [encode(part, step) for part in parts]
        self.stage_codes = [codes for codes, _ in encoded]
        self.minor_error = root_up(sum(error for _, error in encoded))
        self.minor_scale = encoding["minor_step"] * step
        self.stage_tails: list[float] = []
        behind = 0.0
        for part in reversed(parts):
            self.stage_tails.insert(0, root_up(behind) * encoding["tail_step"])
            behind += squares(part)

    def score_majors(self, blocks: Codes) -> tuple[Int64Array, Int64Array]:
        """Integer scores of all entries, without and with the share of their tails."""
        codes = rows_of(blocks)
        tails = codes[:, self.major] * self.tail_code if self.tails else 0
        majors = (codes[:, : self.major] - OFFSET) @ self.codes[: self.major]
        return majors, majors + tails

    def cut(self, threshold: float, slack: float) -> int:
        """A score that is not above this proves that the entry does not reach the threshold."""
        most = (threshold - slack) * (1.0 / self.scale)
        if not most > LOWEST + 2.0:
            return LOWEST
        return HIGHEST - 2 if most >= HIGHEST else int(most) - 2

    def coded_slack(self, norms: Norms) -> float:
        """What the errors of the major's codes, and all rounding, can add."""
        return (
            self.major_norm * norms.major_residual
            + self.major_error * norms.major_coded
            + self.margin * norms.norm
        )

    def tail_slack(self, norms: Norms) -> float:
        """What a minor can add that has not been read."""
        return self.minor_norm * norms.uncoded_tail

    def minor_slack(self, norms: Norms) -> float:
        """What the errors of the minor's codes can add."""
        return (
            self.minor_norm * norms.minor_residual
            + self.minor_error * norms.minor_coded
            + self.minor_norm * norms.stage_tail
        )
