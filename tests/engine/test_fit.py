"""The fit of an encoding: one BLAS thread, the same bits for any number, a sample."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import hiernorm
from hiernorm import _core, fitting, synthetic, threads
from hiernorm.byte_matching import ByteDescriptors, ByteRotation
from support import expected_hits, random_rows


@pytest.fixture
def controls() -> tuple[threads.Control, ...]:
    found = threads._blas_controls()
    if not found:
        pytest.skip("NumPy has no OpenBLAS here")
    return found


@pytest.fixture
def two_threads(controls: tuple[threads.Control, ...]) -> Iterator[None]:
    """BLAS has two threads, before the test and after it."""
    before = [get() for get, _ in controls]
    try:
        for _, set_threads in controls:
            set_threads(2)
        yield
        assert {get() for get, _ in controls} == {2}
    finally:
        for (_, set_threads), count in zip(controls, before, strict=True):
            set_threads(count)


@pytest.mark.usefixtures("two_threads")
def test_a_fit_has_one_blas_thread_and_leaves_the_setting(
    controls: tuple[threads.Control, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    fit = fitting.fit_rotation

    def watch(sample: np.ndarray) -> object:
        seen.extend(get() for get, _ in controls)
        return fit(sample)

    monkeypatch.setattr(fitting, "fit_rotation", watch)
    hiernorm.Index(8, major=4).add(random_rows(100, 8))
    assert set(seen) == {1}


@pytest.mark.usefixtures("two_threads")
def test_bytes_are_fitted_and_encoded_by_one_blas_thread(
    controls: tuple[threads.Control, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, set[int]] = {"fit": set(), "codes": set()}
    eigh = np.linalg.eigh

    def watch(matrix: np.ndarray) -> object:
        seen["fit"].update(get() for get, _ in controls)
        return eigh(matrix)

    class Watched(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):  # type: ignore[no-untyped-def]
            if ufunc is np.matmul:
                seen["codes"].update(get() for get, _ in controls)
            return getattr(ufunc, method)(*map(np.asarray, inputs), **options)

    monkeypatch.setattr(np.linalg, "eigh", watch)
    rows = np.random.default_rng(0).integers(0, 256, (200, 128), np.uint8)
    rotation = ByteRotation(rows)
    rotation.matrix = rotation.matrix.view(Watched)
    ByteDescriptors(rows, rotation)
    assert seen == {"fit": {1}, "codes": {1}}


def test_fits_at_the_same_time_restore_the_setting_once(
    controls: tuple[threads.Control, ...],
) -> None:
    before = [get() for get, _ in controls]
    inside, leave = threading.Event(), threading.Event()

    def fit() -> None:
        with threads.one_blas_thread():
            inside.set()
            leave.wait()

    other = threading.Thread(target=fit)
    other.start()
    inside.wait()
    with threads.one_blas_thread():
        pass
    assert {get() for get, _ in controls} == {1}  # the other fit is still at work
    leave.set()
    other.join()
    assert [get() for get, _ in controls] == before


SCRIPT = """
import hashlib, numpy as np
from hiernorm.fitting import choose_encoding
x = np.random.default_rng(0).standard_normal((3000, 200)).astype(np.float32)
encoding = choose_encoding(x, None, rotate=True, metric="l2", cells=True)
print(hashlib.sha256(encoding.rotation().tobytes()).hexdigest(), encoding.state())
"""


def test_the_bits_of_a_fit_do_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    folder = str(Path(hiernorm.__file__).parent.parent)
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"OPENBLAS_NUM_THREADS": count, "PYTHONPATH": folder},
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        ).stdout
        for count in ("1", "2", "3")
    }
    assert len(outputs) == 1
    assert len(outputs.pop().split()[0]) == len(hashlib.sha256().hexdigest())


def test_a_fit_to_a_sample_is_exact_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "SAMPLE_VALUES", 32 * 100)
    x = random_rows(4000, 32) * np.float32(0.8) ** np.arange(32, dtype=np.float32)
    x[2001] *= 50  # no row of the sample is as long
    rows_seen: list[int] = []
    fit = fitting.fit_rotation

    def watch(sample: np.ndarray) -> object:
        rows_seen.append(len(sample))
        return fit(sample)

    monkeypatch.setattr(fitting, "fit_rotation", watch)
    index = hiernorm.Index(32, metric="l2")
    index.add(x)
    assert max(rows_seen) == 100
    ids, scores = expected_hits(x[1995:2005], x, 5, "l2")
    hits = index.search(x[1995:2005], 5)
    assert_array_equal(hits.ids, ids)
    assert_array_equal(hits.scores, scores)


def test_the_major_is_smaller_where_cells_are_expected() -> None:
    rows = synthetic.plain(_core.LEAST_GROUPED, 1).database

    def major_of(entries: int, cells: bool | None) -> int:
        index = hiernorm.Index(128, cells=cells)
        index.add(rows[:entries])
        assert index.major is not None
        return index.major

    grouped, scattered = major_of(len(rows), None), major_of(len(rows), False)
    assert grouped < scattered
    assert major_of(len(rows) - 1, None) == scattered  # too few entries for cells
