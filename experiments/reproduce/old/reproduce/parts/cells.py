"""Future work, sub-linear Phase 1: how many majors a search reads when entries lie in cells."""

from __future__ import annotations

from functools import partial

import hiernorm
from hiernorm.bench.cases import FASTEST, RECOMMENDED, Point
from hiernorm.bench.methods import OwnEngine
from hiernorm.reproduce.measure import time_methods
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import Part, Run, Work, slug

POINTS = (RECOMMENDED, FASTEST)


class _Built(OwnEngine):
    """The cascade over an index that is there already."""

    def __init__(self, name: str, index: hiernorm.Index, point: Point) -> None:
        super().__init__("cascade", point)
        self.index = index
        self.name = self.index_name = name


def plan(work: Work) -> list[Run]:
    """One run per size and point, on the first test scene."""
    size = work.options.size
    return [
        Run(f"n{n}-{slug(point)}", 10 + n / 20_000, partial(_measure, work, n, point))
        for n in (size.section_entries, size.entries)
        for point in POINTS
    ]


def _measure(work: Work, n: int, point: Point) -> Result:
    major, alpha = point
    data = work.warehouse.build(work.options.tests[0], work.variant(point), n)
    engines = []
    for name, cells in (("with cells", True), ("without cells", False)):
        index = hiernorm.Index(data.entries.shape[1], major=major, alpha=alpha, cells=cells)
        index.add(data.entries)
        engines.append(_Built(name, index, point))
    times = time_methods(work, engines, data)
    work_of = {
        engine.name: engine.index.search(data.queries, 1, threads=1, batch_size=1).certificate.work
        for engine in engines
    }
    return {
        "entries": n,
        "point": point,
        **{
            name: {
                **times[name],
                "cells_opened": float(counts["cells"].mean()),
                "scanned": float(counts["scanned"].mean()),
                "scanned_share": float(counts["scanned"].mean()) / n,
            }
            for name, counts in work_of.items()
        },
    }


PART = Part("cells", "Future work: sub-linear Phase 1 by cells", plan)
