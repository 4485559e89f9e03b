"""The explorer in a browser: a page that people can use."""

from __future__ import annotations

import contextlib
import re
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

from explored_photos import collection, expected_neighbours, folder, large_folder
from hiernorm.models import load_model
from hiernorm.vision.collection import Collection
from hiernorm.vision.ingest import find_photos, ingest_photos
from photo_sets import RECIPE, write_photos

__all__ = ["collection", "folder", "large_folder"]


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
