"""The tables by name: what renders each, and from which file."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from experiments.harness.command import ROOT
from experiments.harness.page import Rows, render_table
from experiments.harness.records import FORMAT, Record, read_record

Render = Callable[[Path], Rows]


@dataclass(frozen=True)
class Table:
    """A function that renders rows from a file of results."""

    name: str
    source: Path
    render: Render

    def to_markdown(self) -> str:
        """The table, and below it where its figures come from; or that there are none yet."""
        if not self.source.exists():
            return "*Not measured yet: `make record` measures it.*"
        return f"{render_table(self.render(self.source))}\n\n*{describe_source(self.source)}*"


_TABLES: dict[str, Table] = {}


def table(name: str, source: str) -> Callable[[Render], Render]:
    """Register a function as the table `name`.

    Parameters
    ----------
    name
        As the markers of a page say it.
    source
        The file that the function gets, relative to ``experiments``, for example
        ``speed/results/bench.json``.
    """

    def register(render: Render) -> Render:
        if name in _TABLES:
            raise ValueError(f"two tables have the name {name!r}")
        _TABLES[name] = Table(name, ROOT / source, render)
        return render

    return register


def find_tables() -> dict[str, Table]:
    """All tables, from the modules `experiments.<question>.tables`."""
    for file in sorted(ROOT.glob("*/tables.py")):
        importlib.import_module(f"experiments.{file.parent.name}.tables")
    return dict(_TABLES)


def describe_source(source: Path) -> str:
    """One line: the file, and the commit, machine and load that it records."""
    parts = [f"`{source.relative_to(ROOT.parent).as_posix()}`"]
    if source.suffix == ".json":
        found = json.loads(source.read_text(encoding="utf-8"))
        if found.get("format") == FORMAT:  # `hiernorm evaluate` has a format of its own
            parts += _describe_record(read_record(source))
    return ", ".join(parts)


def _describe_record(record: Record) -> list[str]:
    parts = []
    if record.commit is not None:
        parts.append(f"commit {record.commit[:12]}{' with changes' * (record.clean is False)}")
    if record.machine:
        parts.append(f"{record.machine['cpu']} ({record.machine['isa']})")
    share = record.load["other_processes"]
    if share is not None:
        parts.append(f"load of other processes {share:.0%}")
    return parts
