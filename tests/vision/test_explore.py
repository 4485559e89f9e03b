"""The explorer: right answers, only the collection's files, and a page that people can use."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cv2", reason="needs hiernorm[vision]")
pytest.importorskip("pyarrow", reason="needs hiernorm[vision]")
pytest.importorskip("skimage", reason="needs hiernorm[data]")
pytest.importorskip("starlette", reason="needs hiernorm[explore]")
pytest.importorskip("uvicorn", reason="needs hiernorm[explore]")
pytest.importorskip("httpx", reason="needs httpx")

import cv2
from click.testing import CliRunner
from starlette.testclient import TestClient

from hiernorm.cli.app import app as command_line
from hiernorm.models import load_model
from hiernorm.vision.collection import Collection
from hiernorm.vision.explore.explorer import Explorer
from hiernorm.vision.explore.server import PAGE, make_app
from hiernorm.vision.ingest import find_photos, ingest_photos
from photo_sets import RECIPE, read_photo, write_photos, write_view


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Three photos and a second view of one, described."""
    folder = tmp_path_factory.mktemp("explore")
    write_photos(folder / "photos")
    write_view(folder / "photos" / "view.png", "chelsea")
    ingest_photos(folder / "all.hn", find_photos([folder / "photos"]), RECIPE)
    return folder


@pytest.fixture(scope="module")
def collection(folder) -> Collection:
    return Collection.open(folder / "all.hn")


def _client(app, **options) -> TestClient:
    return TestClient(app, base_url="http://127.0.0.1", **options)


@pytest.fixture(scope="module")
def client(collection) -> TestClient:
    return _client(make_app(Explorer(collection)))


def expected_neighbours(collection: Collection, key: int, k: int) -> list[int]:
    """By brute force, the keypoint's own photo left out."""
    own = collection.photos_of(np.array([key]))[0]
    ids = np.sort(collection.ids[collection.photos_of(collection.ids) != own])
    row = collection.database.reconstruct([key])[0].astype(np.float64)
    scores = collection.database.reconstruct(ids).astype(np.float64) @ row
    return ids[np.argsort(-scores, kind="stable")[:k]].tolist()


def test_the_overview_lists_the_photos(client, collection):
    about = client.get("/api/collection").json()
    assert [photo["name"] for photo in about["photos"]] == [p.name for p in collection.photos]
    assert sum(photo["keypoints"] for photo in about["photos"]) == about["entries"]
    assert about["entries"] == len(collection.ids)


def test_the_first_keypoint_is_one_that_another_photo_shows(client, collection):
    start = client.get("/api/collection").json()["start"]
    assert start["photo"] == 0
    assert start["id"] in collection.keypoints_of(0)[0]
    answer = client.get(f"/api/neighbours/{start['id']}?k=1&others=1").json()
    for key in collection.keypoints_of(0)[0][:64:9].tolist():
        other = client.get(f"/api/neighbours/{key}?k=1&others=1").json()
        assert other["hits"][0]["score"] <= answer["hits"][0]["score"]


def test_keypoints_are_those_of_the_table(client, collection):
    ids, frames = collection.keypoints_of(2)
    points = client.get("/api/photos/2/keypoints").json()
    assert points["id"] == ids.tolist()
    np.testing.assert_allclose(points["x"], frames.x, rtol=0, atol=0.01)


def test_neighbours_are_exact_and_proved(client, collection):
    for key in collection.ids[::97].tolist():
        answer = client.get(f"/api/neighbours/{key}?k=6&others=1").json()
        assert [hit["id"] for hit in answer["hits"]] == expected_neighbours(collection, key, 6)
        proof = answer["certificate"]
        assert proof["exact"]
        assert proof["total"] >= proof["scanned"] >= proof["sifted"] >= proof["tightened"]
        assert proof["total"] == len(collection.ids) > proof["entries"]
        assert proof["skipped_bound"] is None or proof["skipped_bound"] < proof["kth_score"]
        assert proof["digest"] == collection.database.digest
        ranks, scores = np.array(answer["curve"]).T
        assert (np.diff(ranks) > 0).all()
        assert (np.diff(scores) <= 0).all()
    with_own = client.get(f"/api/neighbours/{key}?k=5").json()
    assert key not in [hit["id"] for hit in with_own["hits"]]


