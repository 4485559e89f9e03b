"""Where the time of a network goes, by onnxruntime's own profile."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hiernorm.array_types import UInt8Array
from hiernorm.extras import import_extra
from hiernorm.models.model import BATCH, network_input, read_model


def share_of_layers(name: str, patches: UInt8Array) -> dict[str, float]:
    """Share of the time of each convolution, in order, and of all else together."""
    runtime = import_extra("onnxruntime", extra="vision")
    with tempfile.TemporaryDirectory() as folder:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = runtime.InferenceSession(
            read_model(name), options, providers=["CPUExecutionProvider"]
        )
        for start in range(0, len(patches), BATCH):
            session.run(["features"], {"patches": network_input(patches[start : start + BATCH])})
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    spent: dict[str, float] = {}
    for event in events:
        kind = event.get("args", {}).get("op_name", "")
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            layer = event["name"].removesuffix("_kernel_time") if "Conv" in kind else "other"
            spent[layer] = spent.get(layer, 0.0) + event["dur"]
    total = sum(spent.values())
    other = spent.pop("other", 0.0)
    layers = {f"convolution {i + 1}": time / total for i, time in enumerate(spent.values())}
    return {**layers, "other": other / total}
