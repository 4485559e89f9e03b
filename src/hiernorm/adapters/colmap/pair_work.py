"""Work on many pairs: side by side in threads, and written in batches."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from hiernorm.adapters.colmap.records import Pair

Result = TypeVar("Result")

COMMIT_SECONDS = 2.0
"""Results are committed about this often."""


def side_by_side(
    work: Callable[[Pair], Result], pairs: Iterable[Pair], threads: int
) -> Generator[tuple[Pair, Result], None, None]:
    """Work on pairs in threads; yields each pair with its result, in the order of pairs.

    Close it before what its threads use is closed.
    """
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[tuple[Pair, Future[Result]]] = deque()
        try:
            for pair in pairs:
                waiting.append((pair, pool.submit(work, pair)))
                if len(waiting) >= 4 * threads:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            for _, future in waiting:
                future.cancel()


@contextmanager
def in_batches(
    write: Callable[[list[tuple[Pair, Result]]], None], seconds: float
) -> Iterator[Callable[[Pair, Result], None]]:
    """Write results about every ``seconds``, and what is left at the end, after Ctrl-C too.

    Parameters
    ----------
    write
        Writes pairs with their results.
    seconds
        Time between two batches.

    Yields
    ------
    A function that takes a pair and its result.
    """
    unwritten: list[tuple[Pair, Result]] = []
    written_at = time.perf_counter()

    def add(pair: Pair, result: Result) -> None:
        nonlocal unwritten, written_at
        unwritten.append((pair, result))
        if time.perf_counter() - written_at > seconds:
            write(unwritten)
            unwritten, written_at = [], time.perf_counter()

    try:
        yield add
    finally:
        if unwritten:
            write(unwritten)
