"""Transfer of the learner's weights to an engine, under the names of a checkpoint.

Names and shapes are checked before anything is sent, since a failed reload kills the engine.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers.core_model_loading import revert_weight_conversion

from agents.distributed.parts import whole
from agents.policies.transformers.lora import adapter_base, adapter_weights, merged, merged_weights, write_adapter
from agents.policies.transformers.policy import CausalLMPolicy
from verifiers import EngineError, InvalidArgumentError

_NAMED = 5
"""Largest number of weights named in an error."""
_HEADER_BYTES = 512
"""Upper bound on the bytes that safetensors writes for one weight besides its values."""
_MIB = 2**20


def checkpoint_weights(model: Any) -> dict[str, Tensor]:
    """The weights of a model under the names of a checkpoint; an adapter is merged into a copy first.

    Weights that are tied appear under each of their names.
    """
    whole = merged(model)
    with torch.no_grad():
        return dict(revert_weight_conversion(whole, whole.state_dict()))


def checkpoint_layers(policy: CausalLMPolicy) -> Iterator[dict[str, Tensor]]:
    """A policy's weights under the names of a checkpoint: all at once or, if they are divided among ranks, layer by layer.

    All ranks must take equally many layers, and each of a layer's tensors is whole on each rank until the next layer is taken.
    """
    if policy.sharded is None:
        yield checkpoint_weights(policy.model)
        return
    base = adapter_base(policy.model)
    for weights in policy.sharded.whole_layers():
        with torch.no_grad():
            yield revert_weight_conversion(base, merged_weights(policy.model, weights))
        weights.clear()


def whole_adapter(policy: CausalLMPolicy) -> dict[str, Tensor]:
    """The weights of a policy's adapter on the CPU, by the names of `peft`; called by all ranks if weights are divided."""
    weights = {name: whole(weight) for name, weight in (adapter_weights(policy.model) or {}).items()}
    return {name: weight for name, weight in weights.items() if weight is not None}


def fitted(
    weights: Mapping[str, Tensor], shapes: Mapping[str, Sequence[int]], *, part: bool = False
) -> dict[str, Tensor]:
    """The learner's weights that an engine also has, in the engine's order and without weights tied to another one.

    Args:
        weights: The learner's weights by name.
        shapes: The engine's shapes by name.
        part: Whether these are only some of the learner's weights; all of them were fitted before.

    Raises:
        InvalidArgumentError: If a weight is missing, has another shape, or is unknown to the engine; none of these weights was
            sent.
    """
    missing = [name for name in shapes if name not in weights]
    other = [
        f"{name} is {list(weights[name].shape)}, the engine's {list(shape)}"
        for name, shape in shapes.items()
        if name in weights and tuple(weights[name].shape) != tuple(shape)
    ]
    known = {weights[name].data_ptr() for name in shapes if name in weights}
    unknown = [name for name in weights if name not in shapes and weights[name].data_ptr() not in known]
    whole = [] if part else [("missing", missing), ("unknown to the engine", unknown)]
    for problem, names in (("of another shape", other), *whole):
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            raise InvalidArgumentError(
                f"the engine was started with a different model from the one being trained, and nothing was sent; weights "
                f"{problem}: {', '.join(names[:_NAMED])}{more}. Start the engine with the model to train"
            )
    return {name: weights[name] for name in shapes if name in weights}


class SharedMemoryTransfer:
    """Transfers weights by a file in shared memory to workers on this machine (see `agents.policies.vllm.worker_extension`).

    Shared memory may be small, such as 64 MiB in a Docker container; weights that do not fit are written to the folder for
    temporary files.

    Args:
        rpc: Calls a method of every worker; see `Engine.rpc`.
        folder: Folder of the temporary file.
    """

    def __init__(self, rpc: Callable[..., Any], folder: Path = Path("/dev/shm")) -> None:
        self._rpc = rpc
        self._folders = [path for path in (folder, Path(tempfile.gettempdir())) if path.is_dir()]

    def begin(self) -> None:
        """Begin to replace the workers' weights."""
        self._rpc("begin_weights")

    def push(self, weights: Mapping[str, Tensor]) -> None:
        """Send some weights, as whole layers; returns when all workers have read them.

        Raises:
            EngineError: If there is not enough space for the file, which was not sent.
        """
        folder = self._roomy(weights)
        handle, path = tempfile.mkstemp(prefix="rlvr-weights-", suffix=".safetensors", dir=folder)
        os.close(handle)
        try:
            save_file({name: weight.detach().cpu().contiguous() for name, weight in weights.items()}, path)
            self._rpc("load_shared_weights", path)
        finally:
            Path(path).unlink()

    def push_adapter(self, model: Any, weights: Mapping[str, Tensor]) -> None:
        """Send the whole weights of a model's adapter; returns when all workers have them.

        Raises:
            EngineError: If there is not enough space for the files, which were not sent.
        """
        with tempfile.TemporaryDirectory(prefix="rlvr-weights-", dir=self._roomy(weights)) as folder:
            write_adapter(Path(folder), model, weights, "")
            self._rpc("load_adapter", folder)

    def finish(self) -> None:
        """Put the new weights to use, after all of them were sent."""
        self._rpc("finish_weights")

    def _roomy(self, weights: Mapping[str, Tensor]) -> Path:
        """The first folder with enough space for a file of weights."""
        size = sum(weight.nbytes + _HEADER_BYTES for weight in weights.values())
        free = {folder: shutil.disk_usage(folder).free for folder in self._folders}
        for folder, room in free.items():
            if size <= room:
                return folder
        available = " and ".join(f"{folder} has {room / _MIB:.0f}" for folder, room in free.items())
        raise EngineError(
            f"the weights for the engine take {size / _MIB:.0f} MiB, and {available} MiB free: free some space, give "
            "the container more shared memory (docker run --shm-size), or set TMPDIR to a folder with more space"
        )
