"""Downloads: checked, continued after a break, and nothing half-written; from a server here."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest

pytest.importorskip("pooch", reason="needs hiernorm[data]")
pytest.importorskip("requests", reason="needs hiernorm[data]")
pytest.importorskip("click", reason="needs hiernorm[cli]")

from click.testing import CliRunner

from file_server import serve
from hiernorm.cli.app import app
from hiernorm.learn.scenes import archives
from hiernorm.learn.scenes.archives import ARCHIVES, Archive
from hiernorm.learn.scenes.download import PINS, DamagedArchiveError, download, find_archive
from hiernorm.learn.scenes.transfer import TransferError


def make_zip(seed: int = 0, *, names: tuple[str, ...] = ("patches0000.bmp", "info.txt")) -> bytes:
    """A zip that does not compress, so that a cut or a flipped byte falls into its data."""
    content = np.random.default_rng(seed).bytes(60_000)
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        for name in names:
            archive.writestr(name, content)
    return file.getvalue()


GOOD = make_zip()


@pytest.fixture
def server():
    with serve() as running:
        running.files["trevi.zip"] = GOOD
        yield running


@pytest.fixture
def unpinned(server):
    return Archive("trevi", server.url("trevi.zip"), None, "test")


@pytest.fixture
def published(server):
    digest = f"md5:{hashlib.md5(GOOD).hexdigest()}"
    return Archive("trevi", server.url("trevi.zip"), digest, "test")


def files_in(folder) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_a_published_digest_is_checked_and_needs_no_pin(published, tmp_path):
    got = download(published, tmp_path)
    assert got.file.read_bytes() == GOOD
    assert got.digest == published.digest
    assert not got.newly_pinned
    assert files_in(tmp_path) == {"trevi.zip"}


def test_an_unknown_digest_is_pinned_at_first_and_compared_later(server, unpinned, tmp_path):
    first = download(unpinned, tmp_path)
    assert first.newly_pinned
    digest = hashlib.sha256(GOOD).hexdigest()
    assert (tmp_path / PINS).read_text() == f"{digest}  trevi.zip\n"

    again = download(unpinned, tmp_path)
    assert again.digest == f"sha256:{digest}"
    assert not again.newly_pinned
    assert len(server.log) == 1

    first.file.unlink()
    server.files["trevi.zip"] = make_zip(seed=1)
    with pytest.raises(DamagedArchiveError, match=f"pinned in .*{PINS}"):
        download(unpinned, tmp_path)
    assert files_in(tmp_path) == {PINS}


def test_pins_of_other_archives_stay(server, unpinned, tmp_path):
    (tmp_path / PINS).write_text(f"{'0' * 64}  other.zip\n")
    download(unpinned, tmp_path)
    lines = (tmp_path / PINS).read_text().splitlines()
    assert lines[0] == f"{'0' * 64}  other.zip"
    assert lines[1].endswith("  trevi.zip")


def test_an_unreadable_pin_is_an_error_that_names_the_line(unpinned, tmp_path):
    (tmp_path / PINS).write_text("nonsense\n")
    with pytest.raises(ValueError, match=f"{PINS}, line 1: expected a SHA-256 and a name"):
        download(unpinned, tmp_path)


def test_a_broken_download_is_kept_and_continued(server, published, tmp_path):
    server.break_after = 49_152
    with pytest.raises(TransferError, match=r"broke off: .* 49,152 bytes are kept: run this again"):
        download(published, tmp_path)
    assert "trevi.zip" not in files_in(tmp_path)
    with pytest.raises(TransferError, match="98,304 bytes are kept"):
        download(published, tmp_path)

    server.break_after = None
    heard = []
    got = download(published, tmp_path, lambda have, total: heard.append((have, total)))
    assert got.file.read_bytes() == GOOD
    assert files_in(tmp_path) == {"trevi.zip"}
    ranges = [(asked, sent) for _, asked, _, sent in server.log]
    rest = len(GOOD) - 98_304
    assert ranges == [(None, 49_152), ("bytes=49152-", 49_152), ("bytes=98304-", rest)]
    assert heard[0] == (98_304, len(GOOD))
    assert heard[-1] == (len(GOOD), len(GOOD))


def test_a_file_that_changed_meanwhile_is_fetched_anew(server, unpinned, tmp_path):
    server.break_after = 49_152
    with pytest.raises(TransferError):
        download(unpinned, tmp_path)
    server.break_after, server.files["trevi.zip"] = None, make_zip(seed=1)
    assert download(unpinned, tmp_path).file.read_bytes() == make_zip(seed=1)


def test_without_a_version_a_mixed_file_is_noticed(server, unpinned, tmp_path):
    server.tells_version, server.break_after = False, 49_152
    with pytest.raises(TransferError):
        download(unpinned, tmp_path)
    server.break_after, server.files["trevi.zip"] = None, make_zip(seed=1)
    with pytest.raises(DamagedArchiveError, match=r"patches0000\.bmp"):
        download(unpinned, tmp_path)
    assert files_in(tmp_path) == set()


def test_a_server_without_ranges_sends_all_again(server, published, tmp_path):
    server.takes_ranges, server.break_after = False, 49_152
    with pytest.raises(TransferError):
        download(published, tmp_path)
    server.break_after = None
    assert download(published, tmp_path).file.read_bytes() == GOOD


def test_a_part_that_is_complete_is_not_fetched_again(server, published, tmp_path):
    server.break_after = 49_152
    with pytest.raises(TransferError):
        download(published, tmp_path)
    (tmp_path / "trevi.zip.part").write_bytes(GOOD)
    assert download(published, tmp_path).file.read_bytes() == GOOD
    assert server.log[-1][2:] == (416, 0)


def test_a_part_longer_than_the_file_is_dropped(server, published, tmp_path):
    server.break_after = 49_152
    with pytest.raises(TransferError):
        download(published, tmp_path)
    (tmp_path / "trevi.zip.part").write_bytes(GOOD + b"more")
    server.break_after = None
    assert download(published, tmp_path).file.read_bytes() == GOOD


def test_a_part_of_another_address_is_dropped(server, published, tmp_path):
    (tmp_path / "trevi.zip.part").write_bytes(b"x" * 1000)
    assert download(published, tmp_path).file.read_bytes() == GOOD
    assert server.log[0][1] is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(GOOD[:-5000], "is no zip, or a damaged one", id="short"),
        pytest.param(b"<html>moved</html>", "is no zip", id="a web page"),
        pytest.param(b"", "is no zip", id="empty"),
        pytest.param(
            GOOD[:30_000] + bytes([GOOD[30_000] ^ 1]) + GOOD[30_001:], "damaged", id="a flipped bit"
        ),
        pytest.param(make_zip(names=("readme.txt",)), "is no scene", id="other files"),
    ],
)
def test_a_bad_archive_is_refused_and_not_kept(server, unpinned, tmp_path, content, reason):
    server.files["trevi.zip"] = content
    server.tells_length = False
    with pytest.raises(DamagedArchiveError, match=reason):
        download(unpinned, tmp_path)
    assert files_in(tmp_path) == set()


def test_another_archive_than_the_published_one_is_refused(server, published, tmp_path):
    server.files["trevi.zip"] = make_zip(seed=1)
    with pytest.raises(DamagedArchiveError, match="digest is published"):
        download(published, tmp_path)
    assert files_in(tmp_path) == set()


def test_a_damaged_archive_on_disk_is_replaced(published, tmp_path):
    (tmp_path / "trevi.zip").write_bytes(GOOD[:-1])
    assert download(published, tmp_path).file.read_bytes() == GOOD


def test_a_damaged_archive_on_disk_stays_if_no_better_one_comes(server, published, tmp_path):
    (tmp_path / "trevi.zip").write_bytes(GOOD[:-1])
    server.files.clear()
    with pytest.raises(TransferError, match="is not to be had: 404"):
        download(published, tmp_path)
    assert (tmp_path / "trevi.zip").read_bytes() == GOOD[:-1]


def test_a_damaged_archive_on_disk_is_not_pinned(unpinned, tmp_path):
    (tmp_path / "trevi.zip").write_bytes(GOOD[:-5000])
    with pytest.raises(DamagedArchiveError):
        download(unpinned, tmp_path)
    assert files_in(tmp_path) == {"trevi.zip"}


def test_a_full_disk_keeps_what_came(server, published, tmp_path):
    resource = pytest.importorskip("resource", reason="limits the size of files as Unix does")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (49_152, before[1]))
    try:
        with pytest.raises(TransferError, match=r"File too large; 49,152 bytes are kept"):
            download(published, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert download(published, tmp_path).file.read_bytes() == GOOD
    assert server.log[-1][1] == "bytes=49152-"


def test_no_server_is_an_error_in_one_line(tmp_path, monkeypatch):
    with serve() as gone:
        address = gone.url("trevi.zip")
    monkeypatch.setitem(archives.ARCHIVES, "trevi", Archive("trevi", address, None, "test"))
    result = CliRunner().invoke(app, ["data", "download", "trevi", "--to", str(tmp_path)])
    assert result.exit_code == 1
    assert "nothing came" in result.output
    assert files_in(tmp_path) == set()


def test_the_command_downloads_several_and_says_what_it_compared(
    server, published, tmp_path, monkeypatch
):
    other = Archive("halfdome", server.url("trevi.zip"), None, "test")
    monkeypatch.setitem(archives.ARCHIVES, "trevi", published)
    monkeypatch.setitem(archives.ARCHIVES, "halfdome", other)
    result = CliRunner().invoke(
        app, ["data", "download", "trevi", "halfdome", "--to", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    matched, pinned = result.output.splitlines()
    assert matched == f"{tmp_path / 'trevi.zip'}: matches {published.digest}"
    assert "no digest is published; pinned in" in pinned
    assert files_in(tmp_path) == {"trevi.zip", "halfdome.zip", PINS}


def test_the_command_tells_what_it_compared_as_json(server, published, tmp_path, monkeypatch):
    other = Archive("halfdome", server.url("trevi.zip"), None, "test")
    monkeypatch.setitem(archives.ARCHIVES, "trevi", published)
    monkeypatch.setitem(archives.ARCHIVES, "halfdome", other)
    arguments = ["data", "download", "trevi", "halfdome", "--to", str(tmp_path), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    pin = f"sha256:{hashlib.sha256(GOOD).hexdigest()}"
    expected = [
        {
            "path": str(tmp_path / "trevi.zip"),
            "digest": published.digest,
            "newly_pinned": False,
        },
        {"path": str(tmp_path / "halfdome.zip"), "digest": pin, "newly_pinned": True},
    ]
    assert [json.loads(line) for line in result.stdout.splitlines()] == expected
    again = CliRunner().invoke(app, arguments)
    expected[1]["newly_pinned"] = False
    assert [json.loads(line) for line in again.stdout.splitlines()] == expected


def test_an_unknown_scene_is_refused_before_anything_is_fetched(tmp_path):
    result = CliRunner().invoke(app, ["data", "download", "trevi", "rome", "--to", str(tmp_path)])
    assert result.exit_code == 1
    assert "no official scene 'rome': there are notredame" in result.output


def test_the_table_has_the_papers_scenes():
    for scene in ("notredame", "trevi", "halfdome"):
        assert find_archive(scene).url.endswith(f"/{scene}.zip")
    for archive in ARCHIVES.values():
        assert archive.digest is None or len(archive.digest) == len("md5:") + 32
