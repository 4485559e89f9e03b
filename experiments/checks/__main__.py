"""Sanitizers, emulation, fuzzers and long tests at one commit: what they ran, and what they found.

Each check is a target of the Makefile. What a machine lacks (SIMDe, QEMU, atheris) is told and
counts as not run. Writes checks.json after every check; exit code 1 if one has found a fault.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from experiments.checks.outcome import last_lines, read_outcome
from experiments.harness.command import ROOT, Experiment, out_option, results_folder, smoke_option
from experiments.harness.records import Recorder

CHECKS = {
    "test-cpp": "C++ tests, flags of the release",
    "sanitize": "C++ tests under ASan with UBSan, then under TSan",
    "emulate": "C++ tests with AVX-512 and NEON emulated",
    "fuzz": "readers of files, fed by a fuzzer",
    "test-long": "killed writers, readers beside a writer, every byte changed",
    "test-ray": "shards on a Ray cluster whose nodes die",
}


def run_check(target: str, dry: bool) -> dict[str, Any]:
    """Run one target and count what it printed."""
    command = ["make", *(["--dry-run"] if dry else []), target]
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=ROOT.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    output = done.stdout.decode(errors="replace")
    outcome = read_outcome(output)
    return {
        "target": target,
        "what": CHECKS[target],
        "exit_code": done.returncode,
        "seconds": time.perf_counter() - start,
        "last_lines": [] if dry else last_lines(output, ROOT.parent),
        **asdict(outcome),
    }


def describe(row: dict[str, Any]) -> str:
    """One word on a check: what it found.

    Examples
    --------
    >>> describe({"exit_code": 0, "missing": None, "failed": 0})
    'no fault'
    >>> describe({"exit_code": 2, "missing": "needs qemu", "failed": 0})
    'not run: needs qemu'
    """
    if row["exit_code"] == 0:
        return "no fault"
    if row["missing"] is not None:
        return f"not run: {row['missing']}"
    return f"{row['failed']} faults" if row["failed"] else f"exit code {row['exit_code']}"


@click.command("checks", cls=Experiment)
@click.option("--only", type=click.Choice(list(CHECKS)), multiple=True, help="May be repeated.")
@smoke_option
@out_option
def main(only: tuple[str, ...], smoke: bool, out: Path | None) -> None:
    """Run all checks; with --smoke only see that their targets exist."""
    recorder = Recorder("checks")
    file = results_folder("checks", out, smoke) / "checks.json"
    rows: list[dict[str, Any]] = []
    for target in only or CHECKS:
        rows.append(run_check(target, dry=smoke))
        recorder.write(file, {"checks": rows})
        click.echo(f"{target}: {describe(rows[-1])}")
    sys.exit(any(row["exit_code"] and row["missing"] is None for row in rows))


if __name__ == "__main__":
    main()
