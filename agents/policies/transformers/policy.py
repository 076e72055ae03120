"""`CausalLMPolicy`: a `transformers` causal language model as a policy."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

import rlvr_envs
from agents.policies.transformers.acting import Actor
from agents.policies.transformers.config import PolicyConfig
from agents.policies.transformers.language_model import LanguageModel
from agents.policies.transformers.scoring import Scorer
from agents.policies.transformers.source import source_of
from agents.types import Action
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from agents.distributed.ranks import Sharding
    from agents.distributed.sharding import ShardedModule


class CausalLMPolicy(Scorer):
    """Samples one token for each row, and computes log-probabilities of batches with gradients.

    Args:
        model: Any `transformers` causal LM. It is put in evaluation mode and stays there: with dropout the stored
            log-probabilities would not be those of the distribution that is trained.
        config: Settings of sampling and computation.

    Raises:
        InvalidArgumentError: If the model has fewer tokens than `vocab_size`, or no layers that can be checkpointed if
            `checkpointing` is `"on"`.
    """

    def __init__(self, model: Any, config: PolicyConfig | None = None) -> None:
        config = config or PolicyConfig()
        self._set_up(LanguageModel(model, config), config)

    def _set_up(self, language_model: LanguageModel, config: PolicyConfig) -> None:
        super().__init__(language_model, config)
        self._actor = Actor(language_model, config)
        self.config = config
        self.model = language_model.module
        self.temperature, self.fast = config.temperature, config.fast
        self.vocab_size, self.precision = language_model.vocab_size, language_model.precision
        self.version = 0

    def at_temperature(self, temperature: float) -> CausalLMPolicy:
        """Return a policy with the same weights at another temperature, such as 0 for greedy evaluation."""
        policy = CausalLMPolicy.__new__(CausalLMPolicy)
        policy._set_up(self._lm, dataclasses.replace(self.config, temperature=temperature))
        return policy

    def with_model(self, model: Any) -> CausalLMPolicy:
        """Return a policy with the same settings on another model, such as a copy of this policy's model."""
        return self.at_temperature(self.temperature) if model is self.model else CausalLMPolicy(model, self.config)

    def shard(self, sharding: Sharding) -> None:
        """Divide the weights among the ranks, all of which call this; from then on the ranks make all passes together.

        Raises:
            RankError: If the weights differ between ranks.
        """
        self._lm.shard(sharding)

    @property
    def sharded(self) -> ShardedModule | None:
        """The model with its weights divided among ranks; None if this process has all weights."""
        return self._lm.sharded

    @property
    def learner(self) -> CausalLMPolicy:
        """This policy itself."""
        return self

    def sampling(self) -> contextlib.AbstractContextManager[dict[str, float]]:
        """A context for rollouts with the trained weights themselves; divided weights are gathered within it, on all ranks."""
        return contextlib.nullcontext({}) if self.sharded is None else self._gathered(self.sharded)

    @contextlib.contextmanager
    def _gathered(self, sharded: ShardedModule) -> Iterator[dict[str, float]]:
        with sharded.gathered():
            yield {}
        self._actor.release_cache()

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Announce new episodes in some rows, with their sampling seeds u64[r]."""
        self._actor.begin(rows, seeds)

    def act(
        self,
        observation: rlvr_envs.Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        """Choose the next token of each row; see `Policy.act`. The same observation always gives the same action.

        Raises:
            InvalidArgumentError: If observations are longer than the model's context, or the mask has another shape or allows
                a row no token.
            DivergedError: If the weights have diverged.
        """
        if self.sharded is not None and not self.sharded.is_gathered:
            raise InvalidArgumentError(
                "the weights are divided among ranks, so one of them can't act by itself: act within "
                "`with policy.sampling():`, which all ranks enter together"
            )
        action = self._actor.act(observation, action_mask, rows)
        if observation["tokens"].ndim > 1:
            return action
        kept = None if action.kept is None else action.kept[0]
        return Action(action.tokens[0], action.counts[0], action.logprobs[0], kept)

    def rows_at_once(self, width: int) -> int | None:
        """The number of rows of up to `width` tokens that fit into the cache, at least 1; None if unlimited."""
        return self._actor.rows_at_once(width)

    def weights_changed(self) -> None:
        """Count a new version of the weights, and drop the KV cache.

        Other policies on the same model drop their caches when they act next. All of them also detect changes that `torch`
        counts: in-place operations, also under `no_grad`, and therefore `load_state_dict`. `torch` does not count changes by
        fused optimisers, or changes of a parameter's `data`: call this method after such a change.
        """
        self.version += 1
        self._lm.count_change()
        self._actor.forget()

    def release_cache(self) -> None:
        """Free the KV cache and a copy of weights; rows that continue are computed from scratch."""
        self._actor.release_cache()
        self._lm.release_copy()

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """A context with the model's precision, for sampling and training."""
        return self._lm.autocast()

    def parameters(self) -> Sequence[torch.nn.Parameter]:
        """The trainable weights."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    @property
    def is_half(self) -> bool:
        """Whether the model computes in half precision, in which sampling and training passes differ noticeably."""
        return self._lm.is_half

    @property
    def saved_dtype(self) -> torch.dtype | None:
        """The type in which weights are saved, by `save_dtype`; None for the weights' own type."""
        source = source_of(self.model)
        if self.config.save_dtype == "source":
            return None if source is None else source.dtype
        dtype: torch.dtype = getattr(torch, self.config.save_dtype)
        return dtype

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self._lm.device

    @property
    def state_size(self) -> int:
        """The size d of the inputs of the output layer."""
        return int(self.model.get_output_embeddings().weight.shape[1])
