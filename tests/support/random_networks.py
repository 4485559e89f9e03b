"""Networks with random weights, for what holds of any network."""

from __future__ import annotations

import torch

from hiernorm.learn import HNHardNet


def random_network(norm: str = "hn", major: int = 16, alpha: float = 1 / 8) -> HNHardNet:
    """A network with random weights and statistics that no shortcut would get right."""
    torch.manual_seed(0)
    network = HNHardNet(major, alpha, norm)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
    return network.eval()
