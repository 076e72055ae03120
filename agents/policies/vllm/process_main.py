"""The process that holds vLLM: started by `agents.policies.vllm.process_engine`, it answers one call after the other.

`python -m agents.policies.vllm.process_main FD`, FD being the number of an open socket. A message is (number, method,
arguments); the first has the arguments of `vllm.LLM`. Each is answered by (number, "done", result) or (number, "failed", what
went wrong).
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from agents.policies.vllm.engine import Completion, Request, Sampling

_ON_CPU = {"enable_chunked_prefill": False}
"""A request with a seed whose prompt is read in two parts kills vLLM 0.32 there: it rewinds torch's generator, which torch
can't do on a CPU. With as many requests at once as an agent has, some prompt is read in parts sooner or later."""
_NEVER = -100.0
"""The lowest logit bias there is: it makes a token e^100 times less likely, which float32 can't tell from impossible."""
_POLL_S = 5.0
"""How often the process looks whether the one that started it is still there."""


class EngineInProcess:
    """The calls that are answered, on a `vllm.LLM`.

    Args:
        settings: The arguments of `vllm.LLM`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        import vllm
        from vllm.platforms import current_platform

        if settings.get("return_sampling_mask") and current_platform.is_cpu():
            raise NotImplementedError(
                "vLLM on CPU does not say which tokens top-k, top-p and min-p kept, which learning needs: leave them out"
            )
        self._vllm = vllm
        self._llm = vllm.LLM(**{**(_ON_CPU if current_platform.is_cpu() else {}), **settings})

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Completion]:
        """Sample one completion for each request."""
        prompts = [{"prompt_token_ids": request.prompt} for request in requests]
        parameters = [self._parameters(request, sampling) for request in requests]
        outputs = self._llm.generate(prompts, parameters, use_tqdm=False)
        return [_completion(output.outputs[0], sampling) for output in outputs]

    def _parameters(self, request: Request, sampling: Sampling) -> Any:
        return self._vllm.SamplingParams(
            seed=request.seed, max_tokens=request.max_tokens, **sampling_parameters(sampling)
        )

    def rpc(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every worker."""
        return list(self._llm.collective_rpc(method, args=arguments))

    def reset_prefix_cache(self) -> None:
        """Forget the keys and values of earlier prompts."""
        if not self._llm.reset_prefix_cache():
            raise RuntimeError("vLLM could not reset its prefix cache: blocks of it are in use")

    def sleep(self) -> None:
        """Give the memory of weights and cache back."""
        self._llm.sleep(level=2)

    def wake(self, tag: str) -> None:
        """Take the memory of one part again."""
        self._llm.wake_up(tags=[tag])


def sampling_parameters(sampling: Sampling) -> dict[str, Any]:
    """What vLLM's `SamplingParams` are told of a distribution, for any request."""
    parameters: dict[str, Any] = {
        **_distribution(sampling),
        "logprobs": 0,  # of the token that was sampled, and of no other
        "detokenize": False,
        "ignore_eos": True,  # what ends a completion is said by the environment alone
        "stop_token_ids": list(sampling.stop_tokens),
    }
    if sampling.allowed_tokens is not None:
        parameters["allowed_token_ids"] = list(sampling.allowed_tokens)
    if sampling.forbidden_tokens:
        parameters["logit_bias"] = dict.fromkeys(sampling.forbidden_tokens, _NEVER)
    return parameters


def _distribution(sampling: Sampling) -> dict[str, Any]:
    """Temperature, top-k (0 for none), top-p and min-p.

    Started with `return_sampling_mask`, vLLM 0.32 refuses every request that is greedy or has no top-k
    (`InputProcessor._validate_params`). The same is then said otherwise: a choice from the likeliest token alone is greedy, and
    the top-k of as many tokens as there are leaves none out.
    """
    if sampling.temperature == 0 and sampling.mask_bound is not None:
        return {"temperature": 1.0, "top_k": 1, "top_p": 1.0, "min_p": 0.0}
    top_k = sampling.top_k or sampling.mask_bound or 0
    return {"temperature": sampling.temperature, "top_k": top_k, "top_p": sampling.top_p, "min_p": sampling.min_p}


def _completion(output: Any, sampling: Sampling) -> Completion:
    tokens = list(output.token_ids)
    logprobs = [said[token].logprob for token, said in zip(tokens, output.logprobs, strict=True)]
    mask = output.sampling_mask if sampling.leaves_out else None
    return Completion(tokens, logprobs, None if mask is None else mask.token_ids)


def main(descriptor: int) -> None:
    """Answer calls until the other side goes away."""
    os.set_inheritable(descriptor, False)  # vLLM's own processes must not keep the socket open
    connection = Connection(descriptor)
    parent = os.getppid()
    engine: EngineInProcess | None = None
    while os.getppid() == parent:
        if not connection.poll(_POLL_S):
            continue
        try:
            number, method, arguments = connection.recv()
        except EOFError:
            return
        try:
            if engine is None:
                engine, result = EngineInProcess(*arguments), None
            else:
                result = getattr(engine, method)(*arguments)
        except Exception as error:  # noqa: BLE001 - the other side raises it
            traceback.print_exc()
            connection.send((number, "failed", f"{type(error).__name__}: {error}"))
        else:
            connection.send((number, "done", result))


if __name__ == "__main__":
    main(int(sys.argv[1]))
