"""`CausalLMPolicy`: a `transformers` causal language model as a policy."""

from __future__ import annotations

import contextlib
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
from agents.kv_cache import CacheKind, RowCache, cache_kind, read_without_cache
from agents.memory import Checkpointing, checkpointed, checkpoints
from agents.model_parts import body_of, can_share, head_is_plain
from agents.sampling import kept_tokens, mix, sample, scaled_logprobs, uniforms
from agents.shared_prefix import Layout, is_cheaper, plan, shared_prefix_attention
from agents.token_logprobs import token_logprobs_and_entropy
from agents.types import Action
from rlvr_envs import Observation
from verifiers import InvalidArgumentError

_PROMPT_TOKENS_AT_ONCE = 2**16
"""Most tokens of one forward pass over prompts when sampling, padding included."""
_LOGITS_AT_ONCE = 2**24
"""Most logits that come to be at once when learning; 64 MiB in float32, of which a step needs several copies."""


@dataclass(frozen=True)
class TokenOutputs:
    """What a policy's forward pass says of t tokens in each of b rows."""

    logprobs: Float[Tensor, "b t"]
    """f32, of the tokens that are there."""
    entropy: Float[Tensor, "b t"]
    """f32, of the distributions they came from, in nats."""
    states: Float[Tensor, "b t+1 d"] | None = None
    """What the output layer reads: the state before each token, and the one after the last."""


