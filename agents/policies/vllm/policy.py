"""`VLLMPolicy`: sampling by vLLM, with the weights of the policy being trained.

vLLM samples whole completions: one `act` returns all tokens of a completion, which `step_many` takes at once; the environment
drops what follows its own end of an episode, such as a stop string, which the engine does not know. The engine's
log-probabilities are those of its sampling distribution, with the learner's temperature and vocabulary; kernels and precision
differ from the learner's, so an agent weights its samples by truncated importance sampling.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.policies.transformers.loading import save_model
from agents.policies.transformers.lora import merged
from agents.policies.transformers.policy import CausalLMPolicy
from agents.policies.vllm.engine import Engine, Request, SampledCompletion, Sampling
from agents.policies.vllm.process_engine import ProcessEngine
from agents.policies.vllm.server_engine import ServerEngine
from agents.policies.vllm.weight_transfer import SharedMemoryTransfer, checkpoint_weights, fitted
from agents.seeding import mix
from agents.types import Action
from rlvr_envs import FixedActions, Observation, TokenVectorEnv
from verifiers import EngineError, InvalidArgumentError, check_types, missing_dependency, unknown_name

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

    server: str | None = None
    """Address of a running `vllm serve`, such as http://localhost:8000; None starts vLLM in a separate process. See
    docs/vllm.md for the options that the server needs."""
    api_key: str | None = field(default=None, repr=False)
    """Key of the server; None uses the environment variable VLLM_API_KEY. On a command line write env:NAME, where NAME is
    the variable that contains the key."""
    python: str | None = None
    """Interpreter of the engine's process, if vLLM is in another virtual environment."""
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
        if self.server is not None and (self.python or self.engine_args or self.environment or self.dtype):
            raise InvalidArgumentError(
                "python, dtype, engine_args and environment only apply to an engine that is started here; give a server its "
                "own options when you start it"
            )
        if self.probe_tolerance is not None and not self.probe_tolerance > 0:
            raise InvalidArgumentError(f"probe_tolerance must be greater than 0, got {self.probe_tolerance}")
        most = self.engine_args.get("max_model_len")
        if most is not None and not (isinstance(most, int) and (most >= 1 or most == _AUTO_FIT)):
            raise InvalidArgumentError(
                f"max_model_len must be a whole number of tokens such as 2048, or {_AUTO_FIT} for as many as vLLM has room "
                f"for, got {most!r}"
            )


class _Transfer(Protocol):
    def push(self, weights: Mapping[str, Tensor]) -> None: ...


