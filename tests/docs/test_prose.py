"""Pages are written for international readers: words that puzzle them stay out."""

from __future__ import annotations

import re

import pytest

from paths import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "experiments" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
PUZZLING = re.compile(
    r"\bwhoever\b|\bby (?:itself|themselves)\b|\ball the same\b|(?:^|[.:;!?] |[|*-] )Of ",
    re.MULTILINE | re.IGNORECASE,
)


def find_puzzling(text: str) -> list[str]:
    """What should be said in other words; a lower-case "of" after a mark is no sentence."""
    return [found for found in PUZZLING.findall(text) if found.strip(" .:;!?|*-") != "of"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_has_puzzling_words(page):
    assert find_puzzling(page.read_text(encoding="utf-8")) == []


def test_puzzling_words_are_found():
    text = "Whoever asks. Of these, one | of this. It runs by itself: exact all the same."
    assert [found.strip(" .") for found in find_puzzling(text)] == [
        "Whoever",
        "Of",
        "by itself",
        "all the same",
    ]
