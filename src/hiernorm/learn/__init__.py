"""Train descriptors for exact search: the HN layer, HardNet with HN, patch scenes, evaluation.

Scenes need NumPy only. Evaluation needs the extra ``evaluate``. Everything that uses torch needs
the extra ``train``. Names are imported when first used: scenes and evaluation work without torch.

>>> from hiernorm.learn import make_pairs
>>> import numpy as np
>>> len(make_pairs(np.array([0, 0, 1, 1])))
4
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiernorm._deprecation import renamed_names
from hiernorm.extras import import_extra

if TYPE_CHECKING:
    from hiernorm.learn.batches import PatchSet, load_sets
    from hiernorm.learn.checkpoint import load_network, load_weights, save_weights
    from hiernorm.learn.describers import PatchDescriptors, load_describer
    from hiernorm.learn.evaluate import Result, evaluate_scene, evaluate_scenes
    from hiernorm.learn.export import export_network
    from hiernorm.learn.layer import HierarchicalNorm
    from hiernorm.learn.network import HNHardNet
    from hiernorm.learn.pairs import Pairs, make_pairs
    from hiernorm.learn.phase2 import Phase2, measure_phase2
    from hiernorm.learn.phototour import PhotoTour
    from hiernorm.learn.rotate import rotate_network
    from hiernorm.learn.run import TrainingRun
    from hiernorm.learn.settings import TrainingSettings
    from hiernorm.learn.train import train_network

_HOMES = {
    "HNHardNet": "network",
    "HierarchicalNorm": "layer",
    "Pairs": "pairs",
    "PatchDescriptors": "describers",
    "PatchSet": "batches",
    "Phase2": "phase2",
    "PhotoTour": "phototour",
    "Result": "evaluate",
    "TrainingRun": "run",
    "TrainingSettings": "settings",
    "evaluate_scene": "evaluate",
    "evaluate_scenes": "evaluate",
    "export_network": "export",
    "load_describer": "describers",
    "load_network": "checkpoint",
    "load_sets": "batches",
    "load_weights": "checkpoint",
    "make_pairs": "pairs",
    "measure_phase2": "phase2",
    "rotate_network": "rotate",
    "save_weights": "checkpoint",
    "train_network": "train",
}

__all__ = [
    "HNHardNet",
    "HierarchicalNorm",
    "Pairs",
    "PatchDescriptors",
    "PatchSet",
    "Phase2",
    "PhotoTour",
    "Result",
    "TrainingRun",
    "TrainingSettings",
    "evaluate_scene",
    "evaluate_scenes",
    "export_network",
    "load_describer",
    "load_network",
    "load_sets",
    "load_weights",
    "make_pairs",
    "measure_phase2",
    "rotate_network",
    "save_weights",
    "train_network",
]

_find_former = renamed_names(
    __name__,
    {
        "Description": "hiernorm.learn:PatchDescriptors",
        "Run": "hiernorm.learn:TrainingRun",
        "Settings": "hiernorm.learn:TrainingSettings",
    },
    stacklevel=4,
)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        return _find_former(name)
    return getattr(import_extra(f"hiernorm.learn.{_HOMES[name]}", extra="train"), name)
