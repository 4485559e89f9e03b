"""What `normalize` does to embeddings that were not trained for it: the neighbours that stay.

Texts are drawn from the corpus of `experiments.text`. For each K, all embeddings are normalised
hierarchically. The k nearest others of each are compared with the k nearest before.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

import hiernorm
from experiments.harness.command import (
    FOLDER,
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.records import Recorder
from experiments.text.embeddings import corpus_option, embed, read_texts
from hiernorm.array_types import Float32Array, Int64Array

MAJORS = (16, 32, 64, 128, 256)
ALPHA = 1 / 8
TEXTS = 4_000
COUNTS = (1, 10)


def nearest_others(x: Float32Array) -> Int64Array:
    """The nearest entries of each, other than itself, best first: ``(n, COUNTS[-1])``."""
    index = hiernorm.Index(dim=x.shape[1], threads=1)
    index.add(x)
    found = index.search(x, k=COUNTS[-1] + 1).ids
    return np.array([row[row != own][: COUNTS[-1]] for own, row in enumerate(found)])


def share_kept(found: Int64Array, true: Int64Array, k: int) -> float:
    """Mean share of the k nearest before that are among the k nearest now.

    Examples
    --------
    >>> share_kept(np.array([[1, 2], [0, 3]]), np.array([[2, 1], [0, 2]]), k=2)
    0.75
    """
    shared = (found[:, :k, np.newaxis] == true[:, np.newaxis, :k]).any(axis=2)
    return float(shared.mean())


@click.command("text.post_hoc", cls=Experiment)
@corpus_option
@click.option("--cache", type=FOLDER, help="Keeps embeddings for the next run.")
@seed_option
@smoke_option
@out_option
def main(corpus: Path | None, cache: Path | None, seed: int, smoke: bool, out: Path | None) -> None:
    """Count the nearest neighbours that stay."""
    texts = read_texts(corpus)
    chosen = np.random.default_rng(seed).permutation(len(texts))[: 100 if smoke else TEXTS]
    recorder = Recorder("text.post_hoc", seed, {"alpha": ALPHA, "majors": list(MAJORS)})
    x = embed([texts[row] for row in np.sort(chosen)], cache)
    true = nearest_others(x)
    kept = []
    for major in MAJORS:
        found = nearest_others(hiernorm.normalize(x, major, ALPHA))
        kept.append({"major": major, **{f"k={k}": share_kept(found, true, k) for k in COUNTS}})
    recorder.write(
        results_folder("text", out, smoke) / "post_hoc.json", {"texts": len(x), "kept": kept}
    )


if __name__ == "__main__":
    main()
