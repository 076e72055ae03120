"""The loop of one episode: a player chooses each token, and the environment answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import rlvr_envs
from verifiers import Verdict


class Player(Protocol):
    """Chooses tokens."""

    def begin_turn(self) -> None:
        """Begin a new turn; called when the environment has appended text."""

    def choose(self, observation: rlvr_envs.Observation, action_mask: NDArray[np.int8] | None) -> int | None:
        """Choose the next token; None to leave the episode.

        Args:
            observation: `tokens` i32[l], `length` i32[1].
            action_mask: i8[v], 1 for legal tokens; None if all tokens are legal.
        """


class OnInserted(Protocol):
    """Shows the environment's text between two turns."""

    def __call__(self, text: str) -> None:
        """Show text that the environment has appended."""


@dataclass(frozen=True)
class PlayedEpisode:
    """The result of an episode."""

    tokens: int
    """Number of tokens that the player chose."""
    turns: int
    """Number of the player's turns."""
    score: float
    """The return: the sum of all rewards."""
    truncated: bool
    completion: str
    """Text of the last turn."""
    verdict: Verdict | None
    left: bool
    """Whether the player left before the episode's end; there is then no verdict."""


def play_episode(
    env: rlvr_envs.TokenEnv,
    player: Player,
    observation: rlvr_envs.Observation,
    info: dict[str, Any],
    on_inserted: OnInserted,
) -> PlayedEpisode:
    """Play an episode to its end, or until the player leaves."""
    count, turns, score = 0, 1, 0.0
    while True:
        token = player.choose(observation, info.get("action_mask"))
        if token is None:
            return PlayedEpisode(count, turns, score, truncated=False, completion="", verdict=None, left=True)
        observation, reward, terminated, truncated, info = env.step(token)
        count, score = count + 1, score + reward
        while info.get("pending"):
            observation, reward, terminated, truncated, info = env.wait()
            score += reward
        if terminated or truncated:
            return PlayedEpisode(count, turns, score, truncated, info["completion"], info["verdict"], left=False)
        if "inserted" in info:
            end = int(observation["length"][0])
            if info.get("new_context"):
                on_inserted("\n[a new context: from here on only what follows is in view]\n")
            on_inserted(rlvr_envs.decode(env.tokenizer, observation["tokens"][end - info["inserted"] : end]))
            turns += 1
            player.begin_turn()
