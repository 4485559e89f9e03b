"""A trained network as the file that ships: ONNX with float16 weights, for onnxruntime."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from hiernorm._files import write_atomically
from hiernorm.extras import import_extra
from hiernorm.learn.checkpoint import describe_network
from hiernorm.learn.network import SIZE, PatchNetwork, make_network

OPSET = 18


class _BothOutputs(nn.Module):
    """The network with its features before normalisation as a second output."""

    def __init__(self, network: PatchNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, patches: Tensor) -> tuple[Tensor, Tensor]:
        features = self.network.embed(patches)
        return self.network.normalization(features), features


def export_network(network: PatchNetwork, path: Path) -> None:
    """Write ``path.onnx``, with weights rounded to float16; all arithmetic stays float32.

    The file takes ``patches (n, 1, 64, 64)`` and gives ``descriptors`` and ``features``, both
    ``(n, 128)``; its metadata say norm, major and alpha. :func:`hiernorm.learn.load_network` reads
    it too.

    Parameters
    ----------
    network
        Left as it is.
    path
        Without a suffix.
    """
    rounded = make_network(network.architecture, network.major, network.alpha, network.norm)
    half = {n: t.half() if t.is_floating_point() else t for n, t in network.state_dict().items()}
    rounded.load_state_dict(half)
    write_atomically(path.with_suffix(".onnx"), encode_onnx(rounded.eval()))


def encode_onnx(network: PatchNetwork) -> bytes:
    """Return the bytes of the network's ONNX file."""
    onnx = import_extra("onnx", extra="train")
    example = torch.zeros(2, 1, 2 * SIZE, 2 * SIZE)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        file = Path(folder) / "network.onnx"
        # The exporter warns of its own plans, which no user can act on.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _BothOutputs(network).eval(),
            (example,),
            file,
            input_names=["patches"],
            output_names=["descriptors", "features"],
            dynamic_axes={name: {0: "n"} for name in ("patches", "descriptors", "features")},
            # Otherwise the exporter merges batch normalisation into weights that are then not the
            # float16 ones; onnxruntime merges them after it has converted to float32.
            training=torch.onnx.TrainingMode.PRESERVE,
            opset_version=OPSET,
            dynamo=False,
        )
        model = onnx.load(file)
    _store_half(model)
    for key, value in describe_network(network).items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _store_half(model: object) -> None:
    """Store large float32 weights as float16 behind a Cast, which onnxruntime folds at load."""
    onnx = import_extra("onnx", extra="train")
    graph = model.graph  # type: ignore[attr-defined]
    casts = []
    for tensor in graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT or len(tensor.dims) < 2:
            continue
        values = onnx.numpy_helper.to_array(tensor)
        name = tensor.name
        tensor.CopyFrom(onnx.numpy_helper.from_array(values.astype("float16"), f"{name}.half"))
        casts.append(
            onnx.helper.make_node("Cast", [f"{name}.half"], [name], to=onnx.TensorProto.FLOAT)
        )
    for node in reversed(casts):
        graph.node.insert(0, node)
