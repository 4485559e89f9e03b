"""The instruction sets of the kernels. They differ in speed only: all give the same bits."""

from __future__ import annotations

from hiernorm import _core


def isa() -> str:
    """The instruction set in use: the fastest that runs here, or HIERNORM_ISA if that is set.

    Examples
    --------
    >>> import hiernorm
    >>> hiernorm.isa() in hiernorm.available_isas()
    True
    """
    return _core.isa()


def available_isas() -> tuple[str, ...]:
    """The instruction sets that run on this processor, slowest first.

    Examples
    --------
    >>> import hiernorm
    >>> hiernorm.available_isas()[0]
    'scalar'
    """
    return _core.available_isas()
