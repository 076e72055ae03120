"""The process that runs vLLM: started by `agents.policies.vllm.process_engine`, it samples and answers calls.

`python -m agents.policies.vllm.process_main FD`, where FD is the file descriptor of an open socket. A message is (number,
method, arguments); the first message has the arguments of `vllm.LLM`. Each message is answered by (number, "done", result) or
(number, "failed", error message); messages of `generate` are answered when their completions are finished. `cancel` stops a
request, and gets no answer.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from agents.policies.vllm.engine import Request, SampledCompletion, Sampling

_ON_CPU = {"enable_chunked_prefill": False}
"""On a CPU a seeded request with chunked prefill crashes vLLM 0.32, which rewinds torch's generator without support for this.
With as many concurrent requests as an agent makes, some prompt would be chunked sooner or later."""
_NEVER = -100.0
"""The lowest logit bias that vLLM allows: it makes a token e^100 times less likely, effectively impossible in float32."""
_POLL_S = 5.0
"""Interval at which the process checks that its parent is still alive."""


class EngineInProcess:
    """Answers the supported calls with a `vllm.LLM`.

    Args:
        settings: Arguments of `vllm.LLM`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        import vllm
        from vllm.platforms import current_platform

        if settings.get("return_sampling_mask") and current_platform.is_cpu():
            raise NotImplementedError(
                "vLLM on CPU does not report which tokens top-k, top-p and min-p kept, which training needs: leave them out"
            )
        self._vllm = vllm
        self._llm = vllm.LLM(**{**(_ON_CPU if current_platform.is_cpu() else {}), **settings})
        self._under_way: dict[str, Sampling] = {}  # by request id, which is the number of the message
        self._adapter: Any = None
        self._adapters = 0

    @property
    def busy(self) -> bool:
        """Whether requests are under way."""
        return bool(self._under_way)

    def add(self, number: int, request: Request, sampling: Sampling) -> None:
        """Begin to sample a completion."""
        prompt = {"type": "token", "prompt_token_ids": request.prompt}
        parameters = self._parameters(request, sampling)
        self._llm.llm_engine.add_request(str(number), prompt, parameters, lora_request=self._adapter)
        self._under_way[str(number)] = sampling

    def cancel(self, number: int) -> None:
        """Stop a request, unless it is finished."""
        if self._under_way.pop(str(number), None) is not None:
            self._llm.llm_engine.abort_request([str(number)])

    def step(self) -> list[tuple[int, SampledCompletion]]:
        """Sample at most one more token for each request, and return the completions that are finished."""
        outputs = [output for output in self._llm.llm_engine.step() if output.finished]
        return [
            (int(output.request_id), _completion(output.outputs[0], self._under_way.pop(output.request_id)))
            for output in outputs
            if output.request_id in self._under_way
        ]

    def _parameters(self, request: Request, sampling: Sampling) -> Any:
        return self._vllm.SamplingParams(
            seed=request.seed,
            max_tokens=request.max_tokens,
            output_kind=self._vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
            **sampling_parameters(sampling),
        )

    def rpc(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every worker and return the results."""
        return list(self._llm.collective_rpc(method, args=arguments))

    def load_adapter(self, folder: str) -> None:
        """Load an adapter under a new id, in place of the last adapter; every later request names the new one."""
        from vllm.lora.request import LoRARequest

        engine = self._llm.llm_engine
        if self._adapter is not None:
            engine.remove_lora(self._adapter.lora_int_id)
        self._adapters += 1
        adapter, self._adapter = LoRARequest(f"adapter-{self._adapters}", self._adapters, folder), None
        if not engine.add_lora(adapter):
            raise RuntimeError(f"vLLM did not load the adapter at {folder}")
        self._adapter = adapter

    def reset_prefix_cache(self) -> None:
        """Drop the keys and values of earlier prompts."""
        if not self._llm.reset_prefix_cache():
            raise RuntimeError("vLLM could not reset its prefix cache: some blocks are in use")

    def sleep(self) -> None:
        """Free the memory of weights and cache."""
        self._llm.sleep(level=2)

    def wake(self, tag: str) -> None:
        """Allocate the memory of `"weights"` or `"kv_cache"` again."""
        self._llm.wake_up(tags=[tag])


def sampling_parameters(sampling: Sampling) -> dict[str, Any]:
    """Arguments of vLLM's `SamplingParams` that are the same for all requests."""
    parameters: dict[str, Any] = {
        **_distribution(sampling),
        "logprobs": 0,  # of the token that was sampled, and of no other
        "detokenize": False,
        "ignore_eos": True,  # only the environment decides where a completion ends
        "stop_token_ids": list(sampling.stop_tokens),
    }
    if sampling.allowed_tokens is not None:
        parameters["allowed_token_ids"] = list(sampling.allowed_tokens)
    if sampling.forbidden_tokens:
        parameters["logit_bias"] = dict.fromkeys(sampling.forbidden_tokens, _NEVER)
    return parameters


def _distribution(sampling: Sampling) -> dict[str, Any]:
    """Temperature, top-k (0 for none), top-p and min-p.

    With `return_sampling_mask`, vLLM 0.32 rejects requests that are greedy or have no top-k
    (`InputProcessor._validate_params`). Equivalent parameters are used then: top-k of 1 for greedy, and a top-k of the whole
    vocabulary for no top-k.
    """
    if sampling.temperature == 0 and sampling.mask_bound is not None:
        return {"temperature": 1.0, "top_k": 1, "top_p": 1.0, "min_p": 0.0}
    top_k = sampling.top_k or sampling.mask_bound or 0
    return {"temperature": sampling.temperature, "top_k": top_k, "top_p": sampling.top_p, "min_p": sampling.min_p}


def _completion(output: Any, sampling: Sampling) -> SampledCompletion:
    tokens = list(output.token_ids)
    logprobs = [said[token].logprob for token, said in zip(tokens, output.logprobs, strict=True)]
    mask = output.sampling_mask if sampling.leaves_out else None
    return SampledCompletion(tokens, logprobs, None if mask is None else mask.token_ids)


def main(descriptor: int) -> None:
    """Sample and answer calls until the other side closes the connection."""
    os.set_inheritable(descriptor, False)  # vLLM's own processes must not keep the socket open
    connection = Connection(descriptor)
    parent = os.getppid()
    engine: EngineInProcess | None = None
    while os.getppid() == parent:
        busy = engine is not None and engine.busy
        if connection.poll(0 if busy else _POLL_S):
            try:
                message = connection.recv()
            except EOFError:
                return
            engine = _answer(connection, engine, *message)
        elif engine is not None and busy:
            # An error here is an error of the engine, not of a request: the process ends, and its log says why.
            for number, completion in engine.step():
                connection.send((number, "done", completion))


def _answer(
    connection: Connection, engine: EngineInProcess | None, number: int, method: str, arguments: tuple[Any, ...]
) -> EngineInProcess | None:
    """Answer a message, and return the engine; None if it did not start."""
    try:
        if engine is None:
            engine, result = EngineInProcess(*arguments), None
        elif method == "cancel":
            engine.cancel(number)
            return engine
        elif method == "generate":
            engine.add(number, *arguments)
            return engine
        else:
            result = getattr(engine, method)(*arguments)
    except Exception as error:
        if type(error).__name__ == "EngineDeadError":
            raise  # vLLM's core is gone, and with it all requests
        traceback.print_exc()
        connection.send((number, "failed", f"{type(error).__name__}: {error}"))
    else:
        connection.send((number, "done", result))
    return engine


if __name__ == "__main__":
    main(int(sys.argv[1]))
