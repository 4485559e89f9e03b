"""The reproduction from end to end at its smallest size: nothing here is timed for its own sake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("click", reason="needs hiernorm[test]")
pytest.importorskip("rich", reason="needs hiernorm[test]")
pytest.importorskip("torch", reason="needs hiernorm[test]")
pytest.importorskip("kornia", reason="needs hiernorm[test]")
pytest.importorskip("cv2", reason="needs hiernorm[test]")
pytest.importorskip("faiss", reason="needs hiernorm[test]")
pytest.importorskip("hnswlib", reason="needs hiernorm[test]")
pytest.importorskip("sklearn", reason="needs hiernorm[test]")
pytest.importorskip("skimage", reason="needs hiernorm[test]")

from click.testing import CliRunner

from experiments.harness.page import MISSING
from experiments.reproduce.__main__ import main
from experiments.reproduce.claims.claim import FAILS, HOLDS, IN_PART
from experiments.reproduce.findings import load_paper
from experiments.reproduce.report import PARTS
from experiments.reproduce.summary import ANSWERS, CLAIMS
from paths import ROOT

# The whole reproduction is the set-up of the first test: a minute, or many on a busy machine.
pytestmark = pytest.mark.timeout(900)

PAPER = ROOT.parent / "shared" / "paper" / "tables.json"


def reproduce(folder: Path, *arguments: str) -> str:
    command = ["--smoke", "--out", str(folder), *arguments]
    result = CliRunner().invoke(main, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one smoke reproduction."""
    folder = tmp_path_factory.mktemp("reproduce")
    reproduce(folder)
    return folder


def sections(report: Path) -> dict[str, str]:
    parts = (report / "REPORT.md").read_text(encoding="utf-8").split("\n## ")
    return dict(part.split("\n", 1) for part in parts[1:])


def test_every_cell_of_the_report_is_filled(report: Path) -> None:
    assert MISSING not in (report / "REPORT.md").read_text(encoding="utf-8")


def test_every_table_puts_the_papers_figure_beside_ours(report: Path) -> None:
    found = sections(report)
    for number in range(1, 5):
        assert any(title.startswith(f"Table {number}") for title in found)
    rows = [line.split("|") for line in found["Table 1: FPR@95"].split("\n") if line[:4] == "| HN"]
    assert len(rows) == 10
    for row in rows:
        paper, ours, ratio = row[2], row[3].split("(")[0], row[4]
        assert float(ratio) == pytest.approx(float(ours) / float(paper), rel=0.01)


def test_every_claim_has_a_verdict_and_evidence(report: Path) -> None:
    text = sections(report)["Claims"]
    found = re.findall(r"^- \*\*.+\*\* \(\*\*(.+)\*\*\): .+\n    - Evidence: .+$", text, re.M)
    assert len(found) == len(CLAIMS) == text.count("\n- ")
    assert set(found) <= {HOLDS, IN_PART, FAILS, *ANSWERS.values()}


def test_smoke_run_says_that_it_is_none_of_the_paper(report: Path) -> None:
    text = (report / "REPORT.md").read_text(encoding="utf-8")
    assert text.startswith("# Hierarchical Normalization, a smoke run\n")
    assert "none of its figures is a result" in sections(report)["Summary"]


def test_every_run_tells_how_it_was_made(report: Path) -> None:
    files = list((report / "runs").rglob("*.json"))
    assert {file.parent.name for file in files} == {part.name for part in PARTS}
    for file in files:
        record = json.loads(file.read_text(encoding="utf-8"))
        assert record["settings"]["seed"] == 0
        assert record["settings"]["recipe"] == "turned"
        assert {"cpu", "isa"} <= set(record["machine"])
        assert {"commit", "clean", "versions", "load"} <= set(record)


def test_page_needs_no_other_file(report: Path) -> None:
    page = (report / "index.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") >= 7
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)


def test_finished_runs_are_kept_and_missing_ones_made(report: Path) -> None:
    runs = sorted((report / "runs").rglob("*.json"))
    lost = report / "runs" / "posthoc" / "two-made.json"
    before = {file: file.stat().st_mtime_ns for file in runs if file != lost}
    lost.write_text('{"cut off', encoding="utf-8")
    reproduce(report)
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert "phase2" in json.loads(lost.read_text(encoding="utf-8"))["result"]


def test_list_shows_parts_and_times_without_running_them(tmp_path: Path) -> None:
    command = ["--list", "--out", str(tmp_path)]
    shown = CliRunner().invoke(main, command, catch_exceptions=False).output
    for part in PARTS:
        assert part.name in shown
    assert "min in all" in shown or "h in all" in shown
    assert list(tmp_path.iterdir()) == []
    listed = CliRunner().invoke(main, [*command, "--json"])
    assert [part["part"] for part in json.loads(listed.stdout)["parts"]] == [p.name for p in PARTS]


def test_scenes_must_be_named(tmp_path: Path) -> None:
    for arguments in ([], ["--smoke", "--train", "castle"]):
        result = CliRunner().invoke(main, ["--out", str(tmp_path), *arguments])
        assert result.exit_code == 2
        assert "--data, --train" in result.output


def test_render_needs_nothing_but_the_folder(report: Path) -> None:
    page = report / "index.html"
    before = page.read_bytes()
    page.unlink()
    result = CliRunner().invoke(main, ["--render", "--out", str(report)])
    assert result.exit_code == 0, result.output
    assert page.read_bytes() == before


def test_papers_figures_are_those_of_its_tables() -> None:
    if not PAPER.is_file():
        pytest.skip(f"needs {PAPER}")
    tables = json.loads(PAPER.read_text(encoding="utf-8"))
    ours = load_paper()
    assert ours["fpr95"]["sift"] == tables["fpr95"]["sift"]
    assert ours["fpr95"]["plain"] == tables["fpr95"]["hardnet"]
    assert ours["fpr95"]["hn"] == tables["fpr95"]["hn"]
    assert ours["speed_500k"] == tables["speed_500k"]["rows"]
    for row, theirs in zip(ours["graphs"], tables["hnsw_trevi"]["rows"], strict=True):
        assert row["method"] == theirs["method"]
        assert row["speedup"] == {n: theirs[n] for n in ("1000", "5000", "99000")}
    assert ours["posthoc_vs_finetuned"] == tables["posthoc_vs_finetuned"]
