"""Tables 1 to 4 of the paper: its figure, ours and the ratio for every cell."""

from __future__ import annotations

from itertools import pairwise

from hiernorm.bench.cases import RECOMMENDED, Point
from hiernorm.reproduce.blocks import (
    MISSING,
    Block,
    Picture,
    Rows,
    Section,
    Text,
    fraction,
    number,
    percent,
    ratio,
)
from hiernorm.reproduce.findings import Findings, Quality, Speed
from hiernorm.reproduce.paper import load_paper, paper_fpr95, paper_graph, paper_speed
from hiernorm.reproduce.work import POINTS

KS = (16, 8)


def table_1(findings: Findings) -> Section:
    """FPR@95 and the pictures that show it."""
    whats: list[tuple[str, str | Point]] = [("SIFT", "sift"), ("HardNet, plain", "plain")]
    whats += [(f"HN K={k}, alpha={fraction(alpha)}", (k, alpha)) for k, alpha in POINTS]
    theirs = load_paper()["scenes"]
    head = ["descriptor"]
    for scene, ours in enumerate(findings.tests):
        head += [f"{theirs[scene]}, paper", f"{ours}, ours (95% interval)", "ratio"]
    rows = []
    for label, what in whats:
        row = [label]
        for scene in range(2):
            paper, quality = paper_fpr95(what, scene), findings.quality(what, scene)
            rate = None if quality is None else quality.fpr95
            row += [number(paper), _interval(quality), ratio(rate, paper)]
        rows.append(row)
    return Section(
        "Table 1: FPR@95",
        [
            Text("Lower is better. Intervals are from a bootstrap over points, not over pairs."),
            Rows(head, rows),
            Text(_monotony(findings)),
            Picture("roc-K16.png", "Figure 1: ROC curves, K = 16."),
            Picture("roc-K8.png", "Figure 2: ROC curves, K = 8."),
            Picture("fpr-alpha.png", "Figure 3: FPR@95 against alpha; the paper's in grey."),
        ],
    )


def _interval(quality: Quality | None) -> str:
    if quality is None:
        return MISSING
    return f"{quality.fpr95:.4f} ({quality.low:.4f} to {quality.high:.4f})"


def _monotony(findings: Findings) -> str:
    """Say where quality does not rise with alpha."""
    faults = []
    for scene, name in enumerate(findings.tests):
        for k in KS:
            rows = findings.qualities(scene, k)
            faults += [
                f"K={k} on {name} from alpha={fraction(a)} ({qa.fpr95:.4f}) to alpha={fraction(b)} "
                f"({qb.fpr95:.4f})"
                for (a, qa), (b, qb) in pairwise(rows)
                if qb.fpr95 > qa.fpr95
            ]
    if not faults:
        return "Within each K and scene FPR@95 falls with every step of alpha, as in the paper."
    reason = (
        "The directions were chosen for the major alone, whatever alpha, so nothing made the "
        "minor of a larger alpha better; differences within the intervals above are noise."
        if findings.settings["recipe"] == "turned"
        else "Differences within the intervals above are noise."
    )
    return f"FPR@95 does not fall with alpha everywhere: it rises at {'; '.join(faults)}. {reason}"


def table_2(findings: Findings) -> Section:
    """Quality and speed at alpha = 1/8."""
    rows = []
    for scene, name in enumerate(findings.tests):
        theirs = load_paper()["scenes"][scene]
        for k in KS:
            point = (k, RECOMMENDED[1])
            paper_rate, (paper_times, _) = paper_fpr95(point, scene), paper_speed(point, scene)
            quality = findings.quality(point, scene)
            rate = None if quality is None else quality.fpr95
            row = [f"{theirs} / {name}", f"HN K={k}, alpha=1/8", number(paper_rate), number(rate)]
            row += [ratio(rate, paper_rate), number(paper_times)]
            for family in ("paper", "cascade"):
                speed = findings.speed(point, scene, family)
                times = None if speed is None else speed.mean
                row += [number(times), ratio(times, paper_times)]
            rows.append(row)
    head = ["scene", "method", "FPR@95, paper", "ours", "ratio", "speed-up, paper"]
    head += ["ours, Algorithm 1", "ratio", "ours, cascade", "ratio"]
    title = f"Table 2: quality and speed at alpha = 1/8, N = {findings.size['entries']:,}"
    return Section(title, [Rows(head, rows)])


def table_3(findings: Findings) -> Section:
    """Speed-up and Phase-2 share of all ten points."""
    blocks: list[Block] = [
        Text(
            "Speed-up over FAISS IndexFlatIP, a well-vectorised brute force, in the same process: "
            f"{findings.size['queries']} single queries, one thread, k = 1; times averaged over "
            f"{findings.size['runs']} interleaved runs, the range over the runs in brackets. A "
            "slow method searches fewer of the queries per run, and other ones in the next: brute "
            f"force {findings.queries_per_run('flat')}, Algorithm 1 "
            f"{findings.queries_per_run('paper')}, the cascade "
            f"{findings.queries_per_run('cascade')}. "
            "Algorithm 1 is the engine `paper`, the cascade the package's own; both return the "
            "answer of exhaustive search bit for bit, or the run would have stopped. Phase 2: mean "
            "share of entries that Algorithm 1 evaluates in full, for queries whose point the "
            "database shows in another view, and for any keypoints of photos that it has not."
        )
    ]
    head = ["K", "alpha", "speed-up, paper", "Algorithm 1", "ratio", "cascade", "ratio"]
    head += ["Phase 2, paper", "ours", "ratio", "ours, any keypoint"]
    for scene, name in enumerate(findings.tests):
        rows = []
        for point in POINTS:
            times, share = paper_speed(point, scene)
            row = [str(point[0]), fraction(point[1]), number(times)]
            for family in ("paper", "cascade"):
                speed = findings.speed(point, scene, family)
                row += [spread(speed), ratio(None if speed is None else speed.mean, times)]
            ours = findings.phase2(point, scene)
            row += [percent(share), percent(ours), ratio(ours, share)]
            keypoints = findings.phase2(point, scene, "keypoints")
            row.append(
                "no photos" if ours is not None and keypoints is None else percent(keypoints)
            )
            rows.append(row)
        plain = findings.speed(None, scene, "cascade")
        rows.append(["plain", "", "", "", "", spread(plain), "", "", "", "", ""])
        blocks += [Text(f"**{load_paper()['scenes'][scene]} / {name}**"), Rows(head, rows)]
    caption = (
        "Figure 4: quality against speed. Grey: the paper's. Stars: plain descriptors, by brute "
        "force (1x) and by the lossless rotation, which costs no quality."
    )
    blocks.append(Picture("pareto.png", caption))
    return Section(f"Table 3: speed at N = {findings.size['entries']:,}", blocks)


def spread(speed: Speed | None) -> str:
    """A speed-up and its range over the runs."""
    if speed is None:
        return MISSING
    return f"{number(speed.mean)} ({number(speed.low)} to {number(speed.high)})"


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
                "hnswlib: M = 16, ef_construction = 200. Databases below "
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
    alphas = [alpha for k, alpha in POINTS if k == RECOMMENDED[0]]
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
