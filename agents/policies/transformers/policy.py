"""`CausalLMPolicy`: a `transformers` causal language model as a policy."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from agents.batch import Batch
from agents.policies.transformers.kv_cache import (
    CacheKind,
    Grouping,
    RowCache,
    cache_kind,
    can_group,
    read_without_cache,
)
from agents.policies.transformers.logprobs import token_logprobs_and_entropy, token_logprobs_by_autograd
from agents.policies.transformers.memory import (
    Checkpointing,
    cacheable_tokens,
    checkpointed,
    checkpoints,
    require_checkpointable,
)
from agents.policies.transformers.model_capabilities import (
    LogitTransform,
    body_of,
    can_share,
    costs_of,
    logit_transform,
    takes_positions,
)
from agents.policies.transformers.prefix_sharing import (
    Costs,
    Layout,
    is_cheaper,
    mask_entries,
    plan,
    relative_cost,
    shared_prefix_attention,
)
from agents.policies.transformers.sampling import kept_tokens, require_temperature, sample, scaled_logprobs
from agents.seeding import mix, uniforms
from agents.types import Action
from rlvr_envs import Observation
from verifiers import DivergedError, InvalidArgumentError, unknown_name

_LOGGER = logging.getLogger(__name__)
_PROMPT_TOKENS_AT_ONCE = 2**16
"""Most tokens of one forward pass over prompts when sampling, padding included."""
_LOGITS_AT_ONCE = 2**24
"""Most logits that are worked on at once, learning or choosing tokens; 64 MiB in float32, of which either needs several
copies."""


@dataclass(frozen=True)
class TokenOutputs:
    """What a policy's forward pass says of t tokens in each of b rows."""

    logprobs: Float[Tensor, "b t"]
    """f32, of the tokens that are there."""
    entropy: Float[Tensor, "b t"]
    """f32, of the distributions they came from, in nats."""
    states: Float[Tensor, "b t+1 d"] | None = None
    """What the output layer reads: the state before each token, and the one after the last."""
    shared: bool = False
    """Whether rows that begin alike were read together; nothing is then said of tokens before a row's first on the loss mask,
    nor of rows that have none: log-probabilities, entropy and states are 0."""


