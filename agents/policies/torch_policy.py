"""`TorchPolicy`: any causal torch module as a policy, such as a recurrent network or a table.

The policy consists of two modules: a body, from tokens to states, and an output layer, from states to logits. Each `act`
processes the whole prefix again; for a `transformers` model use `CausalLMPolicy`, which has a KV cache.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import rlvr_envs
from agents.batch import Batch
from agents.policies.trainable import TokenOutputs, require_temperature
from agents.policies.transformers.logprobs import token_logprobs_and_entropy
from agents.policies.transformers.sampling import sample, scaled_logprobs
from agents.seeding import mix, uniforms
from agents.types import Action
from verifiers import DivergedError, InvalidArgumentError
from verifiers.devices import float64_device

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class TorchPolicy:
    """A policy of two torch modules; it implements `TrainablePolicy`, so that every agent can train it.

    Args:
        body: Tokens i64[b l] -> states f[b l d]. The state at a position depends only on the tokens up to this position, as in
            a recurrent network that reads from left to right; padding is on the right.
        head: States f[... d] -> logits f[... v], such as a linear layer.
        temperature: Temperature that divides the logits in sampling and training; 0 chooses the likeliest token.
        seed: Seed for sampling episodes that were not announced by `begin`.

    Raises:
        InvalidArgumentError: If the temperature is negative, or the modules return other shapes.
    """

    fast = False
    is_half = False

    def __init__(
        self, body: torch.nn.Module, head: torch.nn.Module, *, temperature: float = 1.0, seed: int = 0
    ) -> None:
        require_temperature(temperature)
        self.model = torch.nn.ModuleDict({"body": body, "head": head}).eval()
        self.temperature = temperature
        self.seed = seed
        self.version = 0
        self.state_size, self.vocab_size = self._sizes()
        self._seeds = np.zeros(0, dtype=np.uint64)

    def _sizes(self) -> tuple[int, int]:
        """The sizes d and v, determined by a trial with one token."""
        with torch.no_grad():
            states = self._tried("body", self._example().to(self.device))
            if not isinstance(states, Tensor) or states.dim() != 3 or states.shape[:2] != (1, 1):
                said = tuple(states.shape) if isinstance(states, Tensor) else type(states).__name__
                raise InvalidArgumentError(
                    f"the body must map tokens i64[b l] to states f[b l d], but it mapped i64[1 1] to {said}"
                )
            logits = self._tried("head", states)
        if not isinstance(logits, Tensor) or logits.dim() != 3 or logits.shape[:2] != (1, 1):
            said = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise InvalidArgumentError(
                f"the head must map states f[b l d] to logits f[b l v], but it mapped one state to {said}"
            )
        return states.shape[2], logits.shape[2]

    def _example(self) -> Tensor:
        """An example of an input of the body."""
        return torch.zeros(1, 1, dtype=torch.int64)

    def _tried(self, name: str, value: Tensor) -> Any:
        try:
            return self.model[name](value)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise InvalidArgumentError(
                f"the {name} fails on a tensor of shape {tuple(value.shape)}: {' '.join(str(error).split())}"
            ) from error

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next((parameter.device for parameter in self.model.parameters()), torch.device("cpu"))

    def parameters(self) -> Sequence[torch.nn.Parameter]:
        """The trainable weights."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    # Acting

    @property
    def learner(self) -> TorchPolicy:
        """This policy itself."""
        return self

    def sampling(self) -> contextlib.AbstractContextManager[Mapping[str, float]]:
        """A null context: the policy samples with the trained weights themselves."""
        return contextlib.nullcontext({})

    def at_temperature(self, temperature: float) -> Self:
        """Return a policy with the same weights at another temperature, such as 0 for greedy evaluation."""
        return self._copy(self.model, temperature)

    def with_model(self, model: Any) -> Self:
        """Return a policy with the same settings on another model, such as a copy of this policy's model."""
        return self._copy(model, self.temperature)

    def _copy(self, model: Any, temperature: float) -> Self:
        require_temperature(temperature)
        other = copy.copy(self)
        other.model, other.temperature = model, temperature
        other.version, other._seeds = 0, np.zeros(0, dtype=np.uint64)
        return other

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Announce new episodes in some rows, with their sampling seeds u64[r]."""
        self._fit(int(rows.max(initial=-1)) + 1)
        self._seeds[rows] = seeds

    def _fit(self, num_rows: int) -> None:
        """Assign seeds to rows that were never announced."""
        first = len(self._seeds)
        if num_rows > first:
            new = np.arange(first, num_rows, dtype=np.uint64)
            origin = mix(np.array([self.seed % 2**64], dtype=np.uint64))
            self._seeds = np.concatenate([self._seeds, mix(origin ^ mix(new))])

    @torch.no_grad()
    def act(
        self,
        observation: rlvr_envs.Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        """Choose the next token of each row; see `Policy.act`. The same observation always gives the same action.

        Raises:
            InvalidArgumentError: If the action mask allows a row no token.
            DivergedError: If the weights have diverged.
        """
        tokens = np.atleast_2d(observation["tokens"])
        length = observation["length"].reshape(-1).astype(np.int64)
        self._fit(len(tokens))
        wanted = np.flatnonzero((length > 0) if rows is None else rows & (length > 0))
        action = Action(
            np.zeros((len(tokens), 1), dtype=np.int64),
            np.zeros(len(tokens), dtype=np.int64),
            np.zeros((len(tokens), 1), dtype=np.float32),
        )
        if len(wanted):
            legal = None if action_mask is None else np.atleast_2d(action_mask)[wanted].astype(bool)
            if legal is not None and not legal.any(axis=1).all():
                raise InvalidArgumentError(
                    f"the action mask allows row {wanted[~legal.any(axis=1)][0]} no token at all: "
                    "legal_actions must allow at least one, such as a stop token"
                )
            chosen, logprobs = self._choose(self._last_states(observation, wanted), length[wanted], wanted, legal)
            action.tokens[wanted, 0], action.logprobs[wanted, 0], action.counts[wanted] = chosen, logprobs, 1
        if observation["tokens"].ndim == 1:
            return Action(action.tokens[0], action.counts[0], action.logprobs[0])
        return action

    def _last_states(self, observation: rlvr_envs.Observation, rows: NDArray[np.int64]) -> Tensor:
        """The states f[r d] from which some rows choose their next token."""
        length = observation["length"].reshape(-1)[rows].astype(np.int64)
        tokens = np.atleast_2d(observation["tokens"])[rows, : length.max()].astype(np.int64)
        states: Tensor = self.model["body"](torch.from_numpy(tokens).to(self.device))
        return states[torch.arange(len(rows), device=self.device), torch.from_numpy(length - 1).to(self.device)]

    def _choose(
        self, states: Tensor, length: NDArray[np.int64], rows: NDArray[np.int64], legal: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        logits = self.model["head"](states)
        logits = logits.to(float64_device(logits.device))
        allowed = None if legal is None else torch.from_numpy(legal).to(logits.device)
        logprobs = scaled_logprobs(logits, self.temperature or 1.0, allowed)
        if not bool(torch.isfinite(logprobs.amax(dim=-1)).all()):
            raise DivergedError("the model's logits are not finite: its weights have diverged; lower the learning rate")
        if self.temperature == 0:
            return logprobs.argmax(dim=-1).cpu().numpy(), np.full(len(rows), np.nan, dtype=np.float32)
        u = torch.from_numpy(uniforms(self._seeds[rows], length)).to(logits.device)
        chosen = sample(logprobs, u)
        return chosen.cpu().numpy(), logprobs.gather(-1, chosen[:, None])[:, 0].cpu().numpy()

    # Learning

    def inputs(self, micro_batch: Batch) -> Tensor:
        """The body's inputs from some episodes: i64[b l], the tokens."""
        return micro_batch.tokens

    def read(self, micro_batch: Batch, *, with_states: bool = False) -> TokenOutputs:
        """Log-probabilities and entropies from `micro_batch.first` on; see `TrainablePolicy.read`."""
        first = micro_batch.first
        states, tokens = self.read_states(micro_batch), micro_batch.tokens[:, first:]
        legal = micro_batch.legal_tokens(first, self.vocab_size)
        logits = self.model["head"](states[:, :-1]).flatten(0, 1)
        allowed = None if legal is None else legal.flatten(0, 1)
        outputs = token_logprobs_and_entropy(logits, tokens.reshape(-1), self.temperature, allowed)
        logprobs, entropy = (values.view(tokens.shape) for values in outputs)
        return TokenOutputs(logprobs, entropy, states if with_states else None)

    def read_states(self, micro_batch: Batch) -> Float[Tensor, "b t+1 d"]:
        """The states before each token from `micro_batch.first` on, and after the last token, with gradients."""
        states: Tensor = self.model["body"](self.inputs(micro_batch))
        return states[:, micro_batch.first - 1 :]

    def distributions(
        self, tokens: Int[Tensor, "b l"], first: int, legal: Tensor | None = None
    ) -> Float[Tensor, "b t v"]:
        """Log-probabilities of every token at positions `first` to l - 1."""
        logits = self.model["head"](self.model["body"](tokens)[:, first - 1 : -1])
        return scaled_logprobs(logits, self.temperature, legal)

    def weights_changed(self) -> None:
        """Count a new version of the weights; there is no cache to drop."""
        self.version += 1

    def release_cache(self) -> None:
        """Do nothing, since there is no cache."""
