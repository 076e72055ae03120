"""Episodes of completions that were not sampled here: gold completions, and completions from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

import rlvr_envs
from agents.types import Trajectory
from verifiers import InvalidArgumentError, Problem


def given_episode(
    streams: rlvr_envs.TokenStreams,
    problem: Problem,
    prompt: NDArray[np.int32],
    completion: str,
    *,
    group: int,
    ended: bool = True,
    score: float = 0.0,
) -> Trajectory:
    """Make the episode of a completion that was not sampled here; its log-probabilities are unknown, and stored as 0.

    Args:
        streams: Source of the tokenizer and the rules.
        problem: The problem.
        prompt: Its prompt's tokens i32[p].
        completion: Text of the completion.
        group: Number of the episode's group.
        ended: Whether the completion ended by itself: a stop token is then added, unless the environment has already ended the
            episode.
        score: Reward of the last token.
    """
    tokens = np.concatenate([prompt, streams.rules.tokenizer.encode(completion)])
    over = streams.rules.end_condition
    if ended and (over is None or not over(tokens, len(prompt), problem)):
        tokens = np.append(tokens, np.int32(streams.rules.turn_end))
    own = np.arange(len(tokens)) >= len(prompt)
    return _episode(streams, problem, group, completion, tokens, own, {0: len(prompt)}, ended=ended, score=score)


def given_turns(streams: rlvr_envs.TokenStreams, index: int, turns: Sequence[str]) -> Trajectory:
    """Make the episode of a problem with the given turns, each with a stop token if the turn does not stop by itself."""
    rules, alone = streams.rules, streams.again(1, judged=False)
    alone.reset([0], [None], [index])
    prompt_length = int(alone.length[0])
    past: list[NDArray[np.int32]] = []  # the tokens of contexts before the one in view
    own: list[NDArray[np.bool_]] = [np.zeros(prompt_length, dtype=bool)]
    openings = {0: prompt_length}  # where each context begins, and how many tokens it opens with
    over = False
    for turn in turns:
        if over:
            raise InvalidArgumentError(
                f"the episode of problem {index} was over before the turn {turn!r} of {list(turns)}"
            )
        said = np.append(rules.tokenizer.encode(turn), np.int32(rules.turn_end)).astype(np.int64)
        before = alone.tokens[0, : alone.length[0]].copy()
        transition = alone.advance(said[None])
        consumed, inserted = int(transition.consumed[0]), int(transition.inserted[0])
        own += [np.ones(consumed, dtype=bool), np.zeros(inserted, dtype=bool)]
        if transition.new_context[0]:
            past += [before, said[:consumed].astype(np.int32)]
            openings[sum(map(len, past))] = inserted
        over = bool(transition.terminated[0] or transition.truncated[0])
    if not over:
        raise InvalidArgumentError(f"the episode of problem {index} goes on after the turns {list(turns)}")
    tokens = np.concatenate([*past, alone.tokens[0, : alone.length[0]]])
    return _episode(streams, streams.dataset[index], index, turns[-1], tokens, np.concatenate(own), openings)


def _episode(
    streams: rlvr_envs.TokenStreams,
    problem: Problem,
    group: int,
    completion: str,
    tokens: NDArray[np.int32],
    own: NDArray[np.bool_],
    openings: Mapping[int, int],
    *,
    ended: bool = True,
    score: float = 0.0,
) -> Trajectory:
    """An episode of tokens i32[l]; the tokens in the mask `own` bool[l] are the policy's.

    `openings` maps the position at which each context begins to the number of tokens that the context opens with.
    """
    rewards = np.zeros(len(tokens))
    rewards[-1] = score
    return Trajectory(
        problem_id=problem.id,
        group=group,
        prompt_length=openings[0],
        terminated=ended,
        truncated=not ended,
        verdict=None,
        completion=completion,
        tokens=tokens,
        policy_mask=own,
        logprobs=np.zeros(len(tokens), dtype=np.float32),
        rewards=rewards,
        policy_version=np.zeros(len(tokens), dtype=np.int32),
        action_masks=_legal_masks(streams, tokens, openings),
        contexts=tuple(openings)[1:],
    )


def _legal_masks(
    streams: rlvr_envs.TokenStreams, tokens: NDArray[np.int32], openings: Mapping[int, int]
) -> NDArray[np.uint8] | None:
    """The legal tokens at each position, packed; None if every token is legal."""
    legal = streams.rules.legal_actions
    if legal is None:
        return None
    masks = np.ones((len(tokens), streams.vocab_size), dtype=bool)
    for (start, opening), end in zip(openings.items(), [*tuple(openings)[1:], len(tokens)], strict=True):
        for position in range(start + opening, end):
            masks[position] = legal(tokens[start:position], opening).astype(bool)
    return np.packbits(masks, axis=1)
