"""The command line: `hiernorm --help` lists the commands."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    from hiernorm.cli.app import app

    app(prog_name="hiernorm")
