"""An engine of torch alone, which keeps its own copy of the weights and caches what it read, as vLLM does."""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from agents.policies.transformers.lora import with_saved_adapter
from agents.policies.transformers.sampling import kept_tokens, scaled_logprobs
from agents.policies.vllm.engine import Request, SampledCompletion, Sampling
from agents.policies.vllm.process_main import sampling_parameters
from verifiers import EngineDiedError, EngineError


def refusal(parameters: Mapping[str, Any], *, says_kept: bool, most_named: int | None = None) -> str | None:
    """Why vLLM refuses a request or dies of it; None where it takes it. Compared with vLLM itself in test_engine.py.

    Args:
        parameters: Of `vllm.SamplingParams`.
        says_kept: Whether it was started with `return_sampling_mask`.
        most_named: How many tokens its workers take the names of.
    """
    if says_kept and parameters["temperature"] <= 0:
        return "sampling distribution replay requires temperature > 0"
    if says_kept and parameters["top_k"] <= 0:
        return "sampling distribution replay requires top_k > 0"
    for name, what in (("allowed_token_ids", "allowed token IDs"), ("logit_bias", "logit bias tokens")):
        if most_named is not None and len(parameters.get(name, ())) > most_named:
            return f"Too many {what}"
    return None


class TorchEngine:
    """Samples token by token, of what vLLM would be sent; `reported` are the calls that change it, in order.

    Args:
        model: Copied.
        says_kept: Whether it says which tokens it kept; see `refusal`.
        most_named: See `refusal`.
    """

    def __init__(self, model: Any, *, says_kept: bool = False, most_named: int | None = None) -> None:
        self.model = self._base = copy.deepcopy(model)
        self.says_kept = says_kept
        self.most_named = most_named
        self.reported: list[str] = []
        self.requests: list[Request] = []
        self._logits: dict[tuple[int, ...], torch.Tensor] = {}
        self._arrived: dict[str, torch.Tensor] = {}
        self._mark: str | None = None

    def rpc(self, method: str, *arguments: str) -> list[Any]:
        if method == "checkpoint_shapes":
            return [{name: list(weight.shape) for name, weight in self._weights().items()}]
        if method == "request_limits":
            return [{} if self.most_named is None else {"named_tokens": self.most_named}]
        if method == "weights_mark":
            return [self._mark]
        if method == "mark_weights":
            (self._mark,) = arguments
        elif method == "begin_weights":
            self._arrived.clear()
            self._mark = None
        elif method == "load_shared_weights":
            self._arrived.update(load_file(arguments[0]))
        else:
            assert method == "finish_weights"
            assert self._arrived.keys() == self._weights().keys()
            self.reported.append("load")
            self.model.load_state_dict(self._arrived, strict=False)
        return [None]

    def load_adapter(self, folder: str) -> None:
        self.reported.append("adapter")
        self.model = with_saved_adapter(copy.deepcopy(self._base), Path(folder))

    def _weights(self) -> dict[str, torch.Tensor]:
        """As in a checkpoint: without the output layer, which is tied to the embedding."""
        return {name: weight for name, weight in self.model.state_dict().items() if name != "lm_head.weight"}

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

    def submit(self, requests: Sequence[Request], sampling: Sampling) -> list[Future[SampledCompletion]]:
        """All at once: a completion is there when it is asked for."""
        futures: list[Future[SampledCompletion]] = [Future() for _ in requests]
        for future, completion in zip(futures, self.generate(requests, sampling), strict=True):
            future.set_result(completion)
        return futures

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[SampledCompletion]:
        self.requests = list(requests)
        parameters = sampling_parameters(sampling)
        refused = refusal(parameters, says_kept=self.says_kept, most_named=self.most_named)
        if refused is not None:
            raise EngineError(refused)
        return [self._complete(request, parameters, sampling.leaves_out) for request in requests]

    def _complete(self, request: Request, parameters: Mapping[str, Any], leaves_out: bool) -> SampledCompletion:
        generator = torch.Generator().manual_seed(request.seed)
        tokens: list[int] = []
        logprobs: list[float] = []
        kept: list[list[int]] = []
        while len(tokens) < request.max_tokens and not (tokens and tokens[-1] in parameters["stop_token_ids"]):
            logits = _limited(self._next(request.prompt + tokens), parameters)
            if parameters["temperature"] == 0:
                tokens.append(int(logits.argmax()))
                logprobs.append(0.0)
                continue
            scaled = scaled_logprobs(logits[None], parameters["temperature"])
            left = kept_tokens(
                scaled, top_k=parameters["top_k"] or None, top_p=parameters["top_p"], min_p=parameters["min_p"]
            )
            scaled = scaled_logprobs(logits[None], parameters["temperature"], left)[0]
            kept.append(left[0].nonzero()[:, 0].tolist())
            tokens.append(int(torch.multinomial(scaled.exp(), 1, generator=generator)))
            logprobs.append(float(scaled[tokens[-1]]))
        return SampledCompletion(tokens, logprobs, kept if self.says_kept and leaves_out else None)

    @torch.no_grad()
    def _next(self, tokens: list[int]) -> torch.Tensor:
        key = tuple(tokens)
        if key not in self._logits:
            self._logits[key] = self.model(input_ids=torch.tensor([tokens])).logits[0, -1]
        return self._logits[key]


