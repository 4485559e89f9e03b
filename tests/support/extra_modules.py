"""Which modules each extra of the package installs, read from pyproject.toml."""

from __future__ import annotations

import re
import sys
from typing import Any

from paths import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it along

MODULES = {
    "faiss-cpu": "faiss",
    "haystack-ai": "haystack",
    "llama-index-core": "llama_index",
    "opencv-contrib-python-headless": "cv2",
    "scikit-image": "skimage",
    "scikit-learn": "sklearn",
}
"""Modules that are not named as their packages."""

OPTIONAL = frozenset(
    (
        *("cv2", "faiss", "h5py", "hnswlib", "kornia", "matplotlib", "onnx", "onnxruntime"),
        *(
            "pandas",
            "pooch",
            "pyarrow",
            "pycolmap",
            "ray",
            "requests",
            "safetensors",
            "sentence_transformers",
            "skimage",
        ),
        *("sklearn", "starlette", "torch", "usearch", "uvicorn"),
    )
)
"""Modules that a plain installation lacks."""


def _extras() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras: dict[str, Any] = tomllib.load(file)["project"]["optional-dependencies"]
    return extras


def installs(extra: str) -> set[str]:
    """Return the modules of an extra, and of the extras that it includes."""
    found: set[str] = set()
    for requirement in _extras()[extra]:
        name, included = re.match(r"([\w-]+)(?:\[([\w,-]+)\])?", requirement).groups()
        if name == "hiernorm":
            found |= set().union(*(installs(part) for part in included.split(",")))
        else:
            found.add(module_of(name))
    return found


def module_of(package: str) -> str:
    """Return the module that a package is imported as."""
    return MODULES.get(package, package.replace("-", "_"))
