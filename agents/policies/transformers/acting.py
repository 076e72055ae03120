"""`Actor`: samples one token for each row, with a KV cache.

The cache never affects correctness: every observation is compared with the cached tokens, and rows that differ are computed
from scratch. Plain `act(observation)` loops, refilled rows, restored states and forks are therefore supported.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import rlvr_envs
from agents.policies.transformers.config import PolicyConfig
from agents.policies.transformers.kv_cache import CacheKind, Grouping, RowCache, read_without_cache
from agents.policies.transformers.language_model import LOGITS_AT_ONCE, LanguageModel
from agents.policies.transformers.memory import cacheable_tokens
from agents.policies.transformers.rows import Rows
from agents.policies.transformers.sampling import kept_tokens, sample, scaled_logprobs
from agents.seeding import uniforms
from agents.types import Action
from verifiers import DivergedError, InvalidArgumentError
from verifiers.devices import float64_device

_LOGGER = logging.getLogger(__name__)
_PROMPT_TOKENS_AT_ONCE = 2**16
"""Largest number of tokens in one forward pass over prompts when sampling, including padding."""
_Read = tuple[Tensor | None, list[int]]
"""Logits f[r v] of the next token, and their rows; None if there are no rows."""


class Actor:
    """Chooses the next token of each row."""

    def __init__(self, language_model: LanguageModel, config: PolicyConfig) -> None:
        self._lm = language_model
        self._config = config
        self._rows = Rows(config.seed, (language_model.vocab_size + 7) // 8)
        self._acted_with = language_model.weights_version()
        self._room: int | None = None  # number of tokens that the cache may hold, once it is known
        self._cache = self._new_cache()
        self._slots: list[int] = []  # the row that each slot of the cache belongs to

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Announce new episodes in some rows, with their sampling seeds u64[r]."""
        self._rows.begin(rows, seeds)

    def forget(self) -> None:
        """Drop keys, values and choices, since the weights have changed."""
        self._acted_with = self._lm.weights_version()
        self.release_cache()
        self._rows.current[:] = False

    def release_cache(self) -> None:
        """Free the KV cache; rows that continue are computed from scratch."""
        self._cache = self._new_cache()
        self._slots = []
        self._room = None

    def rows_at_once(self, width: int) -> int | None:
        """The number of rows of up to `width` tokens that fit into the cache, at least 1; None if unlimited."""
        if self._lm.cache_kind is CacheKind.NONE:
            return None
        if self._room is None:
            self._room = self._config.max_cached_tokens or cacheable_tokens(self._lm.module, self._lm.value_bytes)
        return None if self._room is None else max(1, self._room // width)

    @torch.no_grad()
    def act(
        self, observation: rlvr_envs.Observation, action_mask: NDArray[np.int8] | None, asked: NDArray[np.bool_] | None
    ) -> Action:
        """Choose the next token of each requested row; see `CausalLMPolicy.act`."""
        tokens = np.atleast_2d(observation["tokens"])
        length = observation["length"].reshape(-1).astype(np.int64)
        self._lm.check_context(tokens.shape[1])
        self._rows.fit(*tokens.shape)
        if self._acted_with != self._lm.weights_version():  # the weights were changed, through any policy
            self.forget()
        asked = (length > 0) if asked is None else asked & (length > 0)
        legal = None if action_mask is None else self._legal_tokens(np.atleast_2d(action_mask), asked)
        action, grown, fresh = self._sort(tokens, length, asked)
        beyond = self._beyond_the_cache(grown, fresh, tokens.shape[1])
        fresh &= ~beyond
        if not self._cache.mergeable and fresh.any():
            grown, fresh = np.zeros_like(grown), fresh | grown
        with self._lm.autocast():
            self._cache.model = self._lm.module_for_sampling()
            reads = self._lm.run(
                lambda: (
                    self._decode(tokens, grown),
                    self._prefill(tokens, length, fresh),
                    self._read_uncached(tokens, length, beyond),
                )
            )
        for logits, rows in reads:
            if logits is not None:
                self._choose(logits, np.array(rows), length, legal, action)
        self._rows.remember(tokens, length, grown | fresh | beyond, action)
        return action

    def _sort(
        self, tokens: NDArray[np.int32], length: NDArray[np.int64], asked: NDArray[np.bool_]
    ) -> tuple[Action, NDArray[np.bool_], NDArray[np.bool_]]:
        """The previous choices for unchanged rows, the rows that grew by one token, and the rows to compute from scratch."""
        read = self._rows.length[: len(tokens)]
        same = self._rows.begins_with_what_was_read(tokens)
        unchanged = asked & same & (length == read) & self._rows.current[: len(tokens)]
        grown = asked & same & self._held(len(tokens)) & (length == read + 1)
        fresh = asked & ~unchanged & ~grown
        self._rows.seed_unannounced(fresh & ~(same & (length >= read)))
        return self._rows.recall(len(tokens), unchanged, with_kept=self._config.leaves_tokens_out), grown, fresh

    def _legal_tokens(self, mask: NDArray[np.int8], asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The mask as bool[b v], checked before any computation, so that a failed call has no effect."""
        if mask.shape != (len(asked), self._lm.vocab_size):
            raise InvalidArgumentError(
                f"an action mask must have a row for each observation and a column for each of the policy's tokens, "
                f"{(len(asked), self._lm.vocab_size)}, got {mask.shape}: use the same tokenizer for policy and environment"
            )
        legal = mask.astype(bool)
        stuck = np.flatnonzero(asked & ~legal.any(axis=1))
        if len(stuck):
            raise InvalidArgumentError(
                f"the action mask allows row {stuck[0]} no token at all: legal_actions must allow at least one, such as a stop "
                "token"
            )
        return legal

    # Reading

    def _beyond_the_cache(self, grown: NDArray[np.bool_], fresh: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
        """The rows that do not fit into the cache even after rows that were not requested are evicted."""
        slots = self.rows_at_once(width)
        beyond = np.zeros_like(fresh)
        if slots is None:
            return beyond
        if not grown.any() and len(self._slots) + int(fresh.sum()) > slots:
            self.release_cache()
        beyond[np.flatnonzero(fresh)[max(slots - int(grown.sum()), 0) :]] = True
        if beyond.any():
            _say_beyond(slots, width)
        return beyond

    def _held(self, num_rows: int) -> NDArray[np.bool_]:
        """The rows whose keys and values are in the cache."""
        self._keep(np.array(self._slots, dtype=np.int64) < num_rows)
        held = np.zeros(num_rows, dtype=bool)
        held[self._slots] = True
        return held

    def _keep(self, kept: NDArray[np.bool_]) -> None:
        """Drop the slots of the cache that are not kept."""
        self._cache.keep([slot for slot, keep in enumerate(kept) if keep])
        self._slots = [row for row, keep in zip(self._slots, kept, strict=True) if keep]

    def _decode(self, tokens: NDArray[np.int32], grown: NDArray[np.bool_]) -> _Read:
        """Process the new token of rows that grew by one; other rows are dropped from the cache."""
        kept = grown[self._slots]
        if not kept.any():
            return None, []
        self._keep(kept)
        newest = tokens[self._slots, self._rows.length[self._slots]]
        return self._cache.append(torch.from_numpy(newest.astype(np.int64))), list(self._slots)

    def _prefill(self, tokens: NDArray[np.int32], length: NDArray[np.int64], fresh: NDArray[np.bool_]) -> _Read:
        """Process the whole prefix of rows that are not in the cache; equal prefixes are processed once."""
        if self._lm.cache_kind is CacheKind.NONE:
            return self._read_uncached(tokens, length, fresh)
        rows = np.flatnonzero(fresh).tolist()
        if not rows:
            return None, []
        self._keep(~fresh[self._slots])
        unique, repeats = _distinct([tokens[row, : length[row]].astype(np.int64) for row in rows])
        if not self._cache.mergeable:
            model = self._cache.model
            self._cache, self._slots = self._new_cache(), rows
            self._cache.model = model
            return self._cache.prefill(unique, repeats), rows
        logits, chosen = [], []
        for chunk in _chunks(unique):
            members = [slot for slot, prompt in enumerate(repeats.tolist()) if prompt in chunk]
            groups = len(chunk) < len(members) and self._lm.groups_rows
            added = self._new_cache(Grouping.IF_CHEAPER if groups else Grouping.NEVER)
            added.model = self._cache.model
            logits.append(added.prefill([unique[prompt] for prompt in chunk], repeats[members] - chunk.start))
            self._cache.extend(added)
            chosen += [rows[slot] for slot in members]
        self._slots = self._slots + chosen
        return torch.cat(logits), chosen

    def _new_cache(self, grouping: Grouping = Grouping.NEVER) -> RowCache:
        lm = self._lm
        return RowCache(lm.module, lm.cache_kind, positions=lm.takes_positions, grouping=grouping)

    def _read_uncached(self, tokens: NDArray[np.int32], length: NDArray[np.int64], asked: NDArray[np.bool_]) -> _Read:
        """Process the whole prefix of rows without caching."""
        rows = np.flatnonzero(asked).tolist()
        if not rows:
            return None, []
        prefixes = [tokens[row, : length[row]].astype(np.int64) for row in rows]
        if self._config.fast:
            unique, repeats = _distinct(prefixes)
        else:
            unique, repeats = [torch.from_numpy(prefix) for prefix in prefixes], torch.arange(len(rows))
        logits = [read_without_cache(self._cache.model, unique[chunk.start : chunk.stop]) for chunk in _chunks(unique)]
        return torch.cat(logits)[repeats], rows

    # Choosing

    def _choose(
        self,
        logits: Tensor,
        rows: NDArray[np.int64],
        length: NDArray[np.int64],
        legal: NDArray[np.bool_] | None,
        action: Action,
    ) -> None:
        """Choose a token for each of some rows from their logits [r v], a few rows at once, and write it into the action."""
        size = max(1, LOGITS_AT_ONCE // self._lm.vocab_size)
        logits = logits.to(float64_device(logits.device))
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            scores = logits[start : start + size, : self._lm.vocab_size]
            mask = None if legal is None else torch.from_numpy(legal[some]).to(logits.device)
            if self._config.temperature == 0:
                tokens, logprobs, kept = *_likeliest(scores, mask), None
            else:
                u = torch.from_numpy(uniforms(self._rows.seeds[some], length[some])).to(logits.device)
                tokens, logprobs, kept = self._sampled(scores, mask, u)
            action.tokens[some, 0] = tokens.cpu().numpy()
            action.logprobs[some, 0] = logprobs.cpu().numpy()
            action.counts[some] = 1
            if kept is not None and action.kept is not None:
                action.kept[some, 0] = np.packbits(kept.cpu().numpy(), axis=1)

    def _sampled(self, logits: Tensor, legal: Tensor | None, u: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Tokens i64[r] selected by numbers u f64[r], their log-probabilities f32[r], and the candidates bool[r v].

        The candidates are None if they are all legal tokens.
        """
        config, kept = self._config, None
        logprobs = scaled_logprobs(logits, config.temperature, legal)
        _check_finite(logprobs)
        if config.leaves_tokens_out:
            kept = kept_tokens(logprobs, top_k=config.top_k, top_p=config.top_p, min_p=config.min_p)
            logprobs = scaled_logprobs(logits, config.temperature, kept)
        tokens = sample(logprobs, u, blocks=config.fast)
        return tokens, logprobs.gather(-1, tokens[:, None])[:, 0], kept


def _likeliest(logits: Tensor, legal: Tensor | None) -> tuple[Tensor, Tensor]:
    """The likeliest legal tokens i64[r], and NaN f32[r] as log-probabilities, since they are not sampled."""
    masked = logits if legal is None else logits.masked_fill(~legal, -torch.inf)
    _check_finite(masked)
    return masked.argmax(dim=-1), torch.full((len(logits),), torch.nan)


@functools.cache  # once
def _say_beyond(slots: int, width: int) -> None:
    _LOGGER.warning(
        "the KV cache has room for %d rows of up to %d tokens; further rows are computed from scratch at every token, which is "
        "slow: play fewer rows at once, or raise max_cached_tokens",
        slots,
        width,
    )


def _distinct(prefixes: Sequence[NDArray[np.int64]]) -> tuple[list[Tensor], Tensor]:
    """The distinct prefixes, and i64[r], the index of each prefix among them."""
    order: dict[bytes, int] = {}
    repeats = torch.tensor([order.setdefault(prefix.tobytes(), len(order)) for prefix in prefixes])
    return [torch.from_numpy(np.frombuffer(key, dtype=np.int64).copy()) for key in order], repeats


def _chunks(prompts: Sequence[Tensor]) -> Iterator[range]:
    """Consecutive prompts whose padded tokens are at most `_PROMPT_TOKENS_AT_ONCE`, or a single longer prompt."""
    start, width = 0, 0
    for number, prompt in enumerate(prompts):
        width = max(width, len(prompt))
        if number > start and (number + 1 - start) * width > _PROMPT_TOKENS_AT_ONCE:
            yield range(start, number)
            start, width = number, len(prompt)
    yield range(start, len(prompts))


def _check_finite(scores: Tensor) -> None:
    """Check that each row of logits or log-probabilities f[r v], each with a legal token, has a finite maximum."""
    if not bool(torch.isfinite(scores.amax(dim=-1)).all()):
        raise DivergedError("the model's logits are not finite: its weights have diverged; lower the learning rate")
