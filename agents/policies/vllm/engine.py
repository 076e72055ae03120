"""What an inference engine is to a policy, and what passes between the two: plain data, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """One completion that is asked for."""

    prompt: list[int]
    seed: int
    """Decides the sampling, together with the prompt and the weights; in [0, 2^63)."""
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Sampling:
    """The distribution that tokens are sampled from, and what ends a completion; the same for all requests of a call."""

    temperature: float
    stop_tokens: tuple[int, ...]
    """Each ends the completion and is its last token."""
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    allowed_tokens: tuple[int, ...] | None = None
    """The only tokens there are; None for all of the model's."""
    forbidden_tokens: tuple[int, ...] = ()
    """Tokens that there are not; the shorter way of saying the same where most are allowed."""
    mask_bound: int | None = None
    """How many tokens the model has, where the engine was started to say which it kept, of every request: it wants to know how
    many that may be. None for other engines."""

    @property
    def leaves_out(self) -> bool:
        """Whether tokens are left out by their probability, so that the learner has to know which were kept."""
        return self.temperature > 0 and (self.top_k is not None or self.top_p < 1 or self.min_p > 0)


@dataclass(frozen=True, slots=True)
class Completion:
    """What an engine sampled for one request."""

    tokens: list[int]
    """The stop token included."""
    logprobs: list[float]
    """Natural logs, of the distribution that was sampled from."""
    kept: list[list[int]] | None = None
    """For each token those that it was chosen from; None unless `Sampling.leaves_out`."""


class Engine(Protocol):
    """Samples completions of token prompts with weights that can be replaced.

    Every method raises `EngineError` if the engine is dead or fails.
    """

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Completion]:
        """Sample one completion for each request, in their order."""
        ...

    def rpc(self, method: str, *arguments: str) -> list[Any]:
        """Call a method of every worker and give what each returned."""
        ...

    def weight_client(self) -> Any:
        """What `vllm.distributed.weight_transfer` calls a `VLLMWeightSyncClient` of this engine."""
        ...

    def reset_prefix_cache(self) -> None:
        """Forget the keys and values of earlier prompts: they belong to the weights they were computed with."""
        ...

    def sleep(self) -> None:
        """Give up the memory of weights and cache; only what `wake` and new weights bring back is there afterwards."""
        ...

    def wake(self, tag: str) -> None:
        """Take memory again, for `"weights"` or for the `"kv_cache"`."""
        ...

    def close(self) -> None:
        """End the engine, or the connection to one that others started. Nothing happens the second time."""
        ...
