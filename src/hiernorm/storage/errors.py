"""Errors of databases."""

from __future__ import annotations


class DatabaseError(Exception):
    """An error of a database; the message says what is wrong and what to do."""


class NotADatabaseError(DatabaseError):
    """The path holds no database."""


class FormatVersionError(DatabaseError):
    """The database was written in a format that this version of hiernorm does not read."""


class DamagedError(DatabaseError):
    """A file is not what was written: truncated, changed or missing."""


class LockedError(DatabaseError):
    """Another process is writing to the database."""
