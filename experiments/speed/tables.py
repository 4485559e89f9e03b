"""Tables of speed: every method by size, and the goals."""

from __future__ import annotations

from pathlib import Path

from experiments.descriptors.columns import microseconds
from experiments.harness.comparison import Measurement, Report
from experiments.harness.page import Rows
from experiments.harness.points import RECOMMENDED
from experiments.harness.records import read_record
from experiments.speed.goals import BUSY_SHARE, Goal, check_goals, fastest_rival, select
from experiments.tables.registry import table

SOURCE = "speed/results/bench.json"

LABELS = {
    "cascade": "**hiernorm cascade** (exact)",
    "hnswlib": "hnswlib, tuned for recall 0.999",
    "hnswlib 0.99": "hnswlib, tuned for recall 0.99",
    "panorama": "FAISS IndexFlatIPPanorama, best of 4, 8, 16 levels (exact)",
    "paper": "hiernorm paper (exact)",
    "flat": "FAISS IndexFlatIP (exact)",
    "exhaustive": "hiernorm exhaustive (exact)",
    "numpy": "NumPy",
    "usearch": "USearch exact",
}


@table("speed", SOURCE)
def render_speed(file: Path) -> Rows:
    """Times the speed of FAISS flat: single queries, one thread, k = 1, K = 16, alpha = 1/8."""
    report = Report.from_result(read_record(file).result)
    sizes = sorted({row.n for row in report.measurements if (row.major, row.alpha) == RECOMMENDED})
    groups = {n: select(report.measurements, n, RECOMMENDED, "single", 1, 1) for n in sizes}
    rows = [
        [label, *(_speedup(_rival(groups[n], family)) for n in sizes)]
        for family, label in LABELS.items()
    ]
    first, *others = sizes
    return Rows(["", f"N = {first:,}", *(f"{n:,}" for n in others)], rows)


def _rival(rows: list[Measurement], key: str) -> Measurement | None:
    family, _, recall = key.partition(" ")
    return fastest_rival(rows, family, float(recall)) if recall else fastest_rival(rows, family)


def _speedup(row: Measurement | None) -> str:
    """The ratio; for hnswlib its setting and recall too."""
    if row is None or row.speedup is None:
        return ""
    ratio = f"{row.speedup:.1f}" if row.speedup >= 1 else f"{row.speedup:.2f}"
    if row.family != "hnswlib":
        return ratio
    return f"{ratio} ({row.setting or row.method.rpartition(' ')[2]}, {row.recall:.4f})"


@table("speed-goals", SOURCE)
def render_goals(file: Path) -> Rows:
    """Floor, aim and what was measured; bold where the floor is reached.

    A ratio of times also has the times, and the time that would reach the floor. Threads of a
    library wait for each other, so that several of them say nothing on a busy machine.
    """
    record = read_record(file)
    busy = (record.load["other_processes"] or 0.0) > BUSY_SHARE
    rows = []
    for goal in check_goals(Report.from_result(record.result)):
        disturbed = busy and "threads" in goal.name
        measured = "no result: busy machine" if disturbed else _measured(goal)
        times = ["", "", ""] if disturbed else _times(goal)
        rows.append([goal.name, _value(goal, goal.floor), _value(goal, goal.aim), measured, *times])
    head = ["goal", "floor", "aim", "measured", "compared with, us", "ours, us", "at the floor, us"]
    return Rows(head, rows)


def _times(goal: Goal) -> list[str]:
    if goal.times is None:
        return ["", "", ""]
    other, own = goal.times
    return [microseconds(seconds * 1e6) for seconds in (other, own, other / goal.floor)]


def _value(goal: Goal, value: float) -> str:
    space = " " if goal.unit == "us" else ""
    return f"{value:.3g}{space}{goal.unit}"


def _measured(goal: Goal) -> str:
    if goal.measured is None:
        return goal.verdict
    text = _value(goal, goal.measured)
    return f"**{text}**" if goal.verdict in ("floor", "aim") else text


@table("kernels", "speed/results/kernels.json")
def render_kernels(file: Path) -> Rows:
    """Cycles of the scan per block of 16 entries and query, one query alone and several at once."""
    rows = [row for row in read_record(file).result["rows"] if row["kernel"] == "scan"]
    cycles = {
        (row["slots"], row["entries"], row["family"], row["queries"]): row["cycles"] for row in rows
    }
    families = list(dict.fromkeys(row["family"] for row in rows))
    most = max(row["queries"] for row in rows)
    sizes = list(dict.fromkeys((row["slots"], row["entries"]) for row in rows))
    head = [f"{name}, {queries} at once" for name in families for queries in (1, most)]
    return Rows(
        ["slots", "codes", *head],
        [
            [
                str(slots),
                f"{slots * entries / 1024:,.0f} KiB",
                *(
                    f"{cycles[slots, entries, name, queries]:.1f}"
                    for name in families
                    for queries in (1, most)
                ),
            ]
            for slots, entries in sizes
        ],
    )


@table("speed-tutorial", "speed/results/tutorial/bench.json")
def render_tutorial(file: Path) -> Rows:
    """Cases tutorial-...: microseconds per query, single and batch, and seconds to build."""
    report = Report.from_result(read_record(file).result)
    times = {(row.method, row.manner): row.seconds * 1e6 for row in report.measurements}
    built = {row.method: row.seconds for row in report.builds}
    rows = [
        [
            method.removesuffix(" cascade"),
            *(f"{times[method, manner]:,.0f} us" for manner in ("single", "batch")),
            f"{seconds:.3f} s",
        ]
        for method, seconds in built.items()
    ]
    return Rows(["", "single query", "query of a batch of 10,000", "build"], rows)
