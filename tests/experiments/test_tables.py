"""Pages show what the results say: every table is rendered from its file."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("click", reason="needs hiernorm[cli]")

from click.testing import CliRunner

from experiments.harness.command import ROOT
from experiments.harness.page import Rows
from experiments.harness.records import read_record
from experiments.tables import pages, registry
from experiments.tables.__main__ import main
from experiments.tables.registry import Table, find_tables

STUDIES = sorted(file for file in ROOT.glob("*/results/*.json") if file.name != "settings.json")


def shown_tables() -> dict[str, list[str]]:
    """Table -> the pages that show it."""
    shown: dict[str, list[str]] = {}
    for page in pages.list_pages():
        for name in pages.named_tables(page.read_text(encoding="utf-8")):
            shown.setdefault(name, []).append(page.name)
    return shown


def test_no_page_differs_from_its_results():
    differing = [str(page) for page in pages.find_differences(find_tables())]
    assert not differing, f"run `make tables`: {differing}"


def test_every_marker_has_its_table_and_every_table_its_page():
    assert set(shown_tables()) == set(find_tables())


def test_no_marker_is_left_open():
    for page in pages.list_pages():
        text = page.read_text(encoding="utf-8")
        found = pages.named_tables(text)
        assert text.count("<!-- table:") == text.count("<!-- /table -->") == len(found), page


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_every_result_has_the_one_schema(file: Path):
    record = read_record(file)
    assert record.experiment.split(".")[0] == file.parent.parent.name
    assert record.commit is not None
    assert {"cpu", "isa"} <= set(record.machine)
    assert "other_processes" in record.load
    assert record.versions["numpy"]


def make_table(tmp_path: Path, value: str) -> Table:
    source = ROOT / "speed" / "results" / "bench.json"
    return Table("answer", source, lambda file: Rows(["answer"], [[value]]))


def test_what_stands_between_markers_is_replaced_and_nothing_else(tmp_path: Path):
    before = "a\n<!-- table: answer -->\nold\n\nrows\n<!-- /table -->\nb <!-- table: c -->\n"
    after = pages.render_tables(before, {"answer": make_table(tmp_path, "42")})
    assert after.startswith(
        "a\n<!-- table: answer -->\n| answer |\n|---|\n| 42 |\n\n*`experiments/"
    )
    assert after.endswith("*\n<!-- /table -->\nb <!-- table: c -->\n")
    assert pages.render_tables(after, {"answer": make_table(tmp_path, "42")}) == after


def test_a_changed_figure_is_found_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("<!-- table: answer -->\n| 41 |\n<!-- /table -->\n")
    (tmp_path / "docs" / "other.md").write_text("no table\n")
    monkeypatch.setattr(pages, "PROJECT", tmp_path)
    monkeypatch.setattr(pages, "PICTURES", {})
    tables = {"answer": make_table(tmp_path, "42")}
    assert pages.find_differences(tables) == [tmp_path / "README.md"]
    assert pages.update_pages(tables) == [tmp_path / "README.md"]
    assert "| 42 |" in (tmp_path / "README.md").read_text()
    assert pages.find_differences(tables) == []


def test_unknown_names_are_told():
    with pytest.raises(KeyError, match="no table 'sped': there are speed"):
        pages.render_tables("<!-- table: sped -->\n<!-- /table -->\n", {"speed": None})


def test_two_tables_cannot_have_one_name():
    find_tables()
    with pytest.raises(ValueError, match="two tables have the name 'speed'"):
        registry.table("speed", "speed/results/bench.json")(lambda file: Rows([], []))


def test_the_command_checks_and_lists():
    checked = CliRunner().invoke(main, ["--check"])
    assert checked.exit_code == 0, checked.output
    listed = CliRunner().invoke(main, ["--list"]).output
    assert all(name in listed for name in find_tables())
