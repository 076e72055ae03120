"""`VLLMConfig`: how vLLM is started, or the address where it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from verifiers import Above, AtLeast, InvalidArgumentError, check_types, unknown_name

WeightTransfer = Literal["auto", "shared-memory", "ipc", "nccl"]
LoraTransfer = Literal["merged", "adapter"]
_AUTO_FIT = -1
"""The `max_model_len` with which vLLM uses as much as fits into its memory, up to the model's context."""


@dataclass(frozen=True)
class VLLMConfig:
    """Settings of vLLM.

    Raises:
        InvalidArgumentError: If settings contradict each other.
    """

    server: str | Sequence[str] | None = None
    """Address of a running `vllm serve`, such as http://localhost:8000, or several such addresses; None starts vLLM in a
    separate process. See docs/vllm.md for the options that the server needs."""
    api_key: str | None = field(default=None, repr=False)
    """Key of the servers; None uses the environment variable VLLM_API_KEY. On a command line write env:NAME, where NAME is
    the variable that contains the key."""
    python: str | None = None
    """Interpreter of the engine's process, if vLLM is in another virtual environment."""
    engines: Annotated[int, AtLeast(1)] = 1
    """Number of engines that are started here, each in a process of its own with the whole model. Completions are divided
    among them."""
    devices: Sequence[str] = ()
    """The GPUs of each engine, as CUDA_VISIBLE_DEVICES names them, such as ("1", "2") or ("2,3", "4,5") for two engines; if
    empty, each engine sees all GPUs or, with several ranks, the GPU of its rank."""
    max_restarts: Annotated[int, AtLeast(0)] = 3
    """Total number of times that engines are started again after they died; a further death is an error. Unfinished completions
    are sampled again, with the same seeds."""
    server_wait_s: Annotated[float, AtLeast(0)] = 600.0
    """Seconds within which a server that became unreachable must be ready again, if no other engine is alive."""
    streaming: bool = True
    """Return completions as they finish, so that rows can begin further episodes meanwhile if there are more episodes than
    rows; False waits for the completions of all rows."""
    dtype: str | None = None
    """Data type in which the engine computes, such as "bfloat16"; None uses the learner's type."""
    weight_transfer: WeightTransfer = "auto"
    """Transfer of new weights to the engine: a file in shared memory, for any engine on this machine; CUDA IPC, for an engine
    on the learner's GPU; or NCCL, for an engine on other GPUs. IPC and NCCL need vLLM in the learner's environment too. "auto"
    is IPC if the learner is on a GPU and has vLLM, and shared memory otherwise."""
    lora: LoraTransfer = "merged"
    """The weights that are transferred for a model with a LoRA adapter: all weights with the adapter merged into them, or the
    adapter alone, which vLLM applies to the base that it was started with. The adapter has a hundredth of the bytes, but needs
    more work at every token."""
    sleep: bool = False
    """Free the engine's GPU memory for the learner while no episodes are played."""
    probe_tolerance: Annotated[float | None, Above(0, infinite=True)] = None
    """Largest mean difference between the log-probabilities of engine and learner after a weight transfer, in nats per token.
    None uses 0.001 if both compute in float32, and 0.1 otherwise."""
    engine_args: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `vllm.LLM`, such as max_model_len, gpu_memory_utilization, tensor_parallel_size, enforce_eager."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further environment variables of the process, such as VLLM_CPU_KVCACHE_SPACE (GiB)."""

    def __post_init__(self) -> None:
        check_types(self)
        backends = ["auto", "shared-memory", "ipc", "nccl"]
        if self.weight_transfer not in backends:
            raise unknown_name("weight_transfer", self.weight_transfer, backends)
        if self.lora not in ("merged", "adapter"):
            raise unknown_name("lora", self.lora, ["merged", "adapter"])
        if self.lora == "adapter" and (self.sleep or self.servers or self.weight_transfer in ("ipc", "nccl")):
            raise InvalidArgumentError(
                "lora='adapter' needs an engine that is started here with the adapter's base and keeps it, and the adapter "
                "goes through shared memory: leave out server, sleep and weight_transfer, or set lora='merged'"
            )
        started = self.python or self.engine_args or self.environment or self.dtype or self.devices or self.engines > 1
        if self.server is not None and started:
            raise InvalidArgumentError(
                "python, dtype, engine_args, environment, engines and devices only apply to an engine that is started here; "
                "give a server its own options when you start it"
            )
        if not isinstance(self.server, str | None) and not self.server:
            raise InvalidArgumentError("server is empty: give the address of at least one, or leave it out")
        if self.devices and len(self.devices) != self.engines:
            raise InvalidArgumentError(
                f"devices must name the GPUs of each of the {self.engines} engines, got {len(self.devices)}: {self.devices!r}"
            )
        most = self.engine_args.get("max_model_len")
        if most is not None and not (isinstance(most, int) and (most >= 1 or most == _AUTO_FIT)):
            raise InvalidArgumentError(
                f"max_model_len must be a whole number of tokens such as 2048, or {_AUTO_FIT} for as many as vLLM has room "
                f"for, got {most!r}"
            )

    @property
    def servers(self) -> tuple[str, ...]:
        """Addresses of the servers; empty if engines are started here."""
        return () if self.server is None else (self.server,) if isinstance(self.server, str) else tuple(self.server)

    @property
    def max_model_tokens(self) -> int | None:
        """The longest sequence that the engines accept, in tokens; None for as many as fit."""
        most = self.engine_args.get("max_model_len")
        return None if most is None or most == _AUTO_FIT else int(most)
