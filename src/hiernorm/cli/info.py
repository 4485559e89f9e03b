"""`hiernorm info`: what runs on this machine."""

from __future__ import annotations

import platform

import click
import numpy as np

import hiernorm
from hiernorm.threads import thread_count


@click.command()
def info() -> None:
    """Show version, instruction sets and threads."""
    lines = {
        "hiernorm": hiernorm.__version__,
        "instruction set": f"{hiernorm.isa()} (available: {', '.join(hiernorm.available_isas())})",
        "threads": thread_count(None),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
    }
    for name, value in lines.items():
        click.echo(f"{name:<16} {value}")
