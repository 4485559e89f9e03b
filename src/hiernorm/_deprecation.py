"""Former names: they work as before, with a DeprecationWarning that gives the new name.

One mechanism for each kind of name: :func:`renamed_names` for what a module exports,
:func:`rename_module` for a module, :func:`renamed_attribute` for an attribute and
:func:`renamed_parameter` for a keyword.
"""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def _warn(old: str, new: str, stacklevel: int = 3) -> None:
    warnings.warn(f"{old} is now called {new}", DeprecationWarning, stacklevel=stacklevel)


def renamed_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module whose former ``names`` map to ``module:name``.

    Examples
    --------
    >>> lookup = renamed_names("shapes", {"root": "math:sqrt"})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     lookup("root")(9.0), str(caught[0].message)
    (3.0, 'shapes.root is now called math.sqrt')
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, new = names[name].split(":")
        _warn(f"{module}.{name}", f"{home}.{new}")
        return getattr(importlib.import_module(home), new)

    return find


class _FormerModule(ModuleType):
    """A former name of a module, which is imported when something of it is asked for."""

    def __init__(self, old: str, new: str, names: Mapping[str, str]) -> None:
        super().__init__(old, f"The former name of :mod:`{new}`.")
        self._new = new
        self._names = names

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        new = self._names.get(name, name)
        found = getattr(importlib.import_module(self._new), new)
        _warn(f"{self.__name__}.{name}", f"{self._new}.{new}")
        return found


def rename_module(old: str, new: str, names: Mapping[str, str] | None = None) -> None:
    """Let ``old`` be imported as before; ``names`` maps former names in it to new ones.

    Examples
    --------
    >>> rename_module("former_maths", "math", {"root": "sqrt"})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     from former_maths import root
    ...     root(9.0), str(caught[0].message)
    (3.0, 'former_maths.root is now called math.sqrt')
    """
    sys.modules[old] = _FormerModule(old, new, names or {})


def renamed_attribute(old: str, new: str) -> Any:
    """A property that passes the former attribute ``old`` on to ``new``.

    Examples
    --------
    >>> class Point:
    ...     x = 1
    ...     abscissa = renamed_attribute("abscissa", "x")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     Point().abscissa, str(caught[0].message)
    (1, 'Point.abscissa is now called x')
    """

    def get(self: object) -> Any:
        _warn(f"{type(self).__name__}.{old}", new)
        return getattr(self, new)

    return property(get, doc=f"The former name of ``{new}``.")


def renamed_parameter(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator of a function that takes the keyword ``old`` as ``new``.

    Examples
    --------
    >>> @renamed_parameter("colour", "color")
    ... def paint(color):
    ...     return color
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     paint(colour="red"), str(caught[0].message)
    ('red', 'the parameter colour of paint is now called color')
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if old in kwargs:
                _warn(f"the parameter {old} of {function.__name__}", new)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate
