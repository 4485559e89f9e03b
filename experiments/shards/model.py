"""What shards on Ray will take: a small simulation, fed with measured costs.

A query (or a batch) costs the client some work per call, waits on the way, costs the actor some
work per call and the scan of its shard, and costs the client the merge. Work shares processor
cores; what is waited for does not. `simulate` plays that event by event; `carry` applies the same
costs to machines that nobody has here. The experiment measures the costs and then compares
predictions with further measurements.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any

SEGMENT_ENTRIES = 2**20
"""The most of a segment for a major of 16."""


@dataclass(frozen=True)
class Costs:
    """Seconds of a core, measured: per call, per hit merged, per scan.

    `wait_call` is of the clock; a scan grows with a power of a segment's entries.
    """

    client_call: float
    server_call: float
    wait_call: float
    merge_call: float
    merge_hit: float
    scan_unit: float
    scan_power: float

    def scan(self, entries: float) -> float:
        """Seconds to search so many entries, for the batch that was measured.

        Cells save more the larger a segment is; segments are searched one after the other.
        """
        segments = max(1.0, entries / SEGMENT_ENTRIES)
        return segments * self.scan_unit * math.pow(entries / segments, self.scan_power)


@dataclass(frozen=True)
class Plan:
    """What is simulated: shards, one actor each; cores they share with the client; batches."""

    shards: int
    entries: int
    cores: float
    in_flight: int
    batches: int
    hits: int
    """That one shard returns for one batch."""


def fit_power(points: dict[int, float]) -> tuple[float, float]:
    """Unit and power of ``seconds = unit * entries ** power`` through the outer two points."""
    (n1, t1), (n2, t2) = min(points.items()), max(points.items())
    power = math.log(t2 / t1) / math.log(n2 / n1)
    return t1 / n1**power, power


class Processor:
    """Jobs that share cores evenly; none gets more than one."""

    def __init__(self, cores: float) -> None:
        self.cores = cores
        self.jobs: dict[int, float] = {}

    def rate(self) -> float:
        """Share of a core that each job gets."""
        return min(1.0, self.cores / len(self.jobs)) if self.jobs else 1.0

    def next_end(self) -> tuple[float, int] | None:
        """Seconds until the first job ends, and which."""
        if not self.jobs:
            return None
        job = min(self.jobs, key=lambda name: (self.jobs[name], name))
        return self.jobs[job] / self.rate(), job

    def advance(self, seconds: float) -> None:
        """Let the jobs run."""
        done = seconds * self.rate()
        for job in self.jobs:
            self.jobs[job] -= done


def simulate(costs: Costs, plan: Plan) -> dict[str, float]:
    """Seconds of all batches, and of one on average, from asking to the merged answer.

    A batch is sent (client), is on its way, is served by every shard (one at a time each), comes
    back and is merged (client, one thing at a time).
    """
    processor = Processor(plan.cores)
    clock, finished, started = 0.0, 0, 0
    scan = costs.scan(plan.entries / plan.shards) + costs.server_call
    send = costs.client_call * plan.shards
    merge = costs.merge_call + costs.merge_hit * plan.hits * plan.shards
    queues: list[list[int]] = [[] for _ in range(plan.shards)]
    client: list[tuple[int, str]] = []
    left = {}
    begun: dict[int, float] = {}
    latencies = []
    timers: list[tuple[float, int, str, int, int]] = []
    running: dict[int, tuple[str, int, int]] = {}
    ticket = 0

    def start(what: str, batch: int, shard: int, work: float) -> None:
        nonlocal ticket
        ticket += 1
        running[ticket] = (what, batch, shard)
        processor.jobs[ticket] = work

    def client_next() -> None:
        if client and not any(what != "scan" for what, _, _ in running.values()):
            batch, what = client.pop(0)
            start(what, batch, -1, send if what == "send" else merge)

    def shard_next(shard: int) -> None:
        busy = any(what == "scan" and at == shard for what, _, at in running.values())
        if queues[shard] and not busy:
            start("scan", queues[shard].pop(0), shard, scan)

    def admit() -> None:
        nonlocal started
        while started < plan.batches and started - finished < plan.in_flight:
            begun[started] = clock
            left[started] = plan.shards
            client.append((started, "send"))
            started += 1
        client_next()

    def later(what: str, batch: int, shard: int) -> None:
        nonlocal ticket
        ticket += 1
        heapq.heappush(timers, (clock + costs.wait_call / 2, ticket, what, batch, shard))

    admit()
    while finished < plan.batches:
        job = processor.next_end()
        if timers and (job is None or timers[0][0] - clock <= job[0]):
            at, _, what, batch, shard = heapq.heappop(timers)
            processor.advance(at - clock)
            clock = at
            if what == "arrive":
                queues[shard].append(batch)
                shard_next(shard)
            else:
                left[batch] -= 1
                if left[batch] == 0:
                    client.append((batch, "merge"))
                    client_next()
            continue
        if job is None:
            raise RuntimeError("nothing is left to do, but batches are not finished")
        processor.advance(job[0])
        clock += job[0]
        what, batch, shard = running.pop(job[1])
        del processor.jobs[job[1]]
        if what == "send":
            for each in range(plan.shards):
                later("arrive", batch, each)
        elif what == "scan":
            later("return", batch, shard)
            shard_next(shard)
        else:
            latencies.append(clock - begun[batch])
            finished += 1
            admit()
        client_next()
    return {"seconds": clock, "latency": sum(latencies) / len(latencies)}


MEMORY_SHARE = 0.8
"""Of a machine's memory that codes and ids may take."""
HIT_BYTES = 16


