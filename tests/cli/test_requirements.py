"""Each command checks what it needs before it works, and names the extra that has all of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from colmap_support import write_database
from commands import leaf_commands
from extra_modules import OPTIONAL, installs
from hiernorm.cli.app import app
from hiernorm.cli.requirements import requirements_of

COMMANDS = dict(leaf_commands())

NEEDS = {
    "add db.hn x.npy": None,
    "add db.hn x.parquet": "parquet",
    "advise x.npy --plot new.png": "plot",
    "advise x.parquet": "parquet",
    "build new.hn x.npy": None,
    "build new.hn x.npy x.parquet": "parquet",
    "check db.hn": None,
    "cluster build new.hn x.npy --shards 2": "ray",
    "cluster check db.hn": "ray",
    "cluster info db.hn": "ray",
    "cluster search db.hn x.npy": "ray",
    "colmap compare colmap.db -o new.png": "colmap",
    "colmap match colmap.db": "colmap",
    "colmap pairs colmap.db": None,
    "compact db.hn": None,
    "completion bash": None,
    "data download liberty": "data",
    "data make --out new.zip": "data",
    "data make --photos photos --out new.zip": "data",
    "data make --photos photos --out new.zip --tracks": "data",
    "delete db.hn 0 --ignore-missing": None,
    "demo --out new": "demo",
    "demo --photos photos --out new": "demo",
    "demo --synthetic --small": None,
    "describe photos -o new.hn": "vision",
    "evaluate --data scene --out new": "evaluate",
    "explore db.hn": "explore",
    "export db.hn new.npz": None,
    "export db.hn new.parquet": "parquet",
    "info db.hn": None,
    "locate photos/a.png --in db.hn": "vision",
    "match photos/a.png photos/a.png -o new.png": "vision",
    "reconstruct photos -o new": "colmap",
    "search db.hn x.npy": None,
    "search db.hn x.npy --out new.parquet": "parquet",
    "train --data scene --out new": "train",
}
"""A command line of each command and, where it needs one, its extra."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with everything that the command lines name."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.eye(4, dtype=np.float32))
    assert CliRunner().invoke(app, ["build", "db.hn", "x.npy"]).exit_code == 0
    rows = np.random.default_rng(0).integers(0, 90, (8, 128), np.uint8)
    write_database(Path("colmap.db"), [(np.zeros((8, 4), np.float32), rows)] * 2)
    for name in ("x.parquet", "photos/a.png", "scene/info.txt"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(b"never read")
    return tmp_path


def test_every_command_has_its_line_here() -> None:
    named = {next(c for c in COMMANDS if f"{line} ".startswith(f"{c} ")) for line in NEEDS}
    assert named == set(COMMANDS)


@pytest.mark.parametrize("line", [line for line, extra in NEEDS.items() if extra])
def test_a_missing_package_is_named_before_any_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    for module in OPTIONAL:
        monkeypatch.setitem(sys.modules, module, None)
    before = sorted(folder.rglob("*"))
    result = CliRunner().invoke(app, line.split())
    assert result.exit_code == 1
    assert result.output.endswith(f": pip install 'hiernorm[{NEEDS[line]}]'\n")
    assert len(result.output.splitlines()) == 1
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_asks_for_is_in_the_extra_that_it_names(name: str) -> None:
    for extra, modules, _ in requirements_of(COMMANDS[name].callback):
        assert set(modules) <= installs(extra)


RUN = """
import sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, *rest):
        return None if name in {blocked!r} else super().find_spec(name, *rest)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder

from click.testing import CliRunner
from hiernorm.cli.app import app
for line in {lines!r}:
    result = CliRunner().invoke(app, ["--debug", *line.split()], catch_exceptions=False)
    assert result.exit_code == 0, (line, result.output)
"""
"""A process that finds some modules only."""


def run_with(extra: str | None, folder: Path, *lines: str) -> None:
    """Run commands where no optional module but those of an extra can be imported."""
    blocked = sorted(OPTIONAL - (installs(extra) if extra else set()))
    script = RUN.format(blocked=blocked, lines=lines)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr


def test_commands_without_an_extra_need_none(folder: Path) -> None:
    run_with(None, folder, *(line for line, extra in NEEDS.items() if extra is None))


EXTRAS = {
    "vision": (
        "describe photos -o all.hn --keypoints 100 --workers 1",
        "match photos/brick.png photos/brick.png --keypoints 100 -o new.png",
    ),
    "demo": ("demo --photos photos --points 6 --out page",),
    "evaluate": ("evaluate --data scene --rounds 2 --out report",),
    "train": (
        "train --data scene --out run --epochs 0 --validation 0.4 --init hn16 --export --int8",
    ),
}


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_all_that_its_commands_need(tmp_path: Path, extra: str) -> None:
    for module in sorted(installs(extra)):
        pytest.importorskip(module, reason=f"needs hiernorm[{extra}]")
    data = Path(pytest.importorskip("skimage").__file__).parent / "data"
    (tmp_path / "photos").mkdir()
    for name in ("brick.png", "grass.png"):
        shutil.copy(data / name, tmp_path / "photos")
    if extra in ("evaluate", "train"):
        from patch_scenes import write_scene

        write_scene(tmp_path / "scene")
    run_with(extra, tmp_path, *EXTRAS[extra])
