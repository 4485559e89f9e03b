"""An index in a file: the same entries, parameters and answers; damage is found."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import hiernorm
from hiernorm.storage.errors import DamagedError, FormatVersionError, NotADatabaseError
from support import assert_same_hits, every_kind_and_metric, filled, hn_rows, random_rows

N, D, MAJOR = 700, 24, 8


def _saved(index: hiernorm.Index, folder: Path) -> hiernorm.Index:
    path = folder / "index.hni"
    index.save(path)
    return hiernorm.Index.load(path, check=True)


@every_kind_and_metric
def test_a_loaded_index_has_the_same_entries_and_answers(
    kind: str, metric: str, tmp_path: Path
) -> None:
    index = filled(kind, hn_rows(N, D, MAJOR), MAJOR, metric=metric, ids=np.arange(N) * 3)
    index.delete([0, 33, 600])
    queries = hn_rows(9, D, MAJOR, seed=1)
    twin = _saved(index, tmp_path)
    assert_same_hits(twin.search(queries, 5), index.search(queries, 5))
    assert twin.digest == index.digest
    assert_array_equal(twin.ids, index.ids)
    assert_array_equal(twin.reconstruct([3, 36]), index.reconstruct([3, 36]))
    for name in ("dim", "metric", "major", "alpha", "engine"):
        assert getattr(twin, name) == getattr(index, name)
    assert 33 not in twin
    assert len(twin) == N - 3
    assert twin.verify(queries, twin.search(queries, 3)).ok


@pytest.mark.parametrize("kind", ["hn-cascade", "plain-cascade", "plain-flat", "hn-paper"])
def test_a_loaded_index_can_be_changed_and_the_file_stays(kind: str, tmp_path: Path) -> None:
    index = filled(kind, hn_rows(N, D, MAJOR), MAJOR)
    index.save(tmp_path / "a")
    before = (tmp_path / "a").read_bytes()
    twin = hiernorm.Index.load(tmp_path / "a")
    for changed in (index, twin):
        changed.delete([5, 6])
        changed.add(hn_rows(20, D, MAJOR, seed=2))
        changed.upsert(hn_rows(1, D, MAJOR, seed=3), ids=[7])
    assert twin.digest == index.digest
    assert_array_equal(twin.ids, index.ids)
    queries = hn_rows(5, D, MAJOR, seed=1)
    assert_same_hits(twin.search(queries, 5), index.search(queries, 5))
    assert (tmp_path / "a").read_bytes() == before


def test_cosine_takes_the_same_work_without_the_norms_that_a_file_lacks(tmp_path: Path) -> None:
    rows = hn_rows(N, D, MAJOR) * np.linspace(0.5, 2, N, dtype=np.float32)[:, np.newaxis]
    index = filled("hn-cascade", rows, MAJOR, metric="cosine")
    twin = _saved(index, tmp_path)
    assert index.nbytes - twin.nbytes >= 8 * N
    found, expected = (each.search(hn_rows(9, D, MAJOR, seed=1), 5) for each in (twin, index))
    assert_same_hits(found, expected)
    for step, counts in expected.certificate.work.items():
        assert_array_equal(found.certificate.work[step], counts)


def test_ids_of_deleted_entries_are_not_given_out_again(tmp_path: Path) -> None:
    index = hiernorm.Index(2)
    index.add([[1, 0], [0, 1], [1, 1]])
    index.delete([2])
    twin = _saved(index, tmp_path)
    twin.add([[2, 2]])
    assert twin.ids.tolist() == [0, 1, 3]


@pytest.mark.parametrize("kind", ["hn-cells", "plain-cascade", "plain-flat", "hn-paper"])
def test_payload_is_in_the_file(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs hiernorm[payload]")
    index = filled(kind, hn_rows(N, D, MAJOR), MAJOR, ids=np.arange(N)[::-1])
    index.delete([3, 4])
    index.upsert(
        hn_rows(3, D, MAJOR, seed=4),
        ids=[5, 6, 7],
        payload={"lang": ["en", None, "de"], "year": [2019, 2020, 2021]},
    )
    twin = _saved(index, tmp_path)
    assert twin.columns == index.columns == {"lang": "string", "year": "int64"}
    assert twin.payload().equals(index.payload())
    queries = hn_rows(4, D, MAJOR, seed=1)
    for found in (index, twin):
        assert sorted(found.search(queries, 3, where="year >= 2020").ids[0].tolist()) == [-1, 6, 7]
    twin.add(hn_rows(1, D, MAJOR, seed=5), payload={"lang": ["fr"]})
    twin.delete([6])
    assert twin.search(queries, 2, where="lang = 'fr'").ids[:, 0].tolist() == [N] * 4
    assert not len(twin.search(queries, 1, where="year = 2020").to_arrow())


def test_string_keys_are_in_the_file(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs hiernorm[payload]")
    index = hiernorm.Index(4, string_keys=True)
    index.add(random_rows(5, 4), ids=["a", "b", "ü", "d", "e"])
    index.delete(["d"])
    twin = _saved(index, tmp_path)
    assert twin.string_keys
    assert twin.keys == index.keys
    assert "ü" in twin
    assert "d" not in twin
    twin.add(random_rows(1, 4, seed=1), ids=["f"])
    with pytest.raises(ValueError, match="key 'a' is in the index already"):
        twin.add(random_rows(1, 4), ids=["a"])


def test_changed_payload_is_found_when_a_file_is_loaded(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs hiernorm[payload]")
    index = hiernorm.Index(4)
    index.add(random_rows(300, 4), payload={"word": [f"word-{i}" for i in range(300)]})
    index.save(tmp_path / "a")
    content = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(content.replace(b"word-17", b"word-18", 1))
    with pytest.raises(DamagedError, match=r"'values\.word' is not what was written"):
        hiernorm.Index.load(tmp_path / "a")


@pytest.mark.skipif(os.name == "nt", reason="mapped files cannot be changed there")
def test_check_reads_the_file_that_is_mapped(tmp_path: Path) -> None:
    filled("plain-cascade", random_rows(N, D), None).save(tmp_path / "a")
    twin = hiernorm.Index.load(tmp_path / "a")
    assert twin.check().ok
    content = bytearray((tmp_path / "a").read_bytes())
    rows = content.rfind(random_rows(N, D)[N // 2].tobytes())
    with open(tmp_path / "a", "r+b") as file:
        file.seek(rows)
        file.write(b"\x01")
    (difference,) = twin.check().differences
    assert difference.endswith("'rows' is not what was written")
    twin = hiernorm.Index.load(tmp_path / "a")
    assert not twin.check()


def test_an_index_that_reads_all_rows_does_so_after_it_was_loaded(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((2000, 24), dtype=np.float32) + 3
    index = hiernorm.Index(24, metric="l2")
    index.add(x)
    assert index.explain().engine == "flat"
    twin = _saved(index, tmp_path)
    assert twin.explain().engine == "flat"
    assert_same_hits(twin.search(x[:9], 4), index.search(x[:9], 4))


def test_what_was_saved_is_replaced_as_a_whole(tmp_path: Path) -> None:
    for rows in (random_rows(300, D), random_rows(400, D)):
        index = filled("plain-cascade", rows, None)
        twin = _saved(index, tmp_path)
        assert twin.digest == index.digest
    assert [path.name for path in tmp_path.iterdir()] == ["index.hni"]


def test_a_saved_index_is_not_left_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = filled("plain-cascade", random_rows(300, D), None)
    index.save(tmp_path / "a")
    before = (tmp_path / "a").read_bytes()
    index.add(random_rows(5, D, seed=1))

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        index.save(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.999])
def test_a_truncated_file_is_refused(share: float, tmp_path: Path) -> None:
    filled("plain-cascade", random_rows(N, D), None).save(tmp_path / "a")
    content = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(content[: int(share * len(content))])
    with pytest.raises(DamagedError, match="a"):
        hiernorm.Index.load(tmp_path / "a")


@pytest.mark.parametrize("kind", ["hn-cells", "plain-cascade", "plain-flat"])
def test_a_changed_byte_is_found(kind: str, tmp_path: Path) -> None:
    filled(kind, hn_rows(N, D, MAJOR), MAJOR).save(tmp_path / "a")
    content = (tmp_path / "a").read_bytes()
    for at in np.linspace(0, len(content) - 1, 200).astype(int).tolist():
        changed = bytearray(content)
        changed[at] ^= 1
        (tmp_path / "a").write_bytes(changed)
        with pytest.raises((DamagedError, FormatVersionError)):
            hiernorm.Index.load(tmp_path / "a", check=True)


@pytest.mark.skipif(os.name == "nt", reason="mapped files cannot be changed there")
@pytest.mark.parametrize("kind", ["hn-cells", "plain-cascade", "plain-flat"])
def test_no_changed_byte_gives_a_wrong_answer(kind: str, tmp_path: Path) -> None:
    index = filled(kind, hn_rows(N, D, MAJOR), MAJOR)
    index.save(tmp_path / "a")
    queries = hn_rows(4, D, MAJOR, seed=1)
    right, everything = index.search(queries, 3), index.reconstruct(index.ids)
    content = (tmp_path / "a").read_bytes()
    refused = 0
    for at in np.linspace(0, len(content) - 1, 60).astype(int).tolist():
        changed = bytearray(content)
        changed[at] ^= 1
        (tmp_path / "a").write_bytes(changed)
        for read in (
            lambda twin: assert_same_hits(twin.search(queries, 3), right),
            lambda twin: assert_array_equal(twin.reconstruct(twin.ids), everything),
            lambda twin: twin.save(tmp_path / "copy"),
        ):
            try:
                read(hiernorm.Index.load(tmp_path / "a"))
            except (DamagedError, FormatVersionError):
                refused += 1
    assert refused > 60
    (tmp_path / "a").write_bytes(content)
    twin = hiernorm.Index.load(tmp_path / "a")
    assert twin.search(queries, 3).certificate.checked == "touched"
    twin.add(hn_rows(1, D, MAJOR, seed=2))
    assert twin.search(queries, 3).certificate.checked == ""


def test_changed_parameters_are_found_without_a_full_check(tmp_path: Path) -> None:
    filled("hn-cascade", hn_rows(N, D, MAJOR), MAJOR).save(tmp_path / "a")
    content = (tmp_path / "a").read_bytes()
    assert content.count(b'\\"alpha\\": 0.125') == 1
    (tmp_path / "a").write_bytes(content.replace(b'\\"alpha\\": 0.125', b'\\"alpha\\": 0.126'))
    with pytest.raises(DamagedError, match="parameters that are not those that were written"):
        hiernorm.Index.load(tmp_path / "a")


def test_other_files_are_refused_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", random_rows(10, 4))
    with pytest.raises(NotADatabaseError, match=r"x\.npy is a \.npy file, not one"):
        hiernorm.Index.load(tmp_path / "x.npy")
    database = hiernorm.Database.create(tmp_path / "db", 4)
    database.add(random_rows(300, 4))
    with pytest.raises(IsADirectoryError, match=r"Database\.open opens a database"):
        hiernorm.Index.load(tmp_path / "db")
    segment = next((tmp_path / "db").glob("segment-*"))
    with pytest.raises(DamagedError, match=r"is no saved index: Index\.save writes one"):
        hiernorm.Index.load(segment)
    with pytest.raises(FileNotFoundError):
        hiernorm.Index.load(tmp_path / "nowhere")


def test_nothing_and_nowhere_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the index is empty: add vectors before you save it"):
        hiernorm.Index(3).save(tmp_path / "a")
    index = filled("plain-cascade", random_rows(10, 4), None)
    with pytest.raises(FileNotFoundError, match="is no folder: make it"):
        index.save(tmp_path / "b" / "a")
    assert list(tmp_path.iterdir()) == []
