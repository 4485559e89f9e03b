"""``with`` for what has a ``close()``."""

from __future__ import annotations

from typing import TypeVar

Opened = TypeVar("Opened", bound="Closing")


class Closing:
    """A base of classes that ``with`` closes."""

    def __enter__(self: Opened) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what is held."""
        raise NotImplementedError
