"""Errors of sharded databases."""

from __future__ import annotations

from collections.abc import Mapping

from hiernorm.storage.errors import DatabaseError


class ShardsMissingError(DatabaseError):
    """Some shards, named by ``shards``, did not answer in time; nothing was returned."""

    def __init__(self, reasons: Mapping[int, str], of: int, seconds: float) -> None:
        self.shards = tuple(sorted(reasons))
        names = ", ".join(str(shard) for shard in self.shards)
        noun = "shard" if len(self.shards) == 1 else "shards"
        why = reasons[self.shards[0]]
        super().__init__(
            f"{noun} {names} of {of} did not answer within {seconds:g} s ({why}): see that their "
            "nodes are up, give a longer deadline, or take a partial answer (allow_partial=True)"
        )


class StaleGenerationError(DatabaseError):
    """A shard has only newer generations than the one that was asked for."""
