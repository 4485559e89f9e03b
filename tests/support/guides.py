"""Runs the examples of a documentation page: Python sessions, scripts and commands, in one folder.

python tests/support/guides.py README.md docs/*/*.md      writes what they print now into the pages

- `pycon`: a session; what it prints follows each statement.
- `python`: a script; if a block `text` follows, that is what it prints.
- `console`: commands of hiernorm and what they print.

Other blocks (`bash`, `text`, ...) are not run. When what examples print is written, a line
`<!-- copy: model.png to ../images/x.png -->` copies a file that they have made to a place beside
the page.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import math
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(
    r"^```(?P<kind>pycon|console|python)\n(?P<body>.*?)^```$"
    r"(?:\n+```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
COPY = re.compile(r"^<!-- copy: (\S+) to (\S+) -->$", re.MULTILINE)
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")
TIME = re.compile(r"\d[\d,.]*(?:e-?\d+)? ?(?:s|ms|µs|us)\b")
DIGEST = re.compile(r"\b[0-9a-f]{12}\b")
SHARE, STEP = 0.1, 8
"""Counts may differ by a tenth, or by eight: versions of OpenCV find slightly other keypoints."""


@dataclass
class Step:
    """One example: what is typed, what the page shows, what came."""

    typed: str
    shown: str
    came: str


def run_page(page: Path) -> Iterator[Step]:
    """Run a page's examples in the current folder."""
    names: dict[str, object] = {"__name__": "guide"}
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["kind"] == "pycon":
            yield from _run_session(block["body"], names)
        elif block["kind"] == "console":
            yield from _run_commands(block["body"])
        else:
            yield _run_script(block["body"], block["output"] or "", names)


def has_examples(page: Path) -> bool:
    """Whether anything on a page is run."""
    return BLOCK.search(page.read_text(encoding="utf-8")) is not None


def _run_script(body: str, shown: str, names: dict[str, object]) -> Step:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, "<guide>", "exec"), names)
    return Step(body, shown, printed.getvalue())


def _run_session(body: str, names: dict[str, object]) -> Iterator[Step]:
    for example in doctest.DocTestParser().get_examples(body):
        printed = io.StringIO()
        hook, sys.displayhook = sys.displayhook, lambda value: _display(value, names)
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(example.source, "<guide>", "single"), names)
        finally:
            sys.displayhook = hook
        yield Step(example.source, example.want, printed.getvalue())


def _display(value: object, names: dict[str, object]) -> None:
    if value is not None:
        print(repr(value))
        names["_"] = value


def _run_commands(body: str) -> Iterator[Step]:
    from click.testing import CliRunner

    from hiernorm.cli.app import app

    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        typed, _, shown = part.partition("\n")
        words = shlex.split(typed)
        if words[0] != "hiernorm":
            raise ValueError(f"a guide can only run hiernorm, not {words[0]}")
        result = CliRunner().invoke(app, words[1:])
        yield Step(typed, shown, result.output)


def differences(step: Step) -> str | None:
    """How what came differs from what the page shows; times and digests do not count."""
    shown, came = (
        DIGEST.sub("DIGEST", TIME.sub("TIME", text)).split() for text in (step.shown, step.came)
    )
    if len(shown) == len(came) and all(map(_close, shown, came)):
        return None
    return f"{step.typed!r} printed\n{step.came}\nthe page shows\n{step.shown}"


def _close(shown: str, came: str) -> bool:
    if shown == came:
        return True
    if NUMBER.sub("#", shown) != NUMBER.sub("#", came):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(came), strict=True)
    values = [[float(text.replace(",", "")) for text in pair] for pair in pairs]
    whole = "." not in shown
    return all(
        math.isclose(a, b, rel_tol=SHARE, abs_tol=STEP if whole and abs(a) > STEP else 1e-3)
        for a, b in values
    )


def update(page: Path) -> None:
    """Write what the examples print into the page."""
    steps = run_page(page)

    def renew(block: re.Match[str]) -> str:
        kind, body = block["kind"], block["body"]
        lines = []
        if kind == "python":
            came = next(steps).came
            return f"```python\n{body}```" + (f"\n\n```text\n{came}```" if came else "")
        if kind == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                step = next(steps)
                lines.append(f"$ {part.partition(chr(10))[0]}\n{step.came}")
        else:
            for example in doctest.DocTestParser().get_examples(body):
                step = next(steps)
                source = example.source.splitlines()
                typed = [f">>> {source[0]}", *(f"... {line}" for line in source[1:])]
                lines.append("\n".join(typed) + "\n" + step.came)
        return f"```{kind}\n{''.join(lines)}```"

    text = page.read_text(encoding="utf-8")
    page.write_text(BLOCK.sub(renew, text), encoding="utf-8")
    for made, place in COPY.findall(text):
        shutil.copyfile(made, page.parent / place)


if __name__ == "__main__":
    for file in [Path(name).resolve() for name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            update(file)
            os.chdir(file.parent)
        print(file.name)
