"""Filtered search: latency by the share of ids that are allowed, against FAISS with an IDSelector.

Single queries, one call each, one thread, k=10; methods take turns, medians are reported.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

import hiernorm
from experiments.harness.command import (
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.conditions import Group
from experiments.harness.methods import Search
from experiments.harness.records import Recorder
from experiments.harness.timing import FULL, SMOKE, Effort, measure_group
from hiernorm import synthetic
from hiernorm.extras import import_extra
from hiernorm.reference import Float32Array

DIM, MAJOR, ALPHA, K = 128, 16, 1 / 8, 10
SHARES = (1.0, 0.5, 0.1, 0.01, 0.0001)
QUERIES = 100
BoolArray = npt.NDArray[np.bool_]

CALLS = Group("calls", K, 1)


class FilteredDatabase:
    """Our database; None as the selection means no filter."""

    family = "cascade"
    name = index_name = "hiernorm"

    def __init__(self, db: hiernorm.Database, selection: Any | None) -> None:
        self._db = db
        self._selection = selection

    def build(self, database: Float32Array, seed: int) -> None:
        """It is there already."""

    def nbytes(self) -> None:
        """Unknown."""

    def hits(self, queries: Float32Array) -> hiernorm.Hits:
        """The whole answer."""
        return self._db.search(queries, K, where=self._selection, threads=1)

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids."""
        return lambda queries: self.hits(queries).ids


class FilteredFlat:
    """FAISS IndexFlatIP with a bitmap of the allowed ids; None means no filter."""

    family = "flat"
    name = index_name = "FAISS IndexFlatIP"

    def __init__(self, flat: Any, allowed: BoolArray | None) -> None:
        self._flat = flat
        self._options: dict[str, Any] = {}
        if allowed is not None:
            faiss = import_extra("faiss", extra="bench")
            self._bits = np.packbits(allowed, bitorder="little")
            selector = faiss.IDSelectorBitmap(len(allowed), faiss.swig_ptr(self._bits))
            self._options = {"params": faiss.SearchParameters(sel=selector)}

    def build(self, database: Float32Array, seed: int) -> None:
        """It is there already."""

    def nbytes(self) -> None:
        """Unknown."""

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids."""
        return lambda queries: self._flat.search(queries, K, **self._options)[1]


@click.command("filters", cls=Experiment)
@click.option("--entries", default=500_000, show_default=True)
@seed_option
@smoke_option
@out_option
def main(entries: int, seed: int, smoke: bool, out: Path | None) -> None:
    """Measure filtered search against FAISS."""
    faiss = import_extra("faiss", extra="bench")
    if smoke:
        entries = min(entries, 3_000)
    data = synthetic.hierarchical(entries, QUERIES, major=MAJOR, alpha=ALPHA, seed=seed)
    flat = faiss.IndexFlatIP(DIM)
    flat.add(data.database)
    rng = np.random.default_rng(seed)
    recorder = Recorder("filters", seed, {"entries": entries})
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        db = hiernorm.Database.create(Path(folder) / "db.hn", DIM, major=MAJOR, alpha=ALPHA)
        db.add(data.database)
        for share in SHARES:
            allowed = rng.random(entries) < share
            allowed[rng.integers(0, entries, K)] = True
            rows.append(measure(db, flat, data.queries, allowed, SMOKE if smoke else FULL))
    sizes = {"entries": entries, "dim": DIM, "major": MAJOR, "alpha": ALPHA, "k": K}
    file = results_folder("filters", out, smoke) / "filters.json"
    recorder.write(file, {**sizes, "rows": rows})
    click.echo(f"{'allowed':>10} {'hiernorm us':>12} {'faiss us':>10} {'ratio':>7} {'same ids':>9}")
    for row in rows:
        ratio = row["faiss_seconds"] / row["hiernorm_seconds"]
        click.echo(
            f"{row['allowed']:>10,} {row['hiernorm_seconds'] * 1e6:>12,.0f} "
            f"{row['faiss_seconds'] * 1e6:>10,.0f} {ratio:>7.1f} {row['same_ids']:>9.1%}"
        )


def measure(
    db: hiernorm.Database, flat: Any, queries: Float32Array, allowed: BoolArray, effort: Effort
) -> dict[str, Any]:
    """Time both with one filter, and compare their answers."""
    everything = bool(allowed.all())  # then each searches without a filter
    ours = FilteredDatabase(db, None if everything else db.select(np.flatnonzero(allowed)))
    theirs = FilteredFlat(flat, None if everything else allowed)
    timings = measure_group([ours, theirs], queries, CALLS, effort)
    hits, ids = ours.hits(queries), theirs.prepare(CALLS)(queries)
    return {
        "allowed": int(allowed.sum()),
        "share": float(allowed.mean()),
        "hiernorm_seconds": timings[ours.name].median,
        "faiss_seconds": timings[theirs.name].median,
        "scanned": float(hits.certificate.work["scanned"].mean()),
        "exact": bool(hits.certificate.exact.all()),
        "same_ids": float((hits.ids == ids).mean()),
    }


if __name__ == "__main__":
    main()
