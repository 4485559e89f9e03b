"""What can be wrong with shards."""

from __future__ import annotations

from collections.abc import Mapping

from hiernorm.storage.errors import DatabaseError


class ShardsMissingError(DatabaseError):
    """Shards did not answer in time; ``shards`` names them, nothing partial was returned."""

    def __init__(self, reasons: Mapping[int, str], of: int, seconds: float) -> None:
        self.shards = tuple(sorted(reasons))
        names = ", ".join(str(shard) for shard in self.shards)
        noun = "shard" if len(self.shards) == 1 else "shards"
        why = reasons[self.shards[0]]
        super().__init__(
            f"{noun} {names} of {of} did not answer within {seconds:g} s ({why}): see that their "
            "nodes are up, give a longer deadline, or take a partial answer (allow_partial=True)"
        )


class MovedOnError(DatabaseError):
    """A shard no longer has the generation that was asked for; there is a newer one."""
