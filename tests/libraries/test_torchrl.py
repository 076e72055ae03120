"""torchrl wraps the environments, single and vector, and its own check passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import pytest
import torch
from torchrl.envs.libs.gym import GymEnv, GymWrapper
from torchrl.envs.utils import check_env_specs

WRAPPED: dict[str, Callable[[], Any]] = {
    "single": lambda: GymWrapper(gymnasium.make("rlvr/Addition-v0")),
    "by id": lambda: GymEnv("rlvr/Addition-v0"),
    "vector": lambda: GymWrapper(gymnasium.make_vec("rlvr/Addition-v0", num_envs=3)),
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_check_env_specs_and_a_rollout_over_several_episodes(kind: str) -> None:
    env = WRAPPED[kind]()
    check_env_specs(env)
    env.set_seed(0)
    torch.manual_seed(0)
    rollout = env.rollout(40, break_when_any_done=False)
    rows = 3 if kind == "vector" else 1
    length = rollout["length"].reshape(rows, 40)
    done = rollout["next", "done"].reshape(rows, 40)
    # The budget is 8 tokens, so each row ends and is reset at least four times.
    assert (done.sum(dim=1) >= 4).all()
    assert rollout["tokens"].shape[-1] == env.observation_spec["tokens"].shape[-1]
    # After an end the next observation is a prompt again; else it is one token longer.
    grown = length[:, 1:] - length[:, :-1]
    assert (grown[~done[:, :-1]] == 1).all()
    assert (grown[done[:, :-1]] < 1).all()


def test_a_right_answer_is_rewarded() -> None:
    env = GymWrapper(gymnasium.make("rlvr/Addition-v0", max_new_tokens=4))
    state = env.reset()
    prompt = bytes(state["tokens"][: int(state["length"])].tolist()).decode()
    left, _, right = prompt.rstrip("=").partition("+")
    total = 0.0
    for token in [*str(int(left) + int(right)).encode(), 256]:
        action = torch.nn.functional.one_hot(torch.tensor(token), 257)
        state = env.step(state.set("action", action))["next"]
        total += float(state["reward"])
    assert total == 1.0
    assert bool(state["terminated"])
