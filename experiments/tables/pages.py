"""Pages with markers: what stands between them is replaced by the rendered table."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from experiments.harness.command import ROOT
from experiments.tables.registry import Table

PROJECT = ROOT.parent

MARKED = re.compile(r"^<!-- table: (?P<name>\S+) -->\n.*?^<!-- /table -->$", re.M | re.S)

PICTURED = re.compile(
    r"^<!-- picture: (?P<file>\S+): (?P<text>.+?) -->\n.*?^<!-- /picture -->$", re.M | re.S
)
"""A picture that is shown once it was measured."""

PICTURES = {
    "docs/images/descriptors.png": "descriptors/results/descriptors.png",
    "docs/images/bench.png": "speed/results/bench.png",
    "docs/images/cells.png": "growth/results/cells.png",
    "docs/images/quality.png": "quality/results/quality.png",
    "docs/images/pairs.png": "photos/results/pairs.png",
}
"""Pictures that pages show, and the results that they are copies of."""


def list_pages() -> list[Path]:
    """README, all pages of the documentation, and the cards of the models."""
    cards = sorted((PROJECT / "src" / "hiernorm" / "models").glob("*.md"))
    return [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md")), *cards]


def named_tables(text: str) -> list[str]:
    r"""Names of the tables that a page shows.

    Examples
    --------
    >>> named_tables("<!-- table: speed -->\nold\n<!-- /table -->\n")
    ['speed']
    """
    return [match["name"] for match in MARKED.finditer(text)]


def render_tables(text: str, tables: Mapping[str, Table]) -> str:
    """The page with every table rendered anew."""

    def renew(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in tables:
            raise KeyError(f"no table {name!r}: there are {', '.join(sorted(tables))}")
        return f"<!-- table: {name} -->\n{tables[name].to_markdown()}\n<!-- /table -->"

    return MARKED.sub(renew, text)


def render_page(page: Path, text: str, tables: Mapping[str, Table]) -> str:
    """The page with its tables and measured pictures rendered anew."""

    def renew(match: re.Match[str]) -> str:
        file, words = match["file"], match["text"]
        lines = [f"<!-- picture: {file}: {words} -->", "<!-- /picture -->"]
        if (ROOT / PICTURES[file]).exists():
            place = Path(os.path.relpath(PROJECT / file, page.parent)).as_posix()
            lines.insert(1, f"![{words}]({place})")
        return "\n".join(lines)

    return PICTURED.sub(renew, render_tables(text, tables))


def find_differences(tables: Mapping[str, Table]) -> list[Path]:
    """Pages and pictures that differ from their results."""
    pages = [
        page
        for page in list_pages()
        if (text := page.read_text(encoding="utf-8")) != render_page(page, text, tables)
    ]
    pictures = [
        PROJECT / shown
        for shown, source in PICTURES.items()
        if (ROOT / source).exists() and not _same_bytes(PROJECT / shown, ROOT / source)
    ]
    return [*pages, *pictures]


def update_pages(tables: Mapping[str, Table]) -> list[Path]:
    """Write what differs; return what was written."""
    changed = find_differences(tables)
    for page in changed:
        if page.suffix == ".md":
            text = page.read_text(encoding="utf-8")
            page.write_text(render_page(page, text, tables), encoding="utf-8")
        else:
            shown = page.relative_to(PROJECT).as_posix()
            page.write_bytes((ROOT / PICTURES[shown]).read_bytes())
    return changed


def _same_bytes(one: Path, other: Path) -> bool:
    return one.exists() and one.read_bytes() == other.read_bytes()
