"""The connection to Ray: an existing one, a cluster by its address, or a new local Ray."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hiernorm.extras import import_extra

CLUSTER_VARIABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


def connect(address: str | None = None) -> Any:
    """Connect to Ray, or start a local one; returns the ray module.

    Parameters
    ----------
    address
        The address of a cluster, as for ``ray.init``. By default RAY_ADDRESS, else a new local Ray
        that ends with this process and listens on the loopback interface alone. An existing
        connection is kept. To listen on all interfaces, start Ray yourself and give its address.
    """
    ray = import_extra("ray", extra="ray")
    if ray.is_initialized():
        return ray
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "warning"}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Ray's workers have a low priority by default; here a caller waits for them.
        os.environ.setdefault("RAY_worker_niceness", "0")
        options["include_dashboard"] = False
        with _on_loopback(ray):
            ray.init(address=address, **options)
        return ray
    ray.init(address=address, **options)
    return ray


@contextmanager
def _on_loopback(ray: Any) -> Iterator[None]:
    """A Ray that is started in this block listens on the loopback interface.

    Ray has no option for it. It does so by default where it has no clusters of several machines, on
    macOS and Windows, and this variable is what decides. Whoever sets the variable has decided; it
    is undone for clusters that this process joins later.
    """
    if CLUSTER_VARIABLE in os.environ:
        yield
        return
    constants = ray._private.ray_constants
    before = constants.ENABLE_RAY_CLUSTER
    os.environ[CLUSTER_VARIABLE] = "0"  # for Ray's processes
    constants.ENABLE_RAY_CLUSTER = False  # Ray has been imported: it has read the variable
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before
        del os.environ[CLUSTER_VARIABLE]
