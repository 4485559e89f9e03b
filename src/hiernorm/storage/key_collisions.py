"""Two string keys with the same id: refused with words that name both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hiernorm.array_types import Int64Array
from hiernorm.extras import import_extra
from hiernorm.payload import EXTRA, KEY
from hiernorm.payload.keys import refuse_collision
from hiernorm.storage.payload_gatherer import PayloadPiece
from hiernorm.storage.state import State
from hiernorm.storage.transaction import PendingSegment


def refuse_collisions(
    parts: Sequence[PendingSegment], ids: Int64Array, keys: Sequence[str]
) -> None:
    """Raise ValueError if an id of new ``keys`` belongs to an entry with another key."""
    arrow = import_extra("pyarrow", extra=EXTRA)
    for part in parts:
        at = np.flatnonzero(part.holds(ids))
        if len(at) and part.view.payload is not None:
            positions = State.positions(part.view, ids[at])
            stored = part.view.payload.array(KEY).take(arrow.array(positions)).to_pylist()
            for place, key in zip(at.tolist(), stored, strict=True):
                refuse_collision(keys[place], key)


def keys_of_pieces(pieces: Sequence[PayloadPiece]) -> list[str]:
    """The string keys of new entries."""
    return [key for _, table in pieces for key in table.column(KEY).to_pylist()]