@dataclass
class _Served:
    """The state of the engine, shared by the policies of all temperatures."""

    version: int = 0
    state: object = None
    """Identifies the weights that the engine has; None if they must be transferred."""
    prompts: list[list[int]] = field(default_factory=list)
    """The last requested prompts, which are in the engine's cache."""
    readings: int = 0
    asleep: bool = False
    """Whether the engine must be woken first."""


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
        engine: An engine to use in place of the one that `config` describes.

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
        engine: Engine | None = None,
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
        self._forget_rows()
        # An engine that is started here is awake; a server may have been left asleep by an interrupted run.
        self._served = _Served(asleep=self.config.sleep and self.config.server is not None)
        with tempfile.TemporaryDirectory(prefix="rlvr-vllm-") as folder:
            self.engine = engine or self._start(Path(folder))
            try:
                self._shapes: dict[str, list[int]] = self.engine.rpc("checkpoint_shapes")[0]
                fitted(checkpoint_weights(policy.model), self._shapes)
                self._check_limits(self.engine.rpc("request_limits")[0].get("named_tokens"))
                self._transfer = self._make_transfer(self.engine, self._shapes)
            except BaseException:
                if engine is None:
                    self.engine.close()
                raise

    @classmethod
    def for_env(
        cls,
        policy: CausalLMPolicy,
        env: TokenVectorEnv,
        config: VLLMConfig | None = None,
        *,
        engine: Engine | None = None,
    ) -> VLLMPolicy:
        """Make a policy with an environment's stop tokens, budget and legal tokens.

        Raises:
            InvalidArgumentError: If legal tokens depend on earlier tokens, which an engine does not support.
        """
        rules = env.streams.rules
        legal = rules.legal_actions
        if legal is not None and not isinstance(legal, FixedActions):
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
    def version(self) -> int:
        """The learner's version that the engine has."""
        return self._served.version

    def at_temperature(self, temperature: float) -> VLLMPolicy:
        """Return a policy with the same engine at another temperature, such as 0 for greedy evaluation."""
        other = copy.copy(self)
        other.temperature = _checked_temperature(temperature)
        other._forget_rows()
        return other

    def with_learner(self, policy: CausalLMPolicy) -> VLLMPolicy:
        """Return a policy with the same engine, whose weights are those of another policy of the same model."""
        other = copy.copy(self)
        other.learner = policy
        other._forget_rows()
        return other

    def close(self) -> None:
        """Stop the engine that was started here, or close the connection to a server."""
        self.engine.close()

    def __enter__(self) -> VLLMPolicy:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Acting

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Announce new episodes in some rows, with their sampling seeds u64[r]."""
        self._fit(int(rows.max(initial=-1)) + 1, 0)
        self._seeds[rows] = seeds
        self._length[rows] = 0

    def act(
        self,
        observation: Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        """Sample each row's completion; see `Policy.act`.

        Raises:
            EngineError: If the engine died.
            InvalidArgumentError: If the mask differs from `legal_tokens`, or an observation is too long for the model.
        """
        single = observation["tokens"].ndim == 1
        tokens = np.atleast_2d(observation["tokens"])
        length = observation["length"].reshape(-1).astype(np.int64)
        count, width = tokens.shape
        self._check_width(width)
        self._fit(count, width)
        room = width - length
        wanted = (length > 0) & (room > 0) & (True if rows is None else rows)
        asked = np.flatnonzero(wanted)
        self._check_mask(action_mask, asked)
        self._seed_unannounced(asked, tokens, length)
        limit = np.minimum(room, self.max_new_tokens or width)
        requests = [
            Request(tokens[row, : length[row]].tolist(), seed, int(limit[row]))
            for row, seed in zip(asked.tolist(), self._request_seeds(asked, length), strict=True)
        ]
        self._tokens[asked, :width], self._length[asked] = tokens[asked], length[asked]
        self._served.prompts = [request.prompt for request in requests[:_PROBED_ROWS]] or self._served.prompts
        completions = self.engine.generate(requests, self._sampling()) if requests else []
        action = self._action(count, asked, completions, action_mask is not None)
        return _first_row(action) if single else action

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
        self._seeds = np.zeros(0, dtype=np.uint64)
        self._tokens = np.zeros((0, 0), dtype=np.int32)
        self._length = np.zeros(0, dtype=np.int64)

    def _fit(self, num_rows: int, width: int) -> None:
        missing = max(0, num_rows - len(self._length))
        self._seeds = np.pad(self._seeds, (0, missing))
        self._tokens = np.pad(self._tokens, ((0, missing), (0, max(0, width - self._tokens.shape[1]))))
        self._length = np.pad(self._length, (0, missing), constant_values=np.iinfo(np.int64).max)

    def _seed_unannounced(self, asked: NDArray[np.int64], tokens: NDArray[np.int32], length: NDArray[np.int64]) -> None:
        """Seed the rows that started another episode without an announcement, as they do not continue the last one."""
        last, width = self._length[asked], tokens.shape[1]
        differs = (tokens[asked] != self._tokens[asked, :width]) & (np.arange(width) < last[:, None])
        rows = asked[(length[asked] < last) | differs.any(axis=1)]
        if len(rows):
            self._served.readings += 1
            origin = np.array([self.learner.config.seed % 2**64, self._served.readings], dtype=np.uint64)
            base = mix(mix(origin[:1]) ^ origin[1:])
            self._seeds[rows] = mix(base ^ mix(rows.astype(np.uint64)))

    def _request_seeds(self, rows: NDArray[np.int64], length: NDArray[np.int64]) -> list[int]:
        """A seed for each turn of an episode, as vLLM takes them: below 2^63."""
        words = mix(mix(self._seeds[rows]) ^ length[rows].astype(np.uint64))
        return [int(word) for word in words >> np.uint64(1)]

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
        """A context in which the engine has the learner's weights as of entry; yields metrics of the weight transfer."""
        metrics = self.sync()
        try:
            yield metrics
        except EngineError:
            raise  # a dead engine can't be put to sleep, and this error is the relevant one
        except BaseException:
            self._sleep()
            raise
        self._sleep()

    def _sleep(self) -> None:
        if self.config.sleep:
            self.engine.sleep()
            self._served.state, self._served.asleep = None, True

    def sync(self) -> dict[str, float]:
        """Transfer the learner's weights to the engine, unless it has them, and compare log-probabilities of a few tokens.

        Returns:
            `sync_s`, and `sampling/probe_difference`, the mean absolute difference of engine and learner in nats; empty if the
            engine had the weights.

        Raises:
            InvalidArgumentError: If the learner's weights no longer fit the engine's; nothing was sent.
            EngineError: If the engine died, or its log-probabilities are not the learner's.
        """
        state = (self.learner.version, sum(parameter._version for parameter in self.learner.model.parameters()))
        if self._served.state == state:
            return {}
        started = time.perf_counter()
        weights = fitted(checkpoint_weights(self.learner.model), self._shapes)
        asleep, self._served.asleep = self._served.asleep, False
        if asleep:
            self.engine.wake("weights")
        self._transfer.push(weights)
        if asleep:
            self.engine.wake("kv_cache")
        self.engine.reset_prefix_cache()
        difference = self.probe()
        self._served.version, self._served.state = self.learner.version, state
        return {"sync_s": time.perf_counter() - started, "sampling/probe_difference": difference}

    def probe(self) -> float:
        """The mean absolute difference between the engine's log-probabilities and the learner's, in nats.

        The engine repeats its last prompts, whose keys and values a stale cache would still contain.

        Raises:
            EngineError: If the difference is more than the tolerance.
        """
        prompts = self._served.prompts or [[token % self.learner.vocab_size] for token in range(_PROBED_ROWS)]
        count = min(_PROBED_TOKENS, self.max_new_tokens or _PROBED_TOKENS)
        requests = [
            Request(prompt, seed, min(count, self._context_tokens() - len(prompt)))
            for seed, prompt in enumerate(prompts)
        ]
        # A greedy learner has no distribution to compare; its weights are the same at any temperature.
        policy = self.learner if self.learner.temperature > 0 else self.learner.at_temperature(1.0)
        # Without top-k, top-p and min-p, which both sides apply to the distribution compared here.
        completions = self.engine.generate(requests, Sampling(policy.temperature, (), **self._limits))
        differences = [
            self._difference(policy, prompt, completion)
            for prompt, completion in zip(prompts, completions, strict=True)
        ]
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
        logprobs = policy.forward(tokens, len(prompt), legal).logprobs[0].double().cpu().numpy()
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

    def _start(self, folder: Path) -> Engine:
        """Start vLLM with the learner's current model, or connect to the server."""
        if self.config.server is not None:
            return ServerEngine(self.config.server, api_key=self.config.api_key)
        if self.config.python is None and importlib.util.find_spec("vllm") is None:
            raise missing_dependency("vllm", "vllm", "engine 'vllm' (or name the interpreter that has it, python=PATH)")
        save_model(folder, merged(self.learner.model), None)
        backend = self._weight_transfer()
        settings = {
            "dtype": self._dtype(),
            "logprobs_mode": "processed_logprobs",
            "skip_tokenizer_init": True,
            "enable_prefix_caching": True,
            "enable_sleep_mode": self.config.sleep,
            "return_sampling_mask": "mask_bound" in self._limits,
            "weight_transfer_config": None if backend == "shared-memory" else {"backend": backend},
            **self.config.engine_args,
        }
        return ProcessEngine(folder, settings, python=self.config.python, environment=self.config.environment)

    def _make_transfer(self, engine: Engine, shapes: Mapping[str, Sequence[int]]) -> _Transfer:
        backend = self._weight_transfer()
        if backend == "shared-memory":
            return SharedMemoryTransfer(engine)
        from agents.policies.vllm.gpu_transfer import DeviceTransfer

        return DeviceTransfer(engine, backend, fitted(checkpoint_weights(self.learner.model), shapes))


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
