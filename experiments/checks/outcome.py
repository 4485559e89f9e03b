"""What a check printed: tests that passed, inputs that were tried, faults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

TESTS = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed)\b")
INPUTS = re.compile(r"^Done (\d+) runs", re.M)
MISSING = re.compile(
    r"^.*\bneeds .* (?:was not found|not found).*$|^.*No matching distribution.*$", re.M
)
LAST_LINES = 15
"""Of what a check printed, which its result keeps."""


@dataclass(frozen=True)
class Outcome:
    """Counts of one check.

    Attributes
    ----------
    passed, failed, skipped
        Tests; under several sanitizers or processors each run of a test counts.
    inputs
        That a fuzzer tried.
    missing
        Why the check could not run, or None.
    """

    passed: int
    failed: int
    skipped: int
    inputs: int
    missing: str | None


def read_outcome(output: str) -> Outcome:
    r"""Count what a check printed.

    Examples
    --------
    >>> read_outcome("40 passed, 0 failed\n==> ...\n40 passed, 1 failed\n").failed
    1
    >>> read_outcome("===== 12 passed, 3 skipped in 8.1s =====").passed
    12
    >>> read_outcome("Done 51234 runs in 61 second(s)").inputs
    51234
    """
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for number, word in TESTS.findall(output):
        kind = "failed" if word.startswith("error") else word
        if kind in counts:
            counts[kind] += int(number)
    inputs = sum(map(int, INPUTS.findall(output)))
    found = MISSING.search(output)
    return Outcome(**counts, inputs=inputs, missing=None if found is None else found[0].strip())


def last_lines(output: str, project: Path) -> list[str]:
    r"""The end of what a check printed, without the path of the project on this machine.

    Examples
    --------
    >>> last_lines("rootdir: /home/me/hiernorm\n12 passed", Path("/home/me/hiernorm"))
    ['rootdir: hiernorm', '12 passed']
    """
    return output.replace(str(project), project.name).splitlines()[-LAST_LINES:]
