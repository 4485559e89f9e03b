"""The command line: `hiernorm --help` lists the commands."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say in one line what it needs."""
    if any(find_spec(name) is None for name in ("click", "rich")):
        sys.exit("hiernorm: the command line needs extra packages: pip install 'hiernorm[cli]'")
    from hiernorm.cli.app import app

    app(prog_name="hiernorm")
