"""Quantisation of a network to 8 bits: half the time and size, for a little quality."""

from __future__ import annotations

import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from hiernorm.array_types import UInt8Array
from hiernorm.extras import import_extra
from hiernorm.models.model import network_input

CALIBRATION_PATCHES = 2048
"""Patches whose activations tell the ranges of the codes."""

CALIBRATION_BATCH = 128


def quantize_onnx(content: bytes, patches: UInt8Array) -> bytes:
    """Return an ONNX network of ours with convolutions in 8 bits.

    Weights have 7 bits and a scale per channel, activations 8 bits and a scale per layer. Sums
    then fit 16 bits in pairs on every processor: no instruction set saturates, and all of them
    give the same integers. The first convolution stays in float32: it has 1% of the
    multiplications and a third of the error. The range of a layer is the mean of the ranges of
    batches, so that one outlier does not make all codes coarse.

    Parameters
    ----------
    content
        The bytes of an ONNX file as :func:`hiernorm.learn.export_network` writes it.
    patches
        uint8 ``(n, 64, 64)``: training patches, of which up to 2,048 set the ranges.
    """
    onnx = import_extra("onnx", extra="train")
    quantization = import_extra("onnxruntime.quantization", extra="train")
    shapes = import_extra("onnxruntime.quantization.shape_inference", extra="train")
    chosen = np.random.default_rng(0).permutation(len(patches))[:CALIBRATION_PATCHES]
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)  # advice on settings that are chosen here on purpose
        try:
            folder = Path(name)
            (folder / "float.onnx").write_bytes(content)
            shapes.quant_pre_process(
                folder / "float.onnx", folder / "merged.onnx", skip_symbolic_shape=True
            )
            merged = onnx.load(folder / "merged.onnx")
            first, *_ = (node.name for node in merged.graph.node if node.op_type == "Conv")
            quantization.quantize_static(
                folder / "merged.onnx",
                folder / "int8.onnx",
                _reader(quantization, patches[np.sort(chosen)]),
                quant_format=quantization.QuantFormat.QDQ,
                per_channel=True,
                reduce_range=True,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
                op_types_to_quantize=["Conv"],
                nodes_to_exclude=[first],
                extra_options={"CalibMovingAverage": True},
            )
            model = onnx.load(folder / "int8.onnx")
        finally:
            logging.disable(logging.NOTSET)
    del model.metadata_props[:]
    model.metadata_props.extend(onnx.load_from_string(content).metadata_props)
    entry = model.metadata_props.add()
    entry.key, entry.value = "weights", "int8"
    quantized: bytes = model.SerializeToString()
    return quantized


def _reader(quantization: Any, patches: UInt8Array) -> Any:
    """Return a reader that gives patches to the calibration, batch by batch."""

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._starts = iter(range(0, len(patches), CALIBRATION_BATCH))

        def get_next(self) -> dict[str, Any] | None:
            start = next(self._starts, None)
            if start is None:
                return None
            return {"patches": network_input(patches[start : start + CALIBRATION_BATCH])}

    return Reader()