class CausalLMPolicy:
    """Samples one token for each row, with cached keys and values.

    The cache is only a shortcut: every observation is compared with the tokens the cache has read, and rows that differ
    are read anew. A plain `act(observation)` loop, refilled rows, restored states and forks are therefore all right.

    Args:
        model: Any `transformers` causal LM. It is put in evaluation mode and stays there: with dropout the stored
            log-probabilities would not be those of the distribution that is trained.
        temperature: Divides the logits when sampling and when training alike; 0 chooses the likeliest token, for
            evaluation only (its log-probabilities are NaN).
        top_k: Choose among the k likeliest tokens only; see `kept_tokens` in `agents.policies.transformers.sampling`. What is
            left is the distribution whose log-probabilities are stored and learned; the tokens that are left are stored with
            each token.
        top_p: Choose among the likeliest tokens that make up this share.
        min_p: Choose among tokens at least this times as likely as the likeliest.
        vocab_size: Number of tokens to choose from, the first of the model's; by default all.
        seed: Decides the sampling of episodes that were not announced by `begin`.
        precision: Of matrix products; weights keep theirs. `"auto"` is bfloat16 for float32 weights on a GPU that has it,
            and else the weights' own.
        checkpointing: Whether the backward pass computes activations again in place of keeping them; `"auto"`: on a GPU whose
            free memory they would not fit in.
        shared_prefix: Read what rows of a group have in common once when learning, and keep its keys and values once when
            sampling, where that is less work and the model allows it; it changes nothing beyond rounding.
        max_cached_tokens: Most tokens whose keys and values are kept, padding included; None: what a GPU's free memory has room
            for, and no limit on a CPU. A rollout plays no more rows at once than fit; elsewhere, rows beyond that are read anew
            at every token.
        fast: False turns all that is there for speed off: no cache, no sharing of prompts in sampling or learning, gradients by
            autograd alone, all logits at once. It changes nothing beyond rounding, and is there to show just that.

    Raises:
        InvalidArgumentError: If a number is out of its range, the model has fewer tokens than `vocab_size`, or no layers
            that can be checkpointed where `checkpointing` is `"on"`.
        UnknownNameError: If there is no such precision or checkpointing; the message offers the nearest.
    """

    def __init__(
        self,
        model: Any,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        min_p: float = 0.0,
        vocab_size: int | None = None,
        seed: int = 0,
        precision: Literal["auto", "float32", "bfloat16"] = "auto",
        checkpointing: Checkpointing = "auto",
        shared_prefix: bool = True,
        max_cached_tokens: int | None = None,
        fast: bool = True,
    ) -> None:
        require_temperature(temperature)
        _check_count("top_k", top_k, "None leaves no token out")
        if not (0 < top_p <= 1 and 0 <= min_p <= 1):
            raise InvalidArgumentError(f"top_p is in (0, 1] and min_p in [0, 1], got {top_p} and {min_p}")
        _check_choices(precision, checkpointing)
        _check_count("max_cached_tokens", max_cached_tokens, "fast=False does without a cache")
        require_checkpointable(model, checkpointing)
        self.model = model.eval()
        self.temperature = temperature
        self.vocab_size = _vocab_size(model, vocab_size)
        self.top_k, self.top_p, self.min_p = top_k, top_p, min_p
        self.seed = seed
        self.precision = _precision(model) if precision == "auto" else precision
        self.checkpointing = checkpointing
        self.shared_prefix = shared_prefix
        self.max_cached_tokens = max_cached_tokens
        self.fast = fast
        self._sharing: bool | None = None
        self._grouping: bool | None = None
        self._shared_last: bool | None = None  # how the last micro-batch was read, where there was a choice
        self._room: int | None = None  # tokens that the cache may hold, once that has been found out
        self.version = 0
        # Tensors of inference mode have no count of changes.
        self._weights = [each for each in self.model.parameters() if not each.is_inference()]
        self._acted_with = self._state_of_weights()
        self._kind = cache_kind(self.model) if fast else CacheKind.NONE
        self._context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._positions = takes_positions(model)
        self._cache = self._new_cache()
        self._slots: list[int] = []  # the row that each slot of the cache belongs to
        self._tokens = np.zeros((0, 0), dtype=np.int32)
        self._length = np.zeros(0, dtype=np.int64)
        self._seeds = np.zeros(0, dtype=np.uint64)
        self._announced = np.zeros(0, dtype=bool)
        self._current = np.zeros(0, dtype=bool)  # whether the row's last choice came from the weights as they are
        self._last_tokens = np.zeros(0, dtype=np.int64)
        self._last_logprobs = np.zeros(0, dtype=np.float32)
        self._leaves_out = temperature > 0 and (top_k is not None or top_p < 1 or min_p > 0)
        self._last_kept = np.zeros((0, (self.vocab_size + 7) // 8), dtype=np.uint8)
        self._readings = 0

    def at_temperature(self, temperature: float) -> CausalLMPolicy:
        """Give a policy on the same weights at another temperature, such as 0 for greedy evaluation."""
        policy = self.with_model(self.model, temperature=temperature)
        policy._sharing, policy._grouping = self._sharing, self._grouping  # no need to try the same model again
        return policy

    def with_model(self, model: Any, *, temperature: float | None = None) -> CausalLMPolicy:
        """Give a policy with the same settings on another model, such as a copy of this one's."""
        return CausalLMPolicy(
            model,
            temperature=self.temperature if temperature is None else temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            vocab_size=self.vocab_size,
            seed=self.seed,
            precision=self.precision,
            checkpointing=self.checkpointing,
            shared_prefix=self.shared_prefix,
            max_cached_tokens=self.max_cached_tokens,
            fast=self.fast,
        )

    # Acting

    @property
    def learner(self) -> CausalLMPolicy:
        """Itself."""
        return self

    def sampling(self) -> contextlib.AbstractContextManager[dict[str, float]]:
        """Nothing has to be done before acting: what acts is what learns."""
        return contextlib.nullcontext({})

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Announce new episodes and the seeds u64[r] of their sampling."""
        self._fit(int(rows.max(initial=-1)) + 1, 0)
        self._seeds[rows] = seeds
        self._announced[rows] = True
        self._length[rows] = 0
        self._current[rows] = False

    def weights_changed(self) -> None:
        """Count a new version of the weights; what the cache holds of the old ones is dropped.

        Other policies on the same model drop what they hold when they act next. They and this one also notice by themselves
        what `torch` counts as a change of a tensor: operations in place, under `no_grad` too, and so `load_state_dict`. It does
        not count fused optimisers, nor what is done to a parameter's `data`: call this after either.
        """
        self.version += 1
        # On behalf of fused optimisers, such as the learner's.
        torch.autograd.graph.increment_version(self._weights)
        self._forget()

    def _forget(self) -> None:
        self._acted_with = self._state_of_weights()
        self.release_cache()
        self._current[:] = False

    def _state_of_weights(self) -> int:
        """A number that grows when weights change; a sum over all, in microseconds."""
        return sum([parameter._version for parameter in self._weights])

    def _forget_older_weights(self) -> None:
        """Drop keys, values and choices of weights that have changed since, through whichever policy."""
        if self._state_of_weights() != self._acted_with:
            self._forget()

    @torch.no_grad()
    def act(
        self,
        observation: Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        """Choose the next token of each row; see `Policy.act`. One observation always gives the same action.

        Raises:
            InvalidArgumentError: If observations are longer than the model's context, or the mask does not fit them or allows a
                row no token.
            DivergedError: If the weights have diverged.
        """
        single = observation["tokens"].ndim == 1
        tokens = np.atleast_2d(observation["tokens"])
        length = observation["length"].reshape(-1).astype(np.int64)
        self._fit(*tokens.shape)
        self._forget_older_weights()
        wanted = (length > 0) if rows is None else rows & (length > 0)
        legal = None if action_mask is None else self._legal_tokens(np.atleast_2d(action_mask), wanted)
        read = self._length[: len(tokens)]
        same = self._read_before(tokens) & (read > 0)
        unchanged = wanted & same & (length == read) & self._current[: len(tokens)]
        grown = wanted & same & self._held(len(tokens)) & (length == read + 1)
        fresh = wanted & ~unchanged & ~grown
        self._seed_unannounced(fresh & ~(same & (length >= read)))
        action = self._new_action(len(tokens), unchanged)
        beyond = self._beyond_the_cache(grown, fresh, tokens.shape[1])
        fresh &= ~beyond
        if not self._cache.mergeable and fresh.any():
            grown, fresh = np.zeros_like(grown), fresh | grown
        with self.autocast():
            read_now = (
                self._decode(tokens, grown),
                self._prefill(tokens, length, fresh),
                self._read_uncached(tokens, length, beyond),
            )
        for logits, slots in read_now:
            if slots:
                self._choose(logits, np.array(slots), length, legal, action)
        self._remember(tokens, length, grown | fresh | beyond, action)
        return _first_row(action) if single else action

    def rows_at_once(self, width: int) -> int | None:
        """How many rows of up to `width` tokens the cache has room for, at least 1; None for any number."""
        if self._kind is CacheKind.NONE:
            return None
        if self._room is None:
            self._room = self.max_cached_tokens or cacheable_tokens(self.model, 2 if self.is_half else 4)
        return None if self._room is None else max(1, self._room // width)

    def _beyond_the_cache(self, grown: NDArray[np.bool_], fresh: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
        """The rows to be read for which the cache has no room; those that nobody asked for now make room for the others."""
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

    def _fit(self, num_rows: int, width: int) -> None:
        """Make room for more rows or longer observations.

        Raises:
            InvalidArgumentError: If observations are longer than the model's context.
        """
        self._check_context(width)
        rows, columns = max(num_rows, len(self._length)), max(width, self._tokens.shape[1])
        if (rows, columns) == self._tokens.shape:
            return
        missing = rows - len(self._length)
        old = self._tokens
        self._tokens = np.zeros((rows, columns), dtype=np.int32)
        self._tokens[: old.shape[0], : old.shape[1]] = old
        for name in ("_length", "_seeds", "_announced", "_current", "_last_tokens", "_last_logprobs"):
            setattr(self, name, np.pad(getattr(self, name), (0, missing)))
        self._last_kept = np.pad(self._last_kept, ((0, missing), (0, 0)))

    def _check_context(self, width: int) -> None:
        if self._context is not None and width > self._context:
            raise InvalidArgumentError(
                f"episodes have up to {width} tokens, prompt included, and the model's context holds "
                f"{self._context}: lower max_new_tokens or max_prompt_tokens (gold completions longer than "
                "max_new_tokens count in full), or use another model"
            )

    def _legal_tokens(self, mask: NDArray[np.int8], wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The mask as bool[b v]; checked before anything is read, so that acting again with a right one goes on as usual."""
        if mask.shape != (len(wanted), self.vocab_size):
            raise InvalidArgumentError(
                f"an action mask has a row for each observation and a column for each of the policy's tokens, "
                f"{(len(wanted), self.vocab_size)}, got {mask.shape}: give policy and environment the same tokenizer"
            )
        legal = mask.astype(bool)
        stuck = np.flatnonzero(wanted & ~legal.any(axis=1))
        if len(stuck):
            raise InvalidArgumentError(
                f"the action mask allows row {stuck[0]} no token at all: legal_actions must leave one, such as a stop token"
            )
        return legal

    def _held(self, num_rows: int) -> NDArray[np.bool_]:
        """The rows whose keys and values are in the cache."""
        self._cache.keep([slot for slot, row in enumerate(self._slots) if row < num_rows])
        self._slots = [row for row in self._slots if row < num_rows]
        held = np.zeros(num_rows, dtype=bool)
        held[self._slots] = True
        return held

    def _read_before(self, tokens: NDArray[np.int32]) -> NDArray[np.bool_]:
        """For each row whether its observation begins with the tokens that the cache has read."""
        rows, width = tokens.shape
        differs = tokens != self._tokens[:rows, :width]
        differs &= np.arange(width) < self._length[:rows, None]
        same: NDArray[np.bool_] = ~differs.any(axis=1)
        return same

    def _decode(self, tokens: NDArray[np.int32], grown: NDArray[np.bool_]) -> Any:
        """Read the new token of rows that grew by one; rows that did not leave the cache."""
        keep = [slot for slot, row in enumerate(self._slots) if grown[row]]
        if not keep:
            return None, []
        self._cache.keep(keep)
        self._slots = [self._slots[slot] for slot in keep]
        newest = tokens[self._slots, self._length[self._slots]]
        return self._cache.append(torch.from_numpy(newest.astype(np.int64))), list(self._slots)

    def _prefill(self, tokens: NDArray[np.int32], length: NDArray[np.int64], fresh: NDArray[np.bool_]) -> Any:
        """Read the whole prefix of rows that the cache does not hold; equal prefixes are read once."""
        if self._kind is CacheKind.NONE:
            return self._read_uncached(tokens, length, fresh)
        rows = np.flatnonzero(fresh).tolist()
        if not rows:
            return None, []
        self._cache.keep([slot for slot, row in enumerate(self._slots) if not fresh[row]])
        self._slots = [row for row in self._slots if not fresh[row]]
        unique, repeats = _distinct([tokens[row, : length[row]].astype(np.int64) for row in rows])
        if not self._cache.mergeable:
            self._cache, self._slots = self._new_cache(), rows
            return self._cache.prefill(unique, repeats), rows
        logits, chosen = [], []
        for part in _parts(unique):
            members = [slot for slot, prompt in enumerate(repeats.tolist()) if prompt in part]
            groups = len(part) < len(members) and self._groups_rows()
            added = self._new_cache(Grouping.IF_CHEAPER if groups else Grouping.NEVER)
            logits.append(added.prefill([unique[prompt] for prompt in part], repeats[members] - part.start))
            self._cache.extend(added)
            chosen += [rows[slot] for slot in members]
        self._slots = self._slots + chosen
        return torch.cat(logits), chosen

    def _new_cache(self, grouping: Grouping = Grouping.NEVER) -> RowCache:
        return RowCache(self.model, self._kind, positions=self._positions, grouping=grouping)

    def _groups_rows(self) -> bool:
        """Whether prompts are to be kept once for each group, and that is right for this model; found out by trying it once."""
        if self._grouping is None:
            # A trial compares to more digits than half precision has.
            with torch.autocast(self.model.device.type, enabled=False):
                self._grouping = self._shares_prefixes() and can_group(self.model, self._kind)
        return self._grouping

    def _read_uncached(self, tokens: NDArray[np.int32], length: NDArray[np.int64], wanted: NDArray[np.bool_]) -> Any:
        """Read the whole prefix of rows and keep nothing of it."""
        rows = np.flatnonzero(wanted).tolist()
        if not rows:
            return None, []
        prefixes = [tokens[row, : length[row]].astype(np.int64) for row in rows]
        if self.fast:
            unique, repeats = _distinct(prefixes)
        else:
            unique, repeats = [torch.from_numpy(prefix) for prefix in prefixes], torch.arange(len(rows))
        logits = [read_without_cache(self.model, unique[part.start : part.stop]) for part in _parts(unique)]
        return torch.cat(logits)[repeats], rows

    def _seed_unannounced(self, beginning: NDArray[np.bool_]) -> None:
        """Seed the rows that begin another episode than they were in, or go back in it, without an announcement."""
        rows = np.flatnonzero(beginning)
        announced = self._announced[rows]
        self._announced[rows] = False
        rows = rows[~announced]
        if len(rows):
            self._readings += 1
            origin = np.array([self.seed % 2**64, self._readings], dtype=np.uint64)
            base = mix(mix(origin[:1]) ^ origin[1:])
            self._seeds[rows] = mix(base ^ mix(rows.astype(np.uint64)))

    def _choose(
        self,
        logits: Tensor,
        rows: NDArray[np.int64],
        length: NDArray[np.int64],
        legal: NDArray[np.bool_] | None,
        action: Action,
    ) -> None:
        """Choose a token for each of some rows from their logits [r v], and write it into the action; a few rows at once."""
        size = max(1, _LOGITS_AT_ONCE // self.vocab_size)
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            self._choose_at_once(logits[part, : self.vocab_size], rows[part], length, legal, action)

    def _choose_at_once(
        self,
        logits: Tensor,
        rows: NDArray[np.int64],
        length: NDArray[np.int64],
        legal: NDArray[np.bool_] | None,
        action: Action,
    ) -> None:
        """The same from logits [r v] of the tokens there are."""
        mask = None if legal is None else torch.from_numpy(legal[rows]).to(logits.device)
        if self.temperature == 0:
            masked = logits if mask is None else logits.masked_fill(~mask, -torch.inf)
            _check_finite(masked)
            tokens, chosen = masked.argmax(dim=-1), torch.full((len(rows),), torch.nan)
        else:
            logprobs = scaled_logprobs(logits, self.temperature, mask)
            u = torch.from_numpy(uniforms(self._seeds[rows], length[rows])).to(logits.device)
            _check_finite(logprobs)
            if action.kept is not None:
                kept = kept_tokens(logprobs, top_k=self.top_k, top_p=self.top_p, min_p=self.min_p)
                logprobs = scaled_logprobs(logits, self.temperature, kept)
                action.kept[rows, 0] = np.packbits(kept.cpu().numpy(), axis=1)
            tokens = sample(logprobs, u, blocks=self.fast)
            chosen = logprobs.gather(-1, tokens[:, None])[:, 0]
        action.tokens[rows, 0] = tokens.cpu().numpy()
        action.logprobs[rows, 0] = chosen.cpu().numpy()
        action.counts[rows] = 1

    def _new_action(self, num_rows: int, unchanged: NDArray[np.bool_]) -> Action:
        action = Action(
            np.zeros((num_rows, 1), dtype=np.int64),
            np.zeros(num_rows, dtype=np.int64),
            np.zeros((num_rows, 1), dtype=np.float32),
            np.zeros((num_rows, 1, self._last_kept.shape[1]), dtype=np.uint8) if self._leaves_out else None,
        )
        rows = np.flatnonzero(unchanged)
        if action.kept is not None:
            action.kept[rows, 0] = self._last_kept[rows]
        action.tokens[rows, 0] = self._last_tokens[rows]
        action.logprobs[rows, 0] = self._last_logprobs[rows]
        action.counts[rows] = 1
        return action

    def _remember(
        self, tokens: NDArray[np.int32], length: NDArray[np.int64], read: NDArray[np.bool_], action: Action
    ) -> None:
        rows = np.flatnonzero(read)
        self._tokens[rows, : tokens.shape[1]] = tokens[rows]
        self._length[rows] = length[rows]
        self._current[rows] = True
        self._last_tokens[rows] = action.tokens[rows, 0]
        self._last_logprobs[rows] = action.logprobs[rows, 0]
        if action.kept is not None:
            self._last_kept[rows] = action.kept[rows, 0]

    # Learning

    def read(self, part: Batch, *, with_states: bool = False) -> TokenOutputs:
        """What the model says of a batch's tokens from `part.first` on. With gradients.

        Rows that begin alike are read together (`agents.policies.transformers.prefix_sharing`) where that is less work; see
        `forward` for the rest.
        """
        first = part.first
        legal = part.legal_tokens(first, self.vocab_size)
        layout = self._shared_layout(part)
        if layout is None:
            return self.forward(part.tokens, first, legal, with_states=with_states)
        return self._read_packed(part, layout, first, legal, with_states)

    def read_states(self, part: Batch) -> Float[Tensor, "b t+1 d"]:
        """What the output layer reads of a batch: the states before its tokens from `part.first` on, and after the last.

        Of the rows' tokens on the loss mask, that is; see `TokenOutputs.shared`. With gradients.
        """
        layout = self._shared_layout(part)
        if layout is None:
            return self.states(part.tokens, part.first)
        if self._transform is None:
            found = self.read(part, with_states=True).states
            assert found is not None
            return found
        with shared_prefix_attention(self.model):
            states = self._last_states(_packed_inputs(layout))
        sources, rows, columns = _state_places(part, layout, part.first)
        return _put_back(part, part.first, states[0, sources], (rows, columns), extra=1)

    def _shared_layout(self, part: Batch) -> Layout | None:
        """How to read a batch with its shared prefixes once; None where that is not wanted, not right or not less work."""
        rows, length = part.tokens.shape
        self._check_context(length)
        learned = part.loss_mask.any(dim=1).nonzero()[:, 0]  # of the other rows there is nothing to say
        if not len(learned) or not self._shares_prefixes():
            return None
        prefixes = part.loss_mask[learned].int().argmax(dim=1).clamp(min=1)
        layout = plan(part.tokens[learned], part.lengths[learned], prefixes)
        layout = dataclasses.replace(layout, rows=learned[layout.rows])
        shares = is_cheaper(layout, rows, length, self._costs)
        if shares is not self._shared_last:
            self._shared_last = shares
            _LOGGER.info(
                "%s reads a micro-batch of %d rows of up to %d tokens %s: sharing prompts is estimated to cost %.2f times the "
                "plain pass; said again when the choice changes",
                type(self.model).__name__,
                rows,
                length,
                "with prompts shared" if shares else "plainly",
                relative_cost(layout, rows, length, self._costs),
            )
        return layout if shares else None

    def _read_packed(
        self, part: Batch, layout: Layout, first: int, legal: Tensor | None, with_states: bool
    ) -> TokenOutputs:
        """Each token's outputs from the packed pass, put back where the token stands; 0 where none was predicted."""
        at = (layout.rows, layout.places - first)
        places, *states_at = _state_places(part, layout, first) if with_states else (layout.sources,)
        with shared_prefix_attention(self.model):
            logprobs, entropy, states = self._read_places(
                _packed_inputs(layout),
                places,
                part.tokens[layout.rows, layout.places],
                None if legal is None else legal[at],
                with_states=with_states,
            )
        return TokenOutputs(
            _put_back(part, first, logprobs, at),
            _put_back(part, first, entropy, at),
            None if states is None else _put_back(part, first, states[0], tuple(states_at), extra=1),
            shared=True,
        )

    def _shares_prefixes(self) -> bool:
        """Whether the packed pass is wanted and right for this model; found out by trying it once."""
        if self._sharing is None:
            self._sharing = self.fast and self.shared_prefix and can_share(self.model)
        return self._sharing

    @functools.cached_property
    def _costs(self) -> Costs:
        return costs_of(self.model)

    @functools.cached_property
    def _transform(self) -> LogitTransform | None:
        """How logits come from the body's last states, where that is known and wanted; found out by trying it once."""
        return logit_transform(self.model) if self.fast else None

    def forward(
        self,
        tokens: Int[Tensor, "b l"],
        first: int,
        legal: Tensor | None = None,
        *,
        with_states: bool = False,
    ) -> TokenOutputs:
        """What the model says of tokens `first` to l - 1, t of them. With gradients.

        Padding stands on the right, where causal attention never looks, so it needs no mask. What is said of padding means
        nothing.

        Args:
            tokens: Right-padded.
            first: At least 1: the first token has no distribution.
            legal: bool[b t v], the tokens each was chosen from; None if all.
            with_states: Give the states too.

        Raises:
            InvalidArgumentError: If there are more tokens than the model's context holds.
        """
        self._check_context(tokens.shape[1])
        chosen = tokens[:, first:]
        allowed = None if legal is None else legal.flatten(0, 1)
        places = torch.arange(first - 1, tokens.shape[1] - (not with_states), device=tokens.device)
        logprobs, entropy, states = self._read_places(
            {"input_ids": tokens}, places, chosen.reshape(-1), allowed, with_states=with_states
        )
        return TokenOutputs(logprobs.view(chosen.shape), entropy.view(chosen.shape), states)

    def states(self, tokens: Int[Tensor, "b l"], first: int) -> Float[Tensor, "b t+1 d"]:
        """What the output layer reads: the states before tokens `first` to l - 1, and the one after the last."""
        self._check_context(tokens.shape[1])
        if self._transform is None:
            found = self.forward(tokens, first, with_states=True).states
            assert found is not None
            return found
        return self._last_states({"input_ids": tokens})[:, first - 1 :]

    def _last_states(self, inputs: dict[str, Any]) -> Tensor:
        """The body's last states f[r s d], of inputs with `input_ids` i64[r s]."""
        with self.autocast(), self._checkpointed(inputs):
            last: Tensor = body_of(self.model)(**inputs, use_cache=False).last_hidden_state
        return last

    def _checkpointed(self, inputs: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
        masks = mask_entries(inputs.get("prefix_layout", ()))
        wanted = torch.is_grad_enabled() and self.recomputes(inputs["input_ids"], masks=masks)
        return checkpointed(self.model, wanted)

    def _read_places(
        self, inputs: dict[str, Any], places: Tensor, tokens: Tensor, legal: Tensor | None, *, with_states: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Log-probabilities and entropies f32[n] of tokens i64[n], and the states f[r k d] at the places if wanted.

        Args:
            inputs: Of the model, with `input_ids` i64[r s].
            places: i64[k], the places whose states predict the tokens, and behind them others whose states are wanted.
            tokens: In the order of rows and places, n = r times those that predict.
            legal: bool[n v], the tokens each was chosen from; None if all.
            with_states: Give the states.
        """
        used = len(tokens) // len(inputs["input_ids"])
        large = len(tokens) * self.vocab_size > _LOGITS_AT_ONCE
        if (large or with_states) and self._transform is not None:
            states = self._last_states(inputs)[:, places]
            found = self._by_chunks(states[:, :used].flatten(0, 1), tokens, legal)
            return *found, states if with_states else None
        with self._states_of_the_head(with_states) as caught, self.autocast(), self._checkpointed(inputs):
            logits = self.model(**inputs, use_cache=False, logits_to_keep=places).logits
        # Not every model leaves the other places out.
        logits, *kept = (each if each.shape[1] == len(places) else each[:, places] for each in (logits, *caught[:1]))
        found = self._token_outputs(logits[:, :used, : self.vocab_size].flatten(0, 1), tokens, legal)
        return *found, kept[0] if with_states else None

    def _token_outputs(self, logits: Tensor, tokens: Tensor, legal: Tensor | None) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies f32[n] of tokens i64[n] from logits f[n v]."""
        compute = token_logprobs_and_entropy if self.fast else token_logprobs_by_autograd
        return compute(logits, tokens, self.temperature, legal)

    def _by_chunks(self, states: Tensor, tokens: Tensor, legal: Tensor | None) -> tuple[Tensor, Tensor]:
        """The same from states f[n d], by parts of the tokens, so that no tensor of all tokens x vocabulary comes to be."""
        head, transform = self.model.get_output_embeddings(), self._transform
        assert transform is not None

        def read(part: Tensor, own: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
            with self.autocast():
                logits = transform(head(part)[:, : self.vocab_size])
            return self._token_outputs(logits, own, allowed)

        size = max(1, _LOGITS_AT_ONCE // self.vocab_size)
        allowed = [None] * -(-len(tokens) // size) if legal is None else legal.split(size)
        again = torch.is_grad_enabled() and len(tokens) > size
        parts = [
            checkpoint(read, *each, use_reentrant=False) if again else read(*each)
            for each in zip(states.split(size), tokens.split(size), allowed, strict=True)
        ]
        logprobs, entropies = zip(*parts, strict=True)
        return torch.cat(logprobs), torch.cat(entropies)

    def distributions(
        self, tokens: Int[Tensor, "b l"], first: int, legal: Tensor | None = None
    ) -> Float[Tensor, "b t v"]:
        """Log-probabilities of every token at positions `first` to l - 1; see `forward`."""
        self._check_context(tokens.shape[1])
        kept = tokens.shape[1] - first + 1
        with self.autocast():
            logits = self.model(input_ids=tokens, use_cache=False, logits_to_keep=kept).logits
        return scaled_logprobs(logits[:, -kept:-1, : self.vocab_size], self.temperature, legal)

    def recomputes(self, tokens: Tensor, *, masks: int = 0) -> bool:
        """Whether the backward pass computes activations again; see `checkpointing`.

        Args:
            tokens: That are read, i64[b l].
            masks: Entries of the masks that attention is given.
        """
        logits = min(tokens.numel() * self.vocab_size, _LOGITS_AT_ONCE)
        value_bytes = 2 if self.is_half else 4
        return checkpoints(self.model, self.checkpointing, tokens.numel(), logits, value_bytes, masks=masks)

    @contextlib.contextmanager
    def _states_of_the_head(self, wanted: bool) -> Iterator[list[Tensor]]:
        """Catch what the output layer reads, the last layer's states, which not every model returns by itself."""
        caught: list[Tensor] = []
        if not wanted:
            yield caught
            return
        hook = self.model.get_output_embeddings().register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0]))
        try:
            yield caught
        finally:
            hook.remove()

    @property
    def is_half(self) -> bool:
        """Whether the model computes in half precision: what it says when sampling and when learning then differs visibly."""
        return bool(self.precision == "bfloat16" or self.model.dtype.itemsize == 2)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = self.model.device
        return device

    @property
    def state_size(self) -> int:
        """The size d of what the output layer reads."""
        return int(self.model.get_output_embeddings().weight.shape[1])

    def release_cache(self) -> None:
        """Let go of keys and values; rows that go on are read anew."""
        self._cache = self._new_cache()
        self._slots = []
        self._room = None

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """The precision that the model computes in, when it samples and when it learns alike."""
        if self.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.model.device.type, dtype=torch.bfloat16)

    def parameters(self) -> Sequence[torch.nn.Parameter]:
        """The weights that learn."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]


@functools.cache  # once
def _say_beyond(slots: int, width: int) -> None:
    _LOGGER.warning(
        "the cache has room for %d rows of up to %d tokens; further rows are read anew at every token, which is slow: play "
        "fewer rows at once, or raise max_cached_tokens",
        slots,
        width,
    )


def _packed_inputs(layout: Layout) -> dict[str, Any]:
    return {"input_ids": layout.tokens, "position_ids": layout.positions, "prefix_layout": layout.groups}


def _state_places(part: Batch, layout: Layout, first: int) -> tuple[Tensor, Tensor, Tensor]:
    """Where the packed row has the states before its m tokens and after the last of each row, and their rows and columns."""
    last = layout.places == part.lengths[layout.rows] - 1
    return (
        torch.cat([layout.sources, layout.targets[last]]),
        torch.cat([layout.rows, layout.rows[last]]),
        torch.cat([layout.places, layout.places[last] + 1]) - first,
    )


def _put_back(part: Batch, first: int, values: Tensor, at: tuple[Tensor, ...], *, extra: int = 0) -> Tensor:
    """Values f[m ...] at their rows and columns of f[b t+extra ...]; 0 elsewhere."""
    shape = (len(part), part.tokens.shape[1] - first + extra, *values.shape[1:])
    return values.new_zeros(shape).index_put(at, values)


def _distinct(prefixes: Sequence[NDArray[np.int64]]) -> tuple[list[Tensor], Tensor]:
    """The different ones among prefixes, and i64[r], for each which it is."""
    order: dict[bytes, int] = {}
    repeats = torch.tensor([order.setdefault(prefix.tobytes(), len(order)) for prefix in prefixes])
    return [torch.from_numpy(np.frombuffer(key, dtype=np.int64).copy()) for key in order], repeats


def _parts(prompts: Sequence[Tensor]) -> Iterator[range]:
    """Consecutive prompts whose padded tokens are at most `_PROMPT_TOKENS_AT_ONCE`, or a single one."""
    start, width = 0, 0
    for number, prompt in enumerate(prompts):
        width = max(width, len(prompt))
        if number > start and (number + 1 - start) * width > _PROMPT_TOKENS_AT_ONCE:
            yield range(start, number)
            start, width = number, len(prompt)
    yield range(start, len(prompts))


def _check_count(name: str, value: object, otherwise: str) -> None:
    if value is not None and not (isinstance(value, (int, np.integer)) and value >= 1):
        raise InvalidArgumentError(f"{name} is a whole number of at least 1 or None, got {value!r}; {otherwise}")


def _vocab_size(model: Any, wanted: int | None) -> int:
    """How many of a model's tokens to choose from."""
    _check_count("vocab_size", wanted, "None chooses from all of the model's tokens")
    available = int(model.get_output_embeddings().weight.shape[0])
    if wanted is not None and wanted > available:
        raise InvalidArgumentError(
            f"the model has {available} tokens and the environment {wanted}: give both the same tokenizer"
        )
    return wanted or available


def _check_finite(scores: Tensor) -> None:
    """Check that logits or log-probabilities f[r v] of tokens, of which each row has a legal one, say which to choose."""
    if not bool(torch.isfinite(scores.amax(dim=-1)).all()):
        raise DivergedError("the model's logits are not finite: its weights have diverged; lower the learning rate")


def _check_choices(precision: str, checkpointing: str) -> None:
    for setting, chosen, known in (
        ("precision", precision, ["auto", "float32", "bfloat16"]),
        ("checkpointing", checkpointing, ["auto", "on", "off"]),
    ):
        if chosen not in known:
            raise unknown_name(setting, chosen, known)


def _precision(model: Any) -> Literal["float32", "bfloat16"]:
    """Half the bytes and many times the speed where the device has units for it; float32 anywhere else."""
    capable = model.device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bfloat16" if capable and model.dtype is torch.float32 else "float32"


def _first_row(action: Action) -> Action:
    kept = None if action.kept is None else action.kept[0]
    return Action(action.tokens[0], action.counts[0], action.logprobs[0], kept)
