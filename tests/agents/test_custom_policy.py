"""A policy on a torch module of one's own: it keeps the contract, every agent trains it, and mistakes are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from agents import (
    GRPO,
    CausalLMPolicy,
    CriticConfig,
    GRPOConfig,
    LearnerConfig,
    PolicyConfig,
    TorchPolicy,
    agent_classes,
    check_policy,
    make_batch,
    tiny_model,
)
from agents.learn.critic import make_critic
from tests.agents.test_contexts import Reader
from tests.agents.trajectories import trajectory
from verifiers import InvalidArgumentError

V = 16


def gru_policy(vocab_size: int = V, seed: int = 0, **settings: Any) -> TorchPolicy:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TorchPolicy(Reader(vocab_size, 24), torch.nn.Linear(24, vocab_size), **settings)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_policies_of_torch_modules_keep_the_contract(temperature: float) -> None:
    """And the check leaves them as they were."""
    policy = gru_policy(temperature=temperature)
    before = {name: value.clone() for name, value in policy.model.state_dict().items()}
    check_policy(policy)
    assert policy.version == 0
    assert all(torch.equal(value, before[name]) for name, value in policy.model.state_dict().items())


def test_so_do_a_table_of_logits_for_each_last_token_and_a_transformer() -> None:
    check_policy(TorchPolicy(torch.nn.Embedding(V, V), torch.nn.Identity()))
    model = tiny_model(V, layers=2, hidden_size=16, heads=2, intermediate_size=32)
    check_policy(CausalLMPolicy(model))
    check_policy(CausalLMPolicy(model, PolicyConfig(fast=False, temperature=0.7)))


class LooksAhead(Reader):
    def forward(self, tokens: torch.Tensor) -> Any:
        return super().forward(tokens.flip(1)).flip(1)


class BatchStatistics(Reader):
    def forward(self, tokens: torch.Tensor) -> Any:
        states = super().forward(tokens)
        return states - states.mean(dim=(0, 1))


class NoGradient(TorchPolicy):
    def read(self, micro_batch: Any, *, with_states: bool = False) -> Any:
        with torch.no_grad():
            return super().read(micro_batch, with_states=with_states)


class OtherTemperature(TorchPolicy):
    def read(self, micro_batch: Any, *, with_states: bool = False) -> Any:
        return TorchPolicy(self.model["body"], self.model["head"]).read(micro_batch, with_states=with_states)


class IgnoresMasks(TorchPolicy):
    def act(self, observation: Any, *, action_mask: Any = None, rows: Any = None) -> Any:
        return super().act(observation, rows=rows)


class NotSeeded(TorchPolicy):
    def act(self, observation: Any, *, action_mask: Any = None, rows: Any = None) -> Any:
        self._fit(len(observation["tokens"]))
        self._seeds = np.random.default_rng().integers(2**63, size=len(self._seeds), dtype=np.uint64)
        return super().act(observation, action_mask=action_mask, rows=rows)


class NotCounted(TorchPolicy):
    def weights_changed(self) -> None: ...


@pytest.mark.parametrize(
    ("cls", "body", "message"),
    [
        (TorchPolicy, LooksAhead, "depend"),
        (TorchPolicy, BatchStatistics, "depend"),
        (NoGradient, Reader, "whose gradient reaches the weights; got gradients of sizes \\[0.0"),
        (OtherTemperature, Reader, "with which act\\(\\) sampled"),
        (IgnoresMasks, Reader, "the one legal token"),
        (NotSeeded, Reader, "the same tokens for the same observation"),
        (NotCounted, Reader, "weights_changed\\(\\) adds 1 to version; got 0, then 0"),
    ],
)
def test_the_check_finds_each_mistake(cls: Any, body: Any, message: str) -> None:
    torch.manual_seed(0)
    policy = cls(body(V, 24), torch.nn.Linear(24, V), temperature=0.7)
    with pytest.raises(InvalidArgumentError, match=message):
        check_policy(policy)


def test_what_is_no_policy_is_told_what_it_lacks() -> None:
    for use in (check_policy, lambda policy: GRPO(policy, GRPOConfig())):
        with pytest.raises(InvalidArgumentError, match=r"a Linear without .*act, .*TorchPolicy\(body, head\)"):
            use(torch.nn.Linear(2, 2))  # type: ignore[arg-type, no-untyped-call]
    with pytest.raises(InvalidArgumentError, match="a temperature above 0; got 0"):
        check_policy(gru_policy(temperature=0.0))


def test_modules_that_do_not_fit_are_refused_with_the_shapes() -> None:
    with pytest.raises(InvalidArgumentError, match=r"tokens i64\[b l\] to states f\[b l d\], but it mapped i64\[1 1\]"):
        TorchPolicy(torch.nn.Sequential(torch.nn.Embedding(V, 4), torch.nn.GRU(4, 4)), torch.nn.Linear(4, V))
    with pytest.raises(InvalidArgumentError, match=r"logits f\[b l v\].* to \(1, 4\)"):
        TorchPolicy(torch.nn.Embedding(V, 4), torch.nn.Flatten())
    with pytest.raises(InvalidArgumentError, match=r"the head fails on a tensor of shape \(1, 1, 8\)"):
        TorchPolicy(torch.nn.Embedding(V, 8), torch.nn.Linear(7, V))


def envs() -> Any:
    return gymnasium.make_vec(
        "rlvr/Addition-v0", num_envs=32, tokenizer="char", max_new_tokens=2, verifier=count_sevens
    )


def count_sevens(completion: str, problem: object) -> float:
    return completion.count("7") / 2


@pytest.mark.parametrize("name", ["reinforce", "grpo", "ppo", "a2c", "remax", "dapo"])
def test_agents_train_a_recurrent_policy(name: str) -> None:
    env = envs()
    cls, config_cls = agent_classes(name)
    size = 8 if name in ("grpo", "dapo") else 1
    config = config_cls(problems_per_step=64 // size, group_size=size, learner=LearnerConfig(learning_rate=0.02))
    agent: Any = cls(gru_policy(env.single_action_space.n), config)  # type: ignore[arg-type]
    before = agent.evaluate(env, problems=64).score
    agent.learn(env, steps=25)
    after = agent.evaluate(env, problems=64).score
    assert before < 0.2
    assert after > 0.6


def test_a_kl_term_holds_it_to_a_copy_and_checkpoints_bring_it_back(tmp_path: Path) -> None:
    env = envs()
    config = GRPOConfig(problems_per_step=4, group_size=4, kl_coefficient=0.01)
    agent, other = (GRPO(gru_policy(env.single_action_space.n, seed=seed), config) for seed in range(2))
    agent.learn(env, steps=2)
    agent.save(tmp_path / "saved")
    other.load(tmp_path / "saved")
    for learner in (agent, other):
        learner.learn(env, steps=4)
    for name, value in agent.policy.model.state_dict().items():
        assert torch.equal(value, other.policy.model.state_dict()[name])


def test_a_separate_critic_has_a_copy_of_the_body() -> None:
    """It begins with the policy's states, and does not follow when the policy changes."""
    policy = gru_policy()
    critic = make_critic(policy, CriticConfig("separate"))
    torch.nn.init.normal_(critic.layer.weight, generator=torch.Generator().manual_seed(0))
    batch = make_batch([trajectory([0, 1, 1], tokens=[1, 2, 3])])
    expected = critic.layer(policy.read_states(batch))[..., 0]
    torch.testing.assert_close(critic.values(batch, None), expected)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.zero_()
    torch.testing.assert_close(critic.values(batch, None), expected)


def test_a_separate_critic_of_an_unknown_policy_is_refused_with_a_reason() -> None:
    """Of one that has every member of a policy, and is of no known class."""
    other: Any = type("OtherPolicy", (), {"__getattr__": lambda self, name: getattr(gru_policy(), name)})()
    with pytest.raises(InvalidArgumentError, match=r"needs a CausalLMPolicy or a TorchPolicy.*an? OtherPolicy"):
        make_critic(other, CriticConfig("separate"))
