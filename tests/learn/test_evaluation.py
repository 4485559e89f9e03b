"""FPR@95 and its neighbours are what their definitions say, on made scenes and a real one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import hiernorm
from hiernorm.cli.app import app
from hiernorm.learn import PhotoTour, evaluate_scene, load_describer, measure_phase2, save_weights
from hiernorm.learn.export import encode_onnx
from hiernorm.learn.measures import (
    bootstrap_fpr95,
    compute_roc,
    major_energy,
    pair_distances,
)
from hiernorm.learn.pairs import Pairs, make_pairs
from hiernorm.learn.sift import describe_sift
from patch_scenes import shared_scene, write_scene
from random_networks import random_network
from support import hn_rows, random_rows


def fpr95_by_definition(distances: np.ndarray, matching: np.ndarray) -> float:
    """Accept up to the smallest distance that accepts 95% of the matches."""
    matches = np.sort(distances[matching])
    threshold = matches[int(np.ceil(0.95 * len(matches))) - 1]
    return float((distances[~matching] <= threshold).mean())


@pytest.mark.parametrize("seed", range(5))
def test_fpr95_is_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matching = rng.random(997) < 0.5
    distances = np.round(rng.normal(np.where(matching, 0, 2), 1), 2)  # with ties
    assert compute_roc(distances, matching).fpr95 == fpr95_by_definition(distances, matching)


def test_bootstrap_surrounds_the_figure_and_resamples_points() -> None:
    points = np.repeat(np.arange(200), 3)
    rows = random_rows(200, 8)[points] + 0.8 * random_rows(600, 8, seed=1)
    pairs = make_pairs(points)
    distances = pair_distances(rows, pairs)
    figure = compute_roc(distances, pairs.matching).fpr95
    samples = bootstrap_fpr95(distances, pairs, points, rounds=300)
    low, high = np.percentile(samples, [2.5, 97.5])
    assert low < figure < high
    np.testing.assert_array_equal(samples, bootstrap_fpr95(distances, pairs, points, rounds=300))
    # The interval is wider than that of independent pairs: pairs of a point go together.
    rng = np.random.default_rng(0)
    independent = []
    for _ in range(300):
        drawn = rng.integers(0, len(pairs), len(pairs))
        independent.append(fpr95_by_definition(distances[drawn], pairs.matching[drawn]))
    assert samples.std() > np.std(independent)


def test_bootstrap_draws_again_until_both_kinds_of_pairs_are_there() -> None:
    points = np.array([0, 0, 1, 1])
    pairs = Pairs(np.array([0, 2, 0]), np.array([1, 3, 2]), np.array([True, True, False]))
    samples = bootstrap_fpr95(np.array([0.1, 0.9, 0.5]), pairs, points, rounds=200)
    # Rounds without a false pair are drawn again; with one, the far match accepts it.
    np.testing.assert_array_equal(samples, 1.0)


def test_energy_of_the_major() -> None:
    rows = np.float32([[3, 4, 0], [0, 0, 2]])
    assert major_energy(rows, 2) == 0.5
    assert major_energy(rows, 1) == pytest.approx(9 / 25 / 2)


def test_phase2_counts_what_algorithm_1_evaluates() -> None:
    points = np.repeat(np.arange(60), 4)
    rows = random_rows(60, 24)[points] + 0.3 * random_rows(240, 24, seed=1)
    x = hiernorm.normalize(rows, 8, 1 / 8)
    found = measure_phase2(x, points, 8, 1 / 8)
    assert (found.entries, found.queries) == (30 * 3, 30)
    assert 0 < found.with_match < found.without_match < 1
    others = hn_rows(500, 24, 8)
    more = measure_phase2(x, points, 8, 1 / 8, others)
    assert more.entries == 590
    # By hand, from the definition: entries whose bound exceeds the running best, in order.
    rng = np.random.default_rng(0)
    order = rng.permutation(240)
    _, first = np.unique(points[order], return_index=True)
    queries = order[first]
    chosen = rng.permutation(60)
    stored = np.isin(points, chosen[:30])
    stored[queries] = False
    shares = []
    for q in x[queries[chosen[30:]]].astype(np.float64):
        major = x[stored][:, :8] @ q[:8]
        full = x[stored] @ q
        best = full[np.argmax(major)]
        evaluated = 1
        for i in range(len(major)):
            if i != np.argmax(major) and major[i] + 1 / 8 > best:
                evaluated += 1
                best = max(best, full[i])
        shares.append(evaluated / len(major))
    assert found.without_match == pytest.approx(np.mean(shares), abs=0.5 / 90)


def test_sift_has_the_figures_that_the_scene_is_known_for() -> None:
    tour = PhotoTour.open(shared_scene("fox"))
    result = evaluate_scene(tour, load_describer("sift"), rounds=100)
    assert result.fpr95 == pytest.approx(0.045, abs=0.001)
    assert result.low < result.fpr95 < result.high


def test_root_sift_is_the_square_root_of_the_histogram() -> None:
    patches = np.random.default_rng(0).integers(0, 256, (5, 64, 64), dtype=np.uint8)
    plain, root = describe_sift(patches), describe_sift(patches, root=True)
    np.testing.assert_allclose(root, np.sqrt(plain / plain.sum(axis=1, keepdims=True)), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(plain, axis=1), 1, rtol=1e-6)
    assert not describe_sift(np.zeros((1, 64, 64), np.uint8)).any()


def test_the_command_writes_table_json_and_picture(tmp_path: Path) -> None:
    scene = write_scene(tmp_path / "tiny")
    save_weights(tmp_path / "mine.safetensors", random_network(major=8))
    options = ["--data", str(scene), "--model", "sift", "--model", "rootsift", "--model", "hn16"]
    options += ["--model", str(tmp_path / "mine.safetensors"), "--rounds", "20"]
    result = CliRunner().invoke(app, ["evaluate", *options, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert [r["model"] for r in report["results"]] == ["sift-48", "rootsift-48", "hn16", "mine"]
    for row in report["results"]:
        assert row["model"] in result.output
        assert 0 <= row["low"] <= row["fpr95"] <= row["high"] <= 1
    last = report["results"][-1]
    assert (last["major"], last["alpha"]) == (8, 1 / 8)
    assert 0 < last["energy"] < 1
    assert last["phase2"]["entries"] == 36
    assert (tmp_path / "out" / "roc.png").read_bytes()[:4] == b"\x89PNG"
    printed = CliRunner().invoke(app, ["evaluate", *options, "--json"])
    assert json.loads(printed.stdout) == report


def test_a_label_does_not_change_the_normalisation(tmp_path: Path) -> None:
    patches = np.random.default_rng(0).integers(0, 256, (6, 64, 64), dtype=np.uint8)
    network = random_network(major=8)
    save_weights(tmp_path / "mine.safetensors", network)
    (tmp_path / "mine.onnx").write_bytes(encode_onnx(network))
    expected = load_describer(str(tmp_path / "mine.onnx"))(patches)
    for suffix in ("safetensors", "onnx"):
        labelled = load_describer(f"run 1={tmp_path}/mine.{suffix}")
        found = labelled(patches)
        assert labelled.name == "run 1"
        assert (found.major, found.alpha) == (8, 1 / 8)
        np.testing.assert_array_equal(found.descriptors, expected.descriptors)


def test_unknown_models_are_named(tmp_path: Path) -> None:
    scene = write_scene(tmp_path / "tiny")
    result = CliRunner().invoke(app, ["evaluate", "--data", str(scene), "--model", "surf"])
    assert result.exit_code == 1
    assert "no model 'surf': give one of sift, rootsift" in result.output
