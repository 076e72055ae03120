"""Weight transfer from the learner's GPU to the engine's, by vLLM's own transfer engines.

This module is written from the source of vLLM 0.32 (`vllm/distributed/weight_transfer`) and was not yet run on a GPU. On CPU,
and wherever learner and engine share a machine, `agents.policies.vllm.weight_transfer.SharedMemoryTransfer` does the same and
is tested.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from agents.policies.vllm.engine import Engine
from verifiers import missing_dependency

try:
    from vllm.distributed.weight_transfer import ParamMeta, WeightTransferTrainerFactory
except ImportError as error:
    raise missing_dependency("vllm", "vllm", "weight_transfer 'ipc' or 'nccl'") from error


class DeviceTransfer:
    """Transfers weights between GPUs; the handshake is done once.

    Args:
        engine: An engine started with a `weight_transfer_config` of the same backend.
        backend: `"ipc"` if learner and engine share a GPU, `"nccl"` if each has its own.
        weights: The weights to transfer, for their names, dtypes and shapes.
    """

    def __init__(self, engine: Engine, backend: str, weights: Mapping[str, Tensor]) -> None:
        self._source = _Source(weights)
        self._trainer = WeightTransferTrainerFactory.trainer_init(
            _ipc() if backend == "ipc" else _nccl(workers=len(engine.rpc("checkpoint_shapes"))),
            client=engine.weight_client(),
            source=self._source,
        )

    def push(self, weights: Mapping[str, Tensor]) -> None:
        """Replace the engine's weights: start, update and finish; returns when all workers have them."""
        self._source.weights = weights
        self._trainer.send_weights()


class _Source:
    """The weights of one transfer: the part of vLLM's `WeightSource` that the transfer engines use."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.weights = weights

    def metadata(self) -> list[Any]:
        return [ParamMeta(name, weight.dtype, tuple(weight.shape)) for name, weight in self.weights.items()]

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        return iter(self.weights.items())


def _ipc() -> Any:
    from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo

    return IPCTrainerInitInfo(rank=0)


def _nccl(workers: int) -> Any:
    from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    return NCCLTrainerInitInfo(socket.gethostbyname(socket.gethostname()), port, workers + 1, rank=0)