@dataclass(frozen=True)
class Machine:
    """What is assumed of a machine: nothing of it was measured."""

    cores: int = 64
    memory: float = 512e9
    network: float = 1.25e9
    network_latency: float = 2e-4
    dollars_per_hour: float = 3.0


def carry(
    single: Costs,
    batched: Costs,
    batch: int,
    entries: float,
    bytes_per_entry: dict[str, float],
    k: int,
    machine: Machine,
) -> list[dict[str, Any]]:
    """Machines, memory, latency, throughput and cost of so many entries, by the same costs.

    Codes and ids are in memory, rows on the machines' own disks: a search reads a few of them. One
    client asks all shards. With one shard per machine a single query is scanned by one core of it
    (threads share a batch, not a query); with one per core the client has that many calls to
    handle. Nobody waits for a turn (`wait_call`): cores are there for this. A row for each number
    of shards per machine.
    """
    needed = entries * bytes_per_entry["searched"]
    machines = max(1, math.ceil(needed / (MEMORY_SHARE * machine.memory)))
    rows = []
    per_machine = 1
    while per_machine <= machine.cores:
        shards = machines * per_machine
        replies = shards * k * HIT_BYTES / machine.network
        client = shards * (single.client_call + single.merge_hit * k) + single.merge_call
        scan = single.scan(entries / shards) + single.server_call
        threads = machine.cores / per_machine
        walls = {
            "scan": batched.scan(entries / shards) / threads + batched.server_call,
            "client": shards * (batched.client_call + batched.merge_hit * k * batch)
            + batched.merge_call,
            "network": replies * batch,
        }
        slowest = max(walls, key=lambda name: walls[name])
        dollars = machines * machine.dollars_per_hour
        rows.append(
            {
                "entries": entries,
                "machines": machines,
                "shards_per_machine": per_machine,
                "memory_bytes": needed,
                "disk_bytes": entries * bytes_per_entry["stored"],
                "latency_seconds": client + scan + machine.network_latency + replies,
                "latency_client_seconds": client,
                "latency_scan_seconds": scan,
                "batch_wall_seconds": walls,
                "queries_per_second": batch / walls[slowest],
                "breaks_first": slowest,
                "dollars_per_hour": dollars,
                "dollars_per_million_queries": dollars / 3600 * walls[slowest] / batch * 1e6,
            }
        )
        per_machine *= 2
    return rows
