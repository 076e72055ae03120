"""`VLLMPolicy`: sampling by vLLM, with the weights of the policy being trained.

vLLM samples whole completions: one `act` returns all tokens of the completions that are finished, which `step_many` takes at
once, and none of the others, so that the rows of finished episodes begin others meanwhile. The environment drops what follows
its own end of an episode, such as a stop string, which the engine does not know. The engine's log-probabilities are those of
its sampling distribution, with the learner's temperature and vocabulary; kernels and precision differ from the learner's, so
an agent weights its samples by truncated importance sampling.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import rlvr_envs
from agents.distributed.ranks import active_ranks
from agents.policies.transformers.loading import save_model
from agents.policies.transformers.lora import merged
from agents.policies.transformers.policy import CausalLMPolicy
from agents.policies.vllm.engine import (
    Engine,
    Request,
    SampledCompletion,
    Sampling,
    generate,
    require_vllm,
)
from agents.policies.vllm.engine_group import EngineGroup, Member
from agents.policies.vllm.process_engine import ProcessEngine
from agents.policies.vllm.rows import Rows
from agents.policies.vllm.server_engine import ServerEngine
from agents.policies.vllm.weight_transfer import SharedMemoryTransfer, checkpoint_weights, fitted
from agents.seeding import mix
from agents.types import Action
from verifiers import (
    EngineDiedError,
    EngineError,
    InvalidArgumentError,
    check_types,
    unknown_name,
)

WeightTransfer = Literal["auto", "shared-memory", "ipc", "nccl"]
_PROBED_ROWS, _PROBED_TOKENS = 4, 8
_LOWEST_TEMPERATURE, _HIGHEST_TEMPERATURE = 0.01, 2.0
_FULL_PRECISION_TOLERANCE, _HALF_PRECISION_TOLERANCE = 1e-3, 0.1
_AUTO_FIT = -1
"""The `max_model_len` for which vLLM uses as much as fits into its memory, up to the model's context."""


@dataclass(frozen=True)
class VLLMConfig:
    """Settings of vLLM.

    Raises:
        InvalidArgumentError: If settings contradict each other.
    """

    server: str | Sequence[str] | None = None
    """Address of a running `vllm serve`, such as http://localhost:8000, or the addresses of several; None starts vLLM in a
    separate process. See docs/vllm.md for the options that the server needs."""
    api_key: str | None = field(default=None, repr=False)
    """Key of the servers; None uses the environment variable VLLM_API_KEY. On a command line write env:NAME, where NAME is
    the variable that contains the key."""
    python: str | None = None
    """Interpreter of the engine's process, if vLLM is in another virtual environment."""
    engines: int = 1
    """Number of engines that are started here, each in a process of its own with all of the model. Completions are divided
    among them."""
    devices: Sequence[str] = ()
    """The GPUs of each engine, as CUDA_VISIBLE_DEVICES names them, such as ("1", "2") or ("2,3", "4,5") for two engines; empty
    lets each engine see all, or with several ranks the GPU of its rank."""
    max_restarts: int = 3
    """Number of times in all that engines are started again after they died, before a death is an error. Their unfinished
    completions are sampled again, with the same seeds."""
    server_wait_s: float = 600.0
    """Seconds in which a server that broke off has to be ready again, if no other engine lives."""
    streaming: bool = True
    """Return completions as they finish, so that the rows of an environment that has fewer than there are episodes begin others
    meanwhile; False waits for those of all rows."""
    dtype: str | None = None
    """Data type in which the engine computes, such as "bfloat16"; None uses the learner's."""
    weight_transfer: WeightTransfer = "auto"
    """How new weights are transferred to the engine: by a file in shared memory, for any engine on this machine; by CUDA IPC,
    for an engine on the learner's GPU; or by NCCL, for an engine on other GPUs. IPC and NCCL need vLLM in the learner's
    environment too. "auto" is IPC if the learner is on a GPU and has vLLM, and shared memory otherwise."""
    sleep: bool = False
    """Free the engine's GPU memory for the learner while no episodes are played."""
    probe_tolerance: float | None = None
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
        for name, least in (("engines", 1), ("max_restarts", 0), ("server_wait_s", 0)):
            value = getattr(self, name)
            if not least <= value < math.inf:
                raise InvalidArgumentError(f"{name} must be at least {least}, got {value}")
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
        if self.probe_tolerance is not None and not self.probe_tolerance > 0:
            raise InvalidArgumentError(f"probe_tolerance must be greater than 0, got {self.probe_tolerance}")
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


