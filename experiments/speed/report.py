"""The report of a run: plain records that go to JSON and come back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hiernorm.bench.cases import Manner

FORMAT = 1


@dataclass(frozen=True)
class Measurement:
    """One method in one group of one case. Times are seconds per query."""

    case: str
    n: int
    major: int | None
    alpha: float | None
    manner: Manner
    k: int
    threads: int
    family: str
    method: str
    seconds: float
    seconds_rounds: list[float]
    queries: int
    speedup: float | None
    """Median over the rounds of (FAISS flat / this method); None without FAISS."""
    speedup_low: float | None
    speedup_high: float | None
    recall: float


@dataclass(frozen=True)
class Build:
    """What it took to build one method's index, with one thread."""

    case: str
    n: int
    major: int | None
    alpha: float | None
    family: str
    method: str
    seconds: float
    memory_ratio: float | None
    """Bytes of the index over bytes of the float32 vectors; None where a peer does not tell."""


@dataclass(frozen=True)
class Work:
    """What one of our engines left to do after the major scan."""

    case: str
    family: str
    k: int
    phase2_share: float
    """Mean share of the entries that the engine's own bound on the major left over."""
    settled: float
    """Mean number of entries whose canonical score was computed."""


@dataclass(frozen=True)
class Goal:
    """A floor to stay above, an aim to reach, and what was measured (None: not in this run)."""

    name: str
    unit: str
    floor: float
    aim: float
    more_is_better: bool
    measured: float | None

    @property
    def verdict(self) -> str:
        """`aim`, `floor`, `missed` or `not measured`."""
        if self.measured is None:
            return "not measured"
        sign = 1 if self.more_is_better else -1
        if sign * self.measured >= sign * self.aim:
            return "aim"
        return "floor" if sign * self.measured >= sign * self.floor else "missed"


@dataclass
class Report:
    """All that a run found out."""

    machine: dict[str, Any]
    options: dict[str, Any]
    missing: dict[str, str]
    measurements: list[Measurement] = field(default_factory=list)
    builds: list[Build] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)

    def to_json(self) -> str:
        """Write the report as JSON text."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Read a report back."""
        fields = json.loads(text)
        found = fields.pop("format", None)
        if found != FORMAT:
            raise ValueError(f"expected a benchmark report of format {FORMAT}, got {found}")
        records = {"measurements": Measurement, "builds": Build, "work": Work, "goals": Goal}
        for name, record in records.items():
            fields[name] = [record(**row) for row in fields[name]]
        return cls(**fields)

    @classmethod
    def load(cls, file: Path) -> Report:
        """Read the report of an earlier run."""
        return cls.from_json(file.read_text(encoding="utf-8"))
