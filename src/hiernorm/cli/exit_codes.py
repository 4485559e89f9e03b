"""The exit codes of all commands, in one table."""

from __future__ import annotations

DONE = 0
ERROR = 1
WRONG_COMMAND_LINE = 2
DAMAGED = 3
LOCKED = 4
NO_DATABASE = 5
SOME_FAILED = 6
NO_MATCH = 7
INTERRUPTED = 130
PIPE_CLOSED = 141

EXIT_CODES = {
    DONE: "The command did what was asked.",
    ERROR: "An error. One line on stderr says what went wrong.",
    WRONG_COMMAND_LINE: "A wrong command line, such as a path that does not exist.",
    DAMAGED: "The database is damaged.",
    LOCKED: "Another process is writing to the database.",
    NO_DATABASE: "There is no database, or one of another format version.",
    SOME_FAILED: "`describe` could not read some photos; it added the others.",
    NO_MATCH: "`match` or `locate` worked, but the photos do not match.",
    INTERRUPTED: "Ctrl-C stopped the command.",
    PIPE_CLOSED: "The reader of stdout, such as `head`, closed the pipe.",
}
"""What each exit code means; no other is used. The numbers are a promise to scripts."""
