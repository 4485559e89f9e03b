"""What looks runnable on a page is run, or the page's source says why not; its options exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from guides import BLOCK
from paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTES = ROOT / "docs" / "notes"
"""Dated records: their commands were run once and are not updated."""

FENCE = re.compile(
    r"^(?P<reason><!-- not run: \S[^\n]* -->\n+)?(?P<indent>[ ]*)```(?P<kind>\w*)[^\n]*\n"
    r"(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
RUN = {"python", "pycon", "console"}
SHOWN = {"", "bash", "json", "text", "yaml"}
LOOKS_RUNNABLE = re.compile(r"^(?:>>> |\$ |(?:hiernorm|make|python) )", re.MULTILINE)


def unexplained(text: str) -> list[str]:
    """Blocks that look runnable, are not run, and do not say why."""
    run = {block.start() for block in BLOCK.finditer(text)}
    return [
        block["body"]
        for block in FENCE.finditer(text)
        if (block["kind"] in RUN or LOOKS_RUNNABLE.search(block["body"]))
        and text.index("```", block.start()) not in run
        and not block["reason"]
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_fragments_run_or_say_why_not(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert {block["kind"] for block in FENCE.finditer(text)} <= RUN | SHOWN
    if NOTES not in page.parents:
        assert unexplained(text) == []


def test_fragments_without_a_reason_are_found() -> None:
    run = "```pycon\n>>> 1\n1\n```\n"
    indented = "!!! note\n    ```python\n    print(1)\n    ```\n"
    shell = "```bash\nmake test\n```\n"
    assert unexplained(run) == []
    assert len(unexplained(indented)) == 1
    assert len(unexplained(shell)) == 1
    assert unexplained(f"<!-- not run: takes minutes -->\n{shell}") == []
    assert unexplained("```bash\npip install .\n```\n") == []


def shell_commands(page: Path) -> list[list[str]]:
    """The words of every command of hiernorm in blocks that are not run."""
    found = []
    for block in FENCE.finditer(page.read_text(encoding="utf-8")):
        if block["kind"] == "bash":
            for line in block["body"].replace("\\\n", " ").splitlines():
                for part in re.split(r"&&|[|;]|> ", line):
                    words = shlex.split(part, comments=True)
                    if words[:1] == ["hiernorm"]:
                        found.append(words[1:])
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_that_are_not_run_exist_with_their_options(page: Path) -> None:
    click = pytest.importorskip("click", reason="needs click")
    from hiernorm.cli.app import app

    if NOTES in page.parents:
        return
    for words in shell_commands(page):
        command, rest = app, list(words)
        while isinstance(command, click.Group):
            context = click.Context(command)
            assert rest, f"hiernorm {' '.join(words)} names no command"
            command = command.get_command(context, rest.pop(0))
            assert command is not None, f"hiernorm {' '.join(words)}: no such command"
        known = {
            name for option in command.params for name in (*option.opts, *option.secondary_opts)
        }
        used = {word.partition("=")[0] for word in rest if word.startswith("-")}
        assert used <= known, f"hiernorm {' '.join(words)}: no option {used - known}"
