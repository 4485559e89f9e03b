"""The index as its users see it: additions, ids, look-ups, copies, conversions, settings."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hiernorm
from hiernorm import _core
from support import (
    KINDS,
    METRICS,
    assert_same_bits,
    assert_same_hits,
    expected_hits,
    filled,
    hn_rows,
    make_index,
    pickled,
    raises_text,
    random_rows,
)

D, MAJOR = 12, 4


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
def test_default_ids_follow_the_largest(kind: str) -> None:
    x = hn_rows(30, D, MAJOR)
    index = make_index(kind, D, MAJOR)
    assert len(index) == 0
    index.add(x[:10])
    index.add(x[10:20], ids=np.arange(100, 110))
    index.add(x[20])
    index.add(x[21:])
    assert len(index) == 30
    expected = [*range(10), *range(100, 120)]
    np.testing.assert_array_equal(index.ids, expected)
    np.testing.assert_array_equal(index.search(x, 1).ids[:, 0], expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ids", [[7, 8, 7], [5, 1, 6]], ids=["within", "across"])
def test_duplicate_ids_leave_the_index_unchanged(kind: str, ids: list[int]) -> None:
    x = hn_rows(6, D, MAJOR)
    index = filled(kind, x[:3], MAJOR)
    digest, before = index.digest, index.search(x, 5)
    duplicate = 7 if 7 in ids else 1
    text = f"id {duplicate} is in the index already or given twice"
    with raises_text(ValueError, text):
        index.add(x[3:], ids)
    assert len(index) == 3
    assert index.digest == digest
    assert_same_hits(index.search(x, 5), before)
    index.add(x[3:], [5, 7, 6])
    np.testing.assert_array_equal(index.ids, [0, 1, 2, 5, 6, 7])


@pytest.mark.parametrize("kind", KINDS)
def test_any_int64_from_zero_up_is_an_id(kind: str) -> None:
    ids = np.array([0, 2**63 - 1, 2**32, 7, 1])
    x = np.tile(hn_rows(1, D, MAJOR), (5, 1))
    index = filled(kind, x, MAJOR, ids=ids)
    np.testing.assert_array_equal(index.search(x[:1], 5).ids[0], np.sort(ids))
    np.testing.assert_array_equal(index.reconstruct(ids), x)
    with raises_text(ValueError, "the ids that follow the largest do not fit int64: give ids"):
        index.add(x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", ["delete", "upsert"])
def test_entries_that_were_removed_are_never_found(kind: str, change: str) -> None:
    x, new = hn_rows(500, D, MAJOR), hn_rows(200, D, MAJOR, seed=1)
    index = filled(kind, x, MAJOR)
    live = dict(enumerate(x))
    for step in range(4):
        ids = np.arange(step, 500, 7)
        if change == "delete":
            index.delete(ids)
            for i in ids.tolist():
                del live[i]
        else:
            rows = new[step : step + len(ids)]
            index.upsert(rows, ids)
            live |= dict(zip(ids.tolist(), rows, strict=True))
        entries, rows = np.array(sorted(live)), np.array([live[i] for i in sorted(live)])
        np.testing.assert_array_equal(index.ids, entries)
        assert len(index) == len(entries)
        assert_same_hits(index.search(x[:9], 5), expected_hits(x[:9], rows, 5, ids=entries))
        assert index.verify(x[:9], index.search(x[:9], 5)).ok
        twin = filled(kind, rows, MAJOR, ids=entries)
        assert index.digest == twin.digest == pickled(index).digest
    index.optimize()
    assert index.digest == twin.digest
    assert_same_hits(index.search(x[:9], 5), expected_hits(x[:9], rows, 5, ids=entries))


def test_an_index_without_its_entries_is_as_new_but_for_default_ids() -> None:
    x = random_rows(300, D)
    index = hiernorm.Index(D)
    index.add(x)
    index.delete(np.arange(300))
    assert (len(index), index.ids.tolist(), index.major) == (0, [], None)
    index.add(x[:2])
    assert index.ids.tolist() == [300, 301]


def test_the_memory_of_deleted_entries_is_used_again() -> None:
    x = random_rows(40_000, D)
    index = filled("plain-exhaustive", x, None)
    before = index.nbytes
    index.delete(np.arange(30_000))
    assert index.nbytes < before / 2
    assert_same_hits(index.search(x[:3], 5), expected_hits(x[:3], x[30_000:], 5, ids=index.ids))


def test_a_refused_change_leaves_the_index_as_it_was() -> None:
    x = random_rows(20, D)
    index = filled("plain-cascade", x, None)
    digest = index.digest
    for bad in (lambda: index.delete([3, 99]), lambda: index.upsert(x[:2] * np.nan, [0, 1])):
        with pytest.raises((KeyError, ValueError)):
            bad()
    with raises_text(ValueError, "id 4 is in the index already or given twice"):
        index.upsert(x[:2], [4, 4])
    assert index.digest == digest


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_vectors_come_from_files_and_iterators(name: str, tmp_path: Path) -> None:
    x, ids = random_rows(30, D), np.arange(30) * 2 + 5
    given = ids
    if name == "x.npy":
        np.save(tmp_path / name, x)
        given = np.arange(30)
    else:
        np.savez(tmp_path / name, vectors=x, ids=ids)
    expected = filled("plain-cascade", x, None, ids=given).digest
    steps: list[tuple[int, int | None]] = []
    for source in (tmp_path / name, iter([(given[:9], x[:9]), (given[9:], x[9:])])):
        index = hiernorm.Index(D)
        index.add(source, progress=lambda done, total: steps.append((done, total)))
        assert index.digest == expected
        assert steps[-1] == (30, 30)


def test_alpha_may_be_a_fraction() -> None:
    assert hiernorm.Index(D, major=4, alpha="1/8").alpha == 0.125
    with raises_text(ValueError, "alpha: 'x' is no number such as 0.125 or 1/8"):
        hiernorm.Index(D, major=4, alpha="x")


def test_the_former_name_of_a_sibling_works() -> None:
    index = filled("plain-cascade", random_rows(20, D), None)
    with pytest.warns(DeprecationWarning, match="Index.sibling is now called _sibling"):
        assert index.sibling().major == index.major


def test_a_digest_asked_for_when_entries_are_gone_is_empty() -> None:
    index = filled("plain-cascade", random_rows(20, D), None)
    early, late = index.search(np.ones(D)), index.search(np.ones(D))
    assert early.certificate.digest == index.digest != ""
    before = index.digest
    index.delete([3])
    assert (early.certificate.digest, late.certificate.digest) == (before, "")


def test_ids_of_any_integer_type_are_taken() -> None:
    index = hiernorm.Index(2)
    for i, dtype in enumerate([np.int8, np.uint8, np.int32, np.uint64]):
        index.add([[1, i]], ids=np.array([i], dtype))
    index.add([1, 9], ids=9)
    np.testing.assert_array_equal(index.ids, [0, 1, 2, 3, 9])
    with raises_text(ValueError, f"ids must fit int64, got {2**63}"):
        index.add([[1, 1]], ids=np.array([2**63], np.uint64))


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_come_back_as_they_were_added(kind: str) -> None:
    x = random_rows(50, D)
    x[3, 2] = -0.0
    ids = np.random.default_rng(0).permutation(1000)[:50]
    index = filled(kind, x, MAJOR, ids=ids)
    assert_same_bits(index.reconstruct(ids[::-1]), x[::-1])
    assert_same_bits(index.reconstruct(ids[3]), x[3:4])
    assert index.reconstruct([]).shape == (0, D)
    unknown = int(np.setdiff1d(np.arange(1000), ids)[0])
    with raises_text(KeyError, f"id {unknown} is not in the index"):
        index.reconstruct([ids[0], unknown])


def test_repr_says_what_the_index_is() -> None:
    hn = hiernorm.Index(D, major=MAJOR, alpha=0.125, metric="cosine")
    assert repr(hn) == (
        "Index(dim=12, major=4, alpha=0.125, metric='cosine', engine='cascade', entries=0, 0.0 MiB)"
    )
    plain = hiernorm.Index(D, engine="exhaustive")
    plain.add(random_rows(1234, D))
    assert repr(plain).startswith(
        "Index(dim=12, plain, metric='ip', engine='exhaustive', entries=1,234, "
    )
    rotated = filled("plain-cascade", random_rows(100, D), 5)
    assert "major=5, plain, metric=" in repr(rotated)


def test_properties_are_the_parameters() -> None:
    index = hiernorm.Index(D, major=MAJOR, alpha=0.25, metric="cosine", engine="paper")
    assert (index.dim, index.major, index.alpha) == (D, MAJOR, 0.25)
    assert (index.metric, index.engine) == ("cosine", "paper")
    plain = hiernorm.Index(D)
    assert (plain.major, plain.alpha, plain.metric, plain.engine) == (None, None, "ip", "cascade")
    plain.add(random_rows(2000, D) * np.float32(0.7) ** np.arange(D, dtype=np.float32))
    assert plain.major is not None
    assert 1 <= plain.major < D


@pytest.mark.parametrize("metric", METRICS)
def test_the_major_is_the_one_asked_for(metric: str) -> None:
    assert filled("hn-cascade", random_rows(50, D), MAJOR, metric=metric).major == MAJOR


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("entries", [0, 50])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_copies_are_independent(
    kind: str, entries: int, copied: Callable[[hiernorm.Index], hiernorm.Index]
) -> None:
    x = hn_rows(80, D, MAJOR)
    index = make_index(kind, D, MAJOR)
    index.add(x[:entries])
    twin = copied(index)
    assert repr(twin).split("entries")[0] == repr(index).split("entries")[0]
    twin.add(x[entries:])
    assert (len(index), len(twin)) == (entries, 80)
    assert_same_hits(twin.search(x[:9], 5), expected_hits(x[:9], x, 5))
    assert_same_hits(index.search(x[:9], 5), expected_hits(x[:9], x[:entries], 5))


@pytest.mark.parametrize("kind", KINDS)
def test_missing_hits_are_filled(kind: str) -> None:
    x = hn_rows(3, D, MAJOR)
    hits = filled(kind, x, MAJOR).search(x[0], k=5)
    assert hits.ids.shape == hits.scores.shape == (1, 5)
    np.testing.assert_array_equal(hits.ids[0, 3:], [-1, -1])
    np.testing.assert_array_equal(hits.scores[0, 3:], [-np.inf, -np.inf])
    assert (hits.ids.dtype, hits.scores.dtype) == (np.int64, np.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_may_be_added_and_nothing_asked(kind: str) -> None:
    index = make_index(kind, D, MAJOR)
    index.add(np.zeros((0, D)))
    index.add(np.zeros((0, D), np.float32), ids=[])
    index.optimize()
    assert len(index) == 0
    assert len(index.ids) == 0
    index.add(hn_rows(3, D, MAJOR))
    index.add(np.zeros((0, D)))
    assert len(index) == 3
    hits = index.search(np.zeros((0, D)), k=4)
    assert hits.ids.shape == hits.scores.shape == (0, 4)
    assert len(hits) == len(hits.certificate) == 0


@pytest.mark.parametrize("dtype", ["f8", "f2", "i1", "u2", "i8", ">f4", ">f8"])
@pytest.mark.parametrize("kind", ["hn-cascade", "hn-cells", "plain-cascade", "plain-cells"])
def test_other_types_are_rounded_to_float32(kind: str, dtype: str) -> None:
    values = (random_rows(40, D) * 30 + 60).astype(dtype)
    rounded = values.astype(np.float32)
    index = filled(kind, values, MAJOR)
    assert_same_bits(index.reconstruct(np.arange(40)), rounded)
    assert_same_hits(index.search(values[:5], 5), expected_hits(rounded[:5], rounded, 5))


@pytest.mark.parametrize("kind", ["hn-cascade", "hn-cells", "plain-cascade", "plain-cells"])
def test_memory_layout_does_not_matter(kind: str) -> None:
    wide = random_rows(40, 2 * D)
    x = wide[::2, ::2].copy()
    expected = filled(kind, x, MAJOR).search(x, 5)
    for laid_out in (wide[::2, ::2], np.asfortranarray(x), x[::-1].copy()[::-1], x.tolist()):
        index = make_index(kind, D, MAJOR)
        index.add(laid_out)
        assert_same_hits(index.search(laid_out, 5), expected)


def test_the_index_keeps_no_reference_to_what_was_added() -> None:
    x = random_rows(10, D)
    index = filled("plain-cascade", x, None)
    before = x.copy()
    x[:] = 0
    assert_same_bits(index.reconstruct(np.arange(10)), before)


def test_memory_is_at_most_1_27_times_the_rows_and_1_29_with_cells() -> None:
    x = hn_rows(65_536, 128, 16)
    flat = hiernorm.Index(128, major=16, alpha=0.125, cells=False)
    flat.add(x)
    assert flat.nbytes <= 1.27 * x.nbytes
    assert filled("hn-cells", x, 16).nbytes <= 1.29 * x.nbytes
    assert filled("hn-exhaustive", x[:1000], 16).nbytes >= x[:1000].nbytes


def test_threads_come_from_the_environment_when_the_index_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = random_rows(20, D)
    expected = filled("plain-cascade", x, None).search(x, 3, threads=1)
    monkeypatch.setenv("HIERNORM_THREADS", "3")
    index = filled("plain-cascade", x, None)
    assert_same_hits(index.search(x, 3), expected)
    for bad in ("0", "-2", "many", "1.5"):
        monkeypatch.setenv("HIERNORM_THREADS", bad)
        text = f"HIERNORM_THREADS must be a positive integer, got {bad!r}"
        with raises_text(ValueError, text):
            hiernorm.Index(D)
        assert len(hiernorm.Index(D, threads=2)) == 0
        assert_same_hits(index.search(x, 3), expected)
    monkeypatch.setenv("HIERNORM_THREADS", "")
    assert_same_hits(filled("plain-cascade", x, None).search(x, 3), expected)


def _isa_in_a_new_process(setting: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "import hiernorm; print(hiernorm.isa())"],
        env={**os.environ, "HIERNORM_ISA": setting},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_instruction_set_comes_from_the_environment() -> None:
    for name in hiernorm.available_isas():
        assert _isa_in_a_new_process(name).stdout == f"{name}\n"
    assert _isa_in_a_new_process("").stdout == f"{hiernorm.available_isas()[-1]}\n"
    refused = _isa_in_a_new_process("sse9")
    assert refused.returncode == 1
    known = ", ".join(hiernorm.available_isas())
    text = f"ValueError: instruction set 'sse9' cannot run here; available: {known}\n"
    assert refused.stderr.endswith(text)


def test_the_instruction_set_in_use_is_an_available_one(isa: str) -> None:
    assert hiernorm.isa() == isa
    assert "scalar" in hiernorm.available_isas()
    known = ", ".join(hiernorm.available_isas())
    with raises_text(ValueError, f"instruction set 'x' cannot run here; available: {known}"):
        _core.use_isa("x")
    assert hiernorm.isa() == isa


def test_common_queries_are_read_where_they_are() -> None:
    index = hiernorm.Index(D, major=MAJOR)
    x = random_rows(3, D)
    index.add(x)
    core = index._core
    swapped = x.astype(x.dtype.newbyteorder())
    strided = np.asfortranarray(x)
    shifted = np.frombuffer(b"0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    for plain in (x, x[0], x[1:]):
        assert core.search_plain(plain, 2, 1) is not None
    others = (x.astype(np.float64), swapped, strided, shifted, np.ma.asarray(x), x.tolist(), None)
    for other in (*others, x[:, :-1], x[np.newaxis], x[0, 0]):
        assert core.search_plain(other, 2, 1) is None
    for same in others[:-1]:
        np.testing.assert_array_equal(index.search(same, 2).ids, index.search(x, 2).ids)
