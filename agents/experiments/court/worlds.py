"""The problems of the court's cases, with so few episodes that all episodes can be listed.

The policy chooses between the tokens 0 and 1. The episodes of a world are the leaves of a tree. Each inner node has a branch
for both tokens, so that any policy reaches a leaf. The environment answers with the token 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

VOCABULARY = 2
"""Number of tokens, which are 0 and 1."""


@dataclass(frozen=True)
class WorldEpisode:
    """One episode, without the token of the prompt."""

    tokens: tuple[int, ...]
    own: tuple[bool, ...]
    """For each token, True if it is the policy's and False if it is the environment's."""
    rewards: tuple[float, ...]
    """The reward of each token."""
    truncated: bool = False

    @property
    def score(self) -> float:
        """The sum of the rewards."""
        return sum(self.rewards)


World = tuple[WorldEpisode, ...]


def one_turn(episodes: dict[str, float], truncated: Sequence[str] = ()) -> World:
    """Make episodes of the policy's tokens alone with a reward at the end, from scores by tokens, such as `{"01": 1.0}`."""
    return tuple(
        WorldEpisode(
            tuple(map(int, text)),
            (True,) * len(text),
            (0.0,) * (len(text) - 1) + (score,),
            truncated=text in truncated,
        )
        for text, score in episodes.items()
    )


def several_turns(episodes: dict[str, tuple[float, ...]]) -> World:
    """Make episodes of several turns. The environment answers a turn with one token after a 0, and with two tokens after a 1.

    Args:
        episodes: The reward of each turn, by the tokens of the turns, such as "00 1". A reward comes with the last token of its
            turn. If an answer follows, a quarter of the reward comes with the answer's first token.
    """
    return tuple(_in_turns(text.split(), paid) for text, paid in episodes.items())


def _in_turns(turns: Sequence[str], paid: Sequence[float]) -> WorldEpisode:
    tokens, own, rewards = list[int](), list[bool](), list[float]()
    for number, (turn, amount) in enumerate(zip(turns, paid, strict=True)):
        last = number == len(turns) - 1
        answer = 0 if last else 1 + int(turn[-1])
        tokens += [*map(int, turn), *[0] * answer]
        own += [True] * len(turn) + [False] * answer
        rewards += [0.0] * (len(turn) - 1) + [amount if last else 0.75 * amount]
        rewards += [0.25 * amount] * (not last) + [0.0] * max(answer - 1, 0)
    return WorldEpisode(tuple(tokens), tuple(own), tuple(rewards))


ONE_LENGTH = one_turn({"00": 0.25, "01": 1.0, "10": 0.0, "11": 0.5})
UNEQUAL_LENGTHS = one_turn({"1": 0.25, "01": 1.0, "001": 0.0, "000": 0.5})
TRUNCATED = one_turn({"1": 0.25, "01": 1.0, "001": 0.0, "000": 0.5}, truncated=["000"])
TOOL_TOKENS = several_turns({"0 0": (0.0, 0.25), "0 1": (0.0, 1.0), "1 0": (0.0, 0.0), "1 1": (0.0, 0.5)})
TURNS = several_turns(
    {
        "1": (0.5,),
        "00 1": (0.5, 0.25),
        "00 0": (0.5, 1.0),
        "01 1": (0.0, 0.25),
        "01 0 0": (0.0, 0.5, 1.0),
        "01 0 1": (0, 0.5, 0),
    }
)
HARDER = one_turn({"1": 0.0, "01": 0.0, "00": 3.0})
SHORT = one_turn({"0": 0.0, "1": 1.0})
"""Two episodes of one token."""
UNEQUAL_SHORT = one_turn({"1": 0.0, "01": 1.0, "00": 0.0})
"""Three episodes of one or two tokens."""
TURNS_SHORT = several_turns({"1": (1.0,), "0 0": (0.0, 0.0), "0 1": (0.0, 1.0)})
"""Three episodes of one or two turns, each of one token."""


def plain(world: World) -> World:
    """The same episodes, without truncation and environment tokens, whose rewards go to the policy's preceding token."""
    return tuple(_plain(one) for one in world)


def _plain(one: WorldEpisode) -> WorldEpisode:
    starts = [at for at, own in enumerate(one.own) if own]
    rewards = tuple(sum(one.rewards[start:stop]) for start, stop in itertools.pairwise([*starts, len(one.own)]))
    return WorldEpisode(tuple(one.tokens[at] for at in starts), (True,) * len(starts), rewards)


def binary(world: World) -> World:
    """The same episodes with a single reward at the end: 1 if the score was above a third, otherwise 0."""
    return tuple(
        WorldEpisode(
            one.tokens, one.own, (0.0,) * (len(one.tokens) - 1) + (float(one.score > 1 / 3),), truncated=one.truncated
        )
        for one in world
    )
