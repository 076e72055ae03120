"""Completions made by hand that both libraries learn from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from agents import CausalLMPolicy, Trajectory
from tests.agents.trajectories import VOCAB, on_policy_logprobs, trajectory
from verifiers import Outcome, Verdict

GROUP_SIZE = 4
PAD, EOS = 0, 1
LONGEST = 9
"""Tokens of the longest completion."""


def completions(
    scores: Sequence[float],
    *,
    parts: Sequence[tuple[float, float]] | None = None,
    group_size: int = GROUP_SIZE,
    seed: int = 0,
    tool_tokens: bool = True,
    truncated: Sequence[int] = (),
) -> list[Trajectory]:
    """Groups of completions of 3 to 9 random tokens, after prompts of 1 to 4.

    Args:
        scores: Group by group; NaN where the verifier broke.
        parts: What each score is the sum of; None for scores without parts.
        group_size: Completions of each prompt.
        seed: Decides tokens and lengths.
        tool_tokens: Put tokens of the environment between the policy's own.
        truncated: The completions that do not end with the end-of-sequence token.
    """
    generator = np.random.default_rng(seed)
    prompts = [generator.integers(2, VOCAB, int(generator.integers(1, 5))).tolist() for _ in scores[::group_size]]
    trajectories = []
    for index, score in enumerate(scores):
        prompt = prompts[index // group_size]
        length = LONGEST if index == 0 else int(generator.integers(3, LONGEST + 1))
        own = np.ones(length, dtype=bool)
        if tool_tokens:
            own[1:-1] = generator.random(length - 2) < 0.75
        tokens = generator.integers(2, VOCAB, length)
        if index not in truncated:
            tokens[-1] = EOS
        outcome = Outcome.VERIFIER_ERROR if np.isnan(score) else Outcome.SCORED
        detail = {} if parts is None else {"parts": _parts(parts[index])}
        trajectories.append(
            trajectory(
                [0] * len(prompt) + own.astype(int).tolist(),
                tokens=[*prompt, *tokens.tolist()],
                rewards=[0.0] * (len(prompt) + length - 1) + [score],
                verdict=Verdict(score, outcome, detail=detail),
                group=index // group_size,
                prompt_length=len(prompt),
                terminated=index not in truncated,
                truncated=index in truncated,
            )
        )
    return trajectories


def _parts(scores: tuple[float, float]) -> dict[str, dict[str, float]]:
    return {name: {"score": score, "weight": 1.0} for name, score in zip(("right", "short"), scores, strict=True)}


def mixed_scores() -> list[float]:
    """Of three groups: any numbers; one right and the rest wrong; a few values."""
    return [1.3, -0.4, 0.15, 0.7, 0.0, 1.0, 0.0, 0.0, 0.5, 0.25, 0.5, 1.0]


def sampled_by(policy: CausalLMPolicy, trajectories: Sequence[Trajectory], noise: float = 0.0) -> list[Trajectory]:
    """The same, sampled by the policy itself, or by one whose log-probabilities differ by normal noise of this size."""
    generator = np.random.default_rng(1)
    resampled = []
    for original in trajectories:
        own = on_policy_logprobs(policy, original)
        other = own + noise * generator.normal(size=len(own)).astype(np.float32)
        resampled.append(
            dataclasses.replace(original, logprobs=np.where(original.policy_mask, other, 0.0).astype(np.float32))
        )
    return resampled
