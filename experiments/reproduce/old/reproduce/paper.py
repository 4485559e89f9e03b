"""The paper's own figures, read from ``paper.json``, by the names that our runs have."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from hiernorm.bench.cases import Point


@cache
def load_paper() -> dict[str, Any]:
    """All figures, with their source.

    Examples
    --------
    >>> load_paper()["scenes"]
    ['trevi', 'halfdome']
    """
    text = (files("hiernorm.reproduce") / "paper.json").read_text(encoding="utf-8")
    figures: dict[str, Any] = json.loads(text)
    return figures


def paper_fpr95(what: str | Point, scene: int) -> float:
    """FPR@95 of ``"sift"``, ``"plain"`` or (K, alpha) on the paper's first or second test scene.

    Examples
    --------
    >>> paper_fpr95("plain", 0), paper_fpr95((16, 1 / 8), 1)
    (0.0062, 0.0462)
    """
    figures, name = load_paper()["fpr95"], load_paper()["scenes"][scene]
    row = figures[what] if isinstance(what, str) else _row(figures["hn"], what)
    return float(row[name])


def paper_speed(point: Point, scene: int) -> tuple[float, float]:
    """Speed-up and Phase-2 share of Table 3.

    Examples
    --------
    >>> paper_speed((8, 1 / 32), 0)
    (13.7, 0.004)
    """
    cell = _row(load_paper()["speed_500k"], point)[load_paper()["scenes"][scene]]
    return float(cell["speedup"]), float(cell["phase2_pct"]) / 100


def paper_graph(method: str, n: int) -> float | None:
    """Speed-up of Table 4 by the paper's name of the method; None where it has none.

    Examples
    --------
    >>> paper_graph("HNSW ef=50", 99_000), paper_graph("HNSW ef=50", 500_000)
    (111.9, None)
    """
    for row in load_paper()["graphs"]:
        if row["method"] == method:
            value = row["speedup"].get(str(n))
            return None if value is None else float(value)
    return None


def _row(rows: list[dict[str, Any]], point: Point) -> dict[str, Any]:
    return next(row for row in rows if (row["K"], row["alpha"]) == point)
