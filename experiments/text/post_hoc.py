"""What `normalize` does to embeddings that were not trained for it: the neighbours that stay.

Texts are drawn from the corpus of `experiments.text`. For each K, every embedding is normalised
hierarchically, and its nearest other embedding is compared with its nearest one before.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

import hiernorm
from experiments.harness.command import (
    EXISTING_FILE,
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.records import Recorder
from experiments.text.__main__ import embed, read_descriptions
from hiernorm.array_types import Float32Array, Int64Array

MAJORS = (16, 32, 64, 128, 256)
ALPHA = 1 / 8
TEXTS = 4_000


def nearest_others(x: Float32Array) -> Int64Array:
    """The nearest entry of each, other than itself: ``(n,)``."""
    index = hiernorm.Index(dim=x.shape[1], threads=1)
    index.add(x)
    ids = index.search(x, k=2).ids
    return np.where(ids[:, 0] == np.arange(len(x)), ids[:, 1], ids[:, 0])


@click.command("post_hoc", cls=Experiment)
@click.option("--corpus", type=EXISTING_FILE, help="A text per line  [apt's packages]")
@seed_option
@smoke_option
@out_option
def main(corpus: Path | None, seed: int, smoke: bool, out: Path | None) -> None:
    """Count the nearest neighbours that stay."""
    found = (
        read_descriptions() if corpus is None else corpus.read_text(encoding="utf-8").splitlines()
    )
    texts = list(dict.fromkeys(text for text in found if text))
    chosen = np.random.default_rng(seed).permutation(len(texts))[: 100 if smoke else TEXTS]
    recorder = Recorder("text.post_hoc", seed, {"alpha": ALPHA, "majors": list(MAJORS)})
    x = embed([texts[row] for row in np.sort(chosen)], None)
    true = nearest_others(x)
    kept = {
        str(major): float(np.mean(nearest_others(hiernorm.normalize(x, major, ALPHA)) == true))
        for major in MAJORS
    }
    recorder.write(
        results_folder("text", out, smoke) / "post_hoc.json", {"texts": len(x), "kept": kept}
    )


if __name__ == "__main__":
    main()
