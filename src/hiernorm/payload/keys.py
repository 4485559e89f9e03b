"""String keys: strings that name entries, and the ids that belong to them.

The id of a key is a hash of it. So the same keys have the same ids in every database, whatever the
order in which they were added, and answers with ties do not depend on that order either. Two keys
of one database with the same id are refused: with a million keys the odds are 1 to 18 million.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from hiernorm.array_types import Int64Array

HASH_BYTES = 8
ABSENT = -1
"""The id of a key that no entry has."""


def id_of_key(key: str) -> int:
    """The id of a key: the first 63 bits of BLAKE2b of its UTF-8 bytes.

    Examples
    --------
    >>> id_of_key("doc-1")
    3132883647696894624
    """
    digest = hashlib.blake2b(key.encode(), digest_size=HASH_BYTES).digest()
    return int.from_bytes(digest, "big") >> 1


def ids_of_keys(keys: Sequence[str]) -> Int64Array:
    """The ids ``(n,)`` of ``keys``."""
    return np.fromiter((id_of_key(key) for key in keys), np.int64, len(keys))


def are_keys(values: Any) -> TypeGuard[Any]:
    """Whether ``values`` is a string, or an array or sequence of strings with at least one."""
    if isinstance(values, str):
        return True
    if isinstance(values, np.ndarray):
        return values.dtype.kind in "UT" or (values.dtype == object and are_keys(list(values[:1])))
    try:
        first = next(iter(values), None)
    except TypeError:
        return False
    return isinstance(first, str) or _is_arrow_string(first)


def _is_arrow_string(value: Any) -> bool:
    return type(value).__name__ in ("StringScalar", "LargeStringScalar", "StringViewScalar")


def as_keys(values: Any) -> list[str]:
    """``values`` as a list of strings.

    Raises
    ------
    TypeError
        If one of them is no string.
    """
    if isinstance(values, str):
        return [values]
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    for key in listed:
        if not isinstance(key, str):
            raise TypeError(f"keys must be strings, got {key!r} of type {type(key).__name__}")
        if not key:
            raise ValueError("a key is the empty string: give every entry a name")
        if not _is_unicode(key):
            raise ValueError(f"key {key!r} has half of a surrogate pair, which is no Unicode text")
    return listed


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def as_new_keys(ids: Any, count: int, container: str) -> list[str]:
    """The keys of ``count`` new entries."""
    if ids is None or (count and not are_keys(ids)):
        raise TypeError(
            f"this {container} has string keys: give ids, a string for every vector, such as "
            "ids=['doc-1', 'doc-2']"
        )
    keys = as_keys(ids)
    if len(keys) != count:
        raise ValueError(f"{count} vectors need {count} ids, got {len(keys)}")
    return keys


def refuse_collision(key: str, other: str) -> None:
    """Raise ValueError unless two keys with one id are the same."""
    if key != other:
        raise ValueError(f"keys {key!r} and {other!r} have the same id by chance: rename one")


def refuse_equal_ids(ids: Int64Array, keys: Sequence[str]) -> None:
    """Raise ValueError if two different ``keys`` have one id; ``(n,)`` each."""
    order = np.argsort(ids, kind="stable")
    for at in np.flatnonzero(ids[order[1:]] == ids[order[:-1]]).tolist():
        refuse_collision(keys[order[at]], keys[order[at + 1]])
