"""How fast the descriptors of two HN networks are searched: the ratio of their times."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import geometric_mean, median

import click
import numpy as np

import hiernorm
from experiments.harness.command import (
    EXISTING_FOLDER,
    Experiment,
    out_option,
    results_folder,
    smoke_option,
)
from experiments.harness.records import Recorder
from hiernorm.array_types import Float32Array

SIZES = (10_000, 200_000)
HITS = (1, 10)
ROUNDS = 15


class Searched:
    """Descriptors of one network, some of them in an index.

    Parameters
    ----------
    folder
        What `experiments.growth.features` made.
    entries
        In the index.
    major, alpha
        Of the network.
    """

    def __init__(self, folder: Path, entries: int, major: int, alpha: float) -> None:
        features = np.load(folder / "features.npy", mmap_mode="r")[:entries]
        self.entries = len(features)
        self._queries: Float32Array = hiernorm.normalize(
            np.load(folder / "queries.npy"), major, alpha
        )
        self._index = hiernorm.Index(self._queries.shape[1], major=major, alpha=alpha)
        self._index.add(hiernorm.normalize(features, major, alpha))

    def microseconds(self, k: int) -> float:
        """Return the processor time of a query: single queries, one thread."""
        begun = time.process_time()
        self._index.search(self._queries, k, threads=1, batch_size=1)
        return 1e6 * (time.process_time() - begun) / len(self._queries)


@click.command("models.search_time", cls=Experiment)
@click.option("--new", type=EXISTING_FOLDER, required=True, help="Descriptors of one network.")
@click.option("--old", type=EXISTING_FOLDER, required=True, help="Of the other.")
@click.option("--major", default=16, show_default=True, help="K of both.")
@click.option("--alpha", default=1 / 8, show_default=True, help="Of both.")
@smoke_option
@out_option
def main(new: Path, old: Path, major: int, alpha: float, smoke: bool, out: Path | None) -> None:
    """Measure how long single queries take among the descriptors of two networks."""
    folder = results_folder("models", out, smoke)
    recorder = Recorder("models.search_time", None, {"rounds": ROUNDS})
    rows = []
    for entries in SIZES:
        both = [Searched(source, entries, major, alpha) for source in (new, old)]
        for k in HITS:
            times = [[each.microseconds(k) for each in both] for _ in range(2 if smoke else ROUNDS)]
            one, other = (median(column) for column in zip(*times, strict=True))
            row = {"n": both[0].entries, "k": k, "new": one, "old": other, "ratio": one / other}
            rows.append(row)
            click.echo(", ".join(f"{name} {value:.4g}" for name, value in row.items()))
    mean = geometric_mean(row["ratio"] for row in rows)
    click.echo(f"geometric mean of the ratios: {mean:.3f}")
    recorder.write(folder / "search_time.json", {"rows": rows, "mean": mean})
    click.echo(f"{folder / 'search_time.json'}")


if __name__ == "__main__":
    main()
