"""The command line on databases: what goes in, what comes out, and how it ends."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import hiernorm
from database_support import ALPHA, MAJOR, QUERIES, D, arrays_of, vectors
from hiernorm.cli.app import app
from hiernorm.storage.lock import WriterLock
from hiernorm.storage.tensors import TensorFile
from paths import GOLDEN
from support import expected_hits

ROWS = vectors(1, 50)


def run(*arguments: object, stdin: str | None = None, code: int = 0) -> Result:
    """The result, whose exit code is ``code``."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A database that the command line has built."""
    np.save(tmp_path / "x.npy", ROWS)
    np.save(tmp_path / "q.npy", QUERIES)
    run("build", tmp_path / "db", tmp_path / "x.npy", "--major", MAJOR, "--alpha", "1/8")
    return tmp_path / "db"


def test_build_makes_the_database_that_python_opens(db: Path) -> None:
    opened = hiernorm.Database.open(db)
    assert (len(opened), opened.dim, opened.major, opened.alpha) == (50, D, MAJOR, ALPHA)
    np.testing.assert_array_equal(opened.reconstruct(range(50)), ROWS)


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "parquet", "npy"])
def test_what_is_exported_can_be_built_from(db: Path, tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="needs hiernorm[parquet]")
    run("delete", db, 0, 7)
    run("export", db, tmp_path / f"out.{suffix}")
    ids = ["--ids", tmp_path / "out.ids.npy"] if suffix == "npy" else []
    run("build", tmp_path / "again", tmp_path / f"out.{suffix}", *ids)
    first, again = hiernorm.Database.open(db), hiernorm.Database.open(tmp_path / "again")
    np.testing.assert_array_equal(first.ids, again.ids)
    np.testing.assert_array_equal(first.reconstruct(first.ids), again.reconstruct(first.ids))


def test_search_prints_exact_hits_line_by_line(db: Path, tmp_path: Path) -> None:
    lines = run("search", db, tmp_path / "q.npy", "-k", 3).stdout.splitlines()
    ids, scores = expected_hits(QUERIES, ROWS, 3)
    expected = [
        f"{q}\t{r}\t{ids[q, r]}\t{float(scores[q, r])!r}" for q in range(4) for r in range(3)
    ]
    assert lines == ["query\trank\tid\tscore", *expected]


