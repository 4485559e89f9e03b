"""A Ray that hiernorm starts is reached from this machine alone."""

from __future__ import annotations

import ipaddress
import os
import subprocess
import sys

import pytest

pytest.importorskip("ray", reason="needs hiernorm[ray]")
pytest.importorskip("psutil", reason="needs psutil")

pytestmark = [pytest.mark.ray, pytest.mark.skipif(os.name == "nt", reason="Ray is for Linux here")]

CODE = """
import os
import psutil
from hiernorm.distributed.session import CLUSTER_VARIABLE, connect
ray = connect()
actor = ray.remote(type("Actor", (), {"ready": lambda self: True})).options(num_cpus=0).remote()
assert ray.get(actor.ready.remote(), timeout=120)
me = psutil.Process()
ours = {me.pid, *(child.pid for child in me.children(recursive=True))}
for socket in psutil.net_connections("inet"):
    if socket.status == psutil.CONN_LISTEN and socket.pid in ours:
        print("listens", socket.laddr.ip)
assert CLUSTER_VARIABLE not in os.environ
assert ray._private.ray_constants.ENABLE_RAY_CLUSTER
"""


def test_a_ray_that_we_start_listens_on_the_loopback_interface() -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    result = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, env=environment, timeout=240
    )
    assert result.returncode == 0, result.stderr
    found = [line.split()[1] for line in result.stdout.splitlines() if line.startswith("listens")]
    assert len(found) >= 4
    for address in found:
        parsed = ipaddress.ip_address(address)
        mapped = getattr(parsed, "ipv4_mapped", None)
        assert (mapped or parsed).is_loopback, address
