"""The demo: right figures, a complete page, and an alarm if a neighbour were missed."""

from __future__ import annotations

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
import hiernorm.learn.scenes
import hiernorm.vision
from hiernorm import synthetic
from hiernorm.cli.app import app
from hiernorm.demo import engines
from hiernorm.demo.engines import DisagreementError, compare_engines, count_missed
from hiernorm.demo.page import render_page
from hiernorm.demo.pipeline import K, run_demo, split_views
from hiernorm.learn.phototour import PhotoTour
from hiernorm.learn.scenes.embedded import embedded_photos
from hiernorm.learn.scenes.maker import Recipe, make_scene

PHOTOS = embedded_photos()[2:5]
RECIPE = Recipe(points=40, views=5)


@pytest.fixture(scope="module")
def result():
    return run_demo(PHOTOS, hiernorm.load_model("hn16"), RECIPE)


@pytest.fixture(scope="module")
def page(result):
    return render_page(result)


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


def test_every_point_is_searched_and_its_other_views_are_stored(result):
    assert result.queries == result.points
    assert result.entries + result.queries == result.patches
    stored, asked = split_views(np.array([0, 0, 0, 2, 2, 9, 9, 9]))
    assert stored.tolist() == [0, 1, 3, 5, 6]
    assert asked.tolist() == [2, 4, 7]


def test_answers_are_those_of_a_search_by_hand(result, tmp_path):
    make_scene(PHOTOS, tmp_path / "scene", RECIPE)
    scene = PhotoTour(tmp_path, "scene")
    rows = hiernorm.load_model("hn16").describe(scene.patches).astype(np.float64)
    stored, asked = split_views(scene.points)
    scores = rows[asked] @ rows[stored].T
    hits = result.comparison.best.hits
    np.testing.assert_array_equal(hits.ids[:, 0], scores.argmax(axis=1))
    assert result.missed == 0
    assert hits.certificate.exact.all()
    right = scene.points[stored][scores.argmax(axis=1)] == scene.points[asked]
    assert result.qualities[0].right == right.mean()
    assert 0 < result.phase2_share < 1


def test_the_rates_follow_from_the_pairs(result):
    for quality in result.qualities:
        at = np.argmax(quality.true >= 0.95)
        assert quality.fpr95 == quality.false[at]
        assert quality.low <= quality.high


def test_examples_are_what_they_say(result):
    assert result.examples
    assert all(example.is_right[0] for example in result.examples)
    assert not any(example.is_right[0] for example in result.mistakes)
    for example in (*result.examples, *result.mistakes):
        assert example.neighbours.shape == (K, 64, 64)
        assert (np.diff(example.scores) <= 0).all()


def test_the_page_needs_nothing_else_and_is_well_formed(page, result):
    tags = Tags(page)
    assert tags.open == []
    assert all(address.startswith("data:image/") for address in tags.addresses)
    assert "<script" not in page
    assert "@import" not in page
    assert "url(" not in page
    shown = len(result.examples) + len(result.mistakes)
    assert len(tags.images) == len(PHOTOS) + shown * (K + 1)


def test_the_page_shows_the_figures_of_the_outcome(page, result):
    text = re.sub(r"<[^>]*>", " ", page)
    ours, sift = result.qualities
    for figure in (
        f"{result.queries:,} of {result.queries:,}",
        f"{result.speedup:.1f}x",
        f"{result.phase2_share:.3%}",
        f"{ours.fpr95:.4f}",
        f"{sift.fpr95:.4f}",
        result.certificate.digest,
        f"{result.certificate.kth_score:.12f}",
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


def test_a_failing_search_is_shown_as_such(result):
    fields = {name: getattr(result, name) for name in result.__dataclass_fields__}
    broken = type(result)(**{**fields, "missed": 3})
    assert "NumPy found a better neighbour for 3 queries" in render_page(broken)


def test_a_missed_neighbour_is_noticed(data):
    hits = compare_engines(data.database, data.queries, 3, major=16, alpha=1 / 8).best.hits
    assert count_missed(data.database, data.queries, hits, block=7) == 0
    wrong = hits.ids.copy()
    wrong[4] = wrong[4, ::-1]
    assert count_missed(data.database, data.queries, SimpleNamespace(ids=wrong), block=7) == 1


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
