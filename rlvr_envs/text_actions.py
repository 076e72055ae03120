"""`TextActions`: a token environment whose actions and observations are texts."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from rlvr_envs.spaces import AnyText
from rlvr_envs.token_env import TokenEnv
from rlvr_envs.tokenizers import decode
from rlvr_envs.types import Info, Observation
from verifiers import InvalidArgumentError


class TextActions(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Wraps an environment so that an action is a whole text, for policies that produce text, as in GEM or TextArena.

    An action is the policy's text of one turn. The environment takes the text's tokens one after the other, and then the token
    that ends a turn (`Rules.turn_end`). A stop string in the text ends the turn earlier; an exhausted budget truncates the
    episode. `info["consumed"]` counts the tokens that were taken. If the end token is not legal, as in grid worlds, the next
    text continues the same turn.

    An observation is the prompt and everything after it as text, without special tokens. A step waits for a deferred verdict,
    so that the last step of an episode always returns the reward.

    The environment's tokenizer encodes the text. A policy with another tokenizer has no log-probabilities for these tokens, so
    use tokens as actions for training.

    Args:
        env: A token environment, as returned by `gym.make`.

    Raises:
        InvalidArgumentError: If `env` is not a token environment, or is wrapped.
    """

    def __init__(self, env: gymnasium.Env[Observation, np.int64]) -> None:
        if not isinstance(env, TokenEnv):
            raise InvalidArgumentError(
                f"TextActions wraps a TokenEnv itself, got {type(env).__name__}: put other wrappers around TextActions"
            )
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._token_env = env
        self.action_space = AnyText()
        self.observation_space = AnyText()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, Info]:
        """Start an episode; see `TokenEnv.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._text(observation), info

    def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
        """Take a text as the action.

        Raises:
            ResetNeeded: Before the first reset and after the episode's end.
            IllegalTokenError: If a token of the text is not legal.
            InvalidArgumentError: If the action is not text, or contains characters that the tokenizer does not know.
        """
        if not isinstance(action, str):
            raise InvalidArgumentError(f"an action must be a string, got {type(action).__name__}")
        env = self._token_env
        result = env.step_many(env.tokenizer.encode(action).astype(np.int64))
        if _goes_on(result) and self._may_end(result[-1]):
            result = _together(result, env.step_many(np.array([env.streams.rules.turn_end])))
        if result[-1].get("pending"):
            result = _together(result, env.wait())
        return self._text(result[0]), *result[1:]

    def _may_end(self, info: Info) -> bool:
        return "action_mask" not in info or bool(info["action_mask"][self._token_env.streams.rules.turn_end])

    def _text(self, observation: Observation) -> str:
        return decode(self._token_env.tokenizer, observation["tokens"][: observation["length"][0]])


_Result = tuple[Observation, float, bool, bool, Info]


def _goes_on(result: _Result) -> bool:
    _, _, terminated, truncated, info = result
    return not (terminated or truncated or "inserted" in info or info.get("pending"))


def _together(first: _Result, second: _Result) -> _Result:
    """Combine two steps into one."""
    observation, reward, terminated, truncated, info = second
    info = {**info, "consumed": first[-1]["consumed"] + info["consumed"]}
    # The single reward of a step without tokens comes from a verdict, and belongs to the last token before that step.
    earlier, later = (step_info["rewards"][: max(step_info["consumed"], 1)] for step_info in (first[-1], second[-1]))
    if second[-1]["consumed"]:
        info["rewards"] = np.concatenate([earlier[: first[-1]["consumed"]], later])
    else:
        info["rewards"] = earlier + np.eye(1, len(earlier), len(earlier) - 1)[0] * later[0]
    info.pop("pending", None)
    if second[-1].get("pending"):
        info["pending"] = True
    return observation, first[1] + reward, terminated, truncated, info
