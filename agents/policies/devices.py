"""The device of a policy, as in `verifiers.devices`; if there are several processes, each has its own device."""

from __future__ import annotations

import torch

from agents.distributed.ranks import active_ranks
from verifiers import InvalidArgumentError
from verifiers.devices import choose_device, named_device


def policy_device(device: str = "auto") -> torch.device:
    """The device of this process's policy.

    With several processes `cuda` and `xpu` mean the GPU of the local rank, and `auto` excludes `mps`, which is a single device.

    Args:
        device: As for `verifiers.devices.choose_device`.

    Raises:
        UnknownNameError: If there is no such device.
        InvalidArgumentError: If the device is not available here, or several processes would share it.
    """
    chosen, several = choose_device(device), active_ranks().size > 1
    if several and chosen.type == "mps" and named_device(device) is None:
        return torch.device("cpu")
    if several and (chosen.type == "mps" or chosen.index is not None):
        raise InvalidArgumentError(
            f"device={str(chosen)!r} is one device, and there are {active_ranks().size} processes: name its type alone, as in "
            "'cuda', of which each process takes one, or 'cpu'"
        )
    return chosen


def perceptron_device() -> torch.device:
    """The device of a multilayer perceptron: the one that `RLVR_DEVICE` names, else the CPU, which is fastest for few weights.

    Raises:
        UnknownNameError: If `RLVR_DEVICE` names no device.
        InvalidArgumentError: If the named device is not available here.
    """
    return torch.device("cpu") if named_device() is None else policy_device()
