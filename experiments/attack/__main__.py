"""Attack databases: damage, crashes, company, and machines that run out of what a search needs.

Nothing may give a wrong answer without an error, nothing that was acknowledged may be lost, and no
process may end by a signal that nobody sent.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path

import click

from experiments.attack import crashes, damage, describers, disk, running_out
from experiments.attack.apart import Attack, run_attacks
from experiments.attack.check_cost import measure_cost
from experiments.attack.victims import make_victims
from experiments.harness.command import (
    ROOT,
    Experiment,
    out_option,
    results_folder,
    seed_option,
    smoke_option,
)
from experiments.harness.records import Recorder

FLIPS, CUTS = "bytes changed", "files cut"
HEAVY = 10.0
"""Share of the time of an attack that changes every byte, to that of another one."""
BAD = ("wrong", "crashed", "ended")
"""What no attack may find."""


@click.command("attack", cls=Experiment)
@click.option("--minutes", default=20.0, show_default=True, help="Time for all attacks together.")
@click.option("--jobs", default=8, show_default=True, help="Attacks at a time.")
@click.option("--entries", default=40, show_default=True, help="Entries of a database to damage.")
@click.option(
    "--only",
    type=click.Choice(["attacks", "cost"]),
    help="The attacks, or what the checks cost  [the attacks]",
)
@seed_option
@smoke_option
@out_option
def main(
    minutes: float,
    jobs: int,
    entries: int,
    only: str | None,
    seed: int,
    smoke: bool,
    out: Path | None,
) -> None:
    """Attack databases; exit code 1 if an attack succeeds."""
    folder = results_folder("attack", out, smoke)
    if only == "cost":
        _measure(folder, seed, smoke)
        return
    # A shell starts what runs in the background with Ctrl-C ignored, and so would the victims be.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    recorder = Recorder("attack", seed, {"minutes": minutes, "jobs": jobs, "entries": entries})
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT.parent), *sys.path[1:]])
    with tempfile.TemporaryDirectory() as name:
        attacks = _make_attacks(Path(name), entries, seed, few=smoke)
        found = {}
        for what, counts in run_attacks(attacks, 45.0 if smoke else 60.0 * minutes, jobs):
            found[what] = counts
            click.echo(f"{what}: {counts}")
    recorder.write(folder / "reliability.json", {what: found[what] for what in attacks})
    if any(counts.get(bad) for counts in found.values() for bad in BAD):
        sys.exit(1)


def _measure(folder: Path, seed: int, smoke: bool) -> None:
    entries, rounds = (2000, 1) if smoke else (99_000, 15)
    recorder = Recorder("attack", seed, {"entries": entries, "rounds": rounds})
    with tempfile.TemporaryDirectory() as name:
        rows = measure_cost(Path(name), entries, rounds, seed)
    recorder.write(folder / "cost.json", {"rows": rows})


def _make_attacks(
    folder: Path, entries: int, seed: int, *, few: bool
) -> dict[str, tuple[float, Attack]]:
    """All attacks by name, with their shares of the time; each has files of its own."""
    attacks: dict[str, tuple[float, Attack]] = {}
    for what, victim in make_victims(folder / "flips", entries, seed, few=few).items():
        attacks[f"{FLIPS}: {what}"] = HEAVY, partial(damage.flip_bytes, victim, seed)
    for what, victim in make_victims(folder / "cuts", entries, seed, few=few).items():
        attacks[f"{CUTS}: {what}"] = 1.0, partial(damage.truncate_files, victim, seed)
    for what, victim in make_victims(folder / "forged", entries, seed, few=few).items():
        if what.endswith("vectors, ip"):
            forge = partial(damage.forge_headers, victim.path, seed)
            attacks[f"headers forged: {what}"] = 1.0, forge
    for kind, how in (("killed", signal.SIGKILL), ("interrupted", signal.SIGINT)):
        (folder / kind).mkdir()
        kill = partial(crashes.kill_writers, folder / kind, seed, how)
        attacks[f"writers {kind}"] = 1.0, kill
    others: dict[str, Attack] = {
        "two writers": partial(crashes.two_writers, folder),
        "forks during a change": partial(crashes.fork_writers, folder, seed),
        "two describers": partial(describers.two_describers, folder / "photos", seed),
        "system calls that fail": partial(disk.fail_calls, folder / "failing", seed),
        "full disk": partial(disk.fill_disk, seed),
        "Ctrl-C": partial(running_out.interrupt, seed),
        "memory limits": partial(running_out.limit_memory, seed),
        "threads that cannot start": partial(running_out.refuse_threads, seed),
    }
    return attacks | {what: (1.0, attack) for what, attack in others.items()}


if __name__ == "__main__":
    main()
