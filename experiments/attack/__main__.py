"""Attack databases: damage, crashes, company, and machines that run out of what a search needs.

Nothing may give a wrong answer without an error, nothing that was acknowledged may be lost, and no
process may end by a signal that nobody sent.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from experiments.attack import crashes, damage, describers, disk, running_out
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

Attack = Callable[[float], Any]
FLIPS, CUTS = "bytes changed", "files cut"
HEAVY = 3.0
"""Share of the time of an attack that changes every byte, to that of another one."""


@click.command("attack", cls=Experiment)
@click.option("--minutes", default=20.0, show_default=True, help="Time for all attacks together.")
@click.option("--entries", default=60, show_default=True, help="Entries of a database to damage.")
@click.option(
    "--only",
    type=click.Choice(["attacks", "cost"]),
    help="The attacks, or what the checks cost  [the attacks]",
)
@seed_option
@smoke_option
@out_option
def main(
    minutes: float, entries: int, only: str | None, seed: int, smoke: bool, out: Path | None
) -> None:
    """Attack databases; exit code 1 if an attack succeeds."""
    folder = results_folder("attack", out, smoke)
    if only == "cost":
        _measure(folder, seed, smoke)
        return
    recorder = Recorder("attack", seed, {"minutes": minutes, "entries": entries})
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT.parent), *sys.path[1:]])
    with tempfile.TemporaryDirectory() as name:
        attacks = _make_attacks(Path(name), entries, seed, few=smoke)
        result = _run_all(attacks, 45.0 if smoke else 60.0 * minutes)
    recorder.write(folder / "reliability.json", result)
    if any(found.get("wrong") or found.get("crashed") for found in result.values()):
        sys.exit(1)


def _measure(folder: Path, seed: int, smoke: bool) -> None:
    entries, rounds = (2000, 1) if smoke else (99_000, 15)
    recorder = Recorder("attack", seed, {"entries": entries, "rounds": rounds})
    with tempfile.TemporaryDirectory() as name:
        rows = measure_cost(Path(name), entries, rounds, seed)
    recorder.write(folder / "cost.json", {"rows": rows})


def _make_attacks(folder: Path, entries: int, seed: int, *, few: bool) -> dict[str, Attack]:
    victims = make_victims(folder / "victims", entries, seed, few=few)
    attacks: dict[str, Attack] = {}
    for what, victim in victims.items():
        attacks[f"{FLIPS}: {what}"] = partial(damage.flip_bytes, victim, seed)
    for what, victim in victims.items():
        attacks[f"{CUTS}: {what}"] = partial(damage.truncate_files, victim, seed)
    for kind in ("HN", "plain"):
        path = victims[f"{kind} vectors, ip"].path if f"{kind} vectors, ip" in victims else None
        if path is not None:
            attacks[f"headers forged: {kind} vectors"] = partial(damage.forge_headers, path, seed)
    for kind, how in (("killed", signal.SIGKILL), ("interrupted", signal.SIGINT)):
        (folder / kind).mkdir()
        attacks[f"writers {kind}"] = partial(crashes.kill_writers, folder / kind, seed, how)
    attacks["two writers"] = partial(crashes.two_writers, folder)
    attacks["forks during a change"] = partial(crashes.fork_writers, folder, seed)
    attacks["two describers"] = partial(describers.two_describers, folder / "photos", seed)
    attacks["system calls that fail"] = partial(disk.fail_calls, folder / "failing", seed)
    attacks["full disk"] = partial(disk.fill_disk, seed)
    attacks["Ctrl-C"] = partial(running_out.interrupt, seed)
    attacks["memory limits"] = partial(running_out.limit_memory, seed)
    attacks["threads that cannot start"] = partial(running_out.refuse_threads, seed)
    return attacks


def _run_all(attacks: dict[str, Attack], seconds: float) -> dict[str, dict[str, Any]]:
    """Run all attacks; the time that one leaves goes to the others."""
    end = time.monotonic() + seconds
    shares = {what: HEAVY if what.startswith(FLIPS) else 1.0 for what in attacks}
    result: dict[str, dict[str, Any]] = {}
    for what, attack in attacks.items():
        start = time.monotonic()
        left = sum(share for each, share in shares.items() if each not in result)
        found = attack(start + max(1.0, (end - start) * shares[what] / left))
        more: dict[str, Any] = {}
        if not isinstance(found, Counter):
            found, delays = found
            more = {"slowest": max(delays, default=0.0), "median": sorted(delays)[len(delays) // 2]}
        result[what] = {**found, **more, "seconds": time.monotonic() - start}
        click.echo(f"{what}: {', '.join(f'{n:,} {word}' for word, n in found.items())} {more}")
    return result


if __name__ == "__main__":
    main()
