"""The page of the demo: one HTML file that needs nothing else, rendered from a result."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files

import numpy as np

from hiernorm.demo.figures import draw_funnel, draw_roc, embed_patch, embed_photo
from hiernorm.demo.pipeline import DemoResult, Example, K
from hiernorm.instruction_sets import isa


def render_page(result: DemoResult) -> str:
    """Return the page as HTML."""
    style = (files("hiernorm.demo") / "page.css").read_text(encoding="utf-8")
    sections = (
        _summary(result),
        _scene(result),
        _neighbours(result),
        _engines(result),
        _certificate(result),
        _quality(result),
        _footer(result),
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>hiernorm: exact nearest neighbours</title>\n<style>\n{style}</style>\n"
        f"</head>\n<body>\n<main>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _summary(result: DemoResult) -> str:
    ours, sift = result.qualities
    exact = int(result.comparison.best.hits.certificate.exact.sum())
    tiles = (
        (f"{exact:,} of {result.queries:,}", "answers proved exact, each with a certificate"),
        (f"{result.speedup:.1f}x", "the speed of exhaustive search, same bits"),
        (f"{result.phase2_share:.3%}", f"of the entries reach phase 2, on average (k={K})"),
        (f"{ours.fpr95:.4f}", f"FPR@95; SIFT on the same patches: {sift.fpr95:.4f}"),
    )
    cells = "".join(f"<div><b>{value}</b><span>{label}</span></div>" for value, label in tiles)
    return (
        "<h1>Exact nearest neighbours</h1>\n"
        f"<p>{result.queries:,} patches were searched among {result.entries:,} others that show "
        f"the same {result.points:,} points in other views. hiernorm returned the same "
        "neighbours, with the same score bits, as a comparison with every entry, and read few of "
        f'them to do so.</p>\n<div class="tiles">{cells}</div>\n'
    )


def _scene(result: DemoResult) -> str:
    photos = "".join(
        f'<img src="{embed_photo(photo)}" alt="{escape(photo.stem)}" title="{escape(photo.stem)}">'
        for photo in result.photos[:24]
    )
    return (
        f"<h2>The scene</h2>\n<p>{len(result.photos)} photographs, {result.points:,} keypoints, "
        f"{result.patches:,} patches: every point seen through random homographies, in other "
        "light, with the noise of a detector. The last view of each point is a query, the others "
        f'are the database.</p>\n<div class="photos">{photos}</div>\n'
    )


def _neighbours(result: DemoResult) -> str:
    ours = result.qualities[0]
    text = (
        f"<h2>Queries and their {K} nearest neighbours</h2>\n"
        '<p>Left the query, then its exact neighbours, best first. <span class="yes">Framed '
        'in green</span>: the same point; <span class="no">dashed red</span>: another one. '
        f"{ours.right:.1%} of the queries have their own point first.</p>\n"
        f"{_rows(result.examples)}"
    )
    if result.mistakes:
        text += (
            "<h3>Where the descriptor fails</h3>\n<p>The search is exact here too: these are the "
            "nearest descriptors. Another patch merely looks more alike to the network.</p>\n"
            f"{_rows(result.mistakes)}"
        )
    return text


def _rows(examples: Sequence[Example]) -> str:
    rows = []
    for example in examples:
        cells = [f'<figure class="query"><img src="{embed_patch(example.query)}" alt="query">']
        cells.append("<figcaption>query</figcaption></figure>")
        for patch, score, right in zip(
            example.neighbours, example.scores, example.is_right, strict=True
        ):
            kind, alt = ("same", "same point") if right else ("other", "another point")
            cells.append(
                f'<figure class="{kind}"><img src="{embed_patch(patch)}" alt="{alt}">'
                f"<figcaption>{score:.3f}</figcaption></figure>"
            )
        rows.append(f'<div class="row">{"".join(cells)}</div>\n')
    return "".join(rows)


def _engines(result: DemoResult) -> str:
    comparison = result.comparison
    slow = comparison.exhaustive.seconds
    rows = [("exhaustive", "", slow)]
    rows += [
        (engine.name, f"{engine.hits.certificate.phase2_share.mean():.3%}", engine.seconds)
        for engine in comparison.engines
    ]
    rows.append(("NumPy, float32", "", comparison.numpy_seconds))
    body = "".join(
        f"<tr><td>{name}</td><td>{share}</td><td>{seconds * 1e6:,.0f}</td>"
        f"<td>{slow / seconds:.1f}</td></tr>"
        for name, share, seconds in rows
    )
    verdict = (
        "NumPy in float64, which shares no code with the engines, found no better neighbour for "
        f"any of the {result.queries:,} queries."
        if result.missed == 0
        else f"<strong>NumPy found a better neighbour for {result.missed:,} queries.</strong>"
    )
    return (
        "<h2>The same answers, faster</h2>\n"
        f"<p>All engines returned the same ids and the same score bits for all {result.queries:,} "
        f"queries (k={K}); the demo stops otherwise. {verdict}</p>\n"
        '<div class="table"><table><thead><tr><th>engine</th><th>reach phase 2</th>'
        "<th>&micro;s per query</th><th>times exhaustive</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div>\n"
        "<p class='note'>Single queries on one thread, the fastest of three rounds. "
        "Phase 2 is what the scan of the majors leaves over; the cascade scans coarser codes, "
        "leaves more, and sifts that once more before it computes a score.</p>\n"
    )


def _certificate(result: DemoResult) -> str:
    record = result.certificate
    proof = "exact" if record.exact else f"within {record.gap:.3g} of exact"
    facts = (
        (f"score of neighbour {K}", f"{record.kth_score:.12f}"),
        ("nothing skipped scores above", f"{record.skipped_bound:.12f}"),
        ("so the answer is", proof),
        ("SHA-256 of the database", record.digest),
    )
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    return (
        "<h2>The certificate of one query</h2>\n<p>Of the first query above. Every answer carries "
        "one; a third party who has the database can check it.</p>\n"
        f'{draw_funnel(record)}<dl class="facts">{rows}</dl>\n'
        '<p class="note">Bars are logarithmic.</p>\n'
    )


def _quality(result: DemoResult) -> str:
    rows = "".join(
        f'<tr><td><span class="key key{number}"></span>{escape(quality.name)}</td>'
        f"<td>{quality.fpr95:.4f}</td><td>{quality.low:.4f}&ndash;{quality.high:.4f}</td>"
        f"<td>{quality.right:.1%}</td></tr>"
        for number, quality in enumerate(result.qualities)
    )
    return (
        "<h2>How good the descriptor is</h2>\n"
        f"<p>{result.pairs:,} pairs of patches, half of them of the same point. FPR@95 is the "
        "share of non-matching pairs that are accepted when 95% of the matching ones are.</p>\n"
        f"{draw_roc(result.qualities)}\n"
        '<div class="table"><table><thead><tr><th>descriptor</th><th>FPR@95</th>'
        "<th>95% interval</th><th>own point first</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>\n"
    )


def _footer(result: DemoResult) -> str:
    model = result.model
    norm = "" if model.major is None else f", K={model.major}, alpha={model.alpha:g}"
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in result.seconds.items())
    return (
        f"<footer><p>Model {escape(model.name)}{norm}. {escape(steps)}.</p>\n"
        f"<p>hiernorm {version('hiernorm')}, {isa()}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {escape(platform.platform())}.</p></footer>\n"
    )
