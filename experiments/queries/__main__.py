"""`make study-queries`: one file of results for each section."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import click

from experiments.harness.command import (
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.records import Recorder
from experiments.queries.sections import SECTIONS, SMOKE, Scale


@click.command("queries", cls=Experiment)
@click.option("--only", multiple=True, type=click.Choice(list(SECTIONS)), help="These sections.")
@click.option("--large", type=click.IntRange(min=1), help="Entries of the section on threads.")
@seed_option
@smoke_option
@out_option
def main(
    only: tuple[str, ...], large: int | None, seed: int, smoke: bool, out: Path | None
) -> None:
    """Measure what a query costs: alone, in a group, with cells, for ten hits, by two threads."""
    scale = replace(SMOKE if smoke else Scale(), seed=seed)
    if large is not None:
        scale = replace(scale, large=large)
    for name in only or SECTIONS:
        recorder = Recorder("queries", seed, {"section": name, **asdict(scale)})
        rows = SECTIONS[name](scale)
        recorder.write(results_folder("queries", out, smoke) / f"{name}.json", {"rows": rows})
        for row in rows:
            click.echo(
                f"{name}: "
                + ", ".join(
                    f"{key} {value:.2f} us" if isinstance(value, float) else f"{key} {value}"
                    for key, value in row.items()
                )
            )


if __name__ == "__main__":
    main()
