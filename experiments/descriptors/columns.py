"""The columns of tables of contests: which method stands for each."""

from __future__ import annotations

from typing import Any

COLUMNS = {
    "flat": "FAISS flat",
    "panorama": "Panorama",
    "0.99": "hnswlib, 0.99",
    "0.999": "hnswlib, 0.999",
    "hiernorm": "hiernorm",
}
"""Key -> heading. A number is the recall that hnswlib was tuned for; all others are exact."""

WITH_LISTS = {
    **{key: COLUMNS[key] for key in ("flat", "panorama")},
    "FAISS IVF 0.99": "FAISS IVF, 0.99",
    "FAISS IVF 0.999": "FAISS IVF, 0.999",
    **{key: COLUMNS[key] for key in ("0.99", "0.999", "hiernorm")},
}


def find_group(size: dict[str, Any], manner: str, k: int, threads: int = 1) -> dict[str, Any]:
    """The group of a contest."""
    groups: list[dict[str, Any]] = size["groups"]
    return next(g for g in groups if (g["manner"], g["k"], g["threads"]) == (manner, k, threads))


def best_of(group: dict[str, Any], key: str) -> dict[str, Any] | None:
    """The fastest method that a column stands for, with its name; None if it took no part."""
    found = [
        {"method": name, **row} for name, row in group["methods"].items() if _stands(name, row, key)
    ]
    return min(found, key=lambda row: float(row["microseconds"]), default=None)


def _stands(name: str, row: dict[str, Any], key: str) -> bool:
    if key == "hiernorm":
        return name == "hiernorm"
    if key in ("flat", "panorama"):
        return bool(row["family"] == key)
    family, _, recall = key.rpartition(" ")
    return name == f"{family or 'hnswlib'}, recall {recall}"


def microseconds(value: float) -> str:
    """Microseconds with two significant digits at least.

    Examples
    --------
    >>> microseconds(3.14), microseconds(31.4), microseconds(3141.6)
    ('3.1', '31', '3,142')
    """
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"
