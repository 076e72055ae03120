"""A demonstration is an episode that the environment itself would give for the gold tokens."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import rlvr_envs  # noqa: F401 - registers the ids
from agents.experiments.supervised import demonstration


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
