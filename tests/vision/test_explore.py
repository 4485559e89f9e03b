"""The explorer's server: right answers, and only the collection's files."""

from __future__ import annotations

import re
import shutil
import socket

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

from explored_photos import collection, expected_neighbours, folder, large_folder
from hiernorm.cli.app import app as command_line
from hiernorm.vision.collection import Collection
from hiernorm.vision.explore.explorer import Explorer
from hiernorm.vision.explore.server import PAGE, make_app

__all__ = ["collection", "folder", "large_folder"]


def _client(app, **options) -> TestClient:
    return TestClient(app, base_url="http://127.0.0.1", **options)


@pytest.fixture(scope="module")
def client(collection) -> TestClient:
    return _client(make_app(Explorer(collection)))


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


def test_the_address_that_is_printed_can_be_connected_to(folder, monkeypatch):
    reached = []

    def connect(server, sockets):
        with socket.create_connection(sockets[0].getsockname(), timeout=60) as connection:
            reached.append(connection.getpeername())

    monkeypatch.setattr("uvicorn.Server.run", connect)
    result = CliRunner().invoke(command_line, ["explore", "--no-browser", str(folder / "all.hn")])
    assert result.exit_code == 0
    assert result.output == f"http://127.0.0.1:{reached[0][1]}/\n"
