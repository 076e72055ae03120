"""An engine of torch alone, which keeps its own copy of the weights and caches what it read, as vLLM does."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from safetensors.torch import load_file

from agents.policies.engine import Completion, Request, Sampling
from agents.sampling import kept_tokens, scaled_logprobs


class TorchEngine:
    """Samples token by token; `reported` are the calls that change it, in order."""

    def __init__(self, model: Any) -> None:
        self.model = copy.deepcopy(model)
        self.reported: list[str] = []
        self.requests: list[Request] = []
        self._logits: dict[tuple[int, ...], torch.Tensor] = {}

    def rpc(self, method: str, *arguments: str) -> list[Any]:
        if method == "checkpoint_shapes":
            return [{name: list(weight.shape) for name, weight in self._weights().items()}]
        assert method == "load_shared_weights"
        self.reported.append("load")
        self.model.load_state_dict(load_file(arguments[0]), strict=False)
        return [None]

    def _weights(self) -> dict[str, torch.Tensor]:
        """As in a checkpoint: without the output layer, which is tied to the embedding."""
        return {name: each for name, each in self.model.state_dict().items() if name != "lm_head.weight"}

    def weight_client(self) -> Any:
        raise NotImplementedError

    def reset_prefix_cache(self) -> None:
        self.reported.append("reset")
        self._logits.clear()

    def sleep(self) -> None:
        self.reported.append("sleep")

    def wake(self, part: str) -> None:
        self.reported.append(f"wake {part}")

    def close(self) -> None:
        self.reported.append("close")

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Completion]:
        self.requests = list(requests)
        return [self._complete(request, sampling) for request in requests]

    def _complete(self, request: Request, sampling: Sampling) -> Completion:
        generator = torch.Generator().manual_seed(request.seed)
        tokens: list[int] = []
        logprobs: list[float] = []
        kept: list[list[int]] = []
        while len(tokens) < request.max_tokens and not (tokens and tokens[-1] in sampling.stop_tokens):
            logits = self._next(request.prompt + tokens)
            allowed = torch.ones_like(logits, dtype=torch.bool)
            if sampling.allowed_tokens is not None:
                allowed[:] = False
                allowed[list(sampling.allowed_tokens)] = True
            allowed[list(sampling.forbidden_tokens)] = False
            if sampling.temperature == 0:
                tokens.append(int(logits.masked_fill(~allowed, -torch.inf).argmax()))
                logprobs.append(0.0)
                continue
            found = scaled_logprobs(logits[None], sampling.temperature, allowed[None])
            limits = {"top_k": sampling.top_k, "top_p": sampling.top_p, "min_p": sampling.min_p}
            left = kept_tokens(found, **limits)  # type: ignore[arg-type]
            found = scaled_logprobs(logits[None], sampling.temperature, left)[0]
            kept.append(left[0].nonzero()[:, 0].tolist())
            tokens.append(int(torch.multinomial(found.exp(), 1, generator=generator)))
            logprobs.append(float(found[tokens[-1]]))
        return Completion(tokens, logprobs, kept if sampling.leaves_out else None)

    @torch.no_grad()
    def _next(self, tokens: list[int]) -> torch.Tensor:
        key = tuple(tokens)
        if key not in self._logits:
            self._logits[key] = self.model(input_ids=torch.tensor([tokens])).logits[0, -1]
        return self._logits[key]
