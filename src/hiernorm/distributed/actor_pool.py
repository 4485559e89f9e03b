"""The actors of a database: calls that come back, are tried again, or are known to be missing."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hiernorm.distributed.server import ShardServer, ShardSpec

OPTIONS: dict[str, Any] = {"num_cpus": 0, "max_restarts": -1, "scheduling_strategy": "SPREAD"}
"""Of every actor, unless told otherwise: restarted without limit, spread over the nodes."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds before a call that met a dead actor is tried again; doubled every time."""
LOOK_SECONDS = 0.02
"""Between looks at the slots of shards that others keep busy."""
DEATHS = 2
"""In a row: the actor will not be restarted by Ray, a new one is made."""


@dataclass
class Replies:
    """What came back, and for every shard that did not answer why."""

    answers: dict[int, Any] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)


@dataclass
class _Try:
    """A call that is still to come back."""

    arguments: tuple[Any, ...]
    not_before: float = 0.0
    pause: float = FIRST_PAUSE
    deaths: int = 0
    trouble: str = ""


class Crew:
    """One actor per shard, with at most ``in_flight`` calls on their way to each.

    A call that was given up on holds its place until it ends, so that nothing piles up in front of
    a shard that hangs.
    """

    def __init__(
        self, ray: Any, specs: list[ShardSpec], in_flight: int, options: Mapping[str, Any]
    ) -> None:
        self._ray = ray
        self._specs = specs
        self._slots = [threading.BoundedSemaphore(in_flight) for _ in specs]
        self._make = ray.remote(ShardServer).options(
            **{**OPTIONS, "max_concurrency": in_flight, **options}
        )
        self._lock = threading.Lock()
        self._actors = [self._make.remote(spec) for spec in specs]

    def __len__(self) -> int:
        return len(self._specs)

    def actor(self, shard: int) -> Any:
        """The handle of a shard's actor."""
        return self._actors[shard]

    def close(self) -> None:
        """End the actors."""
        with self._lock:
            for actor in self._actors:
                self._ray.kill(actor)

    def call(self, method: str, arguments: Mapping[int, tuple[Any, ...]], until: float) -> Replies:
        """Call a method of some shards; those without an answer at ``until`` are missing.

        ``until`` is a time of the monotonic clock. Raises what the method raised.
        """
        waiting = {shard: _Try(given) for shard, given in arguments.items()}
        pending: dict[Any, tuple[int, _Try]] = {}
        replies = Replies()
        try:
            while waiting or pending:
                self._submit(method, waiting, pending)
                left = until - time.monotonic()
                if left <= 0:
                    break
                if not pending:
                    self._pause(waiting, left)
                    continue
                if waiting:
                    left = min(left, LOOK_SECONDS)
                ready, _ = self._ray.wait(list(pending), num_returns=1, timeout=left)
                for ref in ready:
                    shard, attempt = pending.pop(ref)
                    self._slots[shard].release()
                    if self._take(ref, shard, attempt, replies):
                        waiting[shard] = attempt
        finally:
            for ref, (shard, attempt) in pending.items():
                self._give_up(ref, shard)
                replies.missing[shard] = attempt.trouble or "it is busy or hangs"
        for shard, attempt in waiting.items():
            replies.missing[shard] = attempt.trouble or "too many calls are on their way to it"
        return replies

    def _submit(
        self, method: str, waiting: dict[int, _Try], pending: dict[Any, tuple[int, _Try]]
    ) -> None:
        """Send off what can be; never waits for a slot, so that nobody waits in a circle."""
        now = time.monotonic()
        for shard in list(waiting):
            if waiting[shard].not_before > now or not self._slots[shard].acquire(blocking=False):
                continue
            attempt = waiting.pop(shard)
            call = getattr(self._actors[shard], method)
            pending[call.remote(*attempt.arguments)] = (shard, attempt)

    def _pause(self, waiting: dict[int, _Try], left: float) -> None:
        soonest = min(attempt.not_before for attempt in waiting.values())
        time.sleep(min(left, max(LOOK_SECONDS, soonest - time.monotonic())))

    def _take(self, ref: Any, shard: int, attempt: _Try, replies: Replies) -> bool:
        """Take an answer in; whether the call is to be made again."""
        errors = self._ray.exceptions
        try:
            replies.answers[shard] = self._ray.get(ref)
            return False
        except errors.RayTaskError as error:  # the method itself: nothing a second try would change
            raise error.cause from None
        except errors.RayError as error:
            attempt.trouble = f"{type(error).__name__}: {_first_line(error)}"
            died = isinstance(error, errors.ActorDiedError)
        attempt.deaths = attempt.deaths + 1 if died else 0
        if attempt.deaths >= DEATHS:
            self._replace(shard)
            attempt.deaths = 0
        attempt.not_before = time.monotonic() + attempt.pause
        attempt.pause = min(2 * attempt.pause, LONGEST_PAUSE)
        return True

    def _replace(self, shard: int) -> None:
        with self._lock:
            self._ray.kill(self._actors[shard])
            self._actors[shard] = self._make.remote(self._specs[shard])

    def _give_up(self, ref: Any, shard: int) -> None:
        ref.future().add_done_callback(lambda _: self._slots[shard].release())


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else "no more is known"