def test_pictures_and_patches_are_pictures(client, collection):
    content = client.get("/photos/1")
    assert content.headers["content-type"] == "image/jpeg"
    image = cv2.imdecode(np.frombuffer(content.content, np.uint8), cv2.IMREAD_COLOR)
    assert image.shape == (collection.photos[1].height, collection.photos[1].width, 3)
    small = client.get("/thumbnails/1").content
    image = cv2.imdecode(np.frombuffer(small, np.uint8), cv2.IMREAD_COLOR)
    assert max(image.shape) == 160
    patch = client.get(f"/patches/{collection.ids[5]}")
    assert cv2.imdecode(np.frombuffer(patch.content, np.uint8), -1).shape == (64, 64)


@pytest.fixture(scope="module")
def large_folder(tmp_path_factory) -> Path:
    """A photo as a camera takes it, 4,000 x 3,000, described."""
    folder = tmp_path_factory.mktemp("large")
    photo = cv2.resize(read_photo("coffee"), (4000, 3000), interpolation=cv2.INTER_CUBIC)
    cv2.imwrite(str(folder / "large.jpg"), photo)
    ingest_photos(folder / "all.hn", [folder / "large.jpg"], RECIPE)
    return folder


def test_a_photo_of_a_camera_is_reduced_and_its_patches_are_cut(large_folder):
    large_client = _client(make_app(Explorer(Collection.open(large_folder / "all.hn"))))
    content = large_client.get("/photos/0")
    assert content.status_code == 200
    image = cv2.imdecode(np.frombuffer(content.content, np.uint8), cv2.IMREAD_COLOR)
    assert image.shape == (1200, 1600, 3)
    key = large_client.get("/api/photos/0/keypoints").json()["id"][0]
    patch = large_client.get(f"/patches/{key}")
    assert cv2.imdecode(np.frombuffer(patch.content, np.uint8), -1).shape == (64, 64)


