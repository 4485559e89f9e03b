"""Replacement of files: the old contents or the new ones, and nothing is left beside them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import pytest

from hiernorm import _files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.txt"
    path.write_text("old")
    return path


def names(file: Path) -> list[str]:
    return sorted(os.listdir(file.parent))


@pytest.mark.parametrize("durable", [True, False])
def test_the_file_changes_when_the_block_ends(file: Path, durable: bool) -> None:
    with _files.replacing(file, durable=durable) as fresh:
        fresh.write_text("new")
        assert file.read_text() == "old"
        assert fresh.suffix == file.suffix
    assert file.read_text() == "new"
    assert names(file) == ["file.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_the_block_leaves_the_old_file_alone(file: Path, error: type) -> None:
    def write_half() -> None:
        with _files.replacing(file) as fresh:
            fresh.write_text("half of the n")
            raise error

    with pytest.raises(error):
        write_half()
    assert file.read_text() == "old"
    assert names(file) == ["file.txt"]


def test_a_block_that_writes_nothing_is_an_error(file: Path) -> None:
    with pytest.raises(FileNotFoundError), _files.replacing(file):
        pass
    assert file.read_text() == "old"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_refusal_of_the_disk_leaves_the_old_file_alone(file: Path, call: str) -> None:
    refused = mock.patch(f"hiernorm._files.os.{call}", side_effect=OSError(28, "disk full"))
    with pytest.raises(OSError, match="disk full"), refused, _files.replacing(file) as fresh:
        fresh.write_text("new")
    assert file.read_text() == "old"
    assert names(file) == ["file.txt"]


def test_contents_are_on_the_disk_before_the_name_is(file: Path) -> None:
    calls: list[str] = []
    real = {name: getattr(os, name) for name in ("fsync", "replace")}

    def note(name: str):
        def call(*arguments: object) -> object:
            calls.append(name)
            return real[name](*arguments)

        return mock.patch(f"hiernorm._files.os.{name}", call)

    with note("fsync"), note("replace"):
        with _files.replacing(file) as fresh:
            fresh.write_text("new")
        assert calls == (["fsync", "replace", "fsync"] if os.name != "nt" else ["fsync", "replace"])
        calls.clear()
        with _files.replacing(file, durable=False) as fresh:
            fresh.write_text("newer")
        assert calls == ["replace"]


def test_one_writer_overwrites_what_a_killed_one_left(file: Path) -> None:
    (file.parent / "file.txt.new").write_text("half of a longer text")
    with _files.replacing(file, alone=True) as fresh:
        fresh.write_text("new")
    assert file.read_text() == "new"
    assert names(file) == ["file.txt"]


def test_writers_at_the_same_time_never_mix(file: Path) -> None:
    def write(letter: str) -> None:
        for _ in range(20):
            with _files.replacing(file, durable=False) as fresh:
                fresh.write_text(letter * 10_000)
            assert len(set(file.read_text())) == 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    assert names(file) == ["file.txt"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old.txt").write_text("old")
    return path


def fill(folder: Path) -> None:
    with _files.replacing_folder(folder) as fresh:
        (fresh / "new.txt").write_text("new")


def test_a_folder_is_replaced_with_all_that_it_holds(folder: Path) -> None:
    fill(folder)
    assert os.listdir(folder) == ["new.txt"]
    assert names(folder) == ["folder"]
    folder.rename(folder.parent / "moved")
    fill(folder)
    assert os.listdir(folder) == ["new.txt"]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_refusal_of_the_disk_leaves_the_old_folder_alone(folder: Path, failing: int) -> None:
    rename, calls = os.rename, iter(range(10))

    def refuse(source: Path, target: Path) -> None:
        if next(calls) == failing:
            raise OSError(28, "disk full")
        rename(source, target)

    with (
        pytest.raises(OSError, match="disk full"),
        mock.patch("hiernorm._files.os.rename", refuse),
    ):
        fill(folder)
    assert os.listdir(folder) == ["old.txt"]
    assert names(folder) == ["folder"]


@pytest.mark.parametrize("step", range(3))
def test_a_process_that_dies_leaves_a_whole_folder_or_none(folder: Path, step: int) -> None:
    """Before the renames, between them, after them; an exception here could be handled."""
    child = os.fork() if hasattr(os, "fork") else pytest.skip("needs fork")
    if child == 0:
        rename, calls = os.rename, iter(range(10))

        def die(source: Path, target: Path) -> None:
            if next(calls) == step:
                os._exit(9)
            rename(source, target)

        with (
            mock.patch("hiernorm._files.os.rename", die),
            mock.patch("hiernorm._files.sync_folder", lambda path: die(path, path)),
        ):
            fill(folder)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert not folder.exists() or os.listdir(folder) in (["old.txt"], ["new.txt"])
    fill(folder)
    assert os.listdir(folder) == ["new.txt"]
    assert names(folder) == ["folder"]


def test_what_a_killed_process_moved_away_is_put_back(folder: Path) -> None:
    folder.rename(folder.parent / "folder.old")
    with pytest.raises(KeyError), _files.replacing_folder(folder):
        raise KeyError
    assert os.listdir(folder) == ["old.txt"]
    assert names(folder) == ["folder"]
