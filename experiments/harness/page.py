"""Reports: text, tables and pictures as Markdown, and as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from experiments.harness.cards import (
    Card,
    Items,
    card_html,
    card_markdown,
    inline,
    items_html,
    items_markdown,
)

MISSING = "not run"
"""In a cell whose run is not finished."""

STYLE = Path(__file__).with_name("page.css")
"""Added to the style of the demo's page."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Rows:
    """A table: the head, then rows of as many cells."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A picture in ``figures/``, and its caption."""

    file: str
    caption: str


Block = Text | Rows | Picture | Card | Items


@dataclass(frozen=True)
class Section:
    """A title and what stands below it."""

    title: str
    blocks: Sequence[Block]


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits.

    Examples
    --------
    >>> number(12.345), number(0.00123), number(1234.5), number(None)
    ('12.3', '0.00123', '1,234', 'not run')
    """
    if value is None:
        return MISSING
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def percent(value: float | None) -> str:
    """A share in per cent.

    Examples
    --------
    >>> percent(0.0123), percent(None)
    ('1.23%', 'not run')
    """
    return MISSING if value is None else f"{100 * value:.3g}%"


def ratio(ours: float | None, theirs: float | None) -> str:
    """Ours over theirs; nothing where the paper has no figure, or has zero.

    Examples
    --------
    >>> ratio(3.0, 2.0), ratio(1.0, None), ratio(1.0, 0.0)
    ('1.5', '', '')
    """
    if ours is None or not theirs:
        return ""
    return number(ours / theirs)


def plural(number: int, one: str, many: str = "") -> str:
    """A number and its noun.

    Examples
    --------
    >>> plural(1, "claim"), plural(1_200, "claim"), plural(0, "search", "searches")
    ('1 claim', '1,200 claims', '0 searches')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def render_markdown(title: str, sections: Sequence[Section], drawn: set[str]) -> str:
    """The whole report; pictures that were not drawn are left out.

    Examples
    --------
    >>> print(render_markdown("A", [Section("B", [Rows(["x", "y"], [["1", "2"]])])], set()))
    # A
    <BLANKLINE>
    ## B
    <BLANKLINE>
    | x | y |
    |---|---|
    | 1 | 2 |
    <BLANKLINE>
    """
    parts = [f"# {title}\n"]
    for section in sections:
        parts.append(f"## {section.title}\n")
        parts += [text for text in (_as_markdown(block, drawn) for block in section.blocks) if text]
    return "\n".join(parts)


def _as_markdown(block: Block, drawn: set[str]) -> str:
    if isinstance(block, Rows):
        return render_table(block) + "\n"
    if isinstance(block, Card):
        return card_markdown(block)
    if isinstance(block, Items):
        return items_markdown(block)
    if isinstance(block, Picture):
        if block.file not in drawn:
            return ""
        return f"![{block.caption}](figures/{block.file})\n\n*{block.caption}*\n"
    return f"{block.text}\n"


def render_table(table: Rows) -> str:
    """A table as Markdown, without a line break at its end."""
    lines = [_row(table.head), "|" + "---|" * len(table.head), *map(_row, table.rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def render_page(title: str, sections: Sequence[Section], figures: Path, drawn: set[str]) -> str:
    """The whole report, its pictures inline: the first section, the contents, the others.

    Parameters
    ----------
    title, sections
        What it says.
    figures, drawn
        The folder of pictures, and those that are there.
    """
    style = (files("hiernorm.demo") / "page.css").read_text(encoding="utf-8")
    style += STYLE.read_text(encoding="utf-8")
    contents = "".join(
        f'<li><a href="#s{number}">{escape(section.title)}</a></li>'
        for number, section in enumerate(sections[1:], 1)
    )
    first, *others = [
        f'<h2 id="s{number}">{escape(section.title)}</h2>\n'
        + "".join(_as_html(block, figures, drawn) for block in section.blocks)
        for number, section in enumerate(sections)
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{first}"
        f'<ul class="contents">{contents}</ul>\n'
        f"{''.join(others)}</main>\n</body>\n</html>\n"
    )


def _as_html(block: Block, figures: Path, drawn: set[str]) -> str:
    if isinstance(block, Rows):
        head = "".join(f"<th>{escape(cell)}</th>" for cell in block.head)
        rows = "".join(
            f"<tr>{''.join(f'<td>{inline(cell)}</td>' for cell in row)}</tr>" for row in block.rows
        )
        words = " words" if _is_wordy(block) else ""
        return (
            f'<div class="table{words}" tabindex="0"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>\n"
        )
    if isinstance(block, Card):
        return card_html(block)
    if isinstance(block, Items):
        return items_html(block)
    if isinstance(block, Picture):
        if block.file not in drawn:
            return ""
        content = base64.b64encode((figures / block.file).read_bytes()).decode()
        caption = escape(block.caption)
        return (
            f'<figure class="plot"><img src="data:image/png;base64,{content}" alt="{caption}">'
            f"<figcaption>{caption}</figcaption></figure>\n"
        )
    return f"<p>{inline(block.text)}</p>\n"


def _is_wordy(block: Rows) -> bool:
    """Whether cells are sentences, which must be allowed to wrap."""
    return any(len(cell) > 60 for row in block.rows for cell in row)
