"""The payload: named columns beside the ids, string keys, and conditions on columns.

================  ================================================================================
module            its job
================  ================================================================================
``columns``       which types columns have, and how they agree from one addition to the next
``tables``        anything with named columns becomes an Arrow table
``feed``          the rows of a payload, piece by piece beside the vectors
``keys``          strings that name entries, and the ids that belong to them
``syntax``        the text of a condition to a tree
``conditions``    the tree to an Arrow expression, with the types of the columns
``answers``       hits as tables
``memory``        the payload of an index in memory
================  ================================================================================

Arrow does the work, so pyarrow is needed: ``pip install 'hiernorm[payload]'``. How a database keeps
a payload in its files is in :mod:`hiernorm.storage.payload_file`.
"""

from __future__ import annotations

from typing import Any, Protocol

from hiernorm.array_types import Int64Array

EXTRA = "payload"
"""The extra of hiernorm that installs what a payload needs."""
ID, KEY = "id", "key"
"""Names by which a condition knows the id and the string key of an entry."""


class PayloadReader(Protocol):
    """The payload of the entries that an answer may name."""

    @property
    def string_keys(self) -> bool:
        """Whether entries are named by strings."""

    def gather(self, ids: Int64Array) -> Any:
        """The columns of ``ids`` as an Arrow table with one row per id, in this order."""
