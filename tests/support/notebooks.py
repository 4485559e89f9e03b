"""Executes the notebooks of the documentation.

python tests/support/notebooks.py docs/notebooks/*.ipynb      writes what they print now into them

Texts that cells print are kept in the notebook, pictures are not: they would be most of the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from guides import Step

TIMEOUT = 240
"""Seconds that a cell may take, on a busy machine."""


def execute(file: Path) -> Any:
    """The notebook with the outputs that it has now."""
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=TIMEOUT, record_timing=False).execute()
    return notebook


def compare(file: Path) -> Iterator[Step]:
    """What each cell shows in the file, and what came."""
    shown = nbformat.read(file, as_version=4).cells
    for before, after in zip(shown, execute(file).cells, strict=True):
        if before.cell_type == "code":
            yield Step(before.source, _text(before), _text(after))


def _text(cell: Any) -> str:
    """What a cell prints, then its value, unless that is a picture."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            parts.append(output.text)
        elif "image/png" not in output.data:
            parts.append(output.data["text/plain"])
    return "\n".join(parts)


def update(file: Path) -> None:
    """Write the outputs into the file, without pictures and counts of executions."""
    notebook = execute(file)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [
                {**output, "execution_count": None}
                if output.output_type == "execute_result"
                else output
                for output in cell.outputs
                if "image/png" not in output.get("data", {})
            ]
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(nbformat.from_dict(notebook), file)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        update(Path(name))
        print(name)
