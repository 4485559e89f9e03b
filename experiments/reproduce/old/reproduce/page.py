"""The report as one HTML file that needs nothing else, readable on a phone."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from hiernorm.reproduce.blocks import Block, Picture, Rows, Section


def render_page(title: str, sections: Sequence[Section], figures: Path, drawn: set[str]) -> str:
    """The whole report, its pictures inline.

    Parameters
    ----------
    title, sections
        What it says.
    figures, drawn
        The folder of pictures, and those that are there.
    """
    style = (files("hiernorm.demo") / "page.css").read_text(encoding="utf-8")
    style += (files("hiernorm.reproduce") / "page.css").read_text(encoding="utf-8")
    contents = "".join(
        f'<li><a href="#s{number}">{escape(section.title)}</a></li>'
        for number, section in enumerate(sections)
    )
    body = "".join(
        f'<h2 id="s{number}">{escape(section.title)}</h2>\n'
        + "".join(_block(block, figures, drawn) for block in section.blocks)
        for number, section in enumerate(sections)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n<ul>{contents}</ul>\n{body}</main>\n</body>\n</html>\n"
    )


def _block(block: Block, figures: Path, drawn: set[str]) -> str:
    if isinstance(block, Rows):
        head = "".join(f"<th>{escape(cell)}</th>" for cell in block.head)
        rows = "".join(
            f"<tr>{''.join(f'<td>{_inline(cell)}</td>' for cell in row)}</tr>" for row in block.rows
        )
        words = " words" if _is_wordy(block) else ""
        return (
            f'<div class="table{words}"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>\n"
        )
    if isinstance(block, Picture):
        if block.file not in drawn:
            return ""
        content = base64.b64encode((figures / block.file).read_bytes()).decode()
        caption = escape(block.caption)
        return (
            f'<figure class="plot"><img src="data:image/png;base64,{content}" alt="{caption}">'
            f"<figcaption>{caption}</figcaption></figure>\n"
        )
    return f"<p>{_inline(block.text)}</p>\n"


def _is_wordy(block: Rows) -> bool:
    """Whether cells are sentences, which must be allowed to wrap."""
    return any(len(cell) > 60 for row in block.rows for cell in row)


def _inline(text: str) -> str:
    """Escape, then the two marks that texts use: **bold** and `code`."""
    bold = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", bold)