def test_search_among_ids_and_as_json(db: Path, tmp_path: Path) -> None:
    allowed = np.array([3, 5, 8, 11])
    result = run(
        "search", db, tmp_path / "q.npy", "-k", 9, "--json", "--where", "-", stdin="3\n5 8\n11\n"
    )
    found = json.loads(result.stdout)
    ids, scores = expected_hits(QUERIES, ROWS[allowed], 4, ids=allowed)
    assert found["exact"] is True
    assert [[hit["id"] for hit in row] for row in found["answers"]] == ids.tolist()
    assert [[hit["score"] for hit in row] for row in found["answers"]] == scores.tolist()


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "parquet"])
def test_search_writes_its_answers(db: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"hits.{suffix}"
    if suffix == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet", reason="needs hiernorm[parquet]")
    run("search", db, tmp_path / "q.npy", "-k", 3, "--out", out)
    ids, scores = expected_hits(QUERIES, ROWS, 3)
    if suffix == "npz":
        with np.load(out) as found:
            got = found["ids"], found["scores"]
    elif suffix == "safetensors":
        from hiernorm.storage.tensors import TensorFile

        got = TensorFile(out).array("ids"), TensorFile(out).array("scores")
    else:
        table = parquet.read_table(out).to_pydict()
        got = np.array(table["ids"]), np.array(table["scores"])
    np.testing.assert_array_equal(got[0], ids)
    np.testing.assert_array_equal(got[1], scores)


def test_add_upsert_and_delete_change_the_database(db: Path, tmp_path: Path) -> None:
    more = vectors(2, 3)
    np.savez(tmp_path / "more.npz", vectors=more, ids=[1, 60, 61])
    run("add", db, tmp_path / "more.npz", code=1)
    assert (
        json.loads(run("add", db, tmp_path / "more.npz", "--upsert", "--json").stdout)["added"] == 3
    )
    (tmp_path / "ids.txt").write_text("2\n3\n")
    assert json.loads(run("delete", db, "--ids", tmp_path / "ids.txt", "--json").stdout) == {
        "removed": 2,
        **hiernorm.Database.open(db).info(),
    }
    run("delete", db, 2, code=1)
    run("delete", db, 2, "--ignore-missing")
    model = {**dict(enumerate(ROWS)), 1: more[0], 60: more[1], 61: more[2]}
    del model[2], model[3]
    ids, rows = arrays_of(model)
    opened = hiernorm.Database.open(db)
    np.testing.assert_array_equal(opened.ids, ids)
    np.testing.assert_array_equal(opened.reconstruct(ids), rows)


def test_negative_ids_of_earlier_versions_can_be_deleted(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "v1" / "plain-ip.hn", tmp_path / "db")
    before = hiernorm.Database.open(tmp_path / "db").ids.tolist()
    assert -195 in before
    run("delete", tmp_path / "db", -195)
    after = hiernorm.Database.open(tmp_path / "db").ids.tolist()
    assert after == [number for number in before if number != -195]


def test_compact_and_verify_say_what_they_did(db: Path) -> None:
    run("delete", db, 0)
    assert "1 segments are now 1" in run("compact", db).stdout
    assert json.loads(run("compact", db, "--json").stdout)["deleted"] == 0
    assert "all is as it was written" in run("check", db).stdout
    assert json.loads(run("check", db, "--json").stdout) == {"ok": True, "damage": []}


def test_info_in_words_and_as_json(db: Path) -> None:
    text = run("info", db).stdout
    assert "entries          50" in text
    assert json.loads(run("info", db, "--json").stdout) == hiernorm.Database.open(db).info()
    assert json.loads(run("info", "--json").stdout)["hiernorm"] == hiernorm.__version__


def test_exit_codes_tell_scripts_what_happened(db: Path, tmp_path: Path) -> None:
    def fails(code: int, text: str, *arguments: object) -> None:
        result = run(*arguments, code=code)
        assert text in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
        assert "Traceback" not in result.output

    fails(5, "does not exist: not a hiernorm database", "info", tmp_path / "nowhere")
    fails(5, "has no manifest.json", "search", tmp_path, tmp_path / "q.npy")
    fails(1, "is a database already", "build", db, tmp_path / "x.npy")
    fails(1, "id 99 is not in the database", "delete", db, 99)
    with WriterLock(db, 0.0):
        fails(4, "is being written by process", "delete", db, 1)
    segment = next(db.glob("segment-*"))
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(bytes(data))
    result = run("check", db, code=3)
    assert "is not what was written" in result.stdout
    assert "restore it from a snapshot" in result.stderr
    assert json.loads(run("check", db, "--json", code=3).stdout)["ok"] is False
    segment.write_bytes(b"")
    fails(3, "has 0 bytes", "info", db)


def test_wrong_command_lines_end_with_2(db: Path, tmp_path: Path) -> None:
    run("search", db, code=2)
    run("delete", db, code=2)
    run("delete", db, 1, "--ids", tmp_path / "q.npy", code=2)
    run("build", tmp_path / "new", tmp_path / "x.npy", "--metric", "l1", code=2)
    run("add", db, tmp_path / "x.npy", tmp_path / "q.npy", "--ids", tmp_path / "x.npy", code=2)


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "bad.npy", np.full((3, 4), np.nan))
    built = run("build", tmp_path / "db", tmp_path / "bad.npy", code=1)
    assert "bad.npy: vectors row" in built.stderr
    assert "is NaN" in built.stderr
    assert not (tmp_path / "db").exists()


