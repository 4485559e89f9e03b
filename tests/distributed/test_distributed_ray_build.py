"""Builds on a Ray cluster, and the commands for it: from files and datasets to the same answers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from build_support import check_interrupted_build, write_parquet
from database_support import ALPHA, MAJOR, QUERIES, right_hits, vectors
from hiernorm.cli.app import app
from hiernorm.distributed import ShardedDatabase, build
from ray_cluster import PATIENCE, RAY_MARKS, cluster
from sharded_support import assert_equals_index

ray: Any = pytest.importorskip("ray")
pytestmark = [pytest.mark.ray, *RAY_MARKS]
__all__ = ["cluster"]


def test_a_build_goes_on_from_every_step(cluster, tmp_path):
    check_interrupted_build(tmp_path, ("split", "fill"), shards=3)


def test_a_dataset_whose_last_step_makes_the_vectors(cluster, tmp_path):
    data = pytest.importorskip("ray.data")

    def describe(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        ids = batch["id"]
        return {"ids": ids, "vectors": np.stack([vectors(int(i), 1)[0] for i in ids])}

    path = tmp_path / "db"
    table = data.range(500).map_batches(describe)
    assert build(path, table, shards=2, major=MAJOR, alpha=ALPHA) == 500
    with ShardedDatabase.open(path, deadline=PATIENCE) as db:
        assert_equals_index(db, {i: vectors(i, 1)[0] for i in range(500)})


def test_bad_vectors_and_ids_that_come_twice_are_errors_of_a_build(cluster, tmp_path):
    rows = vectors(1, 20)
    rows[3, 2] = np.nan
    np.save(tmp_path / "bad.npy", rows)
    with pytest.raises(ValueError, match=r"bad\.npy: vectors row 3, dimension 2 is NaN"):
        build(tmp_path / "a", tmp_path / "bad.npy", shards=2)
    write_parquet(tmp_path / "twice.parquet", np.arange(10) % 9, vectors(1, 10))
    with pytest.raises(ValueError, match="id 0 is given twice"):
        build(tmp_path / "b", tmp_path / "twice.parquet", shards=2)


def test_the_command_line(cluster, tmp_path):
    rows = vectors(1, 60)
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "queries.npy", QUERIES)
    database = str(tmp_path / "db")

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["cluster", *words])
        assert done.exit_code == code, done.output
        return done.stdout

    split = ("--major", str(MAJOR), "--alpha", str(ALPHA))
    built = run("build", database, str(tmp_path / "rows.npy"), "--shards", "2", *split)
    assert built == f"{database}: 60 vectors in 2 shards\n"
    ids, scores = right_hits(dict(enumerate(rows)), 3)
    queries = str(tmp_path / "queries.npy")
    lines = run("search", database, queries, "-k", "3", "--deadline", str(PATIENCE)).splitlines()
    assert lines[0] == "query\trank\tid\tscore"
    assert lines[1:] == [
        f"{q}\t{rank}\t{ids[q, rank]}\t{float(scores[q, rank])!r}"
        for q in range(len(QUERIES))
        for rank in range(3)
    ]
    facts = json.loads(run("info", database, "--deadline", str(PATIENCE), "--json"))
    assert (facts["entries"], facts["shards"], facts["segments"]) == (60, 2, 2)
    verified = run("check", database, "--deadline", str(PATIENCE))
    assert verified == f"{database}: all is as it was written\n"
    segment = next((tmp_path / "db" / "shard-00001").glob("segment-*"))
    data = bytearray(segment.read_bytes())
    data[-100] ^= 1
    segment.write_bytes(data)
    assert "shard 1" in run("check", database, "--deadline", str(PATIENCE), code=3)