class DelayedEngine(TorchEngine):
    """Finishes requests in a random order, some at a time, in a thread.

    Args:
        model: Copied.
        seed: Of the order.
        dies_after: Number of finished requests after which the engine dies; None if it never does.
    """

    def __init__(self, model: Any, seed: int = 0, *, dies_after: int | None = None, **settings: Any) -> None:
        super().__init__(model, **settings)
        self.finished: list[Request] = []
        self.submitted: list[Request] = []
        self._random = random.Random(seed)
        self._dies_after = dies_after
        self._waiting: list[tuple[Request, Sampling, Future[SampledCompletion]]] = []
        self._changed = threading.Condition()
        self._dead = False
        threading.Thread(target=self._finish_some, daemon=True).start()

    def submit(self, requests: Sequence[Request], sampling: Sampling) -> list[Future[SampledCompletion]]:
        futures: list[Future[SampledCompletion]] = [Future() for _ in requests]
        with self._changed:
            if self._dead:
                raise EngineDiedError("the engine died before")
            self.submitted += requests
            self._waiting += zip(requests, [sampling] * len(requests), futures, strict=True)
            self._changed.notify()
        return futures

    def close(self) -> None:
        super().close()
        with self._changed:
            self._dead = True
            self._changed.notify()

    def rpc(self, method: str, *arguments: str) -> list[Any]:
        if self._dead:
            raise EngineDiedError("the engine died before")
        return super().rpc(method, *arguments)

    def _finish_some(self) -> None:
        torch.set_num_threads(1)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._dead)
                left = len(self._waiting) if self._dies_after is None else self._dies_after - len(self.finished)
                if self._dead or left <= 0:
                    return self._die()
                self._random.shuffle(self._waiting)
                count = self._random.randint(1, min(left, len(self._waiting)))
                some, self._waiting = self._waiting[:count], self._waiting[count:]
            for request, sampling, future in some:
                if future.set_running_or_notify_cancel():
                    self.finished.append(request)
                    future.set_result(self.generate([request], sampling)[0])

    def _die(self) -> None:
        self._dead = True
        for _, _, future in self._waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(EngineDiedError("the engine died"))


def _limited(logits: torch.Tensor, parameters: Mapping[str, Any]) -> torch.Tensor:
    """The logits of the tokens that may be chosen, the others' being minus infinity, or lower by their bias."""
    limited = logits.clone()
    if "allowed_token_ids" in parameters:
        limited[:] = -torch.inf
        limited[parameters["allowed_token_ids"]] = logits[parameters["allowed_token_ids"]]
    for token, bias in parameters.get("logit_bias", {}).items():
        limited[token] += bias
    return limited
