"""`VLLMPolicy`: sampling by vLLM, with the weights of the policy being trained.

vLLM samples whole completions: one `act` returns all tokens of the finished completions, which `step_many` takes at once, and
no tokens of the unfinished ones. So the rows of finished episodes begin new episodes meanwhile. The engine does not know all
ends of an episode, such as stop strings; the environment drops the tokens after such an end. The engine's log-probabilities
are those of its sampling distribution, with the learner's temperature and vocabulary; kernels and precision differ from the
learner's, so an agent weights its samples by truncated importance sampling.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rlvr_envs
from agents.policies.transformers.policy import CausalLMPolicy
from agents.policies.vllm.config import VLLMConfig
from agents.policies.vllm.engine import (
    Engine,
    Request,
    SampledCompletion,
    Sampling,
)
from agents.policies.vllm.engine_group import EngineGroup, Load
from agents.policies.vllm.engine_weights import EngineWeights
from agents.policies.vllm.launcher import EngineLauncher, check_layers
from agents.policies.vllm.rows import Rows
from agents.seeding import mix
from agents.types import Action
from verifiers import (
    EngineError,
    InvalidArgumentError,
)

_LOWEST_TEMPERATURE, _HIGHEST_TEMPERATURE = 0.01, 2.0


class VLLMPolicy:
    """Samples whole completions with an engine that receives the learner's weights.

    Pass this policy to an agent as `sampler`, and close it in the end, or use it as a context manager.

    The sampling of a row depends on its episode's seed, its number of tokens and the weights, and, by rounding, on the other
    requests of the engine. The same observation always gives the same action, so an act loop without `begin` that plays a
    prompt twice in succession in the same row gets the same completion twice: see docs/vllm.md.

    Args:
        policy: The policy to train, whose weights, temperature, vocabulary, top-k, top-p and min-p are used. Top-k, top-p and
            min-p need an engine that reports which tokens it kept: vLLM on a GPU.
        config: Settings of vLLM.
        stop_tokens: The tokens that end a turn in the environment; see `for_env`.
        max_new_tokens: Length of the longest completion; None for the length of the observation's buffer.
        legal_tokens: i8[v], 1 for tokens that the environment allows; None if all are legal.
        engine: An engine or a group of engines, to use in place of the engines that `config` describes.

    Raises:
        EngineError: If the engine does not start.
        InvalidArgumentError: If the engine has a different model from the policy's, or does not support these legal tokens.
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
        _check_tokens(policy.vocab_size, self.stop_tokens, legal_tokens)
        self._limits = self._token_limits()
        if self.config.engine_args.get("return_sampling_mask", self._sampling().leaves_out):
            self._limits["mask_bound"] = self._model_tokens()
        launcher = EngineLauncher(policy, self.config, reports_kept="mask_bound" in self._limits)
        self.engines = launcher.group(engine)
        self._weights = EngineWeights(
            self.engines, self.config, self._limits, legal_tokens, self._context_tokens(policy)
        )
        self._transferred: dict[str, float] | None = None  # metrics of a transfer that is not repeated
        self._readings = itertools.count(1)  # counts seeds without an announcement, for policies of all temperatures
        self._forget_rows()
        try:
            self._weights.check(policy)
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
        """The version of the learner's weights that the engines have."""
        return self._weights.version

    def at_temperature(self, temperature: float) -> VLLMPolicy:
        """Return a policy with the same engine at another temperature, such as 0 for greedy evaluation."""
        other = copy.copy(self)
        other.temperature = _checked_temperature(temperature)
        other._forget_rows()
        return other

    def interrupted_after(self, tokens: int) -> VLLMPolicy:
        """Return a policy with the same engine that returns completions after at most this many tokens, finished or not.

        A later `act` continues the unfinished completions.
        """
        other = copy.copy(self)
        other.max_new_tokens = min(tokens, self.max_new_tokens or tokens)
        other._forget_rows()
        return other

    def with_learner(self, policy: CausalLMPolicy) -> VLLMPolicy:
        """Return a policy with the same engine that takes its weights from another policy of the same model."""
        other = copy.copy(self)
        other.learner = policy
        other._forget_rows()
        return other

    def transferred(self) -> VLLMPolicy:
        """Transfer the learner's weights, and return a policy that samples with them; see `agents.types.TakesLayers`."""
        other = copy.copy(self)
        other._transferred = self.sync()
        other._forget_rows()
        return other

    def close(self) -> None:
        """Stop the engines that were started here, or close the connections to servers."""
        self.engines.close()

    def __enter__(self) -> VLLMPolicy:
        return self

    def __exit__(self, *_: object) -> None:
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
        """Sample each row's completion, and return the completions that are finished; see `Policy.act`.

        The unfinished completions continue; a later call with the same observation of their rows returns them.

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
        check_mask(action_mask, asked, self.legal_tokens)
        self._request(asked, tokens, length, np.minimum(room, self.max_new_tokens or width))
        ready = asked[self.engines.wait(self._rows.tickets(asked), self._reload, every=not self.config.streaming)]
        action = action_of(
            (count, self.learner.vocab_size),
            ready,
            self._rows.take(ready),
            greedy=self.temperature == 0,
            leaves_out=self._sampling().leaves_out,
            legal=self.legal_tokens,
            masked=action_mask is not None,
        )
        return _first_row(action) if single else action

    def _request(
        self,
        asked: NDArray[np.int64],
        tokens: NDArray[np.int32],
        length: NDArray[np.int64],
        limit: NDArray[np.int64],
    ) -> None:
        """Request completions for the rows without a request under way."""
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

        Every request lists these tokens, and the vocabulary of many models is a few hundred tokens smaller than their output
        layer.
        """
        allowed = np.zeros(self._model_tokens(), dtype=bool)
        allowed[: self.learner.vocab_size] = True if self.legal_tokens is None else self.legal_tokens
        if 2 * np.count_nonzero(allowed) < len(allowed):
            return {"allowed_tokens": tuple(np.flatnonzero(allowed).tolist())}
        return {"forbidden_tokens": tuple(np.flatnonzero(~allowed).tolist())}

    def _model_tokens(self) -> int:
        """Number of the model's tokens; tokens beyond the vocabulary are never sampled."""
        return int(self.learner.model.get_output_embeddings().weight.shape[0])

    def _check_width(self, width: int) -> None:
        context = self._context_tokens(self.learner)
        if width > context:
            raise InvalidArgumentError(
                f"the environment's episodes have up to {width} tokens, including the prompt, but the engine's context holds "
                f"{context}: lower max_new_tokens or max_prompt_tokens, raise max_model_len, or use another model"
            )

    def _context_tokens(self, policy: CausalLMPolicy) -> int:
        """The longest sequence that the engine accepts, as far as is known here."""
        context = getattr(policy.model.config.get_text_config(), "max_position_embeddings", None)
        most = self.config.max_model_tokens or context
        return np.iinfo(np.int64).max if most is None else int(most)

    @property
    def _reload(self) -> Load | None:
        """Gives an engine that was started again the weights that it had before."""
        return partial(self._weights.reload, self.learner) if self._weights.can_reload(self.learner) else None

    def _forget_rows(self) -> None:
        self._rows = Rows(self.engines, self._new_seed)

    def _new_seed(self) -> NDArray[np.uint64]:
        """A seed u64[1] for episodes that were not announced to the policy."""
        origin = np.array([self.learner.config.seed % 2**64, next(self._readings)], dtype=np.uint64)
        return mix(mix(origin[:1]) ^ origin[1:])

    # Weights

    @contextlib.contextmanager
    def sampling(self) -> Iterator[dict[str, float]]:
        """A context in which the engines have the weights that the learner had at its start; yields transfer metrics."""
        metrics = self.sync() if self._transferred is None else self._transferred
        try:
            yield metrics
            self._weights.require_kept(self.learner)
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
            self._weights.sleep(self.learner)

    def check_layers(self) -> None:
        """Check that the weights can be transferred layer by layer; see `agents.types.TakesLayers`."""
        check_layers(self.learner, self.config)

    def sync(self) -> dict[str, float]:
        """Transfer the learner's weights to engines that do not have them, and compare log-probabilities of a few tokens.

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
        return self._weights.sync(self.learner)

    def probe(self) -> float:
        """The largest mean absolute difference between an engine's log-probabilities and the learner's, in nats.

        An engine repeats its last prompts, whose keys and values a stale cache would still contain.

        Raises:
            EngineError: If the difference is more than the tolerance, or all engines are dead.
        """
        differences = self._weights.probe(self.learner, self.engines.living)
        self.engines.require_living()
        return max(differences)


def _check_tokens(vocab_size: int, stop_tokens: tuple[int, ...], legal_tokens: NDArray[np.int8] | None) -> None:
    if legal_tokens is not None and legal_tokens.shape != (vocab_size,):
        raise InvalidArgumentError(
            f"legal_tokens must have one entry for each of the policy's {vocab_size} tokens, got shape {legal_tokens.shape}"
        )
    if any(not 0 <= token < vocab_size for token in stop_tokens):
        raise InvalidArgumentError(f"stop tokens must be below {vocab_size}, got {stop_tokens}")


def _checked_temperature(temperature: float) -> float:
    """Check that vLLM uses this temperature unchanged: it rejects very high temperatures and raises very low ones."""
    if temperature != 0 and not _LOWEST_TEMPERATURE <= temperature <= _HIGHEST_TEMPERATURE:
        raise InvalidArgumentError(
            f"vLLM samples at temperature 0 and from {_LOWEST_TEMPERATURE} to {_HIGHEST_TEMPERATURE}, got {temperature}"
        )
    return temperature


def _first_row(action: Action) -> Action:
    return Action(
        action.tokens[0], action.counts[0], action.logprobs[0], None if action.kept is None else action.kept[0]
    )


def action_of(
    shape: tuple[int, int],
    rows: NDArray[np.int64],
    completions: Sequence[SampledCompletion],
    *,
    greedy: bool,
    leaves_out: bool,
    legal: NDArray[np.int8] | None,
    masked: bool,
) -> Action:
    """The action that gives some rows their completions, and all other rows no token.

    Args:
        shape: The numbers b of rows and v of tokens.
        rows: i64[r], the rows of the completions.
        completions: The completions of these rows.
        greedy: Whether completions consist of the likeliest tokens, which have no log-probabilities to learn from.
        leaves_out: Whether top-k, top-p or min-p leave tokens out, so that each choice needs its candidates.
        legal: i8[v], 1 for tokens that the environment allows; None if all are legal.
        masked: Whether the environment limits tokens.

    Raises:
        EngineError: If tokens are left out and the engine does not report which tokens it kept.
    """
    count, size = shape
    width = max((len(completion.tokens) for completion in completions), default=1)
    kept = None
    if leaves_out:
        candidates = _candidates((count, width, size), rows, completions)
        # A forbidden token may be among the k likeliest if hardly any other tokens are left.
        kept = np.packbits(candidates if legal is None else candidates & legal.astype(bool), axis=-1)
    elif masked:
        assert legal is not None
        packed = np.packbits(legal.astype(bool))
        kept = np.broadcast_to(packed, (count, width, len(packed)))
    action = Action(
        np.zeros((count, width), dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.zeros((count, width), dtype=np.float32),
        kept,
    )
    for row, completion in zip(rows.tolist(), completions, strict=True):
        length = len(completion.tokens)
        action.tokens[row, :length] = completion.tokens
        action.logprobs[row, :length] = np.nan if greedy else completion.logprobs
        action.counts[row] = length
    return action


def _candidates(
    shape: tuple[int, int, int], rows: NDArray[np.int64], completions: Sequence[SampledCompletion]
) -> NDArray[np.bool_]:
    """The tokens bool[b n v] from which each choice was made."""
    kept = np.zeros(shape, dtype=bool)
    for row, completion in zip(rows.tolist(), completions, strict=True):
        if completion.kept is None or len(completion.kept) != len(completion.tokens):
            raise EngineError(
                "the engine does not report which tokens top-k, top-p and min-p kept, which training needs: leave them "
                "out, or start a server with --return-sampling-mask on a GPU"
            )
        for position, tokens in enumerate(completion.kept):
            kept[row, position, [token for token in tokens if token < shape[-1]]] = True
    return kept


def check_mask(mask: NDArray[np.int8] | None, asked: NDArray[np.int64], legal: NDArray[np.int8] | None) -> None:
    """Check that the mask i8[b v] of each requested row is the engine's set of legal tokens i8[v]."""
    if mask is None:
        return
    if legal is None or (np.atleast_2d(mask)[asked].astype(bool) != legal.astype(bool)).any():
        raise InvalidArgumentError(
            "the environment restricts the legal tokens, and vLLM takes one set of them for all steps: pass the mask of a "
            "FixedActions to VLLMPolicy as legal_tokens (`for_env` does), and sample with the policy itself where the "
            "legal tokens change"
        )
