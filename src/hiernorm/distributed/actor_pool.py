"""The actor pool: one Ray actor per shard, calls with retries, and a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hiernorm.distributed.server import ShardServer, ShardSpec

OPTIONS: dict[str, Any] = {"num_cpus": 0, "max_restarts": -1, "scheduling_strategy": "SPREAD"}
"""Default options of every actor: restarted without limit, spread over the nodes."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds before a call to a dead actor is retried; doubled every time."""
POLL_SECONDS = 0.02
"""Time between two attempts to get a slot of a busy shard."""
MAX_DEATHS = 2
"""After this many deaths in a row Ray will not restart the actor: a new one is made."""


@dataclass
class ActorReplies:
    """The answers by shard, and for every shard that did not answer the reason."""

    answers: dict[int, Any] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)


@dataclass
class _PendingCall:
    """A call that has not returned yet."""

    arguments: tuple[Any, ...]
    not_before: float = 0.0
    pause: float = FIRST_PAUSE
    deaths: int = 0
    trouble: str = ""


class ActorPool:
    """One actor per shard, with at most ``in_flight`` concurrent calls to each.

    A call that passed its deadline keeps its slot until it ends, so that calls do not queue up at a
    shard that hangs.
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

    def call(
        self, method: str, arguments: Mapping[int, tuple[Any, ...]], deadline: float
    ) -> ActorReplies:
        """Call a method of some shards; those without an answer at the deadline are missing.

        ``deadline`` is a time of the monotonic clock. Raises what the method raised.
        """
        waiting = {shard: _PendingCall(given) for shard, given in arguments.items()}
        pending: dict[Any, tuple[int, _PendingCall]] = {}
        replies = ActorReplies()
        try:
            while waiting or pending:
                self._submit(method, waiting, pending)
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                if not pending:
                    self._pause(waiting, left)
                    continue
                if waiting:
                    left = min(left, POLL_SECONDS)
                ready, _ = self._ray.wait(list(pending), num_returns=1, timeout=left)
                for ref in ready:
                    shard, attempt = pending.pop(ref)
                    self._slots[shard].release()
                    if self._receive(ref, shard, attempt, replies):
                        waiting[shard] = attempt
        finally:
            for ref, (shard, attempt) in pending.items():
                self._release_when_done(ref, shard)
                replies.missing[shard] = attempt.trouble or "it is busy or hangs"
        for shard, attempt in waiting.items():
            replies.missing[shard] = attempt.trouble or "too many calls are on their way to it"
        return replies

    def _submit(
        self,
        method: str,
        waiting: dict[int, _PendingCall],
        pending: dict[Any, tuple[int, _PendingCall]],
    ) -> None:
        """Start the calls whose shard has a free slot; never waits for one, to avoid deadlock."""
        now = time.monotonic()
        for shard in list(waiting):
            if waiting[shard].not_before > now or not self._slots[shard].acquire(blocking=False):
                continue
            attempt = waiting.pop(shard)
            call = getattr(self._actors[shard], method)
            pending[call.remote(*attempt.arguments)] = (shard, attempt)

    def _pause(self, waiting: dict[int, _PendingCall], left: float) -> None:
        soonest = min(attempt.not_before for attempt in waiting.values())
        time.sleep(min(left, max(POLL_SECONDS, soonest - time.monotonic())))

    def _receive(self, ref: Any, shard: int, attempt: _PendingCall, replies: ActorReplies) -> bool:
        """Store an answer; returns whether the call has to be retried."""
        errors = self._ray.exceptions
        try:
            replies.answers[shard] = self._ray.get(ref)
            return False
        except errors.RayTaskError as error:  # raised by the method: a retry would raise it again
            raise error.cause from None
        except errors.RayError as error:
            attempt.trouble = f"{type(error).__name__}: {_first_line(error)}"
            died = isinstance(error, errors.ActorDiedError)
        attempt.deaths = attempt.deaths + 1 if died else 0
        if attempt.deaths >= MAX_DEATHS:
            self._replace(shard)
            attempt.deaths = 0
        attempt.not_before = time.monotonic() + attempt.pause
        attempt.pause = min(2 * attempt.pause, LONGEST_PAUSE)
        return True

    def _replace(self, shard: int) -> None:
        with self._lock:
            self._ray.kill(self._actors[shard])
            self._actors[shard] = self._make.remote(self._specs[shard])

    def _release_when_done(self, ref: Any, shard: int) -> None:
        ref.future().add_done_callback(lambda _: self._slots[shard].release())


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else "no more is known"
