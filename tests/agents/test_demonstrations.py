"""A demonstration is an episode that the environment itself would give for the gold tokens."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium
import numpy as np
import pytest

import rlvr_envs  # noqa: F401 - registers the ids
from agents.experiments.supervised import demonstration
from agents.rollouts.given import given_turns
from verifiers import DataError, InvalidArgumentError, Outcome


def test_a_bare_gold_answer_is_shown_in_the_form_that_the_prompt_asks_for() -> None:
    for prompt, shown in (("boxed_chat", "\\boxed{127}"), ("chat", "127"), ("plain", "127")):
        env: Any = gymnasium.make_vec("rlvr/Addition-v0", num_envs=1, prompt=prompt)
        assert demonstration(env.streams, 0).completion == shown


@pytest.mark.parametrize(
    ("name", "options"),
    [("GridWorld", {}), ("Maze", {}), ("Addition", {"tokenizer": "char"}), ("Sort", {"restrict_actions": True})],
)
def test_playing_the_gold_tokens_gives_the_demonstration(name: str, options: dict[str, Any]) -> None:
    env: Any = gymnasium.make_vec(f"rlvr/{name}-v0", num_envs=1, **options)
    for index in range(min(5, env.num_problems)):
        shown = demonstration(env.streams, index)
        observation, info = env.reset(options={"problems": np.array([index])})
        assert observation["tokens"][0, : shown.prompt_length].tolist() == shown.tokens[: shown.prompt_length].tolist()
        for position in range(shown.prompt_length, len(shown.tokens)):
            if "action_mask" in info:
                assert shown.action_masks is not None
                packed = np.packbits(info["action_mask"][0].astype(bool))
                assert shown.action_masks[position].tolist() == packed.tolist()
            _, _, terminated, truncated, info = env.step(shown.tokens[position : position + 1].astype(np.int64))
            assert bool(terminated[0]) == (position == len(shown.tokens) - 1)
            assert not truncated[0]
        assert info["completion"][0] == shown.completion


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("GuessNumber", {}),
        ("GuessNumber", {"high": 1000, "restrict_actions": True}),
        ("Mastermind", {}),
        ("Mastermind", {"length": 3, "colours": 9}),
    ],
)
def test_games_are_shown_as_a_player_plays_them_who_knows_only_the_answers(name: str, options: dict[str, Any]) -> None:
    env: Any = gymnasium.make_vec(f"rlvr/{name}-v0", num_envs=1, **options)
    known: dict[bytes, bytes] = {}
    for index in range(20):
        shown = demonstration(env.streams, index)
        env.reset(options={"problems": np.array([index])})
        tokens, own = shown.tokens, shown.policy_mask
        assert not own[: shown.prompt_length].any()
        for position in np.flatnonzero(own):
            # What goes before decides the token: no turn depends on the secret but by the answers.
            before = tokens[:position].tobytes()
            assert known.setdefault(before, tokens[position].tobytes()) == tokens[position].tobytes()
            _, reward, terminated, _, info = env.step(tokens[position : position + 1].astype(np.int64))
        assert (reward[0], terminated[0]) == (1.0, True)
        assert info["verdict"][0].outcome is Outcome.CORRECT


def test_a_game_that_no_player_can_show_is_refused() -> None:
    env: Any = gymnasium.make_vec("rlvr/Mastermind-v0", num_envs=1, length=9, colours=9)
    with pytest.raises(InvalidArgumentError, match="among at most 50000 codes, got 387420489"):
        demonstration(env.streams, 0)
    env.streams.dataset = [env.streams.dataset[0]]
    with pytest.raises(DataError, match=r"a model that learns it learns to guess. Give the data set a method"):
        demonstration(env.streams, 0)


def test_a_demonstration_of_several_turns_is_the_episode_with_what_was_answered() -> None:
    env: Any = gymnasium.make_vec("rlvr/GuessNumber-v0", num_envs=1)
    secret = env.streams.dataset[0].reference.number
    told = "\nhigher\n" if secret > 50 else "\nlower\n"
    shown = given_turns(env.streams, 0, ["50", str(secret)])
    tokenizer = env.streams.rules.tokenizer
    end = [tokenizer.eos_token]
    texts = (("guess 1-100:", []), ("50", end), (told, []), (str(secret), end))
    pieces = [[*tokenizer.encode(text), *more] for text, more in texts]
    assert shown.tokens.tolist() == list(itertools.chain(*pieces))
    assert shown.policy_mask.tolist() == [number % 2 == 1 for number, piece in enumerate(pieces) for _ in piece]
    assert (shown.prompt_length, shown.completion) == (len(pieces[0]), str(secret))


def test_a_demonstration_that_is_no_whole_episode_is_refused() -> None:
    env: Any = gymnasium.make_vec("rlvr/GuessNumber-v0", num_envs=1)
    secret = str(env.streams.dataset[0].reference.number)
    with pytest.raises(InvalidArgumentError, match=r"the episode of problem 0 goes on after the turns \['0'\]"):
        given_turns(env.streams, 0, ["0"])
    with pytest.raises(InvalidArgumentError, match=f"problem 0 was over before the turn '1' of .*{secret}"):
        given_turns(env.streams, 0, [secret, "1"])
