"""Cycles of the integer kernels, for every instruction set of this machine.

`python -m experiments.speed.kernels` builds kernels.cpp where the wheel was built, from its objects
and with its flags, runs it and writes results/kernels.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click

from experiments.harness.command import Experiment, out_option, results_folder, smoke_option
from experiments.harness.records import Recorder, Result

PROGRAM = "kernel_benchmark"
ROUNDS = 300
SMOKE_ROUNDS = 1


def build_program(folder: Path = Path("build")) -> Path:
    """The program, built in the newest build of a wheel below ``folder``."""
    caches = sorted(folder.glob("cp*/CMakeCache.txt"), key=lambda file: file.stat().st_mtime)
    if not caches:
        raise click.ClickException(
            f"no build of the package in {folder}: run `make test-cpp` first"
        )
    build = caches[-1].parent
    cmake = Path(sys.executable).with_name("cmake")
    subprocess.run(
        [str(cmake), "--build", str(build), "--target", PROGRAM], check=True, stdout=sys.stderr
    )
    return build / PROGRAM


def measure(program: Path, rounds: int) -> Result:
    """What the program prints: a row per kernel, instruction set and size."""
    command = [str(program.resolve()), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {"rows": [json.loads(line) for line in done.stdout.splitlines()]}


@click.command("speed.kernels", cls=Experiment)
@smoke_option
@out_option
def main(smoke: bool, out: Path | None) -> None:
    """Measure cycles per block of 16 entries, and per candidate of tighten."""
    program = build_program()
    recorder = Recorder("speed", name="kernels")
    result = measure(program, SMOKE_ROUNDS if smoke else ROUNDS)
    recorder.write(results_folder("speed", out, smoke) / "kernels.json", result)
    for row in result["rows"]:
        click.echo(
            f"{row['kernel']:8}{row['family']:11}{row['slots']:5} slots {row['entries']:7,} entries"
            f"{row['queries']:3} at once {row['cycles']:9.2f} cycles"
        )


if __name__ == "__main__":
    main()