class CausalLMPolicy:
    """Samples one token for each row, with cached keys and values.

    The cache is only a shortcut: every observation is compared with the tokens the cache has read, and rows that differ
    are read anew. A plain `act(observation)` loop, refilled rows, restored states and forks are therefore all right.

    Args:
        model: Any `transformers` causal LM. It is put in evaluation mode and stays there: with dropout the stored
            log-probabilities would not be those of the distribution that is trained.
        temperature: Divides the logits when sampling and when training alike; 0 chooses the likeliest token, for
            evaluation only (its log-probabilities are NaN).
        top_k: Choose among the k likeliest tokens only; see `agents.sampling.kept_tokens`. What is left is the distribution
            whose log-probabilities are stored and learned; the tokens that are left are stored with each token.
        top_p: Choose among the likeliest tokens that make up this share.
        min_p: Choose among tokens at least this times as likely as the likeliest.
        vocab_size: Number of tokens to choose from, the first of the model's; by default all.
        seed: Decides the sampling of episodes that were not announced by `begin`.
        precision: Of matrix products; weights keep theirs. `"auto"` is bfloat16 for float32 weights on a GPU that has it,
            and else the weights' own.
        checkpointing: Whether the backward pass computes activations again in place of keeping them; `"auto"`: on a GPU whose
            free memory they would not fit in.
        shared_prefix: Read what rows of a group have in common once when learning, where that is less work and the model
            allows it; it changes nothing beyond rounding.

    Raises:
        InvalidArgumentError: If the temperature is negative, or the model has fewer tokens than `vocab_size`.
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
    ) -> None:
        if not 0 <= temperature < float("inf"):
            raise InvalidArgumentError(f"a temperature is at least 0, got {temperature}")
        available = int(model.get_output_embeddings().weight.shape[0])
        if vocab_size is not None and vocab_size > available:
            raise InvalidArgumentError(
                f"the model has {available} tokens and the environment {vocab_size}: give both the same tokenizer"
            )
        if not ((top_k is None or top_k >= 1) and 0 < top_p <= 1 and 0 <= min_p <= 1):
            raise InvalidArgumentError(
                f"top_k is at least 1 or None, top_p in (0, 1] and min_p in [0, 1], got {top_k}, {top_p} and {min_p}"
            )
        self.model = model.eval()
        self.temperature = temperature
        self.vocab_size = vocab_size or available
        self.top_k, self.top_p, self.min_p = top_k, top_p, min_p
        self.seed = seed
        self.precision = _precision(model) if precision == "auto" else precision
        self.checkpointing = checkpointing
        self.shared_prefix = shared_prefix
        self._sharing: bool | None = None
        self._plain_head: bool | None = None
        self.version = 0
        self._kind = cache_kind(self.model)
        self._context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._cache = RowCache(model, self._kind)
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
        return CausalLMPolicy(
            self.model,
            temperature=temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            vocab_size=self.vocab_size,
            seed=self.seed,
            precision=self.precision,
            checkpointing=self.checkpointing,
            shared_prefix=self.shared_prefix,
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
        """Count a new version of the weights; what the cache holds of the old ones is dropped."""
        self.version += 1
        self.release_cache()
        self._current[:] = False

    @torch.no_grad()
    def act(
        self,
        observation: Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        """Choose the next token of each row; see `Policy.act`. One observation always gives the same action."""
        single = observation["tokens"].ndim == 1
        tokens = np.atleast_2d(observation["tokens"])
        length = np.atleast_1d(observation["length"]).astype(np.int64)
        self._fit(*tokens.shape)
        wanted = (length > 0) if rows is None else rows & (length > 0)
        read = self._length[: len(tokens)]
        same = self._read_before(tokens) & (read > 0)
        unchanged = wanted & same & (length == read) & self._current[: len(tokens)]
        grown = wanted & same & self._held(len(tokens)) & (length == read + 1)
        fresh = wanted & ~unchanged & ~grown
        self._seed_unannounced(fresh & ~(same & (length >= read)))
        legal = None if action_mask is None else np.atleast_2d(action_mask).astype(bool)
        action = self._new_action(len(tokens), unchanged)
        if not self._cache.mergeable and fresh.any():
            grown, fresh = np.zeros_like(grown), fresh | grown
        with self.autocast():
            read_now = (self._decode(tokens, grown), self._prefill(tokens, length, fresh))
        for logits, slots in read_now:
            if slots:
                self._choose(logits, np.array(slots), length, legal, action)
        self._remember(tokens, length, grown | fresh, action)
        return _first_row(action) if single else action

    def _fit(self, num_rows: int, width: int) -> None:
        """Make room for more rows or longer observations.

        Raises:
            InvalidArgumentError: If observations are longer than the model's context.
        """
        if self._context is not None and width > self._context:
            raise InvalidArgumentError(
                f"the environment's episodes have up to {width} tokens, prompt included, and the model's context holds "
                f"{self._context}: lower max_new_tokens or max_prompt_tokens, or use another model"
            )
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
        rows = np.flatnonzero(fresh).tolist()
        if not rows:
            return None, []
        self._cache.keep([slot for slot, row in enumerate(self._slots) if not fresh[row]])
        self._slots = [row for row in self._slots if not fresh[row]]
        prefixes = [tokens[row, : length[row]].astype(np.int64) for row in rows]
        order: dict[bytes, int] = {}
        repeats = torch.tensor([order.setdefault(prefix.tobytes(), len(order)) for prefix in prefixes])
        unique = [torch.from_numpy(np.frombuffer(key, dtype=np.int64).copy()) for key in order]
        if self._kind is CacheKind.NONE:
            return read_without_cache(self.model, unique)[repeats], rows
        if not self._cache.mergeable:
            self._cache, self._slots = RowCache(self.model, self._kind), rows
            return self._cache.prefill(unique, repeats), rows
        logits, chosen = [], []
        for part in _parts(unique):
            members = [slot for slot, prompt in enumerate(repeats.tolist()) if prompt in part]
            added = RowCache(self.model, self._kind)
            logits.append(added.prefill([unique[prompt] for prompt in part], repeats[members] - part.start))
            self._cache.extend(added)
            chosen += [rows[slot] for slot in members]
        self._slots = self._slots + chosen
        return torch.cat(logits), chosen

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
        """Choose a token for each of some rows from their logits [r v], and write it into the action."""
        logits = logits[:, : self.vocab_size]
        mask = None if legal is None else torch.from_numpy(legal[rows]).to(logits.device)
        if self.temperature == 0:
            masked = logits if mask is None else logits.masked_fill(~mask, -torch.inf)
            tokens, chosen = masked.argmax(dim=-1), torch.full((len(rows),), torch.nan)
        else:
            logprobs = scaled_logprobs(logits, self.temperature, mask)
            u = torch.from_numpy(uniforms(self._seeds[rows], length[rows])).to(logits.device)
            if not bool(torch.isfinite(logprobs.max(dim=-1).values).all()):
                raise FloatingPointError("the model's logits are not finite: its weights have diverged")
            if action.kept is not None:
                kept = kept_tokens(logprobs, top_k=self.top_k, top_p=self.top_p, min_p=self.min_p)
                logprobs = scaled_logprobs(logits, self.temperature, kept)
                action.kept[rows, 0] = np.packbits(kept.cpu().numpy(), axis=1)
            tokens = sample(logprobs, u)
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

        Rows that begin alike are read together (`agents.shared_prefix`) where that is less work; see `forward` for the rest.
        """
        first = part.first
        legal = part.legal_tokens(first, self.vocab_size)
        if not with_states and self._shares_prefixes():
            prefixes = part.loss_mask.int().argmax(dim=1).clamp(min=1)
            layout = plan(part.tokens, part.lengths, prefixes)
            rows, length = part.tokens.shape
            if is_cheaper(layout, rows, length, self.model.config.get_text_config()):
                return self._read_packed(part, layout, first, legal)
        return self.forward(part.tokens, first, legal, with_states=with_states)

    def _read_packed(self, part: Batch, layout: Layout, first: int, legal: Tensor | None) -> TokenOutputs:
        """Each token's outputs from the packed pass, put back where the token stands; 0 where none was predicted."""
        inputs = {"input_ids": layout.tokens, "position_ids": layout.positions, "prefix_layout": layout.groups}
        at = (layout.rows, layout.places - first)
        with shared_prefix_attention(self.model):
            found = self._logprobs_and_entropy(
                inputs, layout.sources, part.tokens[layout.rows, layout.places], None if legal is None else legal[at]
            )
        shape = (len(part), part.tokens.shape[1] - first)
        return TokenOutputs(*(each.new_zeros(shape).index_put(at, each) for each in found))

    def _shares_prefixes(self) -> bool:
        """Whether the packed pass is wanted and right for this model; found out by trying it once."""
        if self._sharing is None:
            self._sharing = self.shared_prefix and can_share(self.model)
        return self._sharing

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
        """
        chosen = tokens[:, first:]
        flat = chosen.reshape(-1)
        allowed = None if legal is None else legal.flatten(0, 1)
        states = None
        if with_states and self._head_is_plain():
            states = self.states(tokens, first)
            found = self._by_chunks(states[:, :-1].flatten(0, 1), flat, allowed)
        else:
            places = torch.arange(first - 1, tokens.shape[1] - (not with_states), device=tokens.device)
            with self._states_of_the_head(with_states) as caught:
                found = self._logprobs_and_entropy({"input_ids": tokens}, places, flat, allowed)
            if with_states:
                states = caught[0][:, -len(places) :]
        logprobs, entropy = (each.view(chosen.shape) for each in found)
        return TokenOutputs(logprobs, entropy, states)

    def states(self, tokens: Int[Tensor, "b l"], first: int) -> Float[Tensor, "b t+1 d"]:
        """What the output layer reads: the states before tokens `first` to l - 1, and the one after the last."""
        if not self._head_is_plain():
            found = self.forward(tokens, first, with_states=True).states
            assert found is not None
            return found
        again = torch.is_grad_enabled() and self.recomputes(tokens)
        with self.autocast(), checkpointed(self.model, again):
            last: Tensor = body_of(self.model)(input_ids=tokens, use_cache=False).last_hidden_state
        return last[:, first - 1 :]

    def _logprobs_and_entropy(
        self, inputs: dict[str, Any], places: Tensor, tokens: Tensor, legal: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies f32[n] of tokens i64[n].

        Args:
            inputs: Of the model, with `input_ids` i64[r s].
            places: i64[k], the places whose states predict the tokens; one more than is used where states are wanted.
            tokens: In the order of rows and places, n = r k.
            legal: bool[n v], the tokens each was chosen from; None if all.
        """
        rows = len(inputs["input_ids"])
        used = len(tokens) // rows
        again = torch.is_grad_enabled() and self.recomputes(inputs["input_ids"])
        if used == len(places) and len(tokens) * self.vocab_size > _LOGITS_AT_ONCE and self._head_is_plain():
            with self.autocast(), checkpointed(self.model, again):
                states = body_of(self.model)(**inputs, use_cache=False).last_hidden_state[:, places]
            return self._by_chunks(states.flatten(0, 1), tokens, legal)
        with self.autocast(), checkpointed(self.model, again):
            logits = self.model(**inputs, use_cache=False, logits_to_keep=places).logits
        if logits.shape[1] != len(places):  # not every model leaves the others out
            logits = logits[:, places]
        logits = logits[:, :used, : self.vocab_size].flatten(0, 1)
        return token_logprobs_and_entropy(logits, tokens, self.temperature, legal)

    def _by_chunks(self, states: Tensor, tokens: Tensor, legal: Tensor | None) -> tuple[Tensor, Tensor]:
        """The same from states f[n d], by parts of the tokens, so that no tensor of all tokens x vocabulary comes to be."""
        head = self.model.get_output_embeddings()

        def read(part: Tensor, own: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
            with self.autocast():
                logits = head(part)[:, : self.vocab_size]
            return token_logprobs_and_entropy(logits, own, self.temperature, allowed)

        size = max(1, _LOGITS_AT_ONCE // self.vocab_size)
        allowed = [None] * -(-len(tokens) // size) if legal is None else legal.split(size)
        again = torch.is_grad_enabled() and len(tokens) > size
        parts = [
            checkpoint(read, *each, use_reentrant=False) if again else read(*each)
            for each in zip(states.split(size), tokens.split(size), allowed, strict=True)
        ]
        logprobs, entropies = zip(*parts, strict=True)
        return torch.cat(logprobs), torch.cat(entropies)

    def _head_is_plain(self) -> bool:
        """Whether logits are the output layer of the body's last states and no more; found out by trying it once."""
        if self._plain_head is None:
            self._plain_head = head_is_plain(self.model)
        return self._plain_head

    def distributions(
        self, tokens: Int[Tensor, "b l"], first: int, legal: Tensor | None = None
    ) -> Float[Tensor, "b t v"]:
        """Log-probabilities of every token at positions `first` to l - 1; see `forward`."""
        kept = tokens.shape[1] - first + 1
        with self.autocast():
            logits = self.model(input_ids=tokens, use_cache=False, logits_to_keep=kept).logits
        return scaled_logprobs(logits[:, -kept:-1, : self.vocab_size], self.temperature, legal)

    def recomputes(self, tokens: Tensor) -> bool:
        """Whether the backward pass of so many tokens computes activations again; see `checkpointing`."""
        logits = min(tokens.numel() * self.vocab_size, _LOGITS_AT_ONCE)
        return checkpoints(self.model, self.checkpointing, tokens.numel(), logits, 2 if self.is_half else 4)

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

    def release_cache(self) -> None:
        """Let go of keys and values; rows that go on are read anew."""
        self._cache = RowCache(self.model, self._kind)
        self._slots = []

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """The precision that the model computes in, when it samples and when it learns alike."""
        if self.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.model.device.type, dtype=torch.bfloat16)

    def parameters(self) -> Sequence[torch.nn.Parameter]:
        """The weights that learn."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]


def _parts(prompts: Sequence[Tensor]) -> Iterator[range]:
    """Consecutive prompts whose padded tokens are at most `_PROMPT_TOKENS_AT_ONCE`, or a single one."""
    start, width = 0, 0
    for number, prompt in enumerate(prompts):
        width = max(width, len(prompt))
        if number > start and (number + 1 - start) * width > _PROMPT_TOKENS_AT_ONCE:
            yield range(start, number)
            start, width = number, len(prompt)
    yield range(start, len(prompts))


def _precision(model: Any) -> Literal["float32", "bfloat16"]:
    """Half the bytes and many times the speed where the device has units for it; float32 anywhere else."""
    capable = model.device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bfloat16" if capable and model.dtype is torch.float32 else "float32"


def _first_row(action: Action) -> Action:
    kept = None if action.kept is None else action.kept[0]
    return Action(action.tokens[0], action.counts[0], action.logprobs[0], kept)
