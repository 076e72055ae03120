"""Chooses the device on which models compute, for all verifiers, policies and commands."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from verifiers.errors import InvalidArgumentError, missing_dependency, unknown_name

if TYPE_CHECKING:
    import torch

VARIABLE = "RLVR_DEVICE"
"""The environment variable that names the device of every model for which no device is given; child processes inherit it."""
ACCELERATORS = {"cuda": "CUDA", "xpu": "XPU", "mps": "MPS"}
"""The devices besides the CPU: torch's name and the usual name of each, in the order in which "auto" tries them."""
_KNOWN = ("auto", *ACCELERATORS, "cpu")


def choose_device(device: str | torch.device | None = None) -> torch.device:
    """Choose the device of a model, and check that it is available.

    Args:
        device: `"cpu"`, `"cuda"` (GPUs of NVIDIA, and of AMD with ROCm), `"xpu"` (Intel), `"mps"` (Apple), or one of several by
            its number, such as `"cuda:1"`. `"auto"` or None choose the device that the environment variable `RLVR_DEVICE`
            names, or else the first of cuda, xpu and mps that is available, or else the CPU. A `torch.device` of another type,
            such as `"meta"`, is returned unchanged.

    Raises:
        UnknownNameError: If there is no such device.
        InvalidArgumentError: If the device is not available here; the message says why, and which devices are.
        MissingDependencyError: If torch is not installed.
    """
    torch = _torch()
    if isinstance(device, torch.device):
        return _checked(device) if device.type in _KNOWN else device
    named = named_device(device)
    return torch.device(available_devices()[0]) if named is None else named


def named_device(device: object = None) -> torch.device | None:
    """The device named by the argument or by `RLVR_DEVICE`; None if the choice is left to `choose_device`.

    Raises:
        UnknownNameError: If there is no such device.
        InvalidArgumentError: If the device is not available here.
        MissingDependencyError: If torch is not installed.
    """
    if device is None or device == "auto":
        device = os.environ.get(VARIABLE) or "auto"
    if device == "auto":
        return None
    check_device_name(device)
    return _checked(_torch().device(device))


def check_device_name(device: object) -> None:
    """Check that a device of this name exists, whether or not it is available here; this needs no torch.

    Raises:
        UnknownNameError: If there is no device of that name.
    """
    if not isinstance(device, str) or not re.fullmatch(rf"(auto|({'|'.join(_KNOWN[1:])})(:\d+)?)", device):
        raise unknown_name("device", device, _KNOWN)


def available_devices() -> tuple[str, ...]:
    """The types of devices that torch can use here; "auto" chooses the first.

    Raises:
        MissingDependencyError: If torch is not installed.
    """
    return (*(name for name in ACCELERATORS if device_module(name).is_available()), "cpu")


def device_module(name: str) -> Any:
    """Return torch's module for a type of device, such as `torch.cuda`."""
    return getattr(_torch(), name)


def device_names() -> list[str]:
    """The names of the GPUs that torch can use here.

    Raises:
        MissingDependencyError: If torch is not installed.
    """
    names: list[str] = []
    for name in available_devices()[:-1]:
        names += [_hardware(_torch().device(name, index)) for index in range(device_module(name).device_count())]
    return names


def describe_device(device: torch.device) -> str:
    """Describe a device with the name of its hardware, such as "cuda (NVIDIA H100)"."""
    return str(device) if device.type not in ACCELERATORS else f"{device} ({_hardware(device)})"


def _hardware(device: torch.device) -> str:
    if device.type == "mps":
        return str(_torch().backends.mps.get_name())
    return str(device_module(device.type).get_device_name(device))


def float64_device(device: torch.device) -> torch.device:
    """The device for sums in float64 of a device's tensors: the same device, or the CPU for mps, which has no float64."""
    return _torch().device("cpu") if device.type == "mps" else device


@contextlib.contextmanager
def using_device(device: str) -> Iterator[None]:
    """Within the block, place models for which no device is given on this device, also in child processes started within it.

    Args:
        device: As for `choose_device`; with `"auto"` nothing changes.

    Raises:
        UnknownNameError: If there is no such device.
        InvalidArgumentError: If the device is not available here.
    """
    if device == "auto":
        yield
        return
    check_device_name(device)
    if device != "cpu":  # the CPU is always available, so torch need not be imported
        choose_device(device)
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = device
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def _checked(device: torch.device) -> torch.device:
    """The device, if it is available."""
    available = available_devices()
    if device.type not in available:
        raise InvalidArgumentError(
            f"device={str(device)!r}: {_why_missing(device.type)}; available here: {', '.join(available)}"
        )
    count = 1 if device.type == "cpu" else device_module(device.type).device_count()
    if (device.index or 0) >= count:  # an index of None is the current device
        numbers = ", ".join(f"{device.type}:{index}" for index in range(count))
        raise InvalidArgumentError(f"device={str(device)!r}: torch finds only {numbers} here")
    return device


def _why_missing(name: str) -> str:
    torch = _torch()
    built = {"cuda": torch.version.cuda or torch.version.hip, "xpu": torch.version.xpu}
    if not built.get(name, torch.backends.mps.is_built()):
        return f"this build of torch has no {ACCELERATORS[name]}"
    return f"torch finds no device of {ACCELERATORS[name]}"


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise missing_dependency("torch", "train", "a device") from error
    return torch
