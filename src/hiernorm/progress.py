"""The types of functions that long operations call to report how far they are."""

from __future__ import annotations

from collections.abc import Callable

ProgressCallback = Callable[[int, "int | None"], None]
"""Called with the entries done so far, and how many there will be; None if that is not known."""

AdvanceCallback = Callable[[int], None]
"""Called with the entries done since the last call."""

BuildProgressCallback = Callable[[str, int, "int | None"], None]
"""As :data:`ProgressCallback`, with the name of the step first."""
