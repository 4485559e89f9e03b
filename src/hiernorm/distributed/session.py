"""The Ray that shards run on: the one that is there, a cluster by its address, or a local one."""

from __future__ import annotations

import os
from typing import Any

from hiernorm.extras import import_extra


def connect(address: str | None = None) -> Any:
    """The ray module, connected; a local Ray is started where there is no other.

    Parameters
    ----------
    address
        Of a cluster, as for ``ray.init``; by default RAY_ADDRESS, else a new local Ray, which ends
        with this process. A process that is connected already stays so.
    """
    ray = import_extra("ray", extra="ray")
    if ray.is_initialized():
        return ray
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "warning"}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # By default Ray's workers give way to every other process: not if somebody waits for them.
        os.environ.setdefault("RAY_worker_niceness", "0")
        options["include_dashboard"] = False
    ray.init(address=address, **options)
    return ray
