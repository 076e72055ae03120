"""What must hold of every agent, whatever its advantages and loss are."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

import rlvr_envs
from agents import (
    AGENTS,
    Agent,
    AgentConfig,
    Batch,
    CausalLMPolicy,
    CriticConfig,
    GRPOConfig,
    LearnerConfig,
    Run,
    Trajectory,
    agent_classes,
    make_batch,
    rollout,
    tiny_model,
)
from agents.learn.metrics import summarize
from agents.runs.run import latest_checkpoint
from tests.agents.agent_cases import (
    CASES,
    GROUP,
    all_weights,
    errored_rows,
    gradient,
    make_agent,
    playing_policy,
    some_batch,
    sort_env,
    timeless,
)
from tests.agents.rounding import FLOAT64, assert_equal, assert_equal_stored
from tests.agents.trajectories import scored, tiny_policy
from verifiers import CheckpointError, InvalidArgumentError, Outcome, Problem, UnknownNameError, Verdict

EVERY_CASE = pytest.mark.parametrize("case", CASES)
ONE_STEP = ("reinforce", "rloo", "remax", "actor-critic", "a2c", "trpo", "npg", "opo")
"""Agents that make one optimiser step on each batch."""
EVERY_AGENT = pytest.mark.parametrize("name", AGENTS)


def assert_close(actual: Tensor, expected: Tensor) -> None:
    assert float(expected.abs().max()) > 1e-4, "nothing was learned, so nothing was compared"
    assert_equal(actual, expected)


@EVERY_CASE
def test_rows_of_a_broken_verifier_change_nothing(case: str) -> None:
    """Not the weights, nor a metric: in baselines, advantages, denominators and critics they do not exist."""
    epochs = {} if case.split("/")[0] in ONE_STEP else {"epochs": 2}
    results: list[tuple[dict[str, float], Tensor]] = []
    for rows in ([], errored_rows(1, [0, 1, 2, 3, 9, 9, 9, 9]), errored_rows(2, [0, 1, 2, 3, 9, 9, 9, 9])):
        agent = make_agent(case, **epochs)
        good = some_batch(agent.policy)
        mixed = [*rows[:1], *good[:5], *rows[1:3], *good[5:], *rows[3:]]
        metrics = agent.update(mixed)
        metrics |= agent.update(mixed[::-1])
        results.append((metrics | {"kl_coefficient": agent.updating.kl_coefficient()}, all_weights(agent)))
    (metrics, expected), *others = results
    for other, weights in others:
        assert_equal(weights, expected, precision=np.float32, operations=8)
        assert other == pytest.approx(metrics, rel=1e-6, abs=1e-6, nan_ok=True)
    state = agent.own_state()
    assert agent.update(errored_rows(0, [0, 0, 0, 1, 1, 1]))["skipped"] == epochs.get("epochs", 1)
    assert torch.equal(all_weights(agent), weights)
    assert (agent.own_state(), agent.steps) == (state, 3)


@FLOAT64
@EVERY_CASE
def test_the_gradient_does_not_depend_on_order_micro_batches_or_padding(case: str) -> None:
    agent = make_agent(case)
    rows = some_batch(agent.policy)
    expected = gradient(agent, make_batch(rows))
    turned = [rows[index] for index in np.random.default_rng(0).permutation(len(rows))]
    assert_close(gradient(agent, make_batch(turned)), expected)
    for size in (1, 64):
        other = make_agent(case, learner={"micro_batch_size": size})
        assert_close(gradient(other, make_batch(rows)), expected)
    assert_close(gradient(agent, widened(make_batch(rows), 7)), expected)


def widened(batch: Batch, columns: int) -> Batch:
    """The same batch with more padding, of arbitrary tokens."""
    pad = torch.nn.functional.pad
    return dataclasses.replace(
        batch,
        tokens=pad(batch.tokens, (0, columns), value=3),
        loss_mask=pad(batch.loss_mask, (0, columns)),
        logprobs=pad(batch.logprobs, (0, columns)),
        rewards=pad(batch.rewards, (0, columns)),
        step_values=None if batch.step_values is None else pad(batch.step_values, (0, columns)),
    )


@FLOAT64
@pytest.mark.parametrize("case", ["reinforce", "rloo", "grpo", "dr-grpo", "dapo", "gspo", "cispo", "maxrl", "remax"])
def test_leaving_out_completions_of_advantage_0_changes_no_gradient(case: str) -> None:
    results = []
    for skip in (True, False):
        agent = make_agent(case, learner={"skip_zero_advantages": skip})
        batch, advantages = agent.compute_advantages(some_batch(agent.policy))
        agent.optimize(batch, torch.where(torch.arange(len(batch))[:, None] < GROUP, 0.0, advantages))
        results.append(torch.cat([p.grad.reshape(-1) for p in agent.policy.parameters()]))
    assert_close(*results)


@pytest.mark.parametrize("skip", [True, False])
def test_a_batch_without_any_signal_moves_nothing_although_adam_has_momentum(skip: bool) -> None:
    agent = make_agent("grpo", learner={"skip_zero_advantages": skip, "weight_decay": 0.1})
    rows = some_batch(agent.policy)
    agent.update(rows)
    before = all_weights(agent)
    metrics = agent.update([scored(1.0, group=index // GROUP) for index in range(6)])
    assert metrics["skipped"] == 1
    assert torch.equal(all_weights(agent), before)


RESUMED: dict[str, dict[str, Any]] = {
    **{case: {} for case in CASES if case in AGENTS},
    "reinforce/moving-average": {},
    "reinforce/value": {},
    "ppo/separate": {},
    "grpo/kl": {"kl_coefficient": 0.2, "kl_target": 0.05, "kl_horizon": 50, "reference_sync_every": 3},
    "ppo": {"epochs": 2, "minibatches": 2, "critic": CriticConfig("separate", value_clip=0.2)},
    "rloo/kl": {"kl_coefficient_end": 0.5, "learner": {"schedule_steps": 5, "schedule": "linear"}},
    "dapo": {"max_rounds": 3},
}


@pytest.mark.parametrize("case", RESUMED)
def test_an_agent_that_was_saved_and_loaded_goes_on_to_the_bit(case: str, tmp_path: Path) -> None:
    name = CASES[case][0]
    env = sort_env(name)
    straight: list[dict[str, float]] = []
    first = make_agent(case, playing_policy(env), **RESUMED[case])
    start = all_weights(first)
    first.learn(env, steps=2)
    assert not torch.equal(all_weights(first), start)
    first.save(tmp_path / "saved")
    first.learn(env, steps=3, callbacks=[lambda _, metrics: straight.append(timeless(metrics))])

    resumed: list[dict[str, float]] = []
    second = make_agent(case, playing_policy(env, seed=1), **RESUMED[case])
    second.load(tmp_path / "saved")
    assert second.steps == 2
    second.learn(sort_env(name), steps=3, callbacks=[lambda _, metrics: resumed.append(timeless(metrics))])
    assert torch.equal(all_weights(second), all_weights(first))
    assert len(straight) == 1
    for one, other in zip(straight, resumed, strict=True):
        assert one.keys() == other.keys()
        assert all(one[key] == other[key] or math.isnan(one[key]) for key in one), (one, other)
    assert second.progress.state() == first.progress.state()
    assert second.policy.version == first.policy.version


def test_a_checkpoint_that_does_not_fit_is_refused_and_leaves_the_agent_as_it_is(tmp_path: Path) -> None:
    make_agent("reinforce").save(tmp_path / "plain")
    make_agent("reinforce/value").save(tmp_path / "critic")
    make_agent("grpo/kl").save(tmp_path / "reference")

    def refused(agent: Agent, saved: str, message: str) -> None:
        before = all_weights(agent)
        with pytest.raises(CheckpointError, match=message):
            agent.load(tmp_path / saved)
        assert torch.equal(all_weights(agent), before)

    noise = tiny_policy()
    with torch.no_grad():
        noise.parameters()[0].add_(1.0)
    refused(make_agent("rloo", noise), "plain", "is of agent 'reinforce', not of 'rloo'")
    refused(make_agent("reinforce/value", noise), "plain", "has no critic, and this agent has a critic")
    refused(make_agent("reinforce", noise), "critic", "has a critic, and this agent has no critic")
    separate = make_agent("reinforce/value", noise, critic=CriticConfig("separate"))
    refused(separate, "critic", "has one kind of critic, and this agent has another")
    refused(make_agent("grpo", noise), "reference", "has a reference, and this agent has no reference")
    steered = make_agent("grpo/kl", noise, kl_target=0.1)
    refused(steered, "reference", "has no KL controller, and this agent has a KL controller")
    larger = CausalLMPolicy(tiny_model(16, layers=2, hidden_size=16, heads=2, intermediate_size=32))
    refused(make_agent("reinforce", larger), "plain", "is of another model")
    other = CausalLMPolicy(GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=32, n_embd=16, n_layer=1, n_head=2)))
    refused(make_agent("reinforce", other), "plain", "is of another model: a qwen2, and this is a gpt2")
    (tmp_path / "plain" / "state.pt").write_bytes(b"nothing")
    refused(make_agent("reinforce", noise), "plain", "is damaged: state.pt has 7 bytes, but")


@FLOAT64
@EVERY_AGENT
def test_legal_actions_are_the_same_distribution_in_sampling_and_in_learning(name: str) -> None:
    """Moves on a grid are 4 tokens of 13: without the masks, the ratios would be far from 1."""
    if name in ("gdpo", "maxrl"):
        pytest.skip("moves cost something and scores are in one piece there: neither is for this agent")
    env = gymnasium.make_vec("rlvr/GridWorld-v0", num_envs=8, n=2, copy=False)
    settings = {"selection": "best"} if name == "rft" else {}  # there no score is high enough to be kept for itself
    agent = make_agent(name, playing_policy(env), **settings)
    results: list[dict[str, Any]] = []
    agent.learn(env, steps=1, callbacks=[lambda _, metrics: results.append(dict(metrics))])
    assert_equal_stored(results[0]["sampling/sampling_logp_difference/max"], 0)
    assert_equal_stored(results[0]["ratio/max"], 1)
    assert 0 < results[0]["entropy"] < math.log(4)


def test_generated_tokens_are_counted_that_are_not_learned_from() -> None:
    env = sort_env("remax")
    agent = make_agent("remax", playing_policy(env))
    trajectories, _ = agent.collect(env, 0)
    sampled = sum(int(one.policy_mask.sum()) for one in trajectories)
    greedy = rollout(env, agent.policy.at_temperature(0.0), agent.sampling.episodes(env, 0))
    again = make_agent("remax", playing_policy(env))
    again.learn(env, steps=1)
    assert again.tokens == sampled + sum(int(one.policy_mask.sum()) for one in greedy)


def test_remax_learns_nothing_from_a_problem_on_whose_greedy_completion_the_verifier_broke_and_counts_it() -> None:
    agent = make_agent("remax")
    rows = [scored(1.0, baseline=math.nan), scored(math.nan, baseline=math.nan), scored(1.0, baseline=0.5)]
    assert summarize(rows)["baseline_errors"] == 1
    assert "baseline_errors" not in summarize([scored(1.0)])
    batch = make_batch([scored(1.0, baseline=math.nan), scored(1.0, baseline=0.25)])
    assert torch.where(batch.loss_mask, agent.advantages(batch), 0.0).tolist() == [[0, 0, 0], [0, 0.75, 0.75]]
    assert not agent.advantages(make_batch([scored(1.0, baseline=math.nan)])).any()
    with pytest.raises(InvalidArgumentError, match=r"no trajectory has the score .* use ReMax.collect"):
        agent.update([scored(1.0)])


@pytest.mark.parametrize("settings", [{}, {"kl_coefficient": 0.1}, {"kl_coefficient": 0.1, "entropy_coefficient": 0.1}])
def test_remax_leaves_such_a_problem_out_of_denominators_entropy_and_kl(settings: dict[str, Any]) -> None:
    """The update, and all it reports but the count, are those of the batch without it."""
    results = []
    for baseline in (None, math.nan):
        placed = {"kl_placement": "loss", "kl_estimator": "k2"} if "kl_coefficient" in settings else {}
        agent = make_agent("remax", **placed, **settings)
        rows = some_batch(agent.policy)
        more = [] if baseline is None else [dataclasses.replace(one, baseline=baseline) for one in rows[2:5]]
        metrics = agent.update([*more[:1], *rows[:6], *more[1:], *rows[6:]])
        results.append((timeless(metrics), all_weights(agent)))
    (expected, weights), (metrics, others) = results
    assert torch.equal(weights, others)
    assert metrics == pytest.approx(expected, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("settings", "worth"),
    [
        ({"truncation": "fixed-reward", "truncation_reward": -2.0}, lambda one: -2.0 if one.truncated else one.score),
        (
            {"truncation": "soft-overlong", "max_tokens": 4, "overlong_margin": 4},
            lambda one: one.score - int(one.policy_mask.sum()) / 4,
        ),
    ],
)
def test_remax_pays_the_greedy_completion_by_the_same_rule(settings: dict[str, Any], worth: Any) -> None:
    """Both completions are cut off: with one rule for both, what is compared is what both are worth."""
    env = sort_env("remax")
    agent = make_agent("remax", playing_policy(env), group_size=2, **settings)
    played, _ = agent.collect(env, 0)
    greedy = rollout(env, agent.policy.at_temperature(0.0), agent.sampling.episodes(env, 0)[::2])
    assert any(one.truncated for one in greedy)
    expected = {one.problem_id: worth(one) for one in greedy}
    assert [one.baseline for one in played] == pytest.approx([expected[one.problem_id] for one in played])


def test_an_agent_that_overrides_collect_is_told_what_learn_calls() -> None:
    def collect(self: Any, env: Any, first_round: int) -> Any: ...

    grpo = agent_classes("grpo")[0]
    for bases in ((grpo,), (type("Mixed", (), {"collect": collect}), grpo)):
        with pytest.raises(InvalidArgumentError, match=r"Former.collect would not be called by learn: define"):
            type("Former", bases, {"collect": collect} if len(bases) == 1 else {})


@pytest.mark.parametrize(
    ("name", "settings"),
    [("GridWorld", {"n": 2, "max_new_tokens": 30}), ("Addition", {"tokenizer": "char", "max_new_tokens": 5})],
)
def test_an_agent_acts_in_a_plain_gymnasium_loop(name: str, settings: dict[str, Any]) -> None:
    """And keeps to the legal tokens, though it would rather take others."""
    env = gymnasium.make(f"rlvr/{name}-v0", **settings)
    policy = playing_policy(gymnasium.make_vec(f"rlvr/{name}-v0", num_envs=1, **settings))
    agent = make_agent("ppo", policy)
    for seed in range(5):
        observation, info = env.reset(seed=seed)
        terminated = truncated = False
        while not (terminated or truncated):
            action = agent.act(observation, action_mask=info.get("action_mask"))
            observation, _, terminated, truncated, info = env.step(int(action.tokens[0]))
        assert info["verdict"] is not None


@pytest.mark.parametrize("name", ["grpo", "rloo", "opo", "gspo", "maxrl", "pass-at-k", "reinforce++/baseline"])
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1, 2, 3], "4 groups of 1 to 1: group 0 has 1"),
        ([0, 0, 0, 1, 1], "2 groups of 2 to 3: group 1 has 2"),
        ([0, 0, 5], "2 groups of 1 to 2: group 5 has 1"),
    ],
)
def test_groups_that_can_not_be_compared_are_refused_before_any_pass(name: str, groups: Any, message: str) -> None:
    agent = make_agent(name)
    before = all_weights(agent)
    rows = [scored(float(number % 2), length=4, group=group) for number, group in enumerate(groups)]
    with pytest.raises(InvalidArgumentError, match=message):
        agent.update(rows)
    assert agent.steps == 0
    assert torch.equal(all_weights(agent), before)


class Penalised(Agent):
    """A user's agent, which holds every token's log-probability down, whatever its advantage."""

    name = "penalised"
    vanishes_without_advantage = False

    def advantages(self, batch: Batch) -> Tensor:
        return (batch.scores == 1).double()[:, None].expand(batch.tokens.shape)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        return logprobs


@FLOAT64
def test_an_agent_whose_loss_needs_no_advantage_learns_from_every_row() -> None:
    vanishing = type("Vanishing", (Penalised,), {"vanishes_without_advantage": True})

    def norm(cls: Any, **settings: Any) -> float:
        config = AgentConfig(learner=LearnerConfig(max_grad_norm=1e9, **settings))
        return float(cls(tiny_policy(), config).update(some_batch(tiny_policy()))["grad_norm"])

    assert_equal(norm(Penalised), norm(Penalised, skip_zero_advantages=False))
    assert norm(vanishing) < 0.9 * norm(Penalised)


@EVERY_CASE
def test_the_advantages_of_an_update_can_be_had_by_themselves(case: str) -> None:
    """Nothing changes by asking for them, and what is left of `update` after them is `optimize`."""
    agent = make_agent(case)
    rows = some_batch(agent.policy)
    before = all_weights(agent)
    batch, advantages = agent.compute_advantages(rows)
    assert advantages.shape == batch.tokens.shape
    assert (batch.value_targets is None) == (agent.models.critic is None)
    assert torch.equal(all_weights(agent), before)
    assert agent.steps == 0
    agent.optimize(batch, advantages)
    other = make_agent(case)
    other.update(rows)
    assert torch.equal(all_weights(agent), all_weights(other))


def parted(parts: dict[str, Any]) -> Trajectory:
    """An episode whose verdict has these parts."""
    return dataclasses.replace(scored(1.0, length=4), verdict=Verdict(1.0, Outcome.SCORED, detail={"parts": parts}))


def test_gdpo_refuses_scores_of_other_parts_or_weights_than_before() -> None:
    agent = make_agent("gdpo")
    part = {"score": 1.0, "weight": 1.0}
    agent.check_episode(parted({"a": part, "b": part}))
    agent.check_episode(parted({"a": {**part, "score": 0.0}, "b": part}))
    for parts in ({"a": part}, {"b": part, "a": part}, {"a": part, "b": {**part, "weight": 2.0}}):
        with pytest.raises(InvalidArgumentError, match=r"the same in every verdict.* has the weights"):
            agent.check_episode(parted(parts))
        with pytest.raises(InvalidArgumentError, match="has the weights"):
            agent.update([parted({"a": part, "b": part}), parted(parts)])
    with pytest.raises(InvalidArgumentError, match="GDPO needs a score of several parts"):
        agent.check_episode(parted({"a": 1.0, "b": 0.5}))


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({"kl_estimator": "k2"}, {"kl_coefficient": 0.1}),
        ({"kl_placement": "reward"}, {"kl_coefficient": 0.1}),
        ({"kl_horizon": 20_000}, {"kl_coefficient": 0.1, "kl_target": 0.1}),
        ({"reference_sync_every": 2}, {"measure_kl": True}),
        ({"reference_sync_mix": 0.5}, {"kl_coefficient": 0.1, "reference_sync_every": 2}),
        ({"truncation_reward": -1.0}, {"truncation": "fixed-reward"}),
        ({"overlong_margin": 4}, {"truncation": "soft-overlong", "max_tokens": 9}),
        ({"max_tokens": 9}, {"aggregation": "sequence-mean-token-sum-norm"}),
        ({"max_tokens": 9}, {"truncation": "soft-overlong", "overlong_margin": 4}),
        ({"learner": LearnerConfig(schedule_steps=10)}, {"entropy_coefficient_end": 0.0}),
        ({"importance_correction": "none", "importance_cap": 5.0}, {"importance_correction": "token-mask"}),
    ],
    ids=lambda value: "-".join(value),
)
def test_a_setting_without_effect_is_refused(settings: dict[str, Any], needed: dict[str, Any]) -> None:
    name = "schedule_steps" if "learner" in settings else list(settings)[-1]
    with pytest.raises(InvalidArgumentError, match=f"{name}=.* has no effect, since .*, or leave it out"):
        GRPOConfig(**settings)
    GRPOConfig(**{**settings, **needed})


def test_what_an_agent_uses_itself_or_has_by_default_has_an_effect() -> None:
    @dataclasses.dataclass(frozen=True)
    class Own(GRPOConfig):
        max_tokens: int | None = 7
        own_uses: ClassVar[frozenset[str]] = frozenset({"importance_cap"})

    assert Own(importance_correction="none", importance_cap=3.0).max_tokens == 7
    with pytest.raises(InvalidArgumentError, match="max_tokens=8 has no effect"):
        Own(max_tokens=8)
    assert agent_classes("dpo")[1](reference_sync_every=2, reference_sync_mix=0.5).needs_reference
    learner = LearnerConfig(schedule_steps=10)
    assert agent_classes("rft")[1](threshold=0.0, threshold_end=1.0, learner=learner).has_schedule
    for settings in ({"importance_cap": 5.0}, {"importance_floor": 0.5}):
        with pytest.raises(InvalidArgumentError, match="has no effect, since the policy itself samples"):
            make_agent("grpo", **settings)
        make_agent("grpo", **settings, importance_correction="token-truncate")
        make_agent("grpo", **settings, lag=1)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("each", {"aggregation": "token-meen"}, "'token-meen'.*Did you mean 'token-mean'"),
        ("each", {"kl_estimator": "k4"}, "'k4'. Known: k1, k2,"),
        ("each", {"kl_target": 0.1}, "kl_target adapts kl_coefficient, which must be greater than 0"),
        ("grpo", {"kl_target": 0.1, "kl_coefficient": 0.1, "kl_horizon": 2}, "kl_horizon must be more than a fifth"),
        ("each", {"kl_coefficient": 0.1, "kl_placement": "loss", "kl_estimator": "k1"}, "which constrains nothing"),
        ("each", {"aggregation": "sequence-mean-token-sum-norm", "max_tokens": None}, "needs max_tokens, its constant"),
        ("grpo", {"problems_per_step": 5, "group_size": 3, "minibatches": 4}, "can't be divided into"),
        ("ppo", {"problems_per_step": 6, "minibatches": 4}, "can't be divided into minibatches=4 of equal size"),
        ("grpo", {"truncation": "bootstrap"}, "this GRPOConfig has no critic: choose an agent with a critic"),
        ("reinforce", {"truncation": "bootstrap"}, "or your own with `value_targets` and critic=CriticConfig"),
        ("grpo", {"truncation": "soft-overlong"}, "needs max_tokens and overlong_margin"),
        ("grpo", {"truncation": "soft-overlong", "max_tokens": 5, "overlong_margin": 6}, "from 1 to max_tokens=5"),
        ("grpo", {"kl_target": 0.1, "kl_coefficient": 0.1, "kl_coefficient_end": 0.0}, "set only one of them"),
        ("dr-grpo", {"max_tokens": None}, "needs max_tokens, its constant length"),
        ("pass-at-k", {"group_size": 4, "k": 4}, "less than group_size, got k=4 and group_size=4"),
        ("maxrl", {"kl_coefficient": 0.1, "kl_placement": "reward"}, "must be positive: set kl_placement='loss'"),
        ("gdpo", {"truncation": "fixed-reward"}, "compares the parts of a score"),
        ("opo", {"epochs": 2}, "exactly on-policy"),
        ("reinforce", {"epochs": 2}, "its loss has no ratio .* got epochs=2 and minibatches=1"),
        ("rloo", {"minibatches": 2}, "its loss has no ratio"),
        ("ppo", {"critic": None}, "or use GRPO, which has none"),
        ("trpo", {"minibatches": 2}, "epochs and minibatches must be 1"),
        ("trpo", {"learner": {"learning_rate": 0.1}}, "learning_rate=0.1 would have no effect here:"),
        ("npg", {"learner": {"warmup_steps": 3}}, "warmup_steps=3 would have no effect here.*max_kl"),
        ("reinforce", {"constant": 0.5}, "constant=0.5 would have no effect here.*baseline 'batch-mean' does not"),
        ("reinforce", {"baseline": "constant", "decay": 0.5}, "decay=0.5 would have no effect"),
        ("reinforce++", {"group_size": 2, "group_baseline": True, "gamma": 0.9}, "gamma=0.9 would have no"),
        ("a2c", {"steps_ahead": 2, "gae_lambda": 0.5}, "gae_lambda=0.5 would have no effect"),
        ("actor-critic", {"critic": None}, r"needs a critic: set critic=CriticConfig\(\)"),
        ("reinforce", {"critic": CriticConfig()}, "does not use a critic: leave critic out, or set"),
        ("reinforce++", {"group_baseline": True}, "group_size must be at least 2"),
        ("grpo", {"carried_groups": 5}, "carried_groups must be from 0 to problems_per_step=4, so that .* got 5"),
        ("grpo", {"segment_tokens": 8}, "segment_tokens=8 has no effect, since no groups are carried over updates"),
        ("remax", {"carried_groups": 1}, "ReMax plays a step in a way of its own: leave `carried_groups` out"),
        ("trpo", {"carried_groups": 1}, "carried_groups must be 0, got 1"),
        ("rloo", {"carried_groups": 1, "importance_correction": "none"}, "leave out importance_correction='none'"),
    ],
)
def test_inconsistent_settings_are_named(name: str, settings: dict[str, Any], message: str) -> None:
    for agent in AGENTS if name == "each" else [name]:
        with pytest.raises((InvalidArgumentError, UnknownNameError), match=message):
            make_agent(agent, **settings)


def test_a_batch_by_hand_that_can_not_be_divided_is_refused_before_anything_changes() -> None:
    agent = make_agent("ppo", minibatches=5, problems_per_step=5)
    rows = some_batch(agent.policy)
    before = all_weights(agent)
    with pytest.raises(InvalidArgumentError, match="12 completions can't be divided into minibatches=5 of equal size:"):
        agent.update(rows)
    assert torch.equal(all_weights(agent), before)
    assert agent.steps == 0
    assert agent.update(rows[:10])["skipped"] == 0


class CountsSteps(gymnasium.vector.VectorWrapper):  # type: ignore[type-arg] # whatever it wraps
    """Counts the steps that were made, and may spoil rewards."""

    steps = 0
    spoil: float | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "step_many":
            return self._step_many
        return super().__getattr__(name)

    def _step_many(self, tokens: Any, counts: Any) -> Any:
        self.steps += 1
        observation, reward, terminated, truncated, info = self.env.step_many(tokens, counts)  # type: ignore[attr-defined]
        if self.spoil is not None:
            info = {**info, "rewards": info["rewards"] + self.spoil}
        return observation, reward, terminated, truncated, info


def without_parts_at_length(completion: str, problem: Problem) -> Verdict:
    """A score of two parts for an empty completion, and of none for any other."""
    part = {"score": 0.0, "weight": 1.0}
    return Verdict(0.0, Outcome.SCORED, detail={} if completion else {"parts": {"a": part, "b": part}})


def breaks(completion: str, problem: Problem) -> Verdict:
    return Verdict(math.nan, Outcome.VERIFIER_ERROR)


WITHOUT_PARTS = r'GDPO needs a score of several parts.*"weighted_sum".*--verifier-args.*such as grpo'


@pytest.mark.parametrize(
    ("name", "env_name", "options", "message", "most"),
    [
        ("gdpo", "Sort", {"tokenizer": "char", "max_new_tokens": 4}, WITHOUT_PARTS, 0),
        # What the empty completion does not show is found at the first episode.
        ("gdpo", "Sort", {"tokenizer": "char", "verifier": without_parts_at_length}, WITHOUT_PARTS, 100),
        ("maxrl", "GridWorld", {"n": 4, "max_new_tokens": 1}, r"MaxRL needs scores of at least 0 .* is -0.01", 3),
    ],
)
def test_scores_that_an_agent_can_not_learn_from_are_found_before_an_update(
    name: str, env_name: str, options: dict[str, Any], message: str, most: int
) -> None:
    counted = CountsSteps(gymnasium.make_vec(f"rlvr/{env_name}-v0", num_envs=1, copy=False, **options))
    agent = make_agent(name, playing_policy(counted))
    with pytest.raises(InvalidArgumentError, match=message):
        agent.learn(counted, steps=5)
    assert (0 < counted.steps <= most) if most else (counted.steps == 0)
    assert agent.steps == 0


def test_gdpo_accepts_scores_of_parts_and_waits_where_the_verifier_broke() -> None:
    plain, parted, broken = (
        gymnasium.make_vec("rlvr/Sort-v0", num_envs=1, tokenizer="char", copy=False, **options)
        for options in ({}, {"verifier": ("weighted_sum", {"parts": {"digits": "exact"}})}, {"verifier": breaks})
    )
    agent = make_agent("gdpo", playing_policy(plain))
    for env in (parted, broken):
        agent.check_env(env)
    with pytest.raises(InvalidArgumentError, match=WITHOUT_PARTS):
        agent.check_env(rlvr_envs.mix({"with": parted.unwrapped, "without": plain.unwrapped}))


@pytest.mark.parametrize("spoil", [math.nan, math.inf])
def test_a_reward_that_is_no_number_stops_the_run_and_keeps_what_was_done(spoil: float, tmp_path: Path) -> None:
    env = sort_env("grpo")
    counted = CountsSteps(env)
    agent = make_agent("grpo", playing_policy(env))
    run = Run(tmp_path / "run", {}, loggers=())
    agent.learn(counted, steps=1)

    def break_it(step: int, _: Any) -> None:
        counted.spoil = spoil if step == 2 else None

    before = all_weights(agent)
    with pytest.raises(InvalidArgumentError, match=r"the reward of token \d+ is (nan|inf) in an episode of problem"):
        agent.learn(counted, steps=5, run=run, callbacks=[break_it])
    run.close()
    assert agent.steps == 2
    assert not torch.equal(all_weights(agent), before)
    kept = latest_checkpoint(tmp_path / "run")
    assert kept.name == "step-000002"
