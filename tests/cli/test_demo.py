"""The demo: right figures, a complete page, and an alarm if a neighbour were missed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from html.parser import HTMLParser
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("click", reason="needs hiernorm[demo]")
pytest.importorskip("cv2", reason="needs hiernorm[demo]")
pytest.importorskip("onnxruntime", reason="needs hiernorm[demo]")
pytest.importorskip("skimage", reason="needs hiernorm[demo]")
pytest.importorskip("sklearn", reason="needs hiernorm[demo]")

from click.testing import CliRunner

import hiernorm.demo
import hiernorm.scenes
import hiernorm.vision
from hiernorm import synthetic
from hiernorm.cli.app import app
from hiernorm.demo import engines
from hiernorm.demo.engines import DisagreementError, compare_engines, find_missed
from hiernorm.demo.job import K, run_demo, split_views
from hiernorm.demo.page import render_page
from hiernorm.learn.phototour import PhotoTour
from hiernorm.scenes.embedded import embedded_photos
from hiernorm.scenes.maker import Recipe, make_scene

MODULES = [
    module.name
    for package in (hiernorm.vision, hiernorm.scenes, hiernorm.demo)
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
]
PHOTOS = embedded_photos()[2:5]
RECIPE = Recipe(points=40, views=5)


@pytest.fixture(scope="module")
def outcome():
    return run_demo(PHOTOS, hiernorm.load_model("hn16"), RECIPE)


@pytest.fixture(scope="module")
def page(outcome):
    return render_page(outcome)


@pytest.fixture(scope="module")
def data():
    return synthetic.hierarchical(800, 20, major=16, alpha=1 / 8, seed=0)


class Tags(HTMLParser):
    """Collects images and addresses, and checks that every tag is closed."""

    VOID = ("meta", "img", "line", "circle", "polyline")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.images: list[str] = []
        self.addresses: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "img":
            self.images.append(dict(attrs)["src"])
        self.addresses += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_every_point_is_searched_and_its_other_views_are_stored(outcome):
    assert outcome.queries == outcome.points
    assert outcome.entries + outcome.queries == outcome.patches
    stored, asked = split_views(np.array([0, 0, 0, 2, 2, 9, 9, 9]))
    assert stored.tolist() == [0, 1, 3, 5, 6]
    assert asked.tolist() == [2, 4, 7]


def test_answers_are_those_of_a_search_by_hand(outcome, tmp_path):
    make_scene(PHOTOS, tmp_path / "scene", RECIPE)
    scene = PhotoTour(tmp_path, "scene")
    rows = hiernorm.load_model("hn16").describe(scene.patches).astype(np.float64)
    stored, asked = split_views(scene.points)
    scores = rows[asked] @ rows[stored].T
    hits = outcome.comparison.best.hits
    np.testing.assert_array_equal(hits.ids[:, 0], scores.argmax(axis=1))
    assert outcome.missed == 0
    assert hits.certificate.exact.all()
    right = scene.points[stored][scores.argmax(axis=1)] == scene.points[asked]
    assert outcome.qualities[0].right == right.mean()
    assert 0 < outcome.phase2_share < 1


def test_the_rates_follow_from_the_pairs(outcome):
    for quality in outcome.qualities:
        at = np.argmax(quality.true >= 0.95)
        assert quality.fpr95 == quality.false[at]
        assert quality.low <= quality.high


def test_examples_are_what_they_say(outcome):
    assert outcome.examples
    assert all(example.is_right[0] for example in outcome.examples)
    assert not any(example.is_right[0] for example in outcome.mistakes)
    for example in (*outcome.examples, *outcome.mistakes):
        assert example.neighbours.shape == (K, 64, 64)
        assert (np.diff(example.scores) <= 0).all()


def test_the_page_needs_nothing_else_and_is_well_formed(page, outcome):
    tags = Tags(page)
    assert tags.open == []
    assert all(address.startswith("data:image/") for address in tags.addresses)
    assert "<script" not in page
    assert "@import" not in page
    assert "url(" not in page
    shown = len(outcome.examples) + len(outcome.mistakes)
    assert len(tags.images) == len(PHOTOS) + shown * (K + 1)


def test_the_page_shows_the_figures_of_the_outcome(page, outcome):
    text = re.sub(r"<[^>]*>", " ", page)
    ours, sift = outcome.qualities
    for figure in (
        f"{outcome.queries:,} of {outcome.queries:,}",
        f"{outcome.speedup:.1f}x",
        f"{outcome.phase2_share:.3%}",
        f"{ours.fpr95:.4f}",
        f"{sift.fpr95:.4f}",
        outcome.certificate.digest,
        f"{outcome.certificate.kth_score:.12f}",
    ):
        assert figure in text


def test_the_page_fits_phones_and_dark_rooms(page):
    assert 'name="viewport" content="width=device-width' in page
    assert "prefers-color-scheme: dark" in page


def test_the_curves_are_drawn_within_their_frame(page):
    svg = ElementTree.fromstring(re.search(r"<svg.*?</svg>", page, re.DOTALL)[0])
    _, _, width, height = map(float, svg.get("viewBox").split())
    curves = svg.findall("polyline")
    assert len(curves) == 2
    for curve in curves:
        for place in curve.get("points").split():
            x, y = map(float, place.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_a_failing_search_is_shown_as_such(outcome):
    fields = {name: getattr(outcome, name) for name in outcome.__dataclass_fields__}
    broken = type(outcome)(**{**fields, "missed": 3})
    assert "NumPy found a better neighbour for 3 queries" in render_page(broken)


def test_a_missed_neighbour_is_noticed(data):
    hits = compare_engines(data.database, data.queries, 3, major=16, alpha=1 / 8).best.hits
    assert find_missed(data.database, data.queries, hits, block=7) == 0
    wrong = hits.ids.copy()
    wrong[4] = wrong[4, ::-1]
    assert find_missed(data.database, data.queries, SimpleNamespace(ids=wrong), block=7) == 1


def test_an_engine_that_disagrees_stops_the_demo(data, monkeypatch):
    class Wrong(hiernorm.Index):
        def search(self, *arguments, **options):
            hits = super().search(*arguments, **options)
            if self.engine == "cascade":
                hits.scores[0, 0] = np.nextafter(hits.scores[0, 0], 2)
            return hits

    monkeypatch.setattr(engines, "Index", Wrong)
    with pytest.raises(DisagreementError, match="engine cascade differs"):
        compare_engines(data.database, data.queries, 3, major=16, alpha=1 / 8)


def test_plain_vectors_have_no_paper_engine(data):
    result = compare_engines(data.database, data.queries, 2)
    assert [engine.name for engine in result.engines] == ["cascade"]


def test_the_command_writes_the_page_of_ones_own_photos(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for photo in PHOTOS[:2]:
        (photos / photo.name).write_bytes(photo.read_bytes())
    out = tmp_path / "page"
    command = ["demo", "--photos", str(photos), "--points", "12", "--out", str(out)]
    for _ in range(2):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        assert "NumPy in float64 found no better neighbour" in result.output
        assert "certificate of one query" in result.output
        assert [file.name for file in out.iterdir()] == ["index.html"]


def test_an_unknown_model_is_one_line_and_leaves_nothing(tmp_path):
    out = tmp_path / "page"
    result = CliRunner().invoke(app, ["demo", "--model", "no-such-model", "--out", str(out)])
    assert result.exit_code == 1
    assert "no model 'no-such-model'" in result.output
    assert not out.exists()


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
