"""What was measured and what the paper says: all that tables, pictures and claims read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from experiments.harness.points import ALL_POINTS, RECOMMENDED, Point, slug
from experiments.harness.records import Result, Store
from experiments.harness.timing import mean_ratio
from experiments.speed.goals import TRUSTED_RECALL

EXPERIMENT = "reproduce"
FLAT = "flat"
DIM = 128

SETTINGS = "settings.json"
"""Beside the report: what its runs were made with."""


@cache
def load_paper() -> dict[str, Any]:
    """All figures, with their source.

    Examples
    --------
    >>> load_paper()["scenes"]
    ['trevi', 'halfdome']
    """
    text = Path(__file__).with_name("paper.json").read_text(encoding="utf-8")
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


@dataclass(frozen=True)
class Speed:
    """Times the speed of FAISS flat: by averaged times, and the range over the runs.

    A graph that was tuned has the recall that it was tuned for as its `target`.
    """

    mean: float
    low: float
    high: float
    seconds: float
    recall: float
    target: float | None = None
    setting: str = ""


@dataclass(frozen=True)
class Quality:
    """FPR@95 and its 95% interval."""

    fpr95: float
    low: float
    high: float


class Findings:
    """The finished runs of a reproduction.

    Parameters
    ----------
    out
        Its folder.
    """

    def __init__(self, out: Path) -> None:
        self.settings = read_settings(out)
        self.store = Store(out / "runs", EXPERIMENT, self.settings)
        self.records = self.store.records()
        self._results: dict[str, Result] = {r.name: r.result for r in self.records}
        self.train: str = self.settings["train"]
        self.tests: list[str] = self.settings["tests"]
        self.size: dict[str, Any] = self.settings["size"]

    @property
    def has_official_scenes(self) -> bool:
        """Whether the scenes are those of the paper, by name."""
        train = load_paper()["training"]["train_scene"]
        return self.train.startswith(train) and self.tests == load_paper()["scenes"]

    def get(self, name: str) -> Result | None:
        """The result of a run, or None where it is not finished."""
        return self._results.get(name)

    def quality(self, what: str | Point, scene: int) -> Quality | None:
        """FPR@95 of ``"sift"``, ``"plain"`` or (K, alpha) on the first or second test scene."""
        name = what if isinstance(what, str) else slug(what)
        found = self.get(f"quality/{self.tests[scene]}-{name}")
        return None if found is None else Quality(found["fpr95"], found["low"], found["high"])

    def left_without_match(self, what: str | Point, scene: int) -> float | None:
        """Share of a test scene that Phase 2 evaluates for patches without a match there."""
        name = what if isinstance(what, str) else slug(what)
        found = self.get(f"quality/{self.tests[scene]}-{name}")
        if found is None or found["phase2"] is None:
            return None
        share: float = found["phase2"]["without_match"]
        return share

    def qualities(self, scene: int, major: int) -> list[tuple[float, Quality]]:
        """Alpha and FPR@95 of one K, alpha ascending; only what is finished."""
        rows = ((p[1], self.quality(p, scene)) for p in ALL_POINTS if p[0] == major)
        return [(alpha, quality) for alpha, quality in rows if quality is not None]

    def speed(self, point: Point | None, scene: int, family: str) -> Speed | None:
        """The speed of a family of methods in Table 3's setting."""
        found = self.get(f"speed/{self.tests[scene]}-{slug(point)}")
        speeds = {} if found is None else speeds_of(found)
        return next((s for (f, _), s in speeds.items() if f == family), None)

    def queries_per_run(self, family: str) -> str:
        """How many queries one run of Table 3 timed, the fewest and the most."""
        counts = [
            row["queries"]
            for record in self.records
            if record.name.startswith("speed/")
            for row in record.result["measurements"]
            if row["family"] == family
        ]
        if not counts:
            return "none"
        low, high = min(counts), max(counts)
        return str(low) if low == high else f"{low} to {high}"

    def phase2(self, point: Point, scene: int, queries: str = "matched") -> float | None:
        """The Phase-2 share in Table 3's setting."""
        found = self.get(f"speed/{self.tests[scene]}-{slug(point)}")
        if found is None or found["phase2"] is None:
            return None
        share: float | None = found["phase2"][queries]
        return share

    def graph_speeds(self, n: int, alpha: float) -> dict[tuple[str, str], Speed]:
        """Speeds of all methods of Table 4 at one size and alpha, by family and name."""
        point = (RECOMMENDED[0], alpha)
        found = self.get(f"graphs/n{n}-{slug(point)}")
        if found is None and n == self.size["entries"]:
            found = self.get(f"speed/{self.tests[0]}-{slug(point)}")
        return {} if found is None else speeds_of(found)

    def rival(self, n: int) -> tuple[str, Speed] | None:
        """The hnswlib whose recall can be trusted: tuned for it, or of the smallest ef."""
        speeds = self.graph_speeds(n, RECOMMENDED[1])
        graphs = [(name, s) for (family, name), s in speeds.items() if family == "hnswlib"]
        graphs.sort(key=lambda pair: pair[1].target is None)
        trusted = (
            (name, s)
            for name, s in graphs
            if (s.recall if s.target is None else s.target) >= TRUSTED_RECALL
        )
        return next(trusted, None)


def speeds_of(result: Result) -> dict[tuple[str, str], Speed]:
    """Speeds of all methods of a benchmark's case, by family and name, in order."""
    rows = result["measurements"]
    flat = next((row["seconds_rounds"] for row in rows if row["family"] == FLAT), None)
    if flat is None:
        return {}
    return {
        (row["family"], row["method"]): Speed(
            mean_ratio(flat, row["seconds_rounds"]),
            row["speedup_low"],
            row["speedup_high"],
            sum(row["seconds_rounds"]) / len(row["seconds_rounds"]),
            row["recall"],
            row.get("target"),
            row.get("setting") or row["method"].rpartition(" ")[2],
        )
        for row in rows
    }


def read_settings(out: Path) -> dict[str, Any]:
    """The settings of an earlier reproduction, to render its report again."""
    file = out / SETTINGS
    if not file.is_file():
        raise FileNotFoundError(f"no reproduction in {out}: it has no {SETTINGS}")
    settings: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return settings