@dataclass
class _Served:
    """The state of the engines, shared by the policies of all temperatures."""

    version: int = 0
    state: object = None
    """Identifies the weights that the engines have; None if they must be transferred."""
    readings: int = 0


class VLLMPolicy:
    """Samples whole completions with an engine that receives the learner's weights.

    Pass it to an agent as `sampler`, and close it in the end, or use it as a context manager.

    The sampling of a row depends on its episode's seed, its number of tokens and the weights, and by rounding on the other
    requests of the engine. The same observation always gives the same action, so an act loop without `begin` that plays a
    prompt twice in succession in the same row gets the same completion twice: see docs/vllm.md.

    Args:
        policy: The policy to train, whose weights, temperature, vocabulary, top-k, top-p and min-p are used. Top-k, top-p and
            min-p need an engine that reports which tokens it kept: vLLM on a GPU.
        config: Settings of vLLM.
        stop_tokens: The tokens that end a turn in the environment; see `for_env`.
        max_new_tokens: Length of the longest completion; None for the length of the observation's buffer.
        legal_tokens: i8[v], 1 for tokens that the environment allows; None if all are legal.
        engine: An engine, or a group of them, to use in place of those that `config` describes.

    Raises:
        EngineError: If the engine does not start.
        InvalidArgumentError: If the engine has another model than the policy, or does not support these legal tokens.
    """

    def __init__(
        self,
        policy: CausalLMPolicy,
        config: VLLMConfig | None = None,
        *,
        stop_tokens: Sequence[int],
        max_new_tokens: int | None = None,
        legal_tokens: NDArray[np.int8] | None = None,
        engine: Engine | EngineGroup | None = None,
    ) -> None:
        self.learner = policy
        self.temperature = _checked_temperature(policy.temperature)
        self.config = config or VLLMConfig()
        self.stop_tokens = tuple(int(token) for token in stop_tokens)
        self.max_new_tokens = max_new_tokens
        self.legal_tokens = legal_tokens
        if legal_tokens is not None and legal_tokens.shape != (policy.vocab_size,):
            raise InvalidArgumentError(
                f"legal_tokens must have one entry for each of the policy's {policy.vocab_size} tokens, got shape "
                f"{legal_tokens.shape}"
            )
        if any(not 0 <= token < policy.vocab_size for token in self.stop_tokens):
            raise InvalidArgumentError(f"stop tokens must be below {policy.vocab_size}, got {self.stop_tokens}")
        self._limits = self._token_limits()
        if self.config.engine_args.get("return_sampling_mask", self._sampling().leaves_out):
            self._limits["mask_bound"] = self._model_tokens()
        self._context = getattr(policy.model.config.get_text_config(), "max_position_embeddings", None)
        self._served = _Served()
        self.engines = self._group(engine)
        self._forget_rows()
        try:
            self._check_engines()
        except BaseException:
            if engine is None:
                self.close()
            raise

    @classmethod
    def for_env(
        cls,
        policy: CausalLMPolicy,
        env: rlvr_envs.TokenVectorEnv,
        config: VLLMConfig | None = None,
        *,
        engine: Engine | EngineGroup | None = None,
    ) -> VLLMPolicy:
        """Make a policy with an environment's stop tokens, budget and legal tokens.

        Raises:
            InvalidArgumentError: If legal tokens depend on earlier tokens, which an engine does not support.
        """
        rules = env.streams.rules
        legal = rules.legal_actions
        if legal is not None and not isinstance(legal, rlvr_envs.FixedActions):
            raise InvalidArgumentError(
                "the set of legal tokens of this environment changes within a completion, which vLLM samples in a single act: "
                "let the policy sample by itself, one token at a time"
            )
        return cls(
            policy,
            config,
            stop_tokens=np.flatnonzero(rules.stop_tokens()).tolist(),
            max_new_tokens=rules.max_new_tokens,
            legal_tokens=None if legal is None else legal.mask,
            engine=engine,
        )

    @property
    def engine(self) -> Engine:
        """The first engine."""
        self.engines.require_living()
        return self.engines.living[0].alive

    @property
    def version(self) -> int:
        """The learner's version that the engines have."""
        return self._served.version

    def at_temperature(self, temperature: float) -> VLLMPolicy:
        """Return a policy with the same engine at another temperature, such as 0 for greedy evaluation."""
        other = copy.copy(self)
        other.temperature = _checked_temperature(temperature)
        other._forget_rows()
        return other

    def interrupted_after(self, tokens: int) -> VLLMPolicy:
        """Return a policy with the same engine that returns completions after at most so many tokens, finished or not.

        A later `act` goes on with those that are not finished.
        """
        other = copy.copy(self)
        other.max_new_tokens = min(tokens, self.max_new_tokens or tokens)
        other._forget_rows()
        return other

    def with_learner(self, policy: CausalLMPolicy) -> VLLMPolicy:
        """Return a policy with the same engine, whose weights are those of another policy of the same model."""
        other = copy.copy(self)
        other.learner = policy
        other._forget_rows()
        return other

    def close(self) -> None:
        """Stop the engines that were started here, or close the connections to servers."""
        self.engines.close()

    def __enter__(self) -> VLLMPolicy:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Acting

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Announce new episodes in some rows, with their sampling seeds u64[r]."""
        self._rows.begin(rows, seeds)

    def act(
        self,
        observation: rlvr_envs.Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        """Sample each row's completion, and return those that are finished; see `Policy.act`.

        The others are sampled on, and are returned by a later call with the same observation of their rows.

        Raises:
            EngineError: If engines died more often than they may be started again.
            InvalidArgumentError: If the mask differs from `legal_tokens`, or an observation is too long for the model.
        """
        single = observation["tokens"].ndim == 1
        tokens = np.atleast_2d(observation["tokens"])
        length = observation["length"].reshape(-1).astype(np.int64)
        count, width = tokens.shape
        self._check_width(width)
        room = width - length
        wanted = (length > 0) & (room > 0) & (True if rows is None else rows)
        asked = np.flatnonzero(wanted)
        self._check_mask(action_mask, asked)
        self._request(asked, tokens, length, np.minimum(room, self.max_new_tokens or width))
        ready = asked[self.engines.wait(self._rows.tickets(asked), self._reload, every=not self.config.streaming)]
        action = self._action(count, ready, self._rows.take(ready), action_mask is not None)
        return _first_row(action) if single else action

    def _request(
        self,
        asked: NDArray[np.int64],
        tokens: NDArray[np.int32],
        length: NDArray[np.int64],
        limit: NDArray[np.int64],
    ) -> None:
        """Request the completions of the rows that are not under way."""
        rows = self._rows.to_request(asked, tokens, length)
        requests = [
            Request(tokens[row, : length[row]].tolist(), seed, int(limit[row]))
            for row, seed in zip(rows.tolist(), self._rows.request_seeds(rows), strict=True)
        ]
        if requests:
            self._rows.requested(rows, self.engines.submit(requests, self._sampling(), self._reload))

    def _sampling(self) -> Sampling:
        config = self.learner.config
        return Sampling(self.temperature, self.stop_tokens, config.top_k, config.top_p, config.min_p, **self._limits)

    def _token_limits(self) -> dict[str, Any]:
        """The tokens that the engine may choose, as allowed or forbidden tokens, whichever are fewer.

        Every request lists them, and the vocabulary of many models is a few hundred tokens smaller than their output layer.
        """
        allowed = np.zeros(self._model_tokens(), dtype=bool)
        allowed[: self.learner.vocab_size] = True if self.legal_tokens is None else self.legal_tokens
        if 2 * np.count_nonzero(allowed) < len(allowed):
            return {"allowed_tokens": tuple(np.flatnonzero(allowed).tolist())}
        return {"forbidden_tokens": tuple(np.flatnonzero(~allowed).tolist())}

    def _model_tokens(self) -> int:
        """Number of the model's tokens; those beyond the vocabulary are never sampled."""
        return int(self.learner.model.get_output_embeddings().weight.shape[0])

    def _check_limits(self, most: int | None) -> None:
        """Check that the tokens to list do not exceed the limit of a worker, which would crash at the first request."""
        named = sum(len(self._limits.get(name, ())) for name in ("allowed_tokens", "forbidden_tokens"))
        if most is not None and named > most:
            raise InvalidArgumentError(
                f"vLLM's workers need a list of allowed or forbidden tokens, here {named} of the model's "
                f"{self._model_tokens()}, and take at most {most} names: start vLLM with VLLM_USE_V2_MODEL_RUNNER=0 in its "
                "environment, or let the policy sample by itself"
            )

    def _check_width(self, width: int) -> None:
        context = self._context_tokens()
        if width > context:
            raise InvalidArgumentError(
                f"the environment's episodes have up to {width} tokens, including the prompt, but the engine's context holds "
                f"{context}: lower max_new_tokens or max_prompt_tokens, raise max_model_len, or use another model"
            )

    def _check_mask(self, mask: NDArray[np.int8] | None, asked: NDArray[np.int64]) -> None:
        if mask is None:
            return
        legal = self.legal_tokens
        if legal is None or (np.atleast_2d(mask)[asked].astype(bool) != legal.astype(bool)).any():
            raise InvalidArgumentError(
                "the environment restricts the legal tokens, and vLLM takes one set of them for all steps: pass the mask of a "
                "FixedActions to VLLMPolicy as legal_tokens (`for_env` does), and sample with the policy itself where the "
                "legal tokens change"
            )

    def _forget_rows(self) -> None:
        self._rows = Rows(self.engines, self._new_seed)

    def _new_seed(self) -> NDArray[np.uint64]:
        """A seed u64[1] for episodes without an announcement."""
        self._served.readings += 1
        origin = np.array([self.learner.config.seed % 2**64, self._served.readings], dtype=np.uint64)
        return mix(mix(origin[:1]) ^ origin[1:])

    def _action(
        self, count: int, asked: NDArray[np.int64], completions: Sequence[SampledCompletion], masked: bool
    ) -> Action:
        lengths = [len(completion.tokens) for completion in completions]
        width = max(lengths, default=1)
        action = Action(
            np.zeros((count, width), dtype=np.int64),
            np.zeros(count, dtype=np.int64),
            np.zeros((count, width), dtype=np.float32),
            self._kept(count, width, asked, completions, masked),
        )
        for row, completion in zip(asked.tolist(), completions, strict=True):
            size = len(completion.tokens)
            action.tokens[row, :size] = completion.tokens
            action.logprobs[row, :size] = np.nan if self.temperature == 0 else completion.logprobs
            action.counts[row] = size
        return action

    def _kept(
        self, count: int, width: int, asked: NDArray[np.int64], completions: Sequence[SampledCompletion], masked: bool
    ) -> NDArray[np.uint8] | None:
        """The candidate tokens of each choice, packed; None if all tokens are."""
        size = self.learner.vocab_size
        if self._sampling().leaves_out:
            kept = np.zeros((count, width, size), dtype=bool)
            for row, completion in zip(asked.tolist(), completions, strict=True):
                if completion.kept is None or len(completion.kept) != len(completion.tokens):
                    raise EngineError(
                        "the engine does not report which tokens top-k, top-p and min-p kept, which training needs: leave them "
                        "out, or start a server with --return-sampling-mask on a GPU"
                    )
                for position, tokens in enumerate(completion.kept):
                    kept[row, position, [token for token in tokens if token < size]] = True
            # A forbidden token may be among the k likeliest if hardly any other tokens are left.
            return np.packbits(kept if self.legal_tokens is None else kept & self.legal_tokens.astype(bool), axis=-1)
        if not masked:
            return None
        assert self.legal_tokens is not None
        packed = np.packbits(self.legal_tokens.astype(bool))
        return np.broadcast_to(packed, (count, width, len(packed)))

    # Weights

    @contextlib.contextmanager
    def sampling(self) -> Iterator[dict[str, float]]:
        """A context in which the engines have the learner's weights as of entry; yields metrics of the weight transfer."""
        metrics = self.sync()
        try:
            yield metrics
        except EngineError:
            self.engines.cancel_all()
            raise  # a dead engine can't be put to sleep, and this error is the relevant one
        except BaseException:
            self._sleep()
            raise
        self._sleep()

    def _sleep(self) -> None:
        self.engines.cancel_all()
        if self.config.sleep:
            self.engines.each(Member.sleep)
            self._served.state = None

    def sync(self) -> dict[str, float]:
        """Transfer the learner's weights to the engines, unless they have them, and compare log-probabilities of a few tokens.

        Dead engines are started again. Requests that are under way are stopped, and made again by the next `act`.

        Returns:
            `sync_s`; `sampling/probe_difference`, the mean absolute difference of an engine and the learner in nats, the
            largest of all engines; and `sampling/engine_restarts`, the number of times so far that an engine was started again.
            Empty if the engines had the weights.

        Raises:
            InvalidArgumentError: If the learner's weights no longer fit the engine's; nothing was sent.
            EngineError: If engines died more often than they may be started again, or their log-probabilities are not the
                learner's.
        """
        state = self._state()
        if self._served.state == state and self.engines.living and not self.engines.restartable:
            return {}
        started = time.perf_counter()
        weights = fitted(checkpoint_weights(self.learner.model), self._shapes)
        self.engines.cancel_all()
        differences = self._load(weights, self.engines.living)
        self.engines.revive(lambda member: differences.extend(self._load(weights, [member])))
        self._served.version, self._served.state = self.learner.version, state
        return {
            "sync_s": time.perf_counter() - started,
            "sampling/probe_difference": max(differences),
            "sampling/engine_restarts": float(self.engines.restarts),
        }

    def _state(self) -> object:
        """Identifies the learner's weights."""
        return (self.learner.version, sum(parameter._version for parameter in self.learner.model.parameters()))

    def _load(self, weights: Mapping[str, Tensor], members: Sequence[Member]) -> list[float]:
        """Give some engines weights, and return the difference to the learner of each that did not die of it."""
        each: Callable[..., list[Any]] = partial(self.engines.each, members=members)
        each(lambda member: member.wake("weights"))
        if self._weight_transfer() == "shared-memory":
            SharedMemoryTransfer(lambda *call: each(lambda member: member.alive.rpc(*call))).push(weights)
        else:
            each(lambda member: self._device_transfer(member, weights).push(weights))
        each(Member.refresh_cache)
        return self._probe(members)

    def _reload(self, member: Member) -> None:
        """Give an engine that was started again the weights that it had.

        Raises:
            EngineError: If they are not known any more, since the learner's have changed.
        """
        if self._served.state != self._state():
            raise EngineDiedError(
                "the weights have changed since the engine that died got them, so that its completions can't be sampled "
                f"again: {member.error}"
            )
        self._load(fitted(checkpoint_weights(self.learner.model), self._shapes), [member])

    def probe(self) -> float:
        """The mean absolute difference between an engine's log-probabilities and the learner's, in nats; the largest of all.

        An engine repeats its last prompts, whose keys and values a stale cache would still contain.

        Raises:
            EngineError: If the difference is more than the tolerance, or all engines are dead.
        """
        differences = self._probe(self.engines.living)
        self.engines.require_living()
        return max(differences)

    def _probe(self, members: Sequence[Member]) -> list[float]:
        # A greedy learner has no distribution to compare; its weights are the same at any temperature.
        policy = self.learner if self.learner.temperature > 0 else self.learner.at_temperature(1.0)
        # Without top-k, top-p and min-p, which both sides apply to the distribution compared here.
        sampling = Sampling(policy.temperature, (), **self._limits)

        def sampled(member: Member) -> list[tuple[Request, SampledCompletion]]:
            requests = self._probes(member)
            return list(zip(requests, generate(member.alive, requests, sampling), strict=True))

        return [self._checked_difference(policy, pairs) for pairs in self.engines.each(sampled, members)]

    def _probes(self, member: Member) -> list[Request]:
        prompts = member.prompts or [[token % self.learner.vocab_size] for token in range(_PROBED_ROWS)]
        count = min(_PROBED_TOKENS, self.max_new_tokens or _PROBED_TOKENS)
        return [
            Request(prompt, seed, min(count, self._context_tokens() - len(prompt)))
            for seed, prompt in enumerate(prompts)
        ]

    def _checked_difference(self, policy: CausalLMPolicy, pairs: Sequence[tuple[Request, SampledCompletion]]) -> float:
        differences = [self._difference(policy, request.prompt, completion) for request, completion in pairs]
        difference = float(np.concatenate(differences).mean())
        if not difference <= self._tolerance():
            raise EngineError(
                f"the engine's log-probabilities are off the learner's by {difference:.3g} nats per token, but at most "
                f"{self._tolerance():.3g} is expected: is its logprobs_mode 'processed_logprobs', its dtype the learner's, its "
                "vocabulary the same? Raise probe_tolerance if the difference is only due to precision"
            )
        return difference

    @torch.no_grad()
    def _difference(
        self, policy: CausalLMPolicy, prompt: list[int], completion: SampledCompletion
    ) -> NDArray[np.float64]:
        """The absolute difference f64[t] at each token of one completion."""
        tokens = torch.tensor([prompt + completion.tokens], device=policy.model.device)
        legal = None
        if self.legal_tokens is not None:
            mask = torch.from_numpy(self.legal_tokens.astype(bool)).to(tokens.device)
            legal = mask.expand(1, len(completion.tokens), -1)
        logprobs = policy.forward(tokens, len(prompt), legal).logprobs[0].cpu().double().numpy()
        difference: NDArray[np.float64] = np.abs(logprobs - np.array(completion.logprobs))
        return difference

    def _tolerance(self) -> float:
        if self.config.probe_tolerance is not None:
            return self.config.probe_tolerance
        full = self.config.server is None and self._dtype() == "float32" and _dtype_of(self.learner) == "float32"
        return _FULL_PRECISION_TOLERANCE if full else _HALF_PRECISION_TOLERANCE

    # The engine

    def _context_tokens(self) -> int:
        """The longest sequence that the engine accepts, as far as is known here."""
        most = self.config.engine_args.get("max_model_len")
        if most is None or most == _AUTO_FIT:
            most = self._context
        return np.iinfo(np.int64).max if most is None else int(most)

    def _dtype(self) -> str:
        return self.config.dtype or _dtype_of(self.learner)

    def _weight_transfer(self) -> str:
        backend = self.config.weight_transfer
        if backend != "auto":
            return backend
        shared = self.learner.model.device.type == "cuda" and importlib.util.find_spec("vllm") is not None
        return "ipc" if shared else "shared-memory"

    def _group(self, engine: Engine | EngineGroup | None) -> EngineGroup:
        """The engines given, or those that the settings describe."""
        if isinstance(engine, EngineGroup):
            return engine
        config = self.config
        # An engine that is started here is awake; a server may have been left asleep by an interrupted run.
        asleep = config.sleep and bool(config.servers)
        if engine is not None:
            return EngineGroup(lambda numbers: [engine], asleep=asleep)
        count = len(config.servers) or config.engines
        return EngineGroup(
            self._start, count, max_restarts=config.max_restarts, asleep=asleep, restart=self._start_again
        )

    def _check_engines(self) -> None:
        """Check that all engines have the learner's model, and can be asked what they will be asked."""
        for member in self.engines.members:
            self._shapes: dict[str, list[int]] = member.alive.rpc("checkpoint_shapes")[0]
            weights = fitted(checkpoint_weights(self.learner.model), self._shapes)
            self._check_limits(member.alive.rpc("request_limits")[0].get("named_tokens"))
            if self._weight_transfer() != "shared-memory":
                self._device_transfer(member, weights)

    def _start(self, numbers: Sequence[int]) -> list[Engine]:
        """Start engines with the learner's current model, all at the same time, or connect to servers."""
        config = self.config
        if config.servers:
            return [ServerEngine(config.servers[number], api_key=config.api_key) for number in numbers]
        if config.python is None:
            require_vllm()
        with tempfile.TemporaryDirectory(prefix="rlvr-vllm-") as folder:
            save_model(Path(folder), merged(self.learner.model), None)
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
        """Start an engine again, or connect to a server again once it is ready, for which others need not wait."""
        (engine,) = self._start([number])
        if isinstance(engine, ServerEngine):
            engine.wait_until_ready(self.config.server_wait_s if awaited else 0.0)
        return engine

    def _start_process(self, folder: Path, number: int) -> Engine:
        config, backend = self.config, self._weight_transfer()
        settings = {
            "dtype": self._dtype(),
            "logprobs_mode": "processed_logprobs",
            "skip_tokenizer_init": True,
            "enable_prefix_caching": True,
            "enable_sleep_mode": config.sleep,
            "return_sampling_mask": "mask_bound" in self._limits,
            "weight_transfer_config": None if backend == "shared-memory" else {"backend": backend},
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

    def _device_transfer(self, member: Member, weights: Mapping[str, Tensor]) -> Any:
        """The connection from the learner's GPU to an engine's."""
        if member.transfer is None:
            from agents.policies.vllm.gpu_transfer import DeviceTransfer

            member.transfer = DeviceTransfer(member.alive, self._weight_transfer(), weights)
        return member.transfer


def own_gpu(device: torch.device, ranks: int) -> str | None:
    """The GPU of an engine that is started for one of several ranks, as `CUDA_VISIBLE_DEVICES` names it: that of its learner.

    None leaves the engine all of them, of which it would take the first, as would those of the other ranks.
    """
    if ranks == 1 or device.type != "cuda":
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return visible.split(",")[device.index] if visible else str(device.index)


def _checked_temperature(temperature: float) -> float:
    """Check that vLLM uses a temperature as it is: it rejects higher ones, and raises lower ones."""
    if temperature != 0 and not _LOWEST_TEMPERATURE <= temperature <= _HIGHEST_TEMPERATURE:
        raise InvalidArgumentError(
            f"vLLM samples at temperature 0 and from {_LOWEST_TEMPERATURE} to {_HIGHEST_TEMPERATURE}, got {temperature}"
        )
    return temperature


def _dtype_of(policy: CausalLMPolicy) -> str:
    """The precision that a policy computes in."""
    return "bfloat16" if policy.precision == "bfloat16" else str(policy.model.dtype).removeprefix("torch.")


def _first_row(action: Action) -> Action:
    return Action(
        action.tokens[0], action.counts[0], action.logprobs[0], None if action.kept is None else action.kept[0]
    )
