"""Episodes of completions that nobody sampled here: gold completions, and those of a file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agents.types import Trajectory
from rlvr_envs import TokenStreams
from verifiers import Problem


def given_episode(
    streams: TokenStreams,
    problem: Problem,
    prompt: NDArray[np.int32],
    completion: str,
    *,
    group: int,
    ended: bool = True,
    score: float = 0.0,
) -> Trajectory:
    """Make the episode of a completion that nobody sampled here, whose log-probabilities are unknown and stored as 0.

    Args:
        streams: Source of the tokenizer and the rules.
        problem: The problem.
        prompt: Its prompt's tokens i32[p].
        completion: Text of the completion.
        group: Number of its group.
        ended: Whether it ended by itself: a stop token is added, if the environment has not ended it by then.
        score: Reward of the last token.
    """
    tokens = np.concatenate([prompt, streams.rules.tokenizer.encode(completion)])
    over = streams.rules.end_condition
    if ended and (over is None or not over(tokens, len(prompt), problem)):
        tokens = np.append(tokens, np.int32(streams.rules.tokenizer.eos_token))
    rewards = np.zeros(len(tokens))
    rewards[-1] = score
    return Trajectory(
        problem_id=problem.id,
        group=group,
        prompt_length=len(prompt),
        terminated=ended,
        truncated=not ended,
        verdict=None,
        completion=completion,
        tokens=tokens,
        policy_mask=np.arange(len(tokens)) >= len(prompt),
        logprobs=np.zeros(len(tokens), dtype=np.float32),
        rewards=rewards,
        policy_version=np.zeros(len(tokens), dtype=np.int32),
        action_masks=_legal_masks(streams, tokens, len(prompt)),
    )


def _legal_masks(streams: TokenStreams, tokens: NDArray[np.int32], prompt_length: int) -> NDArray[np.uint8] | None:
    """The legal tokens at each position, packed; None if every token is legal."""
    legal = streams.rules.legal_actions
    if legal is None:
        return None
    masks = np.ones((len(tokens), streams.vocab_size), dtype=bool)
    for position in range(prompt_length, len(tokens)):
        masks[position] = legal(tokens[:position], prompt_length).astype(bool)
    return np.packbits(masks, axis=1)
