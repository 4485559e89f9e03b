"""Errors that are of our kind and of FAISS's, so that code written for either catches them."""

from __future__ import annotations


class ArgumentError(ValueError, AssertionError):
    """An argument has a wrong shape, or a count is out of range; FAISS asserts these."""


class UnknownIdError(KeyError, RuntimeError):
    """An id or a position is not in the index."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show the text in quotes


class UnreadableIndexError(ValueError, RuntimeError):
    """Bytes are no flat index, or they are damaged."""


class MissingFileError(FileNotFoundError, RuntimeError):
    """There is no such file."""
