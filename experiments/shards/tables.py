"""Tables of shards on Ray: measured, the costs of the model, its predictions, and carried on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.harness.page import Rows, number
from experiments.harness.records import read_record
from experiments.tables.registry import table

SOURCE = "shards/results/shards.json"


@table("shards-measured", SOURCE)
def render_measured(file: Path) -> Rows:
    """Latency and throughput of one process and of Ray."""
    result = read_record(file).result
    found = [("one process, one thread", result["one_process"])]
    found += [
        (f"Ray, {workers} worker{'s' * (workers != '1')}", both["measured"])
        for workers, both in result["workers"].items()
    ]
    rows = [
        [
            name,
            _span(one["single_seconds"]["median"]),
            _span(one["single_seconds"]["p99"]),
            f"{one['queries_per_second']:,.0f}",
        ]
        for name, one in found
    ]
    return Rows(["", "single query, median", "99%", "batches, queries a second"], rows)


@table("shards-split", SOURCE)
def render_split(file: Path) -> Rows:
    """Where the time of a single query goes."""
    rows = []
    for workers, both in read_record(file).result["workers"].items():
        split = both["measured"]["split_seconds"]
        rows.append([workers, *(_span(split[k]) for k in ("scan", "merge", "ray_and_network"))])
    return Rows(["workers", "scan", "merge", "Ray and network"], rows)


@table("shards-waves", SOURCE)
def render_waves(file: Path) -> Rows:
    """Work per query when two shards are asked together, and one after the other."""
    waves = read_record(file).result["workers"]["2"]["waves"]
    rows = [
        [step, *(number(waves[name][step]) for name in ("together", "one_after_the_other"))]
        for step in ("scanned", "sifted", "settled")
    ]
    return Rows(["entries per query", "together", "one after the other"], rows)


@table("shards-costs", SOURCE)
def render_costs(file: Path) -> Rows:
    """The costs that the model is fed with."""
    result = read_record(file).result
    costs, stored = result["costs"], result["bytes_per_entry"]
    calls = costs["call_seconds"]
    rows = [
        [
            "bytes per entry on the disk; without rows, which only finalists are read from",
            f"{stored['stored']:.0f}; {stored['searched']:.0f}",
        ],
        ["building, per entry, by the clock", _span(result["build_seconds_per_entry"])],
    ]
    for label, kind, queries in (
        ("single query", "single", 1),
        (f"query in a batch of {result['batch']}", "batch", result["batch"]),
    ):
        points = {int(n): seconds / queries for n, seconds in costs["scan_seconds"][kind].items()}
        sizes = " and ".join(f"{n:,}" for n in sorted(points))
        times = ", ".join(_span(points[n]) for n in sorted(points))
        largest = max(points)
        each = f"{1e9 * points[largest] / largest:.3g} ns per entry at the larger"
        rows.append([f"{label}, {sizes} entries, processor time", f"{times}: {each}"])
    rows += [
        ["a call that does nothing, there and back, median", _span(calls["round_trip"]["median"])],
        [
            "... of which processor time of the client, of the actor; waiting for a turn",
            f"{_span(calls['client_call'])}, {_span(calls['server_call'])}; "
            f"{_span(calls['wait_call'])}",
        ],
        [
            "merge: a call, and per hit that a shard returns",
            f"{_span(costs['merge_call'])}, {1e9 * costs['merge_hit']:.3g} ns",
        ],
    ]
    return Rows(["cost", "measured"], rows)


@table("shards-predicted", SOURCE)
def render_predicted(file: Path) -> Rows:
    """What the model predicts beside what was measured."""
    rows = []
    for workers, both in read_record(file).result["workers"].items():
        predicted, measured = both["predicted"], both["measured"]
        rows.append(
            [
                workers,
                _span(predicted["single_seconds"]),
                _span(measured["single_seconds"]["median"]),
                f"{predicted['queries_per_second']:,.0f}",
                f"{measured['queries_per_second']:,.0f}",
            ]
        )
    head = ["workers", "single query: predicted", "measured, median"]
    return Rows([*head, "queries a second: predicted", "measured"], rows)


@table("shards-carried", SOURCE)
def render_carried(file: Path) -> Rows:
    """The same costs at sizes that nobody measured: least latency, and most queries."""
    carried = read_record(file).result["carried"]
    rows = []
    for entries in dict.fromkeys(row["entries"] for row in carried):
        of = [row for row in carried if row["entries"] == entries]
        fastest = min(of, key=lambda row: float(row["latency_seconds"]))
        busiest = max(of, key=lambda row: float(row["queries_per_second"]))
        for label, row in (("least latency", fastest), ("most queries", busiest)):
            rows.append([f"{entries:.0e}, {label}".replace("e+", "e"), *_carried_cells(row)])
    head = ["entries", "machines x shards", "memory", "disk", "single query"]
    return Rows([*head, "queries a second", "first wall", "cost, per million queries"], rows)


def _carried_cells(row: dict[str, Any]) -> list[str]:
    client, scan = _span(row["latency_client_seconds"]), _span(row["latency_scan_seconds"])
    return [
        f"{row['machines']} x {row['shards_per_machine']}",
        f"{row['memory_bytes'] / 1e12:.3g} TB",
        f"{row['disk_bytes'] / 1e12:.3g} TB",
        f"{_span(row['latency_seconds'])} (client {client}, scan {scan})",
        f"{row['queries_per_second']:.0f}",
        row["breaks_first"],
        f"{row['dollars_per_hour']:.0f} $/h, {row['dollars_per_million_queries']:.3g} $",
    ]


def _span(seconds: float) -> str:
    """Three digits in the unit that suits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us" if seconds else "0 ms"
