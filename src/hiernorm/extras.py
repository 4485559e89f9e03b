"""Import of optional packages, with an error that says what to install."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any


def import_extra(module: str, extra: str) -> Any:
    """Import ``module``; if it is missing, the error names the extra of hiernorm that installs it.

    Examples
    --------
    >>> import_extra("json", extra="vision").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        # An error inside the package itself is not a missing package: show it as it is.
        if error.name is None or error.name.split(".")[0] == "hiernorm":
            raise
        raise ImportError(
            f"this needs {error.name}: pip install 'hiernorm[{extra}]'", name=error.name
        ) from error


def check_extra(extra: str, *modules: str) -> None:
    """Raise ImportError that names ``extra`` unless all modules can be found; imports none.

    Examples
    --------
    >>> check_extra("vision", "json", "email")
    """
    for module in modules:
        if find_spec(module) is None:
            raise ImportError(f"this needs {module}: pip install 'hiernorm[{extra}]'", name=module)
