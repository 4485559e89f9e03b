"""`make bench-kernels`: cycles of the integer kernels, for every instruction set of this machine.

The program (kernels.cpp) is built where the wheel was, from its objects and with its flags. Results
go to results/kernels.json.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import click

from experiments.harness.command import Experiment, out_option, results_folder, smoke_option
from experiments.harness.records import Recorder

PROGRAM = "kernel_benchmark"
ROUNDS = 300
SMOKE_ROUNDS = 1


@click.command("speed.kernels", cls=Experiment)
@click.option(
    "--program",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="The built program; `make bench-kernels` builds it and says where it is.",
)
@smoke_option
@out_option
def main(program: Path, smoke: bool, out: Path | None) -> None:
    """Run the program, keep what it prints."""
    recorder = Recorder("speed", name="kernels")
    rounds = SMOKE_ROUNDS if smoke else ROUNDS
    done = subprocess.run(
        [str(program.resolve()), str(rounds)], capture_output=True, text=True, check=True
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    recorder.write(results_folder("speed", out, smoke) / "kernels.json", {"rows": rows})
    for row in rows:
        click.echo(
            f"{row['kernel']:8} {row['family']:11} {row['slots']:4} slots {row['entries']:7,} entries"
            f"  {row['queries']} at once  {row['cycles']:8.2f} cycles"
        )


if __name__ == "__main__":
    main()
