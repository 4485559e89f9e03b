"""The report as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from hiernorm.reproduce.blocks import Block, Picture, Rows, Section


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
        parts += [text for text in (_block(block, drawn) for block in section.blocks) if text]
    return "\n".join(parts)


def _block(block: Block, drawn: set[str]) -> str:
    if isinstance(block, Rows):
        lines = [_row(block.head), "|" + "---|" * len(block.head), *map(_row, block.rows)]
        return "\n".join(lines) + "\n"
    if isinstance(block, Picture):
        if block.file not in drawn:
            return ""
        return f"![{block.caption}](figures/{block.file})\n\n*{block.caption}*\n"
    return f"{block.text}\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
