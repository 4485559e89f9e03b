"""Imports of optional packages, with an error that names the extra to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_extra(module: str, extra: str) -> Any:
    """Import ``module``, or say which extra of hiernorm brings it.

    Examples
    --------
    >>> import_extra("math", "none").sqrt(4.0)
    2.0
    >>> import_extra("no_such_module", "vision")
    Traceback (most recent call last):
    ImportError: this needs the package no_such_module: pip install 'hiernorm[vision]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # A package that is there but lacks a part of its own is broken, not missing.
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(
            f"this needs the package {error.name}: pip install 'hiernorm[{extra}]'",
            name=error.name,
        ) from None
