"""A model as the player of an episode; each token is shown with its most probable alternatives."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

import rlvr_envs
from agents.commands.playing.person import token_label
from agents.policies.transformers.policy import CausalLMPolicy


class ModelPlayer:
    """Samples tokens from a policy.

    Args:
        policy: The policy that acts. The probabilities shown are those of its sampling distribution or, if it samples at
            temperature 0, those at temperature 1.
        tokenizer: The tokenizer of policy and environment.
        console: Where tokens are shown.
        top: Number of most probable tokens to show beside each sampled token; 0 shows no tokens.
        seed: Seed u64 of sampling.
    """

    def __init__(
        self, policy: CausalLMPolicy, tokenizer: rlvr_envs.Tokenizer, console: Console, *, top: int, seed: int
    ) -> None:
        self._policy = policy
        self._shown = policy if policy.temperature > 0 else policy.at_temperature(1.0)
        self._tokenizer = tokenizer
        self._console = console
        self._top = top
        self._count = 0
        policy.begin(np.array([0]), np.array([seed], dtype=np.uint64))

    def begin_turn(self) -> None:
        """Do nothing: the text that the environment appended is in the observation."""

    def choose(self, observation: rlvr_envs.Observation, action_mask: NDArray[np.int8] | None) -> int:
        """Sample the next token, and show it."""
        rows = {name: values[None] for name, values in observation.items()}
        action = self._policy.act(rows, action_mask=None if action_mask is None else action_mask[None])
        token = int(action.tokens[0, 0])
        if self._top:
            self._show(token, self._log_probabilities(observation, action_mask))
        return token

    def _log_probabilities(
        self, observation: rlvr_envs.Observation, action_mask: NDArray[np.int8] | None
    ) -> NDArray[np.float32]:
        """Log-probabilities f32[v] of the next token."""
        length = int(observation["length"][0])
        tokens = torch.zeros(1, length + 1, dtype=torch.int64)  # the distribution does not depend on the last token
        tokens[0, :length] = torch.from_numpy(observation["tokens"][:length].astype(np.int64))
        legal = None if action_mask is None else torch.from_numpy(action_mask.astype(bool))[None, None]
        device = self._policy.device
        with torch.no_grad():
            logprobs = self._shown.distributions(tokens.to(device), length, None if legal is None else legal.to(device))
        values: NDArray[np.float32] = logprobs[0, 0].float().cpu().numpy()
        return values

    def _show(self, token: int, logprobs: NDArray[np.float32]) -> None:
        best = np.argsort(-logprobs, kind="stable")[: self._top]
        possible = [int(other) for other in best if logprobs[other] > -math.inf]
        label, share = self._described(token, logprobs)
        others = ", ".join(" ".join(self._described(other, logprobs)) for other in possible)
        self._console.print(f"{self._count:5}  {label:12} {share}   {others}")
        self._count += 1

    def _described(self, token: int, logprobs: NDArray[np.float32]) -> tuple[str, str]:
        return token_label(self._tokenizer, token), f"{math.exp(logprobs[token]):.3f}"