def test_a_build_that_fails_removes_only_what_it_made(tmp_path: Path) -> None:
    np.save(tmp_path / "bad.npy", np.full((3, 4), np.nan))
    (tmp_path / "mine").mkdir(mode=0o700)
    run("build", tmp_path / "mine", tmp_path / "bad.npy", code=1)
    assert list((tmp_path / "mine").iterdir()) == []
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_a_build_that_fails_keeps_what_another_process_made_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", ROWS)
    add = hiernorm.Database.add

    def add_late(self: hiernorm.Database, *arguments: object, **options: object) -> int:
        monkeypatch.setattr(hiernorm.Database, "add", add)
        hiernorm.Database.create(tmp_path / "db", D).add(ROWS[:7])
        return self.add(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(hiernorm.Database, "add", add_late)
    text = run("build", tmp_path / "db", tmp_path / "x.npy", code=1).stderr
    assert "is there and not empty" in text
    assert len(hiernorm.Database.open(tmp_path / "db")) == 7


def test_a_build_fills_an_empty_folder_and_keeps_its_permissions(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ROWS)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine").chmod(0o750)
    run("build", tmp_path / "mine", tmp_path / "x.npy")
    assert len(hiernorm.Database.open(tmp_path / "mine")) == 50
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o750


def test_compact_refuses_damage_and_salvage_lists_it(db: Path) -> None:
    segment = next(db.glob("segment-*"))
    begin = TensorFile(segment).header.tensors["rows"].begin
    data = bytearray(segment.read_bytes())
    data[begin] ^= 1
    segment.write_bytes(data)
    run("delete", db, 49)
    assert "'rows' of the entries at positions" in run("compact", db, code=3).stderr
    report = json.loads(run("compact", db, "--salvage", "--json").stdout)
    assert report["kept"] + sum(lost["entries"] for lost in report["lost"]) == 49
    assert report["lost"][0]["file"] == segment.name
    run("check", db)


@pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors"])
def test_a_bad_input_file_is_named_and_no_damage_of_the_database(
    db: Path, tmp_path: Path, suffix: str
) -> None:
    bad = tmp_path / f"bad.{suffix}"
    bad.write_bytes(b"what is this? " * 10)
    text = run("add", db, bad, code=1).stderr
    assert f"bad.{suffix}" in text
    assert "pickle" not in text


def test_debug_shows_the_error_itself(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--debug", "info", str(tmp_path / "nowhere")])
    assert isinstance(result.exception, hiernorm.DatabaseError)


def test_the_file_of_an_index_is_checked(tmp_path: Path) -> None:
    rows = vectors(1, 300)
    index = hiernorm.Index(D, engine="flat")
    index.add(rows)
    index.save(tmp_path / "vectors.hni")
    assert "all is as it was written" in run("check", tmp_path / "vectors.hni").stdout
    content = bytearray((tmp_path / "vectors.hni").read_bytes())
    content[content.index(rows.tobytes()) + 4] ^= 1
    (tmp_path / "vectors.hni").write_bytes(content)
    assert "'rows' is not what was written" in run("check", tmp_path / "vectors.hni", code=3).stdout


@pytest.mark.parametrize(
    "command", ["build", "add", "delete", "search", "info", "check", "compact", "export"]
)
def test_help_describes_every_command(command: str) -> None:
    text = run(command, "--help").output
    assert "--json" in text
    assert text.splitlines()[2].strip()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(shell: str) -> None:
    assert "_HIERNORM_COMPLETE" in run("completion", shell).stdout


def test_progress_does_not_mix_with_results(db: Path, tmp_path: Path) -> None:
    """As a shell sees it: two streams, and a pipe gets results alone."""
    command = [sys.executable, "-c", "from hiernorm.cli import main; main()"]
    done = subprocess.run(
        [*command, "search", str(db), str(tmp_path / "q.npy"), "-k", "1", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(json.loads(done.stdout)["answers"]) == 4
    assert done.stderr == ""
