"""The run: each case's data and comparison, into one record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.harness.comparison import Case, Comparison, Progress, Report
from experiments.harness.opponents import keep_graphs
from experiments.harness.records import Record, Recorder
from experiments.speed import data
from experiments.speed.builds import measure_builds
from experiments.speed.cases import (
    Scale,
    plan_builds,
    plan_cases,
    plan_file_cases,
    plan_groups,
    plan_uniform,
)
from experiments.speed.uniform import measure_uniform
from hiernorm.reference import Float32Array


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    scale: Scale
    threads: int
    seed: int = 0
    only: tuple[str, ...] = ()
    database_file: Path | None = None
    queries_file: Path | None = None
    graphs: Path | None = None
    """Keeps hnswlib's graphs for the next run."""
    hn: bool = False
    """Whether the vectors of the file are also normalised, which changes their neighbours."""

    def settings(self) -> dict[str, object]:
        """For the record; of files the names alone."""
        files = {
            "database_file": self.database_file,
            "queries_file": self.queries_file,
            "graphs": self.graphs,
        }
        names = {key: None if file is None else file.name for key, file in files.items()}
        return {**asdict(self), **names}


def run(options: Options, progress: Progress) -> Record:
    """Measure all cases."""
    cases, load = _plan(options)
    recorder = Recorder("speed", options.seed, options.settings())
    report = Report()
    groups = {case: plan_groups(case, options.threads) for case in cases}
    progress.start(sum(Comparison.cost(case, len(groups[case])) for case in cases))
    for case in cases:
        progress.say(f"{case.name}: data")
        database, queries = load(case)
        Comparison(
            case,
            database,
            queries[1::2],
            groups[case],
            options.scale.effort,
            report,
            progress,
            options.threads,
            options.seed,
            choosing=queries[::2],
            graphs=options.graphs,
        ).run()
    if options.database_file is None:
        wanted = plan_builds(options.scale, options.only)
        measure_builds(wanted, options.scale.effort.rounds, options.seed, report, progress)
        uniform = plan_uniform(options.scale, options.only)
        measure_uniform(uniform, options.scale.effort, options.seed, report, progress)
    return recorder.record(report.to_result())


def keep_all_graphs(options: Options) -> None:
    """Build the graphs of all cases and keep them, for a run that times them."""
    cases, load = _plan(options)
    for case in cases:
        if case.graph:
            keep_graphs(load(case)[0], options.graphs, seed=options.seed)


def _plan(
    options: Options,
) -> tuple[list[Case], Callable[[Case], tuple[Float32Array, Float32Array]]]:
    """List the cases, and give the function that yields the vectors of each."""
    scale = options.scale
    if options.database_file is None:
        cases = plan_cases(scale, options.only)
        return cases, lambda case: data.draw(case, scale.queries, options.seed)
    rows = data.load(options.database_file, options.queries_file, scale.queries)
    cases = plan_file_cases(len(rows.database), scale, options.only, options.hn)
    return cases, lambda case: data.normalise(rows, case)
