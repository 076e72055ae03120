"""`Scorer`: log-probabilities, entropies and states of a language model, with gradients."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from agents.batch import Batch
from agents.policies.trainable import TokenOutputs
from agents.policies.transformers.config import PolicyConfig
from agents.policies.transformers.language_model import LOGITS_AT_ONCE, LanguageModel
from agents.policies.transformers.logprobs import token_logprobs_and_entropy, token_logprobs_by_autograd
from agents.policies.transformers.memory import checkpointed, checkpoints
from agents.policies.transformers.model_capabilities import body_of
from agents.policies.transformers.prefix_sharing import (
    PackedLayout,
    is_cheaper,
    mask_entries,
    plan,
    relative_cost,
    shared_prefix_attention,
)
from agents.policies.transformers.sampling import scaled_logprobs

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_LOGGER = logging.getLogger(__name__)


class Scorer:
    """Computes log-probabilities, entropies and states of batches; see `CausalLMPolicy`."""

    def __init__(self, language_model: LanguageModel, config: PolicyConfig) -> None:
        self._lm = language_model
        self._config = config
        self._shared_last: bool | None = None  # whether the last micro-batch with common prompts shared them

    def read(self, micro_batch: Batch, *, with_states: bool = False) -> TokenOutputs:
        """Log-probabilities and entropies of a batch's tokens from `micro_batch.first` on, with gradients.

        A common prefix of rows is computed once (`agents.policies.transformers.prefix_sharing`) if this is cheaper; see
        `forward` for the rest.
        """
        # A plain dict, since torch looks for the tensors in it if weights are divided among ranks.
        return TokenOutputs(**self._lm.run(lambda: vars(self._read(micro_batch, with_states))))

    def _read(self, micro_batch: Batch, with_states: bool) -> TokenOutputs:
        first = micro_batch.first
        legal = micro_batch.legal_tokens(first, self._lm.vocab_size)
        layout = self._shared_layout(micro_batch)
        if layout is None:
            return self._forward(micro_batch.tokens, first, legal, with_states=with_states)
        return self._read_packed(micro_batch, layout, first, legal, with_states)

    def read_states(self, micro_batch: Batch) -> Float[Tensor, "b t+1 d"]:
        """The states before each token from `micro_batch.first` on, and after the last token, with gradients.

        Only states of tokens on the loss mask are defined; see `TokenOutputs.shared`.
        """
        return self._lm.run(lambda: self._read_states(micro_batch))

    def _read_states(self, micro_batch: Batch) -> Tensor:
        layout = self._shared_layout(micro_batch)
        if layout is None:
            return self.states(micro_batch.tokens, micro_batch.first)
        if self._lm.logit_transform is None:
            states = self._read(micro_batch, with_states=True).states
            assert states is not None
            return states
        with shared_prefix_attention(self._lm.module):
            states = self._last_states(_packed_inputs(layout))
        sources, rows, columns = _state_indices(micro_batch, layout, micro_batch.first)
        return _put_back(micro_batch, micro_batch.first, states[0, sources], (rows, columns), extra=1)

    def _shared_layout(self, micro_batch: Batch) -> PackedLayout | None:
        """The layout that computes shared prefixes once; None if this is disabled, not supported or not cheaper."""
        rows, length = micro_batch.tokens.shape
        self._lm.check_context(length)
        learned = micro_batch.loss_mask.any(dim=1).nonzero()[:, 0]  # other rows need no outputs
        if not len(learned) or not self._lm.shares_prefixes:
            return None
        prefixes = micro_batch.loss_mask[learned].int().argmax(dim=1).clamp(min=1)
        layout = plan(micro_batch.tokens[learned], micro_batch.lengths[learned], prefixes)
        layout = dataclasses.replace(layout, rows=learned[layout.rows])
        shares = is_cheaper(layout, rows, length, self._lm.costs)
        if shares is not self._shared_last:
            self._shared_last = shares
            _LOGGER.info(
                "%s processes a micro-batch of %d rows of up to %d tokens %s: sharing prompts is estimated to cost %.2f times "
                "the plain pass; logged again when the choice changes",
                type(self._lm.module).__name__,
                rows,
                length,
                "with prompts shared" if shares else "plainly",
                relative_cost(layout, rows, length, self._lm.costs),
            )
        return layout if shares else None

    def _read_packed(
        self, micro_batch: Batch, layout: PackedLayout, first: int, legal: Tensor | None, with_states: bool
    ) -> TokenOutputs:
        """The outputs of the packed pass at each token's original position; 0 at tokens that were not predicted."""
        at = (layout.rows, layout.columns - first)
        indices, *states_at = _state_indices(micro_batch, layout, first) if with_states else (layout.sources,)
        with shared_prefix_attention(self._lm.module):
            logprobs, entropy, states = self._read_at(
                _packed_inputs(layout),
                indices,
                micro_batch.tokens[layout.rows, layout.columns],
                None if legal is None else legal[at],
                with_states=with_states,
            )
        return TokenOutputs(
            _put_back(micro_batch, first, logprobs, at),
            _put_back(micro_batch, first, entropy, at),
            None if states is None else _put_back(micro_batch, first, states[0], tuple(states_at), extra=1),
            shared=True,
        )

    def forward(
        self,
        tokens: Int[Tensor, "b l"],
        first: int,
        legal: Tensor | None = None,
        *,
        with_states: bool = False,
    ) -> TokenOutputs:
        """Log-probabilities and entropies of the t tokens from `first` to l - 1, with gradients.

        Padding is on the right, where causal attention never looks, so it needs no mask. Outputs of padding are meaningless.

        Args:
            tokens: Right-padded tokens.
            first: First position, at least 1, since the first token has no distribution.
            legal: bool[b t v], the legal tokens; None if all tokens are legal.
            with_states: Whether to return states too.

        Raises:
            InvalidArgumentError: If there are more tokens than the model's context holds.
        """
        return TokenOutputs(**self._lm.run(lambda: vars(self._forward(tokens, first, legal, with_states=with_states))))

    def _forward(self, tokens: Tensor, first: int, legal: Tensor | None, *, with_states: bool) -> TokenOutputs:
        self._lm.check_context(tokens.shape[1])
        chosen = tokens[:, first:]
        allowed = None if legal is None else legal.flatten(0, 1)
        indices = torch.arange(first - 1, tokens.shape[1] - (not with_states), device=tokens.device)
        logprobs, entropy, states = self._read_at(
            {"input_ids": tokens}, indices, chosen.reshape(-1), allowed, with_states=with_states
        )
        return TokenOutputs(logprobs.view(chosen.shape), entropy.view(chosen.shape), states)

    def states(self, tokens: Int[Tensor, "b l"], first: int) -> Float[Tensor, "b t+1 d"]:
        """The inputs of the output layer: the states before tokens `first` to l - 1, and after the last token."""
        self._lm.check_context(tokens.shape[1])
        if self._lm.logit_transform is None:
            states = self._forward(tokens, first, None, with_states=True).states
            assert states is not None
            return states
        return self._last_states({"input_ids": tokens})[:, first - 1 :]

    def _last_states(self, inputs: dict[str, Any]) -> Tensor:
        """The body's last states f[r s d] for inputs with `input_ids` i64[r s]."""
        with self._lm.autocast(), self._checkpointed(inputs):
            last: Tensor = body_of(self._lm.module)(**inputs, use_cache=False).last_hidden_state
        return last

    def _checkpointed(self, inputs: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
        masks = mask_entries(inputs.get("prefix_layout", ()))
        wanted = torch.is_grad_enabled() and self.recomputes(inputs["input_ids"], masks=masks)
        return checkpointed(self._lm.module, wanted)

    def _read_at(
        self, inputs: dict[str, Any], indices: Tensor, tokens: Tensor, legal: Tensor | None, *, with_states: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Log-probabilities and entropies f32[n] of tokens i64[n], and the states f[r k d] at the indices if requested.

        Args:
            inputs: Inputs of the model, with `input_ids` i64[r s].
            indices: i64[k], the positions whose states predict the tokens, followed by other positions whose states are
                requested.
            tokens: The tokens, in the order of rows and indices; n is r times the number of predicting positions.
            legal: bool[n v], the legal tokens; None if all tokens are legal.
            with_states: Whether to return the states.
        """
        used = len(tokens) // len(inputs["input_ids"])
        large = len(tokens) * self._lm.vocab_size > LOGITS_AT_ONCE
        if (large or with_states) and self._lm.logit_transform is not None:
            states = self._last_states(inputs)[:, indices]
            outputs = self._by_chunks(states[:, :used].flatten(0, 1), tokens, legal)
            return *outputs, states if with_states else None
        with self._states_of_the_head(with_states) as caught, self._lm.autocast(), self._checkpointed(inputs):
            logits = self._lm.module(**inputs, use_cache=False, logits_to_keep=indices).logits
        # Not every model supports `logits_to_keep`.
        logits, *kept = (
            values if values.shape[1] == len(indices) else values[:, indices] for values in (logits, *caught[:1])
        )
        outputs = self._token_outputs(logits[:, :used, : self._lm.vocab_size].flatten(0, 1), tokens, legal)
        return *outputs, kept[0] if with_states else None

    def _token_outputs(self, logits: Tensor, tokens: Tensor, legal: Tensor | None) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies f32[n] of tokens i64[n] from logits f[n v]."""
        compute = token_logprobs_and_entropy if self._config.fast else token_logprobs_by_autograd
        return compute(logits, tokens, self._config.temperature, legal)

    def _by_chunks(self, states: Tensor, tokens: Tensor, legal: Tensor | None) -> tuple[Tensor, Tensor]:
        """`_token_outputs` from states f[n d], in chunks of tokens, without a tensor of all tokens x vocabulary."""
        head, transform = self._lm.module.get_output_embeddings(), self._lm.logit_transform
        assert transform is not None

        def read(hidden: Tensor, own: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
            with self._lm.autocast():
                logits = transform(head(hidden)[:, : self._lm.vocab_size])
            return self._token_outputs(logits, own, allowed)

        size = max(1, LOGITS_AT_ONCE // self._lm.vocab_size)
        allowed = [None] * -(-len(tokens) // size) if legal is None else legal.split(size)
        again = torch.is_grad_enabled() and len(tokens) > size
        outputs = [
            checkpoint(read, *chunk, use_reentrant=False) if again else read(*chunk)
            for chunk in zip(states.split(size), tokens.split(size), allowed, strict=True)
        ]
        logprobs, entropies = zip(*outputs, strict=True)
        return torch.cat(logprobs), torch.cat(entropies)

    def distributions(
        self, tokens: Int[Tensor, "b l"], first: int, legal: Tensor | None = None
    ) -> Float[Tensor, "b t v"]:
        """Log-probabilities of every token at positions `first` to l - 1; see `forward`."""
        self._lm.check_context(tokens.shape[1])
        kept = tokens.shape[1] - first + 1
        with self._lm.autocast():
            logits = self._lm.module(input_ids=tokens, use_cache=False, logits_to_keep=kept).logits
        return scaled_logprobs(logits[:, -kept:-1, : self._lm.vocab_size], self._config.temperature, legal)

    def recomputes(self, tokens: Tensor, *, masks: int = 0) -> bool:
        """Whether the backward pass recomputes activations; see `checkpointing`.

        Args:
            tokens: The tokens i64[b l] of the forward pass.
            masks: Number of entries of attention masks.
        """
        logits = min(tokens.numel() * self._lm.vocab_size, LOGITS_AT_ONCE)
        return checkpoints(
            self._lm.module, self._config.checkpointing, tokens.numel(), logits, self._lm.value_bytes, masks=masks
        )

    @contextlib.contextmanager
    def _states_of_the_head(self, wanted: bool) -> Iterator[list[Tensor]]:
        """Capture the input of the output layer, since not every model returns it."""
        caught: list[Tensor] = []
        if not wanted:
            yield caught
            return
        hook = self._lm.module.get_output_embeddings().register_forward_pre_hook(
            lambda _, inputs: caught.append(inputs[0])
        )
        try:
            yield caught
        finally:
            hook.remove()


def _packed_inputs(layout: PackedLayout) -> dict[str, Any]:
    return {"input_ids": layout.tokens, "position_ids": layout.positions, "prefix_layout": layout.groups}


def _state_indices(micro_batch: Batch, layout: PackedLayout, first: int) -> tuple[Tensor, Tensor, Tensor]:
    """The packed indices of the states before the m tokens and after each row's last token, with original rows and columns."""
    last = layout.columns == micro_batch.lengths[layout.rows] - 1
    return (
        torch.cat([layout.sources, layout.targets[last]]),
        torch.cat([layout.rows, layout.rows[last]]),
        torch.cat([layout.columns, layout.columns[last] + 1]) - first,
    )


def _put_back(micro_batch: Batch, first: int, values: Tensor, at: tuple[Tensor, ...], *, extra: int = 0) -> Tensor:
    """Place values f[m ...] at their rows and columns of f[b t+extra ...], with 0 elsewhere."""
    shape = (len(micro_batch), micro_batch.tokens.shape[1] - first + extra, *values.shape[1:])
    return values.new_zeros(shape).index_put(at, values)
