"""Where the tests find files: of the project, and of the data that may lie beside it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"
GOLDEN = ROOT / "tests" / "golden"
REAL_SCENES = ROOT.parent / "shared" / "data"
"""Tests that read real scenes are skipped where there are none."""
