"""`option` and `examples`: the help of all commands in the same words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

F = TypeVar("F", bound="Callable[..., Any] | click.Command")
VALUES = {
    "directory": "FOLDER",
    "float": "NUMBER",
    "float range": "NUMBER",
    "integer": "N",
    "integer range": "N",
    "text": "NAME",
}
"""What the help calls a value of click's types, where an option gives it no name of its own."""


class Option(click.Option):
    """An option whose help says once what is the default, and in words what is allowed.

    ``show_default`` is the text for a default that the command chooses itself.

    Examples
    --------
    >>> port = Option(["--port"], type=click.IntRange(0, 65535), help="Port.", show_default="any")
    >>> port.get_help_record(click.Context(click.Command("serve")))
    ('--port N', 'Port.  [default: any; 0 to 65535]')
    """

    def __init__(self, names: Sequence[str], **settings: Any) -> None:
        settings.setdefault("show_default", True)
        super().__init__(names, **settings)
        if self.metavar is None and not self.is_flag:
            self.metavar = VALUES.get(self.type.name)

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        """Return what follows the help text in brackets."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        if isinstance(self.type, (click.IntRange, click.FloatRange)):
            allowed = _allowed(self.type)
            extra.pop("range", None)
            if allowed is not None:
                extra["range"] = allowed
        return extra


def _allowed(kind: click.IntRange | click.FloatRange) -> str | None:
    """The range in words; None for any count."""
    low = None if kind.min is None else f"{kind.min:g}"
    if kind.max is not None:
        return f"{'above ' if kind.min_open else ''}{low} to {round(kind.max, 2):g}"
    if kind.min_open:
        return f"above {low}"
    return None if isinstance(kind, click.IntRange) and kind.min in (0, 1) else f"at least {low}"


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """Decorate a command with an :class:`Option`."""
    return click.option(*names, cls=Option, **settings)


def examples(*lines: str, also: str = "") -> str:
    """Return the end of a command's help: commands that a shell runs, then further text.

    Examples
    --------
    >>> examples("hiernorm info words.hn").splitlines()[1:]
    ['Examples:', '  hiernorm info words.hn']
    """
    listed = "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
    return f"{listed}\n\n{also}" if also else listed
