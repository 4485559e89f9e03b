"""All commands of the command line, however deep in groups."""

from __future__ import annotations

from collections.abc import Iterator

import click

from hiernorm.cli.app import app


def leaf_commands(
    group: click.Group = app, above: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Yield the words and the command of each that runs, hidden ones left out."""
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from leaf_commands(command, (*above, name))
        elif not command.hidden:
            yield " ".join((*above, name)), command
