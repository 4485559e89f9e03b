"""What can be wrong with the payload of a segment whose bytes are those that were written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hiernorm.payload import KEY
from hiernorm.payload.keys import ids_of_keys
from hiernorm.storage.errors import DatabaseError
from hiernorm.storage.manifest import Manifest
from hiernorm.storage.state import SegmentView


def wrong_payload(view: SegmentView, manifest: Manifest) -> Iterator[str]:
    """Describe what does not fit: columns the manifest lacks, values, keys of other ids."""
    if view.payload is None:
        if manifest.parameters.string_keys:
            yield f"{view.segment.file.path} has no string keys"
        return
    path = view.payload.file.path
    known = {column.name: column for column in manifest.columns}
    for name, column in view.payload.columns.items():
        if known.get(name) != column:
            yield f"{path}: column {name!r} is not the one that the manifest names"
            continue
        try:
            view.payload.array(name)
        except DatabaseError as error:
            yield str(error)
            return
    if manifest.parameters.string_keys:
        keys = view.payload.array(KEY).to_pylist() if KEY in view.payload.columns else []
        if None in keys or not np.array_equal(ids_of_keys(keys), view.segment.ids):
            yield f"{path}: string keys are not those of the ids"
