"""The parts in order: run what is not finished, then render pictures, REPORT.md and index.html."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from experiments.harness.page import Rows, Section, Text, percent, render_markdown, render_page
from experiments.harness.records import write_file
from experiments.reproduce import (
    determinism,
    energy,
    future,
    graphs,
    layout,
    quality,
    setting,
    speed,
    training,
)
from experiments.reproduce.findings import SETTINGS, Findings
from experiments.reproduce.options import Options
from experiments.reproduce.summary import judge_claims, list_claims, summary, title_of
from experiments.reproduce.work import Part, Run, Work
from hiernorm.extras import import_extra

PARTS: tuple[Part, ...] = (
    setting.PART,
    quality.PART,
    energy.POSTHOC,
    speed.PART,
    layout.PART,
    energy.ROTATION,
    determinism.DETERMINISM,
    future.SOFT,
    determinism.FIXED_POINT,
    future.CELLS,
    training.HIGHER,
    graphs.PART,
    training.HARDEST,
)
"""What takes longest, building graphs and training, comes last."""

PICTURES: dict[str, Callable[[Findings, Path], bool]] = {
    "roc-K16.png": partial(quality.draw_curves, major=16),
    "roc-K8.png": partial(quality.draw_curves, major=8),
    "fpr-alpha.png": quality.draw_alpha,
    "pareto.png": speed.draw_pareto,
    "sizes.png": graphs.draw_sizes,
    "rotation.png": energy.draw_rotation,
    "soft.png": future.draw_soft,
}


class Progress(Protocol):
    """Hears how far the reproduction is."""

    def start(self, expected: dict[str, float]) -> None:
        """Begin; the seconds that each part is expected to take."""

    def say(self, doing: str) -> None:
        """Name what is being done now."""

    def done(self, part: str, run: str, expected: float, seconds: float | None) -> None:
        """Note a run that is done, and the seconds it took; None if it was finished before."""


def run_parts(options: Options, progress: Progress, only: tuple[str, ...] = ()) -> None:
    """Run all that is not finished; each result is on disk as soon as it is there.

    Parameters
    ----------
    options
        What to reproduce, and where to.
    progress
        Hears of every run.
    only
        Names of the parts to run; all if there are none.
    """
    if unknown := set(only) - {part.name for part in PARTS}:
        names = ", ".join(part.name for part in PARTS)
        raise ValueError(f"no part {unknown.pop()!r}: there are {names}")
    # Threads of its own would disturb what is timed beside it.
    import_extra("cv2", extra="vision").setNumThreads(options.threads)
    work = Work(options, progress.say)
    plan = [(part, runs) for part, runs in plan_parts(work) if not only or part.name in only]
    write_file(options.out / SETTINGS, json.dumps(options.settings(), indent=1) + "\n")
    progress.start({part.name: sum(run.seconds for run in runs) for part, runs in plan})
    for part, runs in plan:
        for run in runs:
            name = f"{part.name}/{run.name}"
            if work.store.find(name) is not None:
                progress.done(part.name, run.name, run.seconds, None)
                continue
            progress.say(f"{part.name}: {run.name}")
            work.store.make(name, run.make)
            record = work.store.read(name)
            taken = None if record is None else record.seconds
            progress.done(part.name, run.name, run.seconds, taken)


def plan_parts(work: Work) -> list[tuple[Part, list[Run]]]:
    """All parts with their runs."""
    return [(part, part.plan(work)) for part in PARTS]


def render_report(out: Path) -> Path:
    """Render what is finished; return the page.

    Parameters
    ----------
    out
        The folder of a reproduction.
    """
    findings = Findings(out)
    figures = out / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    drawn = {name for name, draw in PICTURES.items() if draw(findings, figures / name)}
    section_7 = [*determinism.determinism_blocks(findings), *energy.rotation_blocks(findings)]
    claims = judge_claims(findings)
    sections = [
        summary(findings, claims),
        setting.setting(findings),
        list_claims(claims),
        quality.table_1(findings),
        speed.table_2(findings),
        speed.table_3(findings),
        graphs.table_4(findings),
        energy.section_3(findings),
        layout.section_6(findings),
        Section("Section 7: determinism, and the relation to PCA", section_7),
        future.soft(findings),
        determinism.fixed_point(findings),
        training.higher(findings),
        training.hardest(findings),
        future.cells(findings),
        list_runs(findings),
    ]
    report = render_markdown(title_of(findings), sections, drawn)
    write_file(out / "REPORT.md", report)
    page = out / "index.html"
    write_file(page, render_page(title_of(findings), sections, figures, drawn))
    return page


def list_runs(findings: Findings) -> Section:
    """Each run with its time and what else the machine did."""
    rows = [
        [
            record.name,
            f"{record.seconds:.0f}",
            _taken(record.load["other_processes"]),
            str(record.commit)[:12],
            record.machine["isa"],
        ]
        for record in findings.records
    ]
    text = "One JSON file each in `runs/`, with seed, settings, machine and versions."
    head = ["run", "seconds", "share of other processes", "commit", "instruction set"]
    return Section("Runs", [Text(text), Rows(head, rows)])


def _taken(share: float | None) -> str:
    """What others took of the processors; a run of milliseconds is too short to tell."""
    return "too short to tell" if share is None else percent(share)
