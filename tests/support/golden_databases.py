"""Makes the databases of format version 1 that the tests keep; run once per version, never again.

Usage: python tests/support/golden_databases.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import hiernorm
from database_support import with_cells

DIM, MAJOR, ALPHA, ENTRIES = 8, 3, 0.125, 330
CASES: dict[str, dict[str, Any]] = {
    "hn-ip": {"major": MAJOR, "alpha": ALPHA},
    "hn-cosine-cells": {"major": MAJOR, "alpha": ALPHA, "metric": "cosine"},
    "plain-ip": {},
    "plain-l2": {"metric": "l2"},
}


def make_rows(seed: int, count: int) -> np.ndarray:
    """Normalised Gaussian rows."""
    rng = np.random.default_rng(seed)
    return hiernorm.normalize(rng.standard_normal((count, DIM)), MAJOR, ALPHA)


def make_database(path: Path, parameters: dict[str, Any]) -> hiernorm.Database:
    """Three segments: with codes and deleted entries, without codes, and a replaced entry."""
    db = hiernorm.Database.create(path, DIM, **parameters)
    rows = make_rows(1, ENTRIES)
    db.add(rows[:300], np.arange(300) * 5 - 200)
    db.add(rows[300:], np.arange(30) + 10_000)
    db.delete([-200, 0, 10_003])
    db.upsert(make_rows(2, 1), [5])
    return db


def describe(db: hiernorm.Database) -> dict[str, Any]:
    """What every later version must find in it."""
    hits = db.search(make_rows(3, 4), 5)
    return {
        "digest": db.digest,
        "entries": len(db),
        "ids": hits.ids.tolist(),
        "scores": [[score.hex() for score in row] for row in hits.scores.tolist()],
    }


def main() -> None:
    """Write all cases, each with its answers."""
    folder = Path(sys.argv[1])
    for name, parameters in CASES.items():
        with with_cells(True if name.endswith("cells") else None):
            db = make_database(folder / f"{name}.hn", parameters)
        (folder / f"{name}.json").write_text(json.dumps(describe(db), indent=1) + "\n")
        (folder / f"{name}.hn" / "lock").unlink()


if __name__ == "__main__":
    main()
