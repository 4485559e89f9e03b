"""What the tests of payload share: entries whose payload can be told from their vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

import hiernorm
from hiernorm.reference import Float32Array


def texts_of(rows: Float32Array) -> list[str]:
    """A text for every row that says which row it is."""
    return [row.tobytes().hex()[:16] for row in np.atleast_2d(rows)]


def payload_of(rows: Float32Array) -> dict[str, Any]:
    """Two columns that follow from the rows; one of them has missing values."""
    texts = texts_of(rows)
    return {"text": texts, "number": [int(t, 16) % 1000 if t[-1] > "3" else None for t in texts]}


def assert_payload_fits(db: hiernorm.Database) -> None:
    """The payload of every entry is that of its vector."""
    rows = db.reconstruct(db.ids)
    table = db.payload(columns=["text", "number"] if db.columns else None)
    assert table.column("id").to_pylist() == db.ids.tolist()
    if db.columns:
        expected = payload_of(rows) if len(rows) else {"text": [], "number": []}
        assert table.column("text").to_pylist() == expected["text"]
        assert table.column("number").to_pylist() == expected["number"]
