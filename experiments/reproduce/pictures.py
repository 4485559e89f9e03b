"""What the pictures of a reproduction share."""

from __future__ import annotations

from typing import Any

KS = (16, 8)
COLOURS = {16: "#0b6e4f", 8: "#c8553d"}
GREY = "#9a9a9a"
DPI = 130


def put_legend_below(axes: Any) -> None:
    """Where many lines leave no room inside."""
    axes.legend(fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)
