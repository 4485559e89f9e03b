"""The command line: help, info, demo, and errors in one line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

import hiernorm
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


@pytest.mark.parametrize("library", ["hiernorm", "hiernorm.vision", "hiernorm.learn"])
def test_the_library_imports_nothing_of_the_command_line(library):
    """click and rich come with the package; who imports it does not wait for them."""
    script = f"import sys, {library}; print(sorted({{'click', 'rich'}} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("option", ["--keypoints", "--longest-side"])
@pytest.mark.parametrize("command", ["match", "describe"])
def test_a_size_below_one_is_refused_by_the_name_of_its_option(command, option, tmp_path):
    photo = tmp_path / "photo.jpg"
    photo.touch()
    files = [str(photo), str(photo)] if command == "match" else [str(photo), "-o", "all.hn"]
    result = run(command, *files, option, "0")
    assert result.exit_code == 2
    assert option in result.output
