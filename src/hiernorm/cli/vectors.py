"""Files of vectors that a command reads as a whole."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from hiernorm.array_types import AnyArray
from hiernorm.storage.sources import read_pieces


def read_vectors(path: Path) -> AnyArray:
    """Return all rows of a file; an error names it if there are none."""
    pieces = [rows for rows, _ in read_pieces(path)]
    if not pieces:
        raise click.ClickException(f"{path} holds no vectors")
    return np.concatenate(pieces)
