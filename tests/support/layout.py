"""The core's units, read from its headers: sizes at which answers could go wrong follow them.

This is the only place in the tests that knows where the core keeps its constants.
"""

from __future__ import annotations

import re

from paths import ROOT

_CONSTANT = re.compile(r"constexpr std::size_t (k\w+) = (?:std::size_t\{1\} << )?(\d+);")
_SHIFTED = "std::size_t{1} <<"


def _constants() -> dict[str, int]:
    found: dict[str, int] = {}
    for header in sorted((ROOT / "cpp" / "core").rglob("*.hpp")):
        for match in _CONSTANT.finditer(header.read_text(encoding="utf-8")):
            number = int(match[2])
            found[match[1]] = 1 << number if _SHIFTED in match[0] else number
    return found


_ALL = _constants()
BLOCK = _ALL["kBlockEntries"]
"""Entries that are scanned at a time."""
TILE = _ALL["kTileEntries"]
"""Entries of one call of the scan."""
CHUNK = _ALL["kChunkEntries"]
"""Entries that lie together in memory."""
STAGE = _ALL["kStageBytes"]
"""Codes of the minor that are read at a time."""


def around(size: int) -> tuple[int, int, int]:
    """One less, that size, one more."""
    return size - 1, size, size + 1
