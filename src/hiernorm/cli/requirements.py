"""What a command needs besides the package itself: declared once, checked before any work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from hiernorm.extras import check_extra

P = ParamSpec("P")
R = TypeVar("R")


class Requirement(NamedTuple):
    """Modules that a command imports, and the extra of hiernorm that installs them."""

    extra: str
    modules: tuple[str, ...]
    when: Callable[[Mapping[str, Any]], bool] | None


def needs(
    extra: str, *modules: str, when: Callable[[Mapping[str, Any]], bool] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare that a command needs modules of an extra, always or for some of its options.

    The command then starts with :func:`hiernorm.extras.check_extra`: nothing is read, computed or
    written before. The decorator stands below those of click and may be repeated.

    Parameters
    ----------
    extra
        The extra that the error names: the one that installs all that the command needs.
    modules
        Names of the modules, as they are imported.
    when
        Takes the values of the command's parameters, says whether the modules are needed.

    Examples
    --------
    >>> @needs("vision", "no_such_module", when=lambda given: given["picture"])
    ... def command(picture):
    ...     return "done"
    >>> command(picture=False)
    'done'
    >>> command(picture=True)
    Traceback (most recent call last):
    ImportError: this needs no_such_module: pip install 'hiernorm[vision]'
    """

    def declare(command: Callable[P, R]) -> Callable[P, R]:
        @wraps(command)
        def checked(*arguments: P.args, **options: P.kwargs) -> R:
            if when is None or when(options):
                check_extra(extra, *modules)
            return command(*arguments, **options)

        requirement = Requirement(extra, modules, when)
        checked.requirements = (requirement, *requirements_of(command))  # type: ignore[attr-defined]
        return checked

    return declare


def requirements_of(command: Callable[..., Any] | None) -> tuple[Requirement, ...]:
    """Return what :func:`needs` declared for the callback of a command."""
    found: tuple[Requirement, ...] = getattr(command, "requirements", ())
    return found


def names_parquet(given: Mapping[str, Any]) -> bool:
    """Whether a parameter of a command is the path of a Parquet file.

    Examples
    --------
    >>> names_parquet({"sources": (Path("a.npy"), Path("b.parquet")), "k": 3})
    True
    """
    return any(path.suffix == ".parquet" for path in _paths_in(given.values()))


def _paths_in(values: Any) -> Iterator[Path]:
    for value in values:
        if isinstance(value, Path):
            yield value
        elif isinstance(value, tuple):
            yield from _paths_in(value)


PARQUET = needs("parquet", "pyarrow", when=names_parquet)
"""For commands that read or write files of vectors, which may be Parquet."""
