"""Shards in this process, for tests that need no Ray."""

from __future__ import annotations

import pytest

from sharded_support import in_process


@pytest.fixture
def no_ray():
    with in_process():
        yield