def test_every_error_of_the_server_is_json(collection):
    class Broken(Explorer):
        def overview(self):
            raise RuntimeError("the cause")

    client = _client(make_app(Broken(collection)), raise_server_exceptions=False)
    for path, status, reason in (
        ("/api/collection", 500, "RuntimeError: the cause"),
        ("/nowhere", 404, "Not Found"),
    ):
        answer = client.get(path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/json"
        assert reason in answer.json()["error"]
    posted = client.post("/api/collection")
    assert (posted.status_code, posted.json()) == (405, {"error": "Method Not Allowed"})


@pytest.mark.parametrize(
    "path",
    [
        "/../all.parquet",
        "/photos/../../all.parquet",
        "/photos/%2e%2e%2fall.parquet",
        "/photos/chelsea.png",
        "/all.hn/manifest.json",
        "/photos/99",
        "/photos/-1",
        "/thumbnails/99",
        "/patches/99999999",
        "/api/neighbours/99999999",
        "/api/photos/99/keypoints",
        "/page/app.js",
    ],
)
def test_nothing_but_the_collection_is_served(client, path):
    assert client.get(path).status_code == 404


def test_only_reading_from_this_machine_is_allowed(client):
    for host in ("evil.example", "testserver"):
        assert client.get("/", headers={"host": host}).status_code == 400
    assert client.post("/api/collection").status_code == 405
    for k in ("0", "101", "x", "-3", ""):
        assert client.get(f"/api/neighbours/0?k={k}").status_code == 400


@pytest.mark.parametrize("digits", [20, 400, 6000])
@pytest.mark.parametrize(
    "path",
    [
        "/photos/{}",
        "/thumbnails/{}",
        "/patches/{}",
        "/api/photos/{}/keypoints",
        "/api/neighbours/{}",
        "/api/neighbours/0?k={}",
    ],
)
def test_a_huge_number_is_a_bad_request(client, path, digits):
    answer = client.get(path.format("9" * digits))
    assert answer.status_code == 400
    assert len(answer.json()["error"]) < 100


def test_the_page_needs_nothing_from_elsewhere(client):
    for path in PAGE:
        answer = client.get(path)
        assert answer.status_code == 200
        policy = "default-src 'self'; frame-ancestors 'none'"
        assert answer.headers["content-security-policy"] == policy
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        outside = re.findall(r"https?://[^\s\"')]+", answer.text)
        assert set(outside) <= {"http://www.w3.org/2000/svg"}


def test_changed_and_missing_photos_are_not_shown(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    client = _client(make_app(Explorer(Collection.open(copy / "all.hn"))))
    (copy / "photos" / "chelsea.png").write_bytes(b"secret")
    (copy / "photos" / "coffee.png").unlink()
    for number, reason in ((1, "has changed since"), (2, "cannot be read")):
        answer = client.get(f"/photos/{number}")
        assert answer.status_code == 409
        assert reason in answer.json()["error"]


def test_a_port_in_use_and_a_missing_collection_have_their_errors(folder, tmp_path):
    import socket

    def run(*arguments):
        return CliRunner().invoke(command_line, ["explore", "--no-browser", *arguments])

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = run(str(folder / "all.hn"), "--port", port)
    assert result.exit_code == 1
    assert f"port {port} is not free" in result.output
    assert "`hiernorm describe` makes one" in run(str(tmp_path / "none.hn")).output


@contextlib.contextmanager
def served(folder: Path):
    """The real command in a process of its own, ended by Ctrl-C; yields its address."""
    code = "from hiernorm.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", code, "explore", str(folder / "all.hn"), "--no-browser"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(60)
        process.stdout.close()
    assert code == 0


def shown_hits(page, key: int) -> list[int]:
    """The ids of the hits that the page shows for a keypoint."""
    page.wait_for_selector(f'#question img[src="patches/{key}"]')
    ids: list[int] = page.locator("#hits button").evaluate_all(
        "b => b.map(x => Number(x.dataset.id))"
    )
    return ids


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_choose_a_photo_click_a_keypoint_see_its_neighbours(browser, folder, collection, scheme):
    with served(folder) as address:
        page = browser.new_page(
            viewport={"width": 1200, "height": 900}, color_scheme=scheme, base_url=address
        )
        problems, outside = [], []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda r: r.url.startswith(address) or outside.append(r.url))
        page.goto("/")
        page.select_option("#photos", "1")
        page.wait_for_selector(f'#overlay [data-id="{collection.keypoints_of(1)[0][0]}"]')
        # A keypoint without another near it, so that a click can only mean this one.
        ids, frames = collection.keypoints_of(1)
        places = np.column_stack((frames.x, frames.y))
        gaps = np.linalg.norm(places[:, None] - places, axis=2) + 1e9 * np.eye(len(ids))
        lonely = int(gaps.min(axis=1).argmax())
        box = page.locator("#overlay").bounding_box()
        factor = box["width"] / collection.photos[1].width
        page.mouse.click(
            box["x"] + (places[lonely, 0] + 0.5) * factor,
            box["y"] + (places[lonely, 1] + 0.5) * factor,
        )
        assert shown_hits(page, int(ids[lonely])) == expected_neighbours(
            collection, int(ids[lonely]), 12
        )
        assert page.inner_text("#proof").startswith(
            "Exact: these are the 12 nearest of 450 patches"
        )
        assert page.locator("#plot circle.hit").count() == 12
        counts = page.locator("#steps td:nth-child(2)").all_inner_texts()
        assert sum(int(count.replace(",", "")) for count in counts) == len(collection.ids)
        ink = page.evaluate("getComputedStyle(document.body).color")
        assert (sum(map(int, re.findall(r"\d+", ink)[:3])) > 382) == (scheme == "dark")
        second = int(page.locator("#hits button").nth(1).get_attribute("data-id"))
        page.locator("#hits button").nth(1).click()
        page.wait_for_selector(f'#match-overlay .chosen[data-id="{second}"]')
        assert page.locator(f'#overlay .chosen[data-id="{ids[lonely]}"]').count() == 1
        page.click("#follow")
        page.wait_for_selector(f'#overlay .chosen[data-id="{second}"]')
        assert problems == []
        assert outside == []


def test_a_photo_that_arrives_late_does_not_replace_the_one_chosen_since(
    browser, folder, collection
):
    with served(folder) as address:
        page = browser.new_page()
        late = []
        page.route("**/api/photos/0/keypoints", lambda route: late.append(route))
        with page.expect_request("**/api/photos/0/keypoints"):
            page.goto(address)
        page.select_option("#photos", "1")
        chosen = f'#overlay [data-id="{collection.keypoints_of(1)[0][0]}"]'
        page.wait_for_selector(chosen)
        with page.expect_response("**/api/photos/0/keypoints"):
            late[0].continue_()
        page.wait_for_timeout(200)
        assert page.locator(chosen).count() == 1
        assert page.input_value("#photos") == "1"


def test_the_page_works_by_keyboard_and_on_a_phone(browser, folder, collection):
    with served(folder) as address:
        page = browser.new_page(viewport={"width": 380, "height": 700})
        page.goto(address)
        page.wait_for_selector("#hits li")
        first = int(page.get_attribute("#overlay .chosen", "data-id"))
        assert shown_hits(page, first) == expected_neighbours(collection, first, 12)
        page.focus("#stage")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        key = int(page.get_attribute("#overlay .chosen", "data-id"))
        assert key != first
        page.keyboard.press("Enter")
        assert shown_hits(page, key) == expected_neighbours(collection, key, 12)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
        # What was found has been scrolled into view.
        page.wait_for_function(
            "() => document.getElementById('match').getBoundingClientRect().top < 350"
        )
        assert page.evaluate("window.scrollY") > 0


def test_a_photo_of_a_camera_fits_the_window(browser, large_folder):
    with served(large_folder) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        page.wait_for_function("() => document.getElementById('picture').naturalWidth === 1600")
        box = page.locator("#stage").bounding_box()
        assert box["y"] + box["height"] <= 800
        assert box["width"] / box["height"] == pytest.approx(4 / 3, rel=0.01)
        page.wait_for_function("() => document.querySelector('#thumbnails img').naturalWidth > 0")
        assert page.is_visible("#no-hits")
        assert "No other photo has a keypoint" in page.inner_text("#no-hits")


def test_an_empty_collection_says_what_to_do(browser, tmp_path):
    Collection.create(tmp_path / "all.hn", RECIPE, load_model(RECIPE.model))
    with served(tmp_path) as address:
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("#empty")
        assert "hiernorm describe PHOTOS -o all.hn" in page.inner_text("#empty")
        assert not page.is_visible("#stage")


def test_an_answer_that_is_not_json_is_shown_as_what_it_is(browser, folder):
    with served(folder) as address:
        page = browser.new_page()
        page.route("**/api/neighbours/**", lambda r: r.fulfill(status=502, body="<html>"))
        page.goto(address)
        page.wait_for_selector("#problem:visible")
        assert "The server answered 502" in page.inner_text("#problem")


def test_a_file_name_that_holds_markup_is_shown_as_text(browser, tmp_path):
    name = "<img src=x onerror=alert(1)>&amp;'\"x.png"
    write_photos(tmp_path / "photos")
    photo = sorted((tmp_path / "photos").iterdir())[0]
    photo.rename(tmp_path / "photos" / name)
    ingest_photos(tmp_path / "all.hn", find_photos([tmp_path / "photos"]), RECIPE)
    with served(tmp_path) as address:
        page = browser.new_page()
        alerts = []
        page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
        page.goto(address)
        page.wait_for_selector("#stage:visible")
        page.wait_for_load_state("networkidle")
        titles = page.eval_on_selector_all("button[title]", "all => all.map(one => one.title)")
        assert f"photos/{name}" in titles
        assert page.query_selector("img[src=x]") is None
        assert alerts == []
