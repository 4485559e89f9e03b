"""Properties of the synthetic vectors: seeded, normalised, and as hard as documented."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import hiernorm
from hiernorm import synthetic

N, M = 4_000, 100


def draw_hierarchical(seed: int = 0, **parameters: float) -> synthetic.Dataset:
    return synthetic.hierarchical(N, M, seed=seed, **parameters)  # type: ignore[arg-type]


def draw_plain(seed: int = 0) -> synthetic.Dataset:
    return synthetic.plain(N, M, seed=seed)


@pytest.mark.parametrize("draw", [draw_hierarchical, draw_plain])
def test_same_seed_gives_same_bytes(draw):
    first, second = draw(seed=7), draw(seed=7)
    assert first.database.tobytes() == second.database.tobytes()
    assert first.queries.tobytes() == second.queries.tobytes()
    assert_array_equal(first.sources, second.sources)


@pytest.mark.parametrize("draw", [draw_hierarchical, draw_plain])
def test_other_seed_gives_other_vectors(draw):
    assert not np.array_equal(draw(seed=0).database, draw(seed=1).database)


@pytest.mark.parametrize("draw", [draw_hierarchical, draw_plain])
def test_shapes_types_and_unit_length(draw):
    data = draw()
    assert data.database.shape == (N, 128)
    assert data.queries.shape == (M, 128)
    assert data.database.dtype == data.queries.dtype == np.float32
    for rows in (data.database, data.queries):
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


def test_energy_split_is_the_one_asked_for():
    data = draw_hierarchical(major=8, alpha=1 / 4)
    for rows in (data.database, data.queries):
        np.testing.assert_allclose(np.linalg.norm(rows[:, 8:], axis=1), 1 / 2, atol=1e-6)


def test_chunks_leave_no_trace(monkeypatch):
    whole = draw_hierarchical()
    monkeypatch.setattr(synthetic, "CHUNK_ROWS", 999)
    assert_array_equal(whole.database, draw_hierarchical().database)


def test_two_thirds_of_the_plain_energy_lie_in_sixteen_hidden_directions():
    rows = draw_plain().database
    energies = np.linalg.svd(rows, compute_uv=False) ** 2
    assert 0.60 < energies[:16].sum() / energies.sum() < 0.70
    per_coordinate = np.sort((rows**2).sum(axis=0))[::-1]
    assert per_coordinate[:16].sum() / per_coordinate.sum() < 0.35


@pytest.mark.parametrize(("alpha", "least", "most"), [(1 / 8, 0.01, 0.06), (1 / 32, 0.002, 0.015)])
def test_phase2_share_is_in_the_documented_range(alpha, least, most):
    data = synthetic.hierarchical(20_000, 200, alpha=alpha, seed=0)
    index = hiernorm.Index(128, major=16, alpha=alpha)
    index.add(data.database)
    share = index.search(data.queries, k=1).certificate.phase2_share.mean()
    assert least < share < most


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n": 0, "m": 1}, "at least one entry and one query, got n=0, m=1"),
        ({"n": 10, "m": 1, "major": 128}, "major must lie between 0 and 128, got 128"),
    ],
)
def test_impossible_sizes_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        synthetic.hierarchical(**parameters)


def test_plain_vectors_need_room_for_a_tail():
    with pytest.raises(ValueError, match="more than 16 dimensions, got 16"):
        synthetic.plain(10, 1, dim=16)
