"""`EngineWeights`: the weights that engines have, and the check that they are the learner's."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.distributed.ranks import Ranks, SingleProcess, active_ranks
from agents.policies.transformers.policy import CausalLMPolicy
from agents.policies.vllm.config import VLLMConfig
from agents.policies.vllm.engine import LoadsAdapters, Request, SampledCompletion, Sampling, generate
from agents.policies.vllm.engine_group import EngineGroup, Member
from agents.policies.vllm.launcher import dtype_of, engine_dtype, transfer_of
from agents.policies.vllm.weight_transfer import (
    SharedMemoryTransfer,
    checkpoint_layers,
    checkpoint_weights,
    fitted,
    whole_adapter,
)
from verifiers import EngineDiedError, EngineError, InvalidArgumentError

_PROBED_ROWS, _PROBED_TOKENS = 4, 8
_FULL_PRECISION_TOLERANCE, _HALF_PRECISION_TOLERANCE = 1e-3, 0.1


class EngineWeights:
    """Transfers a learner's weights to engines, and compares their log-probabilities of a few tokens with the learner's.

    Args:
        engines: The engines.
        config: Settings of vLLM.
        limits: The tokens that may be sampled, as arguments of `Sampling`.
        legal_tokens: i8[v], 1 for tokens that the environment allows; None if all are legal.
        most_tokens: Length of the longest sequence that the engines accept.
    """

    def __init__(
        self,
        engines: EngineGroup,
        config: VLLMConfig,
        limits: Mapping[str, Any],
        legal_tokens: NDArray[np.int8] | None,
        most_tokens: int,
    ) -> None:
        self.engines, self.config = engines, config
        self.version = 0
        """The version of the learner's weights that the engines have."""
        self.state: object = None
        """Identifies the weights that the engines have; None if they must be transferred."""
        self.shapes: dict[str, list[int]] = {}
        """The shapes of an engine's weights by name."""
        self._limits, self._legal_tokens, self._most_tokens = limits, legal_tokens, most_tokens

    def check(self, learner: CausalLMPolicy) -> None:
        """Check that all engines have a learner's model, and accept the requests that sampling makes."""
        for member in self.engines.members:
            if self.config.lora == "adapter" and not isinstance(member.alive, LoadsAdapters):
                raise InvalidArgumentError(f"lora='adapter' needs an engine that loads adapters, got {member.alive!r}")
            self.shapes = member.alive.rpc("checkpoint_shapes")[0]
            weights = fitted(checkpoint_weights(learner.model), self.shapes)
            check_limits(learner, self._limits, member.alive.rpc("request_limits")[0].get("named_tokens"))
            if transfer_of(learner, self.config) != "shared-memory":
                self._device_transfer(learner, member, weights)

    def sync(self, learner: CausalLMPolicy) -> dict[str, float]:
        """Transfer a learner's weights to the engines, unless the engines have them; see `VLLMPolicy.sync`."""
        ranks, state = self._ranks(learner), state_of(learner)
        if not any(ranks.gather(self.state != state or not self.engines.living or self.engines.restartable)):
            return {}
        started = time.perf_counter()
        ranks.together(self.engines.cancel_all)
        differences = self._load(learner, self.engines.living)
        if ranks.size == 1:
            self.engines.revive(lambda member: differences.extend(self._load(learner, [member])))
        self.version, self.state = learner.version, state
        return {
            "sync_s": time.perf_counter() - started,
            "sampling/probe_difference": max(differences),
            "sampling/engine_restarts": float(self.engines.restarts),
        }

    def _ranks(self, learner: CausalLMPolicy) -> Ranks:
        """The processes that transfer weights together: all ranks if weights are divided or engines serve all ranks."""
        shared = learner.sharded is not None or bool(self.config.servers)
        return active_ranks() if shared else SingleProcess()

    def _load(self, learner: CausalLMPolicy, members: Sequence[Member]) -> list[float]:
        """Give some engines weights, and return how far each surviving engine is off the learner.

        Servers get weights from rank 0, and an engine that a rank has started gets them from this rank. An error on one rank is
        raised on all ranks.
        """
        ranks = self._ranks(learner)
        each: Callable[..., list[Any]] = partial(self.engines.each, members=self._own(members, ranks))
        ranks.together(lambda: each(lambda member: member.wake("weights")))
        if self.config.lora == "adapter":
            adapter = SharedMemoryTransfer(lambda _, folder: each(lambda member: _load_adapter(member, folder)))
            weights = whole_adapter(learner)
            ranks.together(lambda: adapter.push_adapter(learner.model, weights))
        elif transfer_of(learner, self.config) == "shared-memory":
            transfer = SharedMemoryTransfer(lambda *call: each(lambda member: member.alive.rpc(*call)))
            ranks.together(transfer.begin)
            for layer in checkpoint_layers(learner):
                ranks.together(partial(transfer.push, fitted(layer, self.shapes, part=learner.sharded is not None)))
                del layer  # so that there is room for the next layer
            ranks.together(transfer.finish)
        else:
            weights = fitted(checkpoint_weights(learner.model), self.shapes)
            each(lambda member: self._device_transfer(learner, member, weights).push(weights))
        ranks.together(lambda: each(Member.refresh_cache))
        if self.config.servers:
            ranks.together(lambda: each(Member.mark_weights))
        return self.probe(learner, members)

    def require_kept(self, learner: CausalLMPolicy) -> None:
        """Check that servers have the weights that they were given, since others can replace them, or start a server again.

        Raises:
            EngineError: If a server has other weights; raised on all ranks.
        """
        if self.config.servers:
            ranks = self._ranks(learner)
            ranks.together(lambda: self.engines.each(Member.require_marked, self._own(self.engines.living, ranks)))

    def sleep(self, learner: CausalLMPolicy) -> None:
        """Free the memory of the engines once no rank samples any more; rank 0 does so for servers."""
        self.engines.each(Member.sleep, self._own(self.engines.living, self._ranks(learner)))
        self.state = None

    def _own(self, members: Sequence[Member], ranks: Ranks) -> Sequence[Member]:
        """Those of the given engines to which this rank gives weights."""
        return members if ranks.is_main or not self.config.servers else ()

    def can_reload(self, learner: CausalLMPolicy) -> bool:
        """Whether an engine that is started again can get weights at once; ranks transfer them together, between two steps."""
        return self._ranks(learner).size == 1

    def reload(self, learner: CausalLMPolicy, member: Member) -> None:
        """Give an engine that was started again the weights that it had before.

        Raises:
            EngineError: If those weights are no longer known, since the learner's weights have changed.
        """
        if self.state != state_of(learner):
            raise EngineDiedError(
                "the weights have changed since the engine that died got them, so that its completions can't be sampled "
                f"again: {member.error}"
            )
        self._load(learner, [member])

    def probe(self, learner: CausalLMPolicy, members: Sequence[Member]) -> list[float]:
        """The difference of each engine that survives the probe; see `VLLMPolicy.probe`."""
        ranks = self._ranks(learner)
        # A greedy learner has no distribution to compare; its weights are the same at any temperature.
        policy = learner if learner.temperature > 0 else learner.at_temperature(1.0)
        # Without top-k, top-p and min-p, which both sides apply to the distribution compared here.
        sampling = Sampling(policy.temperature, (), **self._limits)

        def sampled(member: Member) -> list[tuple[Request, SampledCompletion]]:
            requests = self._probes(learner, member)
            return list(zip(requests, generate(member.alive, requests, sampling), strict=True))

        def answers() -> list[list[tuple[Request, SampledCompletion]]]:
            given = self.engines.each(sampled, members)
            if ranks.size > 1:
                self.engines.require_living()
            return given

        given = ranks.together(answers)
        read = iter(self._differences(policy, [pair for pairs in given for pair in pairs], ranks))
        differences = [float(np.concatenate([next(read) for _ in pairs]).mean()) for pairs in given]
        ranks.together(lambda: self._check(policy, differences))
        return differences

    def _differences(
        self, policy: CausalLMPolicy, pairs: Sequence[tuple[Request, SampledCompletion]], ranks: Ranks
    ) -> list[NDArray[np.float64]]:
        """The absolute differences f64[t] at the tokens of completions; all ranks make equally many passes."""
        passes = max(ranks.gather(len(pairs)))
        read = [
            self._difference(policy, request.prompt, completion)
            for request, completion in itertools.islice(itertools.cycle(pairs), passes)
        ]
        return read[: len(pairs)]

    def _probes(self, learner: CausalLMPolicy, member: Member) -> list[Request]:
        prompts = member.prompts or [[token % learner.vocab_size] for token in range(_PROBED_ROWS)]
        return [
            Request(prompt, seed, min(_PROBED_TOKENS, self._most_tokens - len(prompt)))
            for seed, prompt in enumerate(prompts)
        ]

    def _check(self, policy: CausalLMPolicy, differences: Sequence[float]) -> None:
        for difference in differences:
            if not difference <= self._tolerance(policy):
                raise EngineError(
                    f"the engine's log-probabilities are off the learner's by {difference:.3g} nats per token, but at most "
                    f"{self._tolerance(policy):.3g} is expected: is its logprobs_mode 'processed_logprobs', its dtype the "
                    "learner's, its vocabulary the same? Raise probe_tolerance if the difference is only due to precision"
                )

    @torch.no_grad()
    def _difference(
        self, policy: CausalLMPolicy, prompt: list[int], completion: SampledCompletion
    ) -> NDArray[np.float64]:
        """The absolute difference f64[t] at each token of one completion."""
        tokens = torch.tensor([prompt + completion.tokens], device=policy.device)
        legal = None
        if self._legal_tokens is not None:
            mask = torch.from_numpy(self._legal_tokens.astype(bool)).to(tokens.device)
            legal = mask.expand(1, len(completion.tokens), -1)
        logprobs = policy.forward(tokens, len(prompt), legal).logprobs[0].cpu().double().numpy()
        difference: NDArray[np.float64] = np.abs(logprobs - np.array(completion.logprobs))
        return difference

    def _tolerance(self, learner: CausalLMPolicy) -> float:
        if self.config.probe_tolerance is not None:
            return self.config.probe_tolerance
        full = self.config.server is None and engine_dtype(learner, self.config) == dtype_of(learner) == "float32"
        return _FULL_PRECISION_TOLERANCE if full else _HALF_PRECISION_TOLERANCE

    def _device_transfer(self, learner: CausalLMPolicy, member: Member, weights: Mapping[str, Tensor]) -> Any:
        """The connection from the learner's GPU to an engine's."""
        if member.transfer is None:
            from agents.policies.vllm.gpu_transfer import DeviceTransfer

            member.transfer = DeviceTransfer(member.alive, transfer_of(learner, self.config), weights)
        return member.transfer


def _load_adapter(member: Member, folder: str) -> None:
    engine = member.alive
    assert isinstance(engine, LoadsAdapters), "EngineWeights.check refuses others"
    engine.load_adapter(folder)


def state_of(learner: CausalLMPolicy) -> object:
    """Identifies a learner's weights."""
    return (learner.version, sum(parameter._version for parameter in learner.model.parameters()))


def check_limits(learner: CausalLMPolicy, limits: Mapping[str, Any], most: int | None) -> None:
    """Check that requests do not list more tokens than a worker can take, since a longer list would crash the worker."""
    named = sum(len(limits.get(name, ())) for name in ("allowed_tokens", "forbidden_tokens"))
    if most is not None and named > most:
        tokens = int(learner.model.get_output_embeddings().weight.shape[0])
        raise InvalidArgumentError(
            f"vLLM's workers need a list of allowed or forbidden tokens, here {named} of the model's {tokens}, and take at "
            f"most {most} names: start vLLM with VLLM_USE_V2_MODEL_RUNNER=0 in its environment, or let the policy sample by "
            "itself"
        )
