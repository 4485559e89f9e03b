"""Attack databases: bytes changed, files cut, writers killed, interrupted and doubled.

Nothing may give a wrong answer without an error, and nothing that was acknowledged may be lost.
"""

from __future__ import annotations

import itertools
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from experiments.attack.crashes import kill_writers, two_writers
from experiments.attack.damage import flip_bytes, truncate_files
from experiments.attack.victims import make_victim
from experiments.harness.command import (
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.records import Recorder
from hiernorm.settings import Metric

METRICS: tuple[Metric, ...] = ("ip", "cosine", "l2")


@click.command("attack", cls=Experiment)
@click.option("--minutes", default=20.0, show_default=True, help="Time for all attacks together.")
@click.option("--entries", default=300, show_default=True, help="Entries of a database to damage.")
@seed_option
@smoke_option
@out_option
def main(minutes: float, entries: int, seed: int, smoke: bool, out: Path | None) -> None:
    """Attack databases; exit code 1 if an attack succeeds."""
    seconds = 12.0 if smoke else 60.0 * minutes
    recorder = Recorder("attack", seed, {"minutes": minutes, "entries": entries})
    kinds = list(itertools.product((True, False), METRICS))
    kinds = kinds[::4] if smoke else kinds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        attacks: dict[str, Callable[[float], Counter[str]]] = {}
        for number, (hierarchical, metric) in enumerate(kinds):
            victim = make_victim(
                folder / f"victim{number}",
                hierarchical=hierarchical,
                metric=metric,
                entries=entries,
                seed=seed,
            )
            assert victim.ask() == "right"
            what = f"{'HN' if hierarchical else 'plain'} vectors, {metric}"
            attacks[f"bytes changed: {what}"] = partial(flip_bytes, victim, seed)
            attacks[f"files cut: {what}"] = partial(truncate_files, victim, seed)
        for kind, how in (("killed", signal.SIGKILL), ("interrupted", signal.SIGINT)):
            (folder / kind).mkdir()
            attacks[f"writers {kind}"] = partial(kill_writers, folder / kind, seed, how)
        attacks["two writers"] = partial(two_writers, folder)
        end = time.monotonic() + seconds
        result = {}
        for done, (what, attack) in enumerate(attacks.items()):
            now = time.monotonic()
            found = attack(now + max(1.0, (end - now) / (len(attacks) - done)))
            result[what] = dict(found)
            click.echo(f"{what}: {', '.join(f'{n:,} {word}' for word, n in found.items())}")
    recorder.write(results_folder("attack", out, smoke) / "reliability.json", result)
    if any(found.get("wrong") for found in result.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
