"""Finished runs, looked up by what they measured: all that tables, pictures and claims read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiernorm.bench.cases import RECOMMENDED, Point
from hiernorm.bench.goals import TRUSTED_RECALL
from hiernorm.reproduce.measure import mean_ratio
from hiernorm.reproduce.run import read_settings
from hiernorm.reproduce.store import Result, Store
from hiernorm.reproduce.work import POINTS, slug

FLAT = "flat"


@dataclass(frozen=True)
class Speed:
    """Times the speed of FAISS flat: by averaged times, and the range over the runs."""

    mean: float
    low: float
    high: float
    seconds: float
    recall: float


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
        self.store = Store(out / "runs", self.settings)
        self.records = self.store.records()
        self._results: dict[str, Result] = {r["name"]: r["result"] for r in self.records}
        self.train: str = self.settings["train"]
        self.tests: list[str] = self.settings["tests"]
        self.size: dict[str, Any] = self.settings["size"]

    def get(self, name: str) -> Result | None:
        """The result of a run, or None where it is not finished."""
        return self._results.get(name)

    def quality(self, what: str | Point, scene: int) -> Quality | None:
        """FPR@95 of ``"sift"``, ``"plain"`` or (K, alpha) on the first or second test scene."""
        name = what if isinstance(what, str) else slug(what)
        found = self.get(f"quality/{self.tests[scene]}-{name}")
        return None if found is None else Quality(found["fpr95"], found["low"], found["high"])

    def qualities(self, scene: int, major: int) -> list[tuple[float, Quality]]:
        """Alpha and FPR@95 of one K, alpha ascending; only what is finished."""
        rows = ((p[1], self.quality(p, scene)) for p in POINTS if p[0] == major)
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
            if record["name"].startswith("speed/")
            for row in record["result"]["measurements"]
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
        """The hnswlib of the smallest ef whose recall can be trusted."""
        speeds = self.graph_speeds(n, RECOMMENDED[1])
        graphs = [(name, s) for (family, name), s in speeds.items() if family == "hnswlib"]
        return next(((name, s) for name, s in graphs if s.recall >= TRUSTED_RECALL), None)


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
        )
        for row in rows
    }
