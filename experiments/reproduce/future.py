"""Future work, soft mode: recall, share proved exact and speed against beta from 0 to alpha."""

from __future__ import annotations

from functools import partial

import hiernorm
from hiernorm.bench.cases import RECOMMENDED, Group
from hiernorm.bench.measure import recall
from hiernorm.bench.methods import OwnEngine, Search
from hiernorm.reference import Float32Array
from hiernorm.reproduce.measure import time_methods
from hiernorm.reproduce.store import Result
from hiernorm.reproduce.work import Part, Run, Work

STEPS = 8
"""Beta goes from 0 to alpha in so many steps."""


class SoftEngine(OwnEngine):
    """The cascade that skips as if the minor could add no more than beta."""

    def __init__(self, index: hiernorm.Index, beta: float) -> None:
        super().__init__("cascade", RECOMMENDED)
        self.index = index
        self.name = self.index_name = f"beta={beta:g}"
        self._beta = beta

    def prepare(self, group: Group) -> Search:
        """Return a search that yields ids."""
        return lambda queries: self.search(queries, group.k).ids

    def search(self, queries: Float32Array, k: int) -> hiernorm.Hits:
        """Search one by one, with one thread."""
        return self.index.search(queries, k, beta=self._beta, threads=1, batch_size=1)


def plan(work: Work) -> list[Run]:
    """One run per scene."""
    return [Run(scene, 45, partial(_measure, work, scene)) for scene in work.options.tests]


def _measure(work: Work, name: str) -> Result:
    major, alpha = RECOMMENDED
    variant, size = work.variant(RECOMMENDED), work.options.size
    data = work.warehouse.build(name, variant, size.section_entries)
    index = hiernorm.Index(data.entries.shape[1], major=major, alpha=alpha)
    index.add(data.entries)
    engines = {
        beta: SoftEngine(index, beta) for beta in (alpha * i / STEPS for i in range(STEPS + 1))
    }
    times = time_methods(work, list(engines.values()), data)
    true = index.search(data.queries, 1).ids
    rows = []
    for beta, engine in engines.items():
        hits = engine.search(data.queries, 1)
        certificate = hits.certificate
        rows.append(
            {
                "beta": beta,
                "recall": recall(hits.ids, true, 1),
                "proved": float(certificate.exact.mean()),
                "worst_gap": float(certificate.gap.max()),
                "phase2": float(certificate.phase2_share.mean()),
                **times[engine.name],
            }
        )
    return {"entries": len(data.entries), "queries": len(data.queries), "rows": rows}


PART = Part("soft", "Future work: soft mode, beta below alpha", plan)
