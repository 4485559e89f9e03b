"""The report of the reproduction opens with what was reproduced, what was not, and why."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs hiernorm[test]")
pytest.importorskip("kornia", reason="needs hiernorm[test]")
pytest.importorskip("matplotlib", reason="needs hiernorm[test]")

from experiments.harness.cards import Card, Items
from experiments.harness.page import render_markdown, render_page
from experiments.reproduce.claims.claim import FAILS, HOLDS, IN_PART, UNKNOWN, Claim
from experiments.reproduce.findings import SETTINGS, Findings
from experiments.reproduce.setting import setting
from experiments.reproduce.speed import table_3
from experiments.reproduce.summary import judge_claims, list_claims, summary, title_of
from paths import ROOT

RESULTS = ROOT / "experiments" / "reproduce" / "results"


@pytest.fixture(scope="module")
def findings() -> Findings:
    """The runs that the repository keeps."""
    return Findings(RESULTS)


def with_settings(folder: Path, **changes: object) -> Findings:
    """Findings of no runs, with other settings."""
    folder.mkdir()
    settings = json.loads((RESULTS / SETTINGS).read_text(encoding="utf-8"))
    (folder / SETTINGS).write_text(json.dumps(settings | changes), encoding="utf-8")
    return Findings(folder)


def test_heading_says_reproduced_of_the_papers_own_scenes_alone(tmp_path: Path) -> None:
    official = with_settings(
        tmp_path / "official", train="notredame_2007", tests=["trevi", "halfdome"]
    )
    assert title_of(official).endswith(", reproduced")
    swapped = with_settings(
        tmp_path / "swapped", train="notredame_2007", tests=["halfdome", "trevi"]
    )
    assert title_of(swapped).endswith(", re-run on other scenes")


def claim(verdict: str, **more: object) -> Claim:
    return Claim("name", "Section 1", "It is so", verdict, "figures", **more)


@pytest.mark.parametrize(
    ("verdicts", "labels"),
    [
        ([HOLDS], ["1 claim holds"]),
        ([HOLDS, HOLDS, IN_PART], ["2 claims hold", "1 claim holds in part"]),
        ([FAILS, UNKNOWN], ["1 claim does not hold here", "1 claim was not run"]),
        ([FAILS] * 2 + [UNKNOWN] * 2, ["2 claims do not hold here", "2 claims were not run"]),
    ],
)
def test_counts_are_sentences(findings: Findings, verdicts: list[str], labels: list[str]) -> None:
    claims = [claim(verdict) for verdict in verdicts]
    card = summary(findings, claims).blocks[0]
    assert isinstance(card, Card)
    assert [f"{tile.figure} {tile.label}" for tile in card.tiles] == labels
    groups = [block.title for block in list_claims(claims).blocks if isinstance(block, Items)]
    assert groups[: len(labels)] == labels


def test_claims_are_grouped_by_verdict_and_every_claim_is_in_one_group(findings: Findings) -> None:
    claims = judge_claims(findings)
    groups = [block for block in list_claims(claims).blocks if isinstance(block, Items)]
    assert sum(len(group.items) for group in groups) == len(claims)
    for group in groups[:-2]:
        assert len({(item.tone, item.verdict) for item in group.items}) == 1


def test_a_claim_that_does_not_hold_says_what_differs(findings: Findings) -> None:
    claims = judge_claims(findings)
    assert all(claim.why for claim in claims if claim.verdict in (IN_PART, FAILS))
    item = list_claims([claim(HOLDS, why="never shown")]).blocks[1].items[0]
    assert [term for term, _ in item.lines] == ["Evidence"]


def test_kept_report_is_what_its_runs_say(findings: Findings) -> None:
    claims = judge_claims(findings)
    sections = [summary(findings, claims), setting(findings), list_claims(claims)]
    kept = (RESULTS / "REPORT.md").read_text(encoding="utf-8")
    assert kept.startswith(render_markdown(title_of(findings), sections, set()))


def test_page_fits_a_phone_and_wide_tables_scroll(browser, findings: Findings, tmp_path) -> None:
    claims = judge_claims(findings)
    sections = [
        summary(findings, claims),
        setting(findings),
        list_claims(claims),
        table_3(findings),
    ]
    shutil.copytree(RESULTS / "figures", tmp_path / "figures")
    drawn = {file.name for file in (tmp_path / "figures").iterdir()}
    text = render_page(title_of(findings), sections, tmp_path / "figures", drawn)
    (tmp_path / "index.html").write_text(text, encoding="utf-8")
    assert re.search(r"<h1>.*</h1>\n<h2 id=\"s0\">Summary</h2>\n<section class=\"card\">", text)
    for width in (390, 1280):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto((tmp_path / "index.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width
        colours = page.locator(".items header b").evaluate_all(
            "all => new Set(all.map(b => getComputedStyle(b).color)).size"
        )
        assert colours == len({claim.verdict for claim in claims})
    scrolls = "box => box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight"
    phone = browser.new_page(viewport={"width": 390, "height": 900})
    phone.goto((tmp_path / "index.html").as_uri())
    boxes = phone.locator(".table")
    assert boxes.count() >= 3
    assert all(boxes.nth(place).evaluate(scrolls) for place in range(boxes.count()))
