"""Fixtures of the test suite."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import hiernorm
from browser import browser
from hiernorm import _core

__all__ = ["browser", "isa"]

settings.register_profile(
    "hiernorm",
    deadline=None,
    max_examples=30,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("hiernorm")

# A shell starts background jobs with Ctrl-C ignored. Tests send it to themselves and to children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=hiernorm.available_isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set of this machine in turn; the one in use before comes back."""
    before = hiernorm.isa()
    _core.use_isa(request.param)
    yield request.param
    _core.use_isa(before)
