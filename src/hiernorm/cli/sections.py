"""A group of commands whose help lists them by subject."""

from __future__ import annotations

import click


class SectionedGroup(click.Group):
    """A group that lists its commands in sections, each in the order of its commands."""

    sections: dict[str, list[str]]

    def add_section(self, title: str, *commands: click.Command) -> None:
        """Add commands under a title of the help."""
        self.sections = getattr(self, "sections", {})
        names = self.sections.setdefault(title, [])
        for command in commands:
            self.add_command(command)
            if command.name is not None and not command.hidden:
                names.append(command.name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, all with the same width of names."""
        width = max(len(name) for names in self.sections.values() for name in names)
        for title, names in self.sections.items():
            rows = [
                (
                    name.ljust(width),
                    self.commands[name].get_short_help_str(formatter.width - width - 6),
                )
                for name in names
            ]
            with formatter.section(title):
                formatter.write_dl(rows)
