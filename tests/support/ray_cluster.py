"""A Ray cluster of several nodes on this machine."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from paths import SUPPORT

RAY_MARKS = [
    pytest.mark.timeout(600),
    # Of Ray itself: sockets and log files that it leaves to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
STARTS = 4
PATIENCE = 240.0
"""Seconds that anything may take on a busy machine; nothing is expected to."""


def add_node(nodes: Any, **options: Any) -> None:
    """One node more, without processes that no test needs.

    Ray gives it 30 seconds to start, which may be short on a busy machine: then another one.
    """
    for attempt in range(STARTS):
        try:
            nodes.add_node(num_cpus=1, include_log_monitor=False, **options)
            return
        except Exception as error:
            if "timed out during startup" not in str(error) or attempt == STARTS - 1:
                raise


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head and two more nodes, each with a raylet of its own."""
    settings = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_worker_register_timeout_seconds": str(int(PATIENCE)),
        "PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]),
    }
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in settings.items():
            patch.setenv(name, value)
        import ray
        from ray.cluster_utils import Cluster

        nodes = Cluster()
        try:
            add_node(nodes, include_dashboard=False, no_monitor=True)  # the first one is the head
            add_node(nodes)
            add_node(nodes)
            ray.init(address=nodes.address, log_to_driver=False, logging_level="error")
            yield nodes
        finally:
            ray.shutdown()
            nodes.shutdown()
