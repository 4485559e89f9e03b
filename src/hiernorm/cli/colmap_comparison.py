"""What `hiernorm colmap compare` prints: a table, or the facts of its JSON."""

from __future__ import annotations

from typing import Any

import click

from hiernorm.adapters.colmap import Comparison


def comparison_facts(found: Comparison) -> dict[str, Any]:
    """The counts of all pairs, and of each."""
    return {
        "exact": found.exact,
        "missed": found.missed,
        "added": found.added,
        "pairs": [
            {
                "images": list(pair.names),
                "exact": pair.exact,
                "missed": len(pair.missed),
                "added": len(pair.added),
            }
            for pair in found.pairs
        ],
    }


def echo_table(found: Comparison) -> None:
    """A line per pair, and their sum."""
    rows = [(" ".join(p.names), p.exact, len(p.missed), len(p.added)) for p in found.pairs]
    rows.append(("all", found.exact, found.missed, found.added))
    width = max(len(row[0]) for row in rows)
    click.echo(f"{'pair':<{width}}  {'exact':>9}  {'missed':>16}  {'added':>16}")
    for name, exact, missed, added in rows:
        shares = (f"{n:,} ({n / exact:6.1%})" if exact else f"{n:,}" for n in (missed, added))
        click.echo(f"{name:<{width}}  {exact:>9,}  " + "  ".join(f"{text:>16}" for text in shares))
