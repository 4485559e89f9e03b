"""`hiernorm info`: what runs on this machine, or what is in a database."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import click
import numpy as np

import hiernorm
from hiernorm.cli.help import examples
from hiernorm.cli.options import JSON, PATH
from hiernorm.threads import thread_count


@click.command(epilog=examples("hiernorm info", "hiernorm info words.hn --json"))
@click.argument("database", required=False, type=PATH)
@JSON
def info(database: Path | None, as_json: bool) -> None:
    """Show what a database holds, or what runs on this machine.

    Without DATABASE the command shows version, instruction sets and number of threads.
    """
    lines: dict[str, Any]
    if database is not None:
        lines = hiernorm.Database.open(database).info()
    elif as_json:
        lines = {
            "hiernorm": hiernorm.__version__,
            "isa": hiernorm.isa(),
            "available_isas": list(hiernorm.available_isas()),
            "threads": thread_count(None),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "platform": platform.platform(),
        }
    else:
        available = ", ".join(hiernorm.available_isas())
        lines = {
            "hiernorm": hiernorm.__version__,
            "instruction set": f"{hiernorm.isa()} (available: {available})",
            "threads": thread_count(None),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "platform": platform.platform(),
        }
    echo_facts(lines, as_json)


def echo_facts(facts: dict[str, Any], as_json: bool) -> None:
    """Print a line per fact, or one JSON object."""
    if as_json:
        click.echo(json.dumps(facts))
        return
    for name, value in facts.items():
        click.echo(f"{name:<16} {_shown(name, value)}")


def _shown(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} ({kind})" for key, kind in value.items()) or "-"
    if isinstance(value, int) and name != "generation":
        return f"{value:,}"
    return "-" if value is None else str(value)
