"""Figures of the page: patches and photos as data URIs, curves and bars as SVG."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from hiernorm.array_types import Float64Array, UInt8Array
from hiernorm.certificate import QueryCertificate
from hiernorm.demo.pipeline import DescriptorQuality
from hiernorm.extras import import_extra
from hiernorm.vision.photos import read_grey

LEAST_RATE = 1e-4
"""Left end of the logarithmic axis of false positives."""

LEAST_TRUE = 0.8
"""Lower end of the axis of true positives."""


def embed_patch(patch: UInt8Array) -> str:
    """A patch as a PNG data URI."""
    return _data_uri(patch, ".png", "image/png")


def embed_photo(file: Path, height: int = 96) -> str:
    """A small version of a photo as a JPEG data URI."""
    cv2 = import_extra("cv2", "vision")
    grey = read_grey(file)
    width = max(1, round(grey.shape[1] * height / grey.shape[0]))
    small = cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA)
    return _data_uri(small, ".jpg", "image/jpeg")


def _data_uri(image: UInt8Array, suffix: str, kind: str) -> str:
    cv2 = import_extra("cv2", "vision")
    _, content = cv2.imencode(suffix, image)
    return f"data:{kind};base64,{base64.b64encode(content.tobytes()).decode()}"


def draw_roc(qualities: Sequence[DescriptorQuality]) -> str:
    """The ROC curves: false positives on a logarithmic axis, true ones from 80%."""
    left, top, width, height = 46, 30, 420, 250
    decades = round(-math.log10(LEAST_RATE))

    def x(rate: float) -> float:
        return left + width * (1 + math.log10(max(rate, LEAST_RATE)) / decades)

    def y(rate: float) -> float:
        return top + height * (1 - rate) / (1 - LEAST_TRUE)

    bottom, right = top + height, left + width
    parts = []
    for power in range(-decades, 1):
        at = x(10.0**power)
        parts.append(_line("grid", at, top, at, bottom))
        parts.append(_text(at, bottom + 17, "middle", f"{10.0**power:.4f}".rstrip("0").rstrip(".")))
    for percent in range(80, 101, 5):
        at = y(percent / 100)
        parts.append(_line("mark" if percent == 95 else "grid", left, at, right, at))
        parts.append(_text(left - 6, at + 4, "end", f"{percent}%"))
    for number, quality in enumerate(qualities):
        places = [(x(f), y(t)) for f, t in _thin(quality.false, quality.true)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts.append(f'<polyline class="curve curve{number}" points="{path}"/>')
        dot = f'cx="{x(quality.fpr95):.1f}" cy="{y(0.95):.1f}" r="4"'
        parts.append(f'<circle class="dot{number}" {dot}/>')
    across = "non-matching pairs accepted (false-positive rate)"
    parts.append(_text(left + width / 2, bottom + 36, "middle", across))
    parts.append(_text(0, 12, "start", "matching pairs accepted (true-positive rate)"))
    box = f"0 0 {right + 18} {bottom + 44}"
    title = "ROC curves: " + ", ".join(f"{q.name} FPR@95 {q.fpr95:.4f}" for q in qualities)
    return (
        f'<svg class="roc" viewBox="{box}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, anchor: str, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def draw_funnel(record: QueryCertificate) -> str:
    """The entries that remain after each step of a search, as bars on a logarithmic scale."""
    steps = (
        ("in the database", record.entries),
        ("left by the major", record.sifted),
        ("left by the minor's codes", record.tightened),
        ("scored in full", record.settled),
    )
    longest = math.log10(max(record.entries, 1) + 1)
    rows = []
    for label, count in steps:
        share = 100 * math.log10(count + 1) / longest
        rows.append(
            f'<div class="step"><span>{label}</span><div class="track">'
            f'<div class="bar" style="width:{share:.1f}%"></div></div><b>{count:,}</b></div>'
        )
    return f'<div class="funnel">{"".join(rows)}</div>'


def _thin(false: Float64Array, true: Float64Array) -> list[tuple[float, float]]:
    """The visible part of a curve, at a limited number of points."""
    marks = np.geomspace(LEAST_RATE, 1, 300)
    rows = np.unique(np.searchsorted(false, marks, side="right") - 1)
    rows = rows[true[rows] >= LEAST_TRUE]
    return list(zip(false[rows].tolist(), true[rows].tolist(), strict=True))
