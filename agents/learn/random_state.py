"""The states of all global random generators that a run may use, for checkpoints.

This package does not use these generators, but callbacks, environments and models may.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from agents.deferred import torch
from verifiers.devices import ACCELERATORS, device_module


def random_state() -> dict[str, Any]:
    """The states of Python's, NumPy's and torch's own generators, as tensors and plain data.

    The states of GPUs are omitted if the process has not used a GPU, since a query would initialise every GPU.
    """
    _, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    return {
        "python": random.getstate(),
        "numpy": (torch.from_numpy(np.asarray(keys).astype(np.int64)), int(position), int(has_gauss), float(gauss)),
        "torch": torch.get_rng_state(),
        **{name: _states(name) for name in ACCELERATORS},
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Restore states that `random_state` returned; those of missing GPUs are ignored."""
    version, words, gauss_next = state["python"]
    random.setstate((version, tuple(words), gauss_next))
    keys, position, has_gauss, gauss = state["numpy"]
    np.random.set_state(("MT19937", keys.numpy().astype(np.uint32), position, has_gauss, gauss))
    torch.set_rng_state(state["torch"])
    for name in ACCELERATORS:
        module = device_module(name)
        here = module.device_count() if module.is_available() else 0
        for number, generator_state in enumerate(state.get(name, [])[:here]):
            module.set_rng_state(generator_state, number)


def _states(name: str) -> list[torch.Tensor]:
    """The generator states of all devices of a type; empty if no such device has been used."""
    module = device_module(name)
    if name == "mps":  # there is only one such device, and a query initialises nothing
        return [module.get_rng_state()] if module.is_available() else []
    return list(module.get_rng_state_all()) if module.is_initialized() else []
