"""Every episode that a policy can play in a world, with its probability.

A policy over token prefixes, such as a language model, may depend on the whole walk and not only on the cell, so that its
values are not a function of the cell. With few moves and a small budget, all its episodes can be enumerated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlvr_envs.streams import TokenStreams
from rlvr_envs.worlds.rules import move_tokens, world_of
from rlvr_envs.worlds.world import MOVES, Cell, World
from verifiers import InvalidArgumentError

PrefixPolicy = Callable[[NDArray[np.int32]], ArrayLike]
"""Returns, for m prefixes i32[m l] of equal length (prompt and moves), the probabilities f64[m v] of the next token."""


@dataclass(frozen=True)
class WorldEpisode:
    """One possible episode."""

    moves: str
    """The policy's moves, as characters of `MOVES`."""
    cells: tuple[Cell, ...]
    """The walk: the start, then the cell after each move."""
    probability: float
    rewards: tuple[float, ...]
    """The reward of each move."""
    terminated: bool
    """Whether the episode ended at a goal or a trap, and not because the budget was used up."""

    def return_from(self, move: int = 0, *, gamma: float = 1.0) -> float:
        """G_t = R_{t+1} + γ R_{t+2} + ... (Sutton & Barto 2018, 3.8), for t = `move`."""
        total = 0.0
        for reward in reversed(self.rewards[move:]):
            total = reward + gamma * total
        return total


def every_episode(
    streams: TokenStreams, problem: int, policy: PrefixPolicy, *, max_prefixes: int = 200_000
) -> list[WorldEpisode]:
    """The exact distribution of a policy's episodes on one problem.

    Prefixes with probability 0 are not continued, so that a deterministic policy has only one episode for any budget. Tokens
    that are not moves are illegal: the probabilities of the moves are normalised, as in sampling under the action mask.

    Args:
        streams: The streams of an environment of worlds, `env.streams`.
        problem: The problem's index.
        policy: Returns the next token's probabilities for many prefixes at once.
        max_prefixes: Maximum number of prefixes of one length.

    Returns:
        The episodes; their probabilities sum to 1.

    Raises:
        InvalidArgumentError: If there are more prefixes than `max_prefixes`, or the policy returns anything but probabilities.
    """
    world, budget = world_of(streams.dataset[problem]), streams.rules.max_new_tokens
    prompt, tokens = streams.prompt_tokens(problem), move_tokens(streams.rules.tokenizer)
    episodes: list[WorldEpisode] = []
    walks, probabilities = np.zeros((1, 0), dtype=np.int64), np.ones(1)
    while len(walks):
        if len(walks) > max_prefixes:
            raise InvalidArgumentError(
                f"more than max_prefixes={max_prefixes} walks of {walks.shape[1]} moves are possible: lower the budget "
                "max_new_tokens, or give a policy that chooses among fewer"
            )
        prefixes = np.concatenate([np.tile(prompt, (len(walks), 1)), tokens[walks]], axis=1)
        conditional = _move_probabilities(policy(prefixes), tokens, (len(walks), streams.vocab_size))
        joint = probabilities[:, None] * conditional
        rows, moves = np.nonzero(joint)
        walks, probabilities = np.concatenate([walks[rows], moves[:, None]], axis=1), joint[rows, moves]
        candidates = [_episode(world, *pair) for pair in zip(walks.tolist(), probabilities.tolist(), strict=True)]
        over = np.array([episode.terminated or len(episode.moves) >= budget for episode in candidates])
        episodes += [candidates[at] for at in np.flatnonzero(over)]
        walks, probabilities = walks[~over], probabilities[~over]
    return episodes


def prefix_values(episodes: Iterable[WorldEpisode], *, gamma: float = 1.0) -> dict[str, float]:
    """The value E[G_t | the first t moves] of every sequence of moves that the policy can make.

    The value of `""` is the policy's expected return, the value of a whole episode is 0, and the action value of a move after
    `w` is the move's reward plus the discounted value of `w + move`.
    """
    probability: defaultdict[str, float] = defaultdict(float)
    total: defaultdict[str, float] = defaultdict(float)
    for episode in episodes:
        for made in range(len(episode.moves) + 1):
            probability[episode.moves[:made]] += episode.probability
            total[episode.moves[:made]] += episode.probability * episode.return_from(made, gamma=gamma)
    return {moves: total[moves] / probability[moves] for moves in total}


def _move_probabilities(given: ArrayLike, tokens: NDArray[np.int32], shape: tuple[int, int]) -> NDArray[np.float64]:
    """The probabilities f64[m a] of the moves, given the probabilities f64[m v] of all tokens."""
    table = np.asarray(given, dtype=np.float64)
    if table.shape != shape:
        raise InvalidArgumentError(
            f"a policy must return probabilities of {shape[1]} tokens for each of {shape[0]} prefixes; got shape {table.shape}"
        )
    moves = table[:, tokens]
    total = moves.sum(axis=1, keepdims=True)
    if not (moves >= 0).all() or not (total > 0).all() or not np.isfinite(total).all():
        row = int(np.flatnonzero(~((moves >= 0).all(axis=1) & (total > 0)[:, 0] & np.isfinite(total)[:, 0]))[0])
        raise InvalidArgumentError(
            "the moves have finite probabilities of at least 0, and some move more than 0; after one of the prefixes the "
            f"policy gives the moves {MOVES!r} {moves[row].tolist()}"
        )
    normalised: NDArray[np.float64] = moves / total
    return normalised


def _episode(world: World, moves: list[int], probability: float) -> WorldEpisode:
    cells = tuple(world.walk(moves))
    rewards = tuple(world.step_reward + world.end_reward(cell) for cell in cells[1:])
    return WorldEpisode("".join(MOVES[move] for move in moves), cells, probability, rewards, world.ends_at(cells[-1]))
