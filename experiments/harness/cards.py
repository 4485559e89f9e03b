"""Two blocks of a report: the card that sums it up, and items that are judged, each by colour."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

Tone = Literal["good", "part", "bad", "none"]
"""The colour of a verdict."""


@dataclass(frozen=True)
class Tile:
    """A figure and what it counts."""

    tone: Tone
    figure: str
    label: str


@dataclass(frozen=True)
class Card:
    """What a report says, at a glance: figures, then facts of a term and a text each."""

    tiles: Sequence[Tile]
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Item:
    """Something that was judged.

    Attributes
    ----------
    tone, verdict
        Its colour and its verdict.
    place, says
        Where it stands and what it says.
    lines
        A term and a text each: evidence, reasons.
    """

    tone: Tone
    verdict: str
    place: str
    says: str
    lines: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Items:
    """A group of items under a title of their own."""

    title: str
    items: Sequence[Item]


def card_markdown(card: Card) -> str:
    """The figures in one line, the facts as a list.

    Examples
    --------
    >>> print(card_markdown(Card([Tile("good", "3", "hold")], [("Not run", "speed")])))
    **3** hold
    <BLANKLINE>
    - **Not run.** speed
    <BLANKLINE>
    """
    tiles = ", ".join(f"**{tile.figure}** {tile.label}" for tile in card.tiles)
    facts = "\n".join(f"- **{term}.** {text}" for term, text in card.facts)
    return f"{tiles}\n\n{facts}\n"


def card_html(card: Card) -> str:
    """A box with coloured tiles."""
    tiles = "".join(
        f'<div class="{tile.tone}"><b>{escape(tile.figure)}</b>'
        f"<span>{escape(tile.label)}</span></div>"
        for tile in card.tiles
    )
    facts = "".join(f"<dt>{escape(term)}</dt><dd>{inline(text)}</dd>" for term, text in card.facts)
    return f'<section class="card"><div class="tiles">{tiles}</div><dl>{facts}</dl></section>\n'


def items_markdown(items: Items) -> str:
    """A list of items, and below each a list of its lines.

    Examples
    --------
    >>> item = Item("good", "holds", "Theorem 1", "Search is exact", [("Evidence", "46 databases")])
    >>> print(items_markdown(Items("1 claim holds", [item])))
    ### 1 claim holds
    <BLANKLINE>
    - **Theorem 1** (**holds**): Search is exact
        - Evidence: 46 databases
    <BLANKLINE>
    """
    parts = [f"### {items.title}\n"]
    for item in items.items:
        parts.append(f"- **{item.place}** (**{item.verdict}**): {item.says}")
        parts += [f"    - {term}: {text}" for term, text in item.lines]
    return "\n".join(parts) + "\n"


def items_html(items: Items) -> str:
    """One coloured box per item: no table, so that it fits a phone."""
    boxes = "".join(map(_item_html, items.items))
    return f'<h3>{escape(items.title)}</h3>\n<ul class="items">{boxes}</ul>\n'


def _item_html(item: Item) -> str:
    lines = "".join(f"<dt>{escape(term)}</dt><dd>{inline(text)}</dd>" for term, text in item.lines)
    return (
        f'<li class="{item.tone}"><header><span>{escape(item.place)}</span>'
        f"<b>{escape(item.verdict)}</b></header>"
        f"<p>{inline(item.says)}</p><dl>{lines}</dl></li>"
    )


def inline(text: str) -> str:
    """Escape, then the two marks that texts use: **bold** and `code`.

    Examples
    --------
    >>> inline("**a** < `b`")
    '<strong>a</strong> &lt; <code>b</code>'
    """
    bold = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", bold)
