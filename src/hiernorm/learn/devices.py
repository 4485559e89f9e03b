"""The device that a network is trained on."""

from __future__ import annotations

import torch
from torch import nn

KINDS = ("cpu", "cuda", "mps")


def find_device(name: str) -> torch.device:
    """Return a device of torch; ValueError says which there are if it is not one of them.

    The tests train on the processor. Other devices run the same code, but their kernels need not
    give the same bits, or the same bits twice.

    Parameters
    ----------
    name
        ``"cpu"``, ``"cuda"``, ``"cuda:1"`` and so on, or ``"mps"``.

    Examples
    --------
    >>> find_device("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in KINDS:
        raise ValueError(f"device must be one of {', '.join(KINDS)}, got {name!r}")
    counts = {
        "cpu": 1,
        "cuda": torch.cuda.device_count(),
        "mps": int(torch.backends.mps.is_available()),
    }
    if (device.index or 0) >= counts[device.type]:
        found = ", ".join(f"{kind} ({count})" for kind, count in counts.items() if count)
        raise ValueError(f"no device {name!r} for torch on this machine: it has {found}")
    return device


def device_of(network: nn.Module) -> torch.device:
    """Return the device of a network's weights.

    Examples
    --------
    >>> device_of(nn.Linear(2, 2))
    device(type='cpu')
    """
    return next(network.parameters()).device
