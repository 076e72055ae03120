"""`EngineLauncher`: starts the engines that sample with a policy's model, or connects to servers."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from agents.distributed.ranks import active_ranks
from agents.policies.transformers.loading import save_model
from agents.policies.transformers.lora import has_adapter, merged, without_adapter
from agents.policies.transformers.policy import CausalLMPolicy
from agents.policies.vllm.config import VLLMConfig
from agents.policies.vllm.engine import Engine, require_vllm
from agents.policies.vllm.engine_group import EngineGroup
from agents.policies.vllm.process_engine import ProcessEngine
from agents.policies.vllm.server_engine import ServerEngine
from verifiers import InvalidArgumentError

_LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The values of `max_lora_rank` that vLLM 0.32 accepts."""


class EngineLauncher:
    """Starts engines with a learner's model."""

    def __init__(self, learner: CausalLMPolicy, config: VLLMConfig, *, reports_kept: bool) -> None:
        self.learner, self.config, self.reports_kept = learner, config, reports_kept

    def group(self, engine: Engine | EngineGroup | None = None) -> EngineGroup:
        """The given engines, or the engines that the settings describe."""
        if self.config.lora == "adapter" and not has_adapter(self.learner.model):
            raise InvalidArgumentError(
                "lora='adapter' transfers the LoRA adapter of the model to train, which has none: set a LoRA rank, or leave "
                "`lora` out"
            )
        if isinstance(engine, EngineGroup):
            return engine
        config = self.config
        # An engine that is started here is awake; a server may have been left asleep by an interrupted run.
        asleep = config.sleep and bool(config.servers)
        if engine is not None:
            return EngineGroup(lambda numbers: [engine], asleep=asleep)
        count = len(config.servers) or config.engines
        return EngineGroup(
            self.start, count, max_restarts=config.max_restarts, asleep=asleep, restart=self._start_again
        )

    def start(self, numbers: Sequence[int]) -> list[Engine]:
        """Start engines with the learner's current model, all at the same time, or connect to servers."""
        config = self.config
        if config.servers:
            return [ServerEngine(config.servers[number], api_key=config.api_key) for number in numbers]
        if config.python is None:
            require_vllm()
        with tempfile.TemporaryDirectory(prefix="rlvr-vllm-") as folder:
            whole = without_adapter if config.lora == "adapter" else merged
            save_model(Path(folder), whole(self.learner.model), None)
            if len(numbers) == 1:
                return [self._start_process(Path(folder), numbers[0])]
            with ThreadPoolExecutor(len(numbers)) as pool:
                starting = [pool.submit(self._start_process, Path(folder), number) for number in numbers]
            try:
                return [started.result() for started in starting]
            except BaseException:
                for started in starting:
                    if started.exception() is None:
                        started.result().close()
                raise

    def _start_again(self, number: int, awaited: bool) -> Engine:
        """Start an engine again, or connect again to a server that is ready; wait for the server only if it is `awaited`."""
        (engine,) = self.start([number])
        if isinstance(engine, ServerEngine):
            engine.wait_until_ready(self.config.server_wait_s if awaited else 0.0)
        return engine

    def _start_process(self, folder: Path, number: int) -> Engine:
        config, backend = self.config, transfer_of(self.learner, self.config)
        settings = {
            "dtype": engine_dtype(self.learner, config),
            "logprobs_mode": "processed_logprobs",
            "skip_tokenizer_init": True,
            "enable_prefix_caching": True,
            "enable_sleep_mode": config.sleep,
            "return_sampling_mask": self.reports_kept,
            "weight_transfer_config": None if backend == "shared-memory" else {"backend": backend},
            **(adapter_settings(self.learner) if config.lora == "adapter" else {}),
            **config.engine_args,
        }
        gpus = config.devices[number] if config.devices else own_gpu(self.learner.model.device, active_ranks().size)
        devices = {} if gpus is None else {"CUDA_VISIBLE_DEVICES": gpus}
        engine = ProcessEngine(folder, settings, python=config.python, environment={**devices, **config.environment})
        try:
            engine.rpc("checkpoint_shapes")  # while the folder is there
        except BaseException:
            engine.close()
            raise
        return engine


def own_gpu(device: torch.device, ranks: int) -> str | None:
    """The GPU of an engine that is started for one of several ranks, as `CUDA_VISIBLE_DEVICES` names it: the learner's GPU.

    Without this setting, the engines of all ranks would take the first GPU. None leaves the engine all GPUs.
    """
    if ranks == 1 or device.type != "cuda":
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return visible.split(",")[device.index] if visible else str(device.index)


def adapter_settings(learner: CausalLMPolicy) -> dict[str, Any]:
    """The arguments of `vllm.LLM` for a learner's adapter."""
    rank = learner.model.peft_config[learner.model.active_adapter].r
    allowed = [most for most in _LORA_RANKS if most >= rank]
    if not allowed:
        raise InvalidArgumentError(
            f"vLLM applies adapters up to rank {_LORA_RANKS[-1]}, got {rank}: set lora='merged', or a lower rank"
        )
    return {"enable_lora": True, "max_loras": 1, "max_lora_rank": allowed[0]}


def transfer_of(learner: CausalLMPolicy, config: VLLMConfig) -> str:
    """The way in which new weights are transferred to the engines."""
    if config.weight_transfer != "auto" or config.lora == "adapter":
        return config.weight_transfer.replace("auto", "shared-memory")
    shared = learner.model.device.type == "cuda" and importlib.util.find_spec("vllm") is not None
    return "ipc" if shared else "shared-memory"


def check_layers(learner: CausalLMPolicy, config: VLLMConfig) -> None:
    """Check that a learner's weights can be transferred layer by layer.

    Raises:
        InvalidArgumentError: If the weights go from GPU to GPU, since this transfers all of them at once.
    """
    way = transfer_of(learner, config)
    if way != "shared-memory":
        raise InvalidArgumentError(
            "weights that are divided among ranks go to vLLM layer by layer through shared memory, and weight_transfer is "
            f"{way!r} here: set weight_transfer='shared-memory', or leave `shard` out"
        )


def engine_dtype(learner: CausalLMPolicy, config: VLLMConfig) -> str:
    """The data type in which an engine that is started here computes."""
    return config.dtype or dtype_of(learner)


def dtype_of(policy: CausalLMPolicy) -> str:
    """The precision in which a policy computes."""
    return "bfloat16" if policy.precision == "bfloat16" else str(policy.model.dtype).removeprefix("torch.")
