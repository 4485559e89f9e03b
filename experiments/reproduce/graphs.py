"""Table 4: exact search beside hnswlib and FAISS at several sizes of the database."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from experiments.harness.comparison import Case
from experiments.harness.page import MISSING, Picture, Rows, Section, Text, number, ratio
from experiments.harness.points import ALL_POINTS, RECOMMENDED, Point, fraction, slug
from experiments.harness.records import Result
from experiments.reproduce.findings import Findings, paper_graph
from experiments.reproduce.pictures import DPI, put_legend_below
from experiments.reproduce.work import Part, Run, Work, measure_case
from hiernorm.learn.pictures import make_figure


def plan(work: Work) -> list[Run]:
    """One run per size and alpha at K=16, on the first test scene, as in the paper.

    Peers are measured beside the recommended point. The size of Table 3 is measured for the other
    points there.
    """
    size = work.options.size
    major, _ = RECOMMENDED
    return [
        Run(f"n{n}-{slug(point)}", _expected(n, point), partial(_measure, work, n, point))
        for n in size.graph_entries
        for point in ALL_POINTS
        if point[0] == major and (point == RECOMMENDED or n != size.entries)
    ]


def _expected(n: int, point: Point) -> float:
    """The graph's construction is most of it."""
    return 8 + n / (600 if point == RECOMMENDED else 20_000)


def _measure(work: Work, n: int, point: Point) -> Result:
    data = work.databases.build(work.options.tests[0], work.variant(point), n)
    peers = point == RECOMMENDED
    case = Case(n, point, peers=peers, graph=peers)
    return measure_case(work, case, data, work.options.size.more_queries)


PART = Part("graphs", "Table 4: against hnswlib and FAISS", plan)


def table_4(findings: Findings) -> Section:
    """Exact search beside hnswlib and FAISS, by size."""
    sizes = findings.size["graph_entries"]
    head = ["method"]
    for n in sizes:
        head += [f"N={n:,}: paper", "ours", "ratio", "recall@1"]
    rows = [
        [label, *(cell for n in sizes for cell in _graph_cells(findings, n, alpha, key, paper))]
        for label, alpha, key, paper in _graph_methods(findings)
    ]
    return Section(
        "Table 4: against hnswlib and FAISS, K = 16",
        [
            Text(
                f"On {findings.tests[0]}. Times the speed of FAISS IndexFlatIP; single queries, "
                f"one thread, k = 1, up to {findings.size['more_queries']:,} queries for recall. "
                "hnswlib: M = 16, ef_construction = 200; for a recall, M and ef that are fastest "
                "on other queries. Databases below "
                f"{findings.size['section_entries']:,} entries are drawn from that many of the "
                "scene's patches; one match of each of the first "
                f"{findings.size['queries']} queries is always in them."
            ),
            Rows(head, rows),
            Text("Build time with one thread, and memory over that of the float32 vectors:"),
            _builds(findings),
            Picture("sizes.png", "Speed-up against the size of the database, recall beside."),
        ],
    )


def _graph_methods(findings: Findings) -> list[tuple[str, float, tuple[str, str | None], str]]:
    """Rows of Table 4: label, alpha of the run, family and name, and the paper's name of it."""
    known = RECOMMENDED[1]
    alphas = [alpha for k, alpha in ALL_POINTS if k == RECOMMENDED[0]]
    rows: list[tuple[str, float, tuple[str, str | None], str]] = [
        ("brute force (FAISS flat), exact", known, ("flat", None), "brute force")
    ]
    for engine, label in (("paper", "HN Algorithm 1"), ("cascade", "HN cascade")):
        rows += [
            (f"{label}, alpha={fraction(a)}, exact", a, (engine, None), f"HN alpha={fraction(a)}")
            for a in alphas
        ]
    seen = {
        name: family
        for n in findings.size["graph_entries"]
        for family, name in findings.graph_speeds(n, known)
        if family in ("hnswlib", "panorama")
    }
    return rows + [
        (name, known, (family, name), f"HNSW {name.rpartition(' ')[2]}")
        for name, family in seen.items()
    ]


def _graph_cells(
    findings: Findings, n: int, alpha: float, key: tuple[str, str | None], paper_name: str
) -> list[str]:
    family, name = key
    paper = paper_graph(paper_name, n)
    speeds = findings.graph_speeds(n, alpha)
    found = (s for (f, m), s in speeds.items() if f == family and name in (None, m))
    speed = next(found, None)
    if speed is None:
        return ["" if paper is None else number(paper), MISSING, "", ""]
    cells = ["" if paper is None else number(paper), number(speed.mean), ratio(speed.mean, paper)]
    return [*cells, f"{speed.recall:.4f}"]


def _builds(findings: Findings) -> Rows:
    names = {"cascade": "HN cascade", "paper": "HN Algorithm 1", "hnswlib": "hnswlib graph"}
    rows = []
    for n in findings.size["graph_entries"]:
        found = findings.get(f"graphs/n{n}-K16-a1_8")
        for build in [] if found is None else found["builds"]:
            if build["family"] in names:
                memory = number(build["memory_ratio"])
                row = [f"{n:,}", names[build["family"]], f"{build['seconds']:.2f}", memory]
                rows.append(row)
    return Rows(["N", "index", "seconds", "memory over vectors"], rows)


def draw_sizes(findings: Findings, path: Path) -> bool:
    """Table 4 as a picture."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for n in findings.size["graph_entries"]:
        speeds = findings.graph_speeds(n, RECOMMENDED[1])
        for (family, name), speed in speeds.items():
            if family in ("cascade", "paper", "hnswlib", "panorama"):
                lines.setdefault(name, []).append((n, speed.mean))
    if not lines:
        return False
    figure, (axes,) = make_figure(1)
    for name, points in lines.items():
        own = name.startswith("hiernorm")
        style = "-" if own else "--" if name.startswith("hnswlib") else ":"
        axes.plot(*zip(*points, strict=True), style, marker="o", markersize=4, label=name)
    for ef, shade in ((10, "#bbbbbb"), (50, "#888888")):
        printed = [
            (n, times)
            for n in findings.size["graph_entries"]
            if (times := paper_graph(f"HNSW ef={ef}", n)) is not None
        ]
        if printed:
            label = f"paper: HNSW ef={ef}"
            axes.plot(*zip(*printed, strict=True), "-.", color=shade, label=label)
    axes.set(xscale="log", yscale="log", xlabel="entries")
    axes.set_ylabel("times the speed of brute force")
    put_legend_below(axes)
    figure.savefig(path, dpi=DPI)
    return True
