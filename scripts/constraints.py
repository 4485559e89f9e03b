"""Writes constraints.txt: one version of every package that the Makefile installs, directly or not.

Run by `make constraints`. The versions are for every system and for Python 3.11 and later: some
extras need that. An older Python gets what pip finds.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = ROOT / "constraints.txt"
EXTRAS = ("audit", "demo", "fuzz", "lint", "reproduce", "test")
BUILD_TOOLS = ("cmake", "ninja", "nanobind", "numpy", "pip", "scikit-build-core")
KEPT = ("torch",)
"""Packages whose version changes what is tested; it is changed by hand, in constraints.txt."""
PYTHON = "3.11"
HEAD = f"""\
# Versions that the Makefile installs, on Python {PYTHON} and later. Written by `make constraints`.
# Another version of {", ".join(KEPT)} would change what is tested: `make constraints` keeps it.
"""


def main() -> None:
    """Resolve all extras and the build tools together, and write the file."""
    kept = [
        line for line in FILE.read_text().splitlines() if re.match(rf"{'|'.join(KEPT)}\b", line)
    ]
    with tempfile.TemporaryDirectory() as folder:
        tools, pins = Path(folder, "tools.in"), Path(folder, "kept.txt")
        tools.write_text("\n".join(BUILD_TOOLS))
        pins.write_text("\n".join(line.split(" ; ")[0] for line in kept))
        command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", "--universal"]
        command += ["--python-version", PYTHON, "--no-header", "--no-annotate", "--quiet"]
        command += [f"--extra={extra}" for extra in EXTRAS]
        command += ["--constraint", str(pins), "pyproject.toml", str(tools)]
        found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    lines = [_marked(line) for line in found.stdout.splitlines() if "==" in line]
    FILE.write_text(HEAD + "\n".join(lines) + "\n")


def _marked(line: str) -> str:
    """The pin for Python versions that it was resolved for."""
    pin, _, marker = line.partition(" ; ")
    others = [f"({marker})" if " or " in marker else marker] if marker else []
    return f"{pin} ; {' and '.join([*others, f'python_full_version >= {PYTHON!r}'])}"


if __name__ == "__main__":
    main()
