"""The command line: help, info, demo, and errors in one line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import hiernorm

pytest.importorskip("click", reason="needs hiernorm[cli]")
pytest.importorskip("rich", reason="needs hiernorm[cli]")

from click.testing import CliRunner, Result

from hiernorm.cli.app import app


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("command", [(), ("info",), ("demo",), ("data",)])
def test_help_describes_every_command(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.output


def test_version():
    assert hiernorm.__version__ in run("--version").output


def test_info_names_version_isa_and_threads():
    result = run("info")
    assert result.exit_code == 0
    assert hiernorm.__version__ in result.output
    assert hiernorm.isa() in result.output
    assert "threads" in result.output


def test_synthetic_demo_shows_agreement_and_a_certificate():
    result = run("demo", "--synthetic", "--small")
    assert result.exit_code == 0, result.output
    assert result.output.count("yes") >= 3
    assert "certificate of query 0" in result.output
    assert "plain vectors" in result.output


def test_demo_prints_its_figures_as_json():
    result = run("demo", "--synthetic", "--small", "--json")
    assert result.exit_code == 0, result.output
    cases = json.loads(result.stdout)["cases"]
    assert set(cases) == {"hn", "plain"}
    assert all(0 < engine["phase2_share"] <= 1 for engine in cases["hn"].values())


@pytest.fixture
def text_file(tmp_path):
    file = tmp_path / "rows.txt"
    file.write_text("1 2 3")
    return ["build", str(tmp_path / "rows.hn"), str(file)]


def test_error_is_one_line_without_traceback(text_file):
    result = run(*text_file)
    assert result.exit_code == 1
    assert "rows.txt" in result.output
    assert "Traceback" not in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_debug_shows_the_error_itself(text_file):
    result = run("--debug", *text_file)
    assert isinstance(result.exception, ValueError)


def test_missing_packages_are_named_in_one_line():
    hide_click = (
        "import importlib.util as u; found = u.find_spec;"
        "u.find_spec = lambda name, *rest: None if name == 'click' else found(name, *rest);"
        "from hiernorm.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", hide_click], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "hiernorm: the command line needs extra packages: pip install 'hiernorm[cli]'\n"
    )
