"""The connection to Ray: an existing one, a cluster by its address, or a new local Ray."""

from __future__ import annotations

import os
from typing import Any

from hiernorm.extras import import_extra


def connect(address: str | None = None) -> Any:
    """Connect to Ray, or start a local one; returns the ray module.

    Parameters
    ----------
    address
        The address of a cluster, as for ``ray.init``. By default RAY_ADDRESS, else a new local Ray
        that ends with this process. An existing connection is kept.
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
    ray.init(address=address, **options)
    return ray
