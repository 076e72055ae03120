"""`check_token_env` checks by trial that an environment is suitable for training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlvr_envs.envs import TaskEnv
from rlvr_envs.finding import find_environment
from rlvr_envs.testing.expectation import expect
from verifiers import InvalidArgumentError, Outcome, Verdict

_FORM = "Dict(tokens=Box((l,), int32), length=Box((1,), int32))"


def check_token_env(
    make: str | Callable[..., gymnasium.Env[Any, Any]], *, episodes: int = 3, seed: int = 0, **arguments: Any
) -> None:
    """Play random episodes in an environment, and check the properties that agents and rollouts rely on.

    Gymnasium's own `check_env` checks other properties. `check_env` takes random actions, which some environments don't allow.

    Args:
        make: A name as for `find_environment`, or a class or function that builds an environment. The class or function is
            called several times.
        episodes: Number of episodes.
        seed: Seed of resets and actions.
        **arguments: Arguments of the environment.

    Raises:
        InvalidArgumentError: If a check fails; the message states the expected and the actual result and the usual cause.
    """
    if isinstance(make, gymnasium.Env):
        raise InvalidArgumentError(
            f"expected a class or a function that makes an environment, since two are compared, got the environment {make}: "
            "pass a function, such as lambda: gymnasium.make(...)"
        )
    build = find_environment(make) if isinstance(make, str) else make
    env, again = build(**arguments), build(**arguments)
    try:
        _check_spaces(env)
        actions = np.random.default_rng(seed)
        played = [_Episode(env, seed + number, actions) for number in range(episodes)]
        for episode in played:
            episode.replay(again)
    finally:
        env.close()
        again.close()
    if isinstance(build, type) and issubclass(build, TaskEnv):
        _check_rows(build, played, arguments)


def _check_spaces(env: gymnasium.Env[Any, Any]) -> None:
    expect(
        isinstance(env, gymnasium.Env), "the environment", "a gymnasium.Env", env, "Subclass gymnasium.Env or TaskEnv"
    )
    observation, action = env.observation_space, env.action_space
    fits = isinstance(observation, spaces.Dict) and {"tokens", "length"} <= observation.keys()
    for name in ("tokens", "length") if fits else ():
        box = observation[name]  # type: ignore[index] # a Dict, as checked
        one = isinstance(box, spaces.Box) and box.dtype == np.int32 and len(box.shape) == 1
        fits = fits and one and (name == "tokens" or box.shape == (1,))
    hint = "The first length[0] of tokens are the prompt and what follows it"
    expect(fits, _name(env), f"the observation space {_FORM}", observation, hint)
    discrete = isinstance(action, spaces.Discrete) and action.start == 0
    expect(discrete, _name(env), "the action space Discrete(v), which begins at 0", action, "An action is a token")


def _name(env: gymnasium.Env[Any, Any]) -> str:
    return f"the environment {type(env.unwrapped).__name__}"


class _Episode:
    """The actions and results of a random episode."""

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int, actions: np.random.Generator) -> None:
        self.env = env
        self.seed = seed
        self.vocab_size = int(env.action_space.n)  # type: ignore[attr-defined] # Discrete, as checked
        self.tokens: list[int] = []
        self.results: list[tuple[Any, ...]] = []
        observation, info = env.reset(seed=seed)
        self._check_observation(observation)
        hint = "The first token has no state before it"
        self._expect(observation["length"][0] >= 1, "a prompt of at least one token", "none", hint)
        self.start = _copied(observation)
        self._play(observation, info, actions)

    def _play(self, observation: Any, info: dict[str, Any], actions: np.random.Generator) -> None:
        (buffer,) = observation["tokens"].shape
        ended = False
        while not ended:
            hint = "Truncate an episode when its budget is spent: its tokens never exceed the space of the observation"
            length = int(observation["length"][0])
            self._expect(
                length < buffer, f"an end within {buffer} tokens", f"an episode that goes on at {length}", hint
            )
            token = self._legal_token(info, actions)
            before, kept = observation, _copied(observation)
            observation, reward, terminated, truncated, info = _step(self.env, token)
            hint = "Return copies: Gymnasium's users keep earlier observations"
            self._expect(
                _same(before, kept), "an earlier observation that stays as it was", "one that a step changed", hint
            )
            self._check_observation(observation)
            self._check_appended(kept, token, observation, info)
            self._check_result(reward, terminated, truncated, info.get("verdict"))
            self.tokens.append(token)
            self.results.append((_copied(observation), float(reward), terminated, truncated, _judgement(info)))
            ended = bool(terminated or truncated)

    def _legal_token(self, info: dict[str, Any], actions: np.random.Generator) -> int:
        mask = info.get("action_mask")
        if mask is None:
            return int(actions.integers(self.vocab_size))
        array = np.asarray(mask)
        fits = array.shape == (self.vocab_size,) and array.dtype == np.int8
        hint = "1 marks the legal tokens"
        self._expect(fits, f"an action_mask i8[{self.vocab_size}]", f"{array.dtype} of shape {array.shape}", hint)
        self._expect(
            bool(array.any()), "at least one legal token while the episode goes on", "none", "A stop token is one"
        )
        return int(actions.choice(np.flatnonzero(array)))

    def _check_observation(self, observation: Any) -> None:
        inside = self.env.observation_space.contains(observation)
        hint = "tokens i32[l] below the size of the vocabulary, length i32[1]"
        self._expect(inside, "observations in the observation space", observation, hint)

    def _check_appended(self, before: Any, token: int, after: Any, info: dict[str, Any]) -> None:
        length, inserted = int(before["length"][0]), int(info.get("inserted", 0))
        hint = (
            'The observation is the whole context; what the environment itself appends is counted in info["inserted"]'
        )
        grown = int(after["length"][0])
        if info.get("new_context"):
            self._expect(grown == inserted, f"a new context of {inserted} tokens after the step", grown, hint)
            return
        self._expect(grown == length + 1 + inserted, f"a length of {length + 1 + inserted} after the step", grown, hint)
        expected = [*before["tokens"][:length].tolist(), token]
        came = after["tokens"][: length + 1].tolist()
        self._expect(came == expected, f"the tokens {expected} after the step", came, hint)

    def _check_result(self, reward: Any, terminated: Any, truncated: Any, verdict: Verdict | None) -> None:
        errored = verdict is not None and verdict.outcome is Outcome.VERIFIER_ERROR
        self._expect(
            not errored, "a verdict", f"{verdict}", "The verifier failed on a random completion; see check_verifier"
        )
        number = isinstance(reward, int | float | np.number) and bool(np.isfinite(reward))
        self._expect(number, "a finite reward", reward, "A verifier that broke says so by its verdict")
        flags = all(isinstance(flag, bool | np.bool_) for flag in (terminated, truncated))
        hint = "terminated: the episode is over by itself; truncated: its budget ran out"
        one = flags and not (terminated and truncated)
        self._expect(one, "terminated or truncated as bools, not both", (terminated, truncated), hint)

    def replay(self, env: gymnasium.Env[Any, Any]) -> None:
        """Play the same episode in another environment."""
        hint = "Draw all that is random from the seed of reset(seed=...), by self.np_random"
        observation, _ = env.reset(seed=self.seed)
        expected = f"the same start after reset(seed={self.seed})"
        self._expect(_same(self.start, observation), expected, "another in a second environment", hint)
        for number, (token, result) in enumerate(zip(self.tokens, self.results, strict=True)):
            observation, reward, terminated, truncated, info = _step(env, token)
            others = (float(reward), terminated, truncated, _judgement(info))
            came = f"{result[1:]}, then {others}"
            same = _same(result[0], observation) and result[1:] == others
            self._expect(same, f"the same result of step {number} for the same tokens and seed", came, hint)

    def _expect(self, holds: bool, expected: str, came: object, hint: str) -> None:
        expect(bool(holds), _name(self.env), expected, came, hint)


def _step(env: gymnasium.Env[Any, Any], token: int) -> tuple[Any, ...]:
    """Take a step, and wait for a deferred verdict."""
    observation, reward, terminated, truncated, info = env.step(token)
    while info.get("pending"):
        observation, late, terminated, truncated, info = env.unwrapped.wait()  # type: ignore[attr-defined]
        reward = float(reward) + late
    return observation, reward, terminated, truncated, info


def _judgement(info: dict[str, Any]) -> str:
    """The fields of a verdict that must be the same in a replay."""
    verdict = info.get("verdict")
    return "" if verdict is None else repr((verdict.score, verdict.outcome, verdict.answer, dict(verdict.detail)))


def _copied(observation: Any) -> dict[str, NDArray[Any]]:
    return {name: np.array(values) for name, values in observation.items()}


def _same(one: Any, other: Any) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in ("tokens", "length"))


def _check_rows(cls: type[TaskEnv], played: list[_Episode], arguments: dict[str, Any]) -> None:
    """Check that each row of the native vector environment plays like a single environment."""
    vector = cls.make_vec(len(played), **arguments)
    try:
        observation, _ = vector.reset(seed=[episode.seed for episode in played])
        rewards = np.zeros(len(played))
        for number in range(max(len(episode.tokens) for episode in played)):
            going = [number < len(episode.tokens) for episode in played]
            tokens = [[episode.tokens[number] if goes else 0] for episode, goes in zip(played, going, strict=True)]
            observation, reward, *_, info = vector.step_many(np.array(tokens), np.array(going, dtype=np.int64))
            rewards += reward
            while info.get("pending", np.zeros(1)).any():
                observation, reward, *_, info = vector.wait()
                rewards += reward
    finally:
        vector.close()
    for row, episode in enumerate(played):
        last = episode.results[-1][0]
        same = np.array_equal(observation["tokens"][row], last["tokens"])
        total = sum(result[1] for result in episode.results)
        expect(
            same and bool(np.isclose(rewards[row], total)),
            f"the environment {cls.__name__}",
            f"the same episode from make_vec, with the return {total:g}",
            f"{rewards[row]:g}" if same else "other tokens",
            "A TaskSpec says all that is different; its data set and verifier keep no state between episodes",
        )
