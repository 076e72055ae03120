"""The interface of an inference engine, and the plain data passed to and from it, without torch."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from verifiers import missing_dependency


def require_vllm() -> None:
    """Check that an engine can be started with this interpreter."""
    if importlib.util.find_spec("vllm") is None:
        raise missing_dependency(
            "vllm", "vllm", "engine 'vllm', without an interpreter that has it (--engine-args python=PATH),"
        )


@dataclass(frozen=True, slots=True)
class Request:
    """A request for one completion."""

    prompt: list[int]
    seed: int
    """Seed of the sampling, in [0, 2^63)."""
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling distribution and the stop tokens, shared by all requests of a call."""

    temperature: float
    stop_tokens: tuple[int, ...]
    """Tokens that end the completion, and are included in it."""
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    allowed_tokens: tuple[int, ...] | None = None
    """The only tokens to choose from; None for all of the model's tokens."""
    forbidden_tokens: tuple[int, ...] = ()
    """Tokens that are excluded; a shorter alternative to `allowed_tokens` if most tokens are allowed."""
    mask_bound: int | None = None
    """Number of the model's tokens, for engines started with `return_sampling_mask`, which need a bound on the number of kept
    tokens; None for other engines."""

    @property
    def leaves_out(self) -> bool:
        """Whether top-k, top-p or min-p exclude tokens, so that the learner needs to know which were kept."""
        return self.temperature > 0 and (self.top_k is not None or self.top_p < 1 or self.min_p > 0)


@dataclass(frozen=True, slots=True)
class SampledCompletion:
    """The completion sampled for one request."""

    tokens: list[int]
    """The tokens, including the stop token."""
    logprobs: list[float]
    """Natural log-probabilities under the sampling distribution."""
    kept: list[list[int]] | None = None
    """Candidate tokens of each choice; None unless `Sampling.leaves_out`."""


class Engine(Protocol):
    """Samples completions of token prompts with weights that can be replaced.

    Every method raises `EngineError` if the engine fails, and `EngineDiedError` if it is dead. Weights and caches are changed
    only while no request is under way.
    """

    def submit(self, requests: Sequence[Request], sampling: Sampling) -> list[Future[SampledCompletion]]:
        """Begin to sample one completion for each request, and return a future for each, in the same order.

        A failure arrives in the future too. Cancelling a future stops the request.
        """

    def rpc(self, method: str, *arguments: str) -> list[Any]:
        """Call a method of every worker and return the results."""

    def weight_client(self) -> Any:
        """The engine's `VLLMWeightSyncClient`, as defined by `vllm.distributed.weight_transfer`."""

    def reset_prefix_cache(self) -> None:
        """Drop the keys and values of earlier prompts, which belong to old weights."""

    def sleep(self) -> None:
        """Free the memory of weights and cache; both must be restored by `wake` and new weights."""

    def wake(self, tag: str) -> None:
        """Allocate memory again, for `"weights"` or for the `"kv_cache"`."""

    def close(self) -> None:
        """Stop the engine, or close the connection to an external one. Further calls have no effect."""


@runtime_checkable
class LoadsAdapters(Protocol):
    """An engine that applies a LoRA adapter to the weights that it was started with."""

    def load_adapter(self, folder: str) -> None:
        """Load an adapter that `peft` has saved, in place of the last adapter; every later request is sampled with it."""


def generate(engine: Engine, requests: Sequence[Request], sampling: Sampling) -> list[SampledCompletion]:
    """Sample one completion for each request, and wait for all of them."""
    return [future.result() for future in engine.submit(requests, sampling)]
