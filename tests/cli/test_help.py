"""Help, exit codes and messages: complete, in the words of a shell, the same on every page."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from commands import leaf_commands
from hiernorm.cli.app import app
from hiernorm.cli.errors import SHELL_WORDS, one_line
from hiernorm.cli.exit_codes import EXIT_CODES
from paths import ROOT

COMMANDS = dict(leaf_commands())
SHELL = [sys.executable, "-c", "from hiernorm.cli import main; main()"]


def help_of(words: str) -> str:
    return CliRunner().invoke(app, [*words.split(), "--help"], terminal_width=80).output


def test_every_command_is_in_a_section_and_told_in_a_whole_sentence() -> None:
    text = help_of("")
    for name, command in app.commands.items():
        if not command.hidden:
            line = re.search(rf"^  {name} +(\w.*)$", text, re.MULTILINE)
            assert line is not None
            assert line[1].endswith(".")
            assert not line[1].endswith("...")
    assert re.findall(r"^(\w[\w ]+):$", text, re.MULTILINE) == [
        "Options",
        *app.sections,
    ]


@pytest.mark.parametrize("name", ["cluster", "colmap", "data"])
def test_groups_tell_their_commands_in_whole_sentences(name: str) -> None:
    assert "..." not in help_of(name).partition("Commands:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_told_in_sentences_and_their_values_have_names(name: str) -> None:
    for parameter in COMMANDS[name].params:
        assert not isinstance(parameter.type, click.types.FuncParamType)
        if isinstance(parameter, click.Option):
            assert re.fullmatch(r"[A-Z\d-].*\.", parameter.help or "", re.DOTALL), parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_values_are_called_by_words_and_ranges_are_told_in_words(name: str) -> None:
    options = help_of(name).partition("Options:")[2]
    assert not re.search(r"INTEGER|FLOAT|TEXT|DIRECTORY|RANGE", options)
    assert not re.search(r"\bx *[<>]|[<>]=? *x\b", options)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_default_is_told_once_and_always_in_the_same_way(name: str) -> None:
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option):
            assert "[" not in parameter.help, parameter.name
            context = click.Context(COMMANDS[name])
            _, told = parameter.get_help_record(context)
            assert told.count("default: ") <= 1
            if isinstance(parameter.get_default(context), (int, float, str, Path)):
                assert parameter.is_flag or "default: " in told, parameter.name


SAME_EVERYWHERE = {"out": "-o", "seed": None, "threads": None, "model": None, "k": "-k"}
"""Options that several commands have, and the short name of each."""


def test_an_option_has_the_same_names_in_all_commands() -> None:
    for name, command in COMMANDS.items():
        for option in command.params:
            for long, short in SAME_EVERYWHERE.items():
                if isinstance(option, click.Option) and f"--{long}" in option.opts:
                    assert option.opts[0] == (short or f"--{long}"), (name, option.opts)
    threads = {
        option.help
        for command in COMMANDS.values()
        for option in command.params
        if "--threads" in option.opts
    }
    assert threads == {"Number of threads."}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"completion"}))
def test_help_ends_with_examples_that_the_command_accepts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hiernorm.cli.options.PhotoTour.open", lambda path: None)
    lines = re.findall(r"^  hiernorm (.+)$", COMMANDS[name].epilog, re.MULTILINE)
    assert lines
    for line in lines:
        assert f"{line} ".startswith(f"{name} ")
        words = shlex.split(line)[len(name.split()) :]
        for word in words:  # the files and folders that the example names
            path = Path(word)
            if path.suffix in (".hn", "") and not word.startswith("-"):
                path.mkdir(exist_ok=True)
            elif "." in word:
                path.parent.mkdir(exist_ok=True)
                path.touch()
        COMMANDS[name].make_context(name, words).close()


def test_all_commands_but_two_print_json() -> None:
    without = {name for name in COMMANDS if "--json" not in help_of(name)}
    assert without == {"completion", "explore"}


def test_help_and_page_list_all_exit_codes() -> None:
    text = help_of("")
    page = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES
    for code, meaning in EXIT_CODES.items():
        assert f" {code}  {meaning}\n" in text


def test_errors_advise_in_the_words_of_a_shell(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["info", str(tmp_path / "none")])
    assert "`hiernorm build` makes one" in result.stderr
    for words, shell_words in SHELL_WORDS.items():
        assert one_line(ValueError(f"error: {words}")).message == f"error: {shell_words}"


def test_the_library_still_says_what_the_command_line_translates() -> None:
    package = ROOT / "src" / "hiernorm"
    files = [file for file in package.rglob("*.py") if package / "cli" not in file.parents]
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    joined = re.sub(r'"\s+f?"', "", source)  # texts that continue on the next line
    for words in SHELL_WORDS:
        assert words in joined


def test_the_module_runs_as_the_script_does() -> None:
    for words in (["--version"], ["search", "--help"]):
        done = subprocess.run(
            [sys.executable, "-m", "hiernorm", *words], capture_output=True, text=True, check=True
        )
        script = subprocess.run([*SHELL, *words], capture_output=True, text=True, check=True)
        assert done.stdout == script.stdout
        assert done.stderr == ""


def test_ctrl_c_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app.commands["info"], "callback", stop)
    result = CliRunner().invoke(app, ["info"])
    assert result.exit_code == 130
    assert result.stderr == "stopped by Ctrl-C\n"


def test_a_reader_that_closes_the_pipe_is_no_error(tmp_path: Path) -> None:
    rows = np.eye(64, dtype=np.float32)
    np.save(tmp_path / "x.npy", rows)
    np.save(tmp_path / "q.npy", np.tile(rows, (60, 1)))  # more lines than a pipe holds
    for line in (["build", "db.hn", "x.npy"], ["search", "db.hn", "q.npy", "-k", "60"]):
        process = subprocess.Popen(
            [*SHELL, *line], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        code = process.wait(60)
    assert (code, errors) == (141, b"")


MISSING = [
    "add {db} none.npy",
    "advise none.npy --plot new.png",
    "advise {x} --plot none/new.png",
    "build new.hn none.npy",
    "build new.hn {x} --ids none.txt",
    "build none/new.hn {x}",
    "check none.hn",
    "compact none.hn",
    "data make --photos none --out new.zip",
    "data make --out none/new.zip",
    "delete {db} --ids none.txt",
    "delete none.hn 1",
    "demo --photos none --out new",
    "describe none -o new.hn",
    "describe {x} -o none/new.hn",
    "evaluate --data none --out new",
    "evaluate --data none.zip --out new",
    "explore none.hn",
    "export none.hn new.npz",
    "export {db} none/new.npz",
    "info none.hn",
    "locate none.png --in {db}",
    "match none.png none.png -o new.png",
    "search none.hn {x}",
    "search {db} none.npy",
    "search {db} {x} --where none.txt",
    "search {db} {x} --out none/new.npz",
    "train --data none --out new",
    "train --resume --out none",
]


@pytest.mark.parametrize("line", MISSING)
def test_a_path_that_does_not_exist_is_an_error_and_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hiernorm.cli.requirements.check_extra", lambda *_: None)
    np.save("x.npy", np.eye(4, dtype=np.float32))
    assert CliRunner().invoke(app, ["build", "db.hn", "x.npy"]).exit_code == 0
    before = sorted(tmp_path.rglob("*"))
    result = CliRunner().invoke(app, line.format(db="db.hn", x="x.npy").split())
    assert result.exit_code in (1, 2, 5)
    assert "none" in result.stderr
    assert "Traceback" not in result.output
    assert sorted(tmp_path.rglob("*")) == before
