"""What a `VLLMPolicy` does with any engine; here one of torch, in this process."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import (
    GRPO,
    Episode,
    GRPOConfig,
    LearnerConfig,
    ReMax,
    ReMaxConfig,
    VLLMConfig,
    VLLMPolicy,
    add_lora,
    make_batch,
    rollout,
    save_model,
)
from agents.commands.main import main
from agents.commands.policies import sampler_for
from agents.importance import Correction
from agents.policies.vllm.launcher import EngineLauncher, adapter_settings
from agents.policies.vllm.weight_transfer import checkpoint_weights, fitted
from agents.runs.reading import RecordedRun
from rlvr_envs import FixedActions, Reply
from tests.envs.helpers import says
from tests.vllm.doubles import TorchEngine
from tests.vllm.worlds import CONTEXT, PROMPTS, TOKENIZER, learner, world
from verifiers import EngineError, InvalidArgumentError, Message, UnknownNameError

EOS = TOKENIZER.eos_token
EPISODES = [Episode(problem=index % len(PROMPTS), group=index, seed=1000 + index) for index in range(10)]


def on_torch(policy: Any, env: Any, *, says_kept: bool = False, **config: Any) -> VLLMPolicy:
    engine = TorchEngine(policy.model, says_kept=says_kept)
    return VLLMPolicy.for_env(policy, env, VLLMConfig(**config), engine=engine)


def learner_logprobs(policy: Any, trajectory: Any, legal: Any = None) -> np.ndarray:
    tokens = torch.from_numpy(trajectory.tokens.astype(np.int64))[None]
    first = trajectory.prompt_length
    mask = None if legal is None else torch.from_numpy(legal).expand(1, len(trajectory.tokens) - first, -1)
    with torch.no_grad():
        return policy.forward(tokens, first, mask).logprobs[0].numpy()


def check_logprobs(trajectories: list[Any], policy: Any, legal: Any = None) -> None:
    """Check those of single turns; measured, of vLLM: 5e-7. Raw ones at these temperatures would be off by some tenths."""
    for trajectory in trajectories:
        own = slice(trajectory.prompt_length, None)
        np.testing.assert_allclose(trajectory.logprobs[own], learner_logprobs(policy, trajectory, legal), atol=1e-5)


MOST, FEW = "0123456789", "27"
"""An engine is told the others of the first, and these of the second."""


def only(characters: str) -> FixedActions:
    mask = np.zeros(TOKENIZER.vocab_size, dtype=np.int8)
    mask[[EOS, *(TOKENIZER.encode(characters))]] = 1
    return FixedActions(mask)


LIMITS = [{"top_k": 3}, {"top_p": 0.5}, {"min_p": 0.9}, {"top_k": 5, "top_p": 0.9}]
KEEPS: dict[str, Any] = {"says_kept": True}


@pytest.mark.parametrize(
    ("settings", "allowed", "engine"),
    [
        ({"temperature": 0.7}, None, {}),
        ({}, MOST, {}),
        ({}, FEW, {}),
        *(({"spare_tokens": spare}, None, {}) for spare in (3, 40)),
        # An engine that says what it kept wants to hear a top-k, in the probe too; a user may start one without need.
        *(({"spare_tokens": spare, **limits}, None, KEEPS) for limits in LIMITS for spare in (0, 40)),
        ({}, None, {**KEEPS, "engine_args": {"return_sampling_mask": True}}),
    ],
    ids=str,
)
def test_trajectories_carry_the_tokens_that_were_kept_and_the_learners_log_probabilities_over_them(
    settings: dict[str, Any], allowed: str | None, engine: dict[str, Any]
) -> None:
    policy = learner(**{"temperature": 2.0, **settings})
    env = world(4, legal_actions=None if allowed is None else only(allowed))
    legal = np.ones(TOKENIZER.vocab_size, dtype=bool) if allowed is None else only(allowed).mask.astype(bool)
    limited = not {"top_k", "top_p", "min_p"}.isdisjoint(settings)
    sampler = on_torch(policy, env, **engine)
    with sampler.sampling() as metrics:
        assert metrics["sampling/probe_difference"] < 1e-6
        trajectories = rollout(env, sampler, EPISODES)
    for trajectory in trajectories:
        own, kept = slice(trajectory.prompt_length, None), None
        assert trajectory.policy_mask[own].all()
        assert legal[trajectory.tokens[own]].all()
        assert trajectory.terminated == (trajectory.tokens[-1] == EOS)
        assert trajectory.truncated == (not trajectory.terminated)
        assert (trajectory.action_masks is None) == (allowed is None and not limited)
        if trajectory.action_masks is not None:
            kept = np.unpackbits(trajectory.action_masks[own], axis=1, count=len(legal)).astype(bool)
            assert kept[np.arange(len(kept)), trajectory.tokens[own]].all()
            assert not limited or (kept.sum(axis=1) < len(legal)).all()
            assert limited or (kept == legal).all()
            assert settings.get("top_k") != 3 or (kept.sum(axis=1) == 3).all()
        np.testing.assert_allclose(trajectory.logprobs[own], learner_logprobs(policy, trajectory, kept), atol=1e-5)


def test_sampling_depends_on_the_episodes_seed_and_not_on_the_batch() -> None:
    policy = learner()
    one, other = world(3), world(10)
    first = rollout(one, on_torch(policy, one), EPISODES)
    again = rollout(other, on_torch(policy, other), EPISODES[::-1])[::-1]
    for mine, theirs in zip(first, again, strict=True):
        np.testing.assert_array_equal(mine.tokens, theirs.tokens)
    reseeded = [dataclasses.replace(episode, seed=episode.seed + 1) for episode in EPISODES]
    changed = rollout(other, on_torch(policy, other), reseeded)
    assert any(mine.completion != theirs.completion for mine, theirs in zip(first, changed, strict=True))


def test_each_turn_and_each_episode_has_a_seed_of_its_own_and_what_is_asked_twice_one_answer() -> None:
    policy, env = learner(temperature=2.0), world(1)
    sampler = on_torch(policy, env)
    seeds, tokens = [], []
    for problem in (0, 2, 0, 2, 2):  # 1+1= and 7-5=, which is as long
        observation, _ = env.reset(options={"problems": np.array([problem])})
        tokens.append(sampler.act(observation).tokens)
        seeds.append(sampler.engine.requests[0].seed)
    np.testing.assert_array_equal(tokens[-1], tokens[-2])
    sampler.act({"tokens": observation["tokens"], "length": observation["length"] + 1})
    seeds.append(sampler.engine.requests[0].seed)
    assert len(set(seeds)) == 5
    assert seeds[3] == seeds[4]
    assert all(0 <= seed < 2**63 for seed in seeds)


@pytest.mark.parametrize("reply", [says("7="), Reply(context=(Message("user", "7="),))], ids=["inserted", "a context"])
def test_every_turn_has_the_learners_log_probabilities(reply: Reply) -> None:
    policy = learner(temperature=1.0)
    env = world(
        3, max_new_tokens=20, interaction=lambda turns, _: reply if len(turns) < 3 else None, max_inserted_tokens=4
    )
    trajectories = rollout(env, on_torch(policy, env), EPISODES)
    inserted = [(~one.policy_mask[one.prompt_length :]).sum() for one in trajectories]
    assert max(inserted if reply.context is None else [2 * len(one.contexts) for one in trajectories]) == 4
    for one in trajectories:
        expected = np.zeros(len(one.tokens), dtype=np.float32)
        for start, end in itertools.pairwise((0, *one.contexts, len(one.tokens))):
            opening = 2 if start else one.prompt_length
            alone = dataclasses.replace(one, tokens=one.tokens[start:end], prompt_length=opening)
            expected[start + opening : end] = learner_logprobs(policy, alone)
        np.testing.assert_allclose(one.logprobs, np.where(one.policy_mask, expected, 0), atol=1e-5)
    drawn = [tuple(one.tokens[start + 2 : start + 4]) for one in trajectories for start in one.contexts]
    assert len(set(drawn)) >= len(drawn) / 2


def test_rows_that_need_an_action_are_asked_within_the_budget_and_the_buffer() -> None:
    policy, env = learner(), world(3)
    sampler = on_torch(policy, env)
    observation, _ = env.reset(options={"problems": np.array([0, 1, 3])})
    action = sampler.act(observation, rows=np.array([True, False, True]))
    assert [request.max_tokens for request in sampler.engine.requests] == [6, 6]
    assert (action.counts > 0).tolist() == [True, False, True]
    width = observation["tokens"].shape[1]
    sampler.act({"tokens": observation["tokens"], "length": np.array([width - 2, width, width])})
    assert [request.max_tokens for request in sampler.engine.requests] == [2]


def test_one_observation_without_a_batch_axis_gives_one_row() -> None:
    policy, env = learner(), world(1)
    sampler = on_torch(policy, env)
    observation, _ = env.reset(options={"problems": np.array([0])})
    row = {name: value[0] for name, value in observation.items()}
    action = sampler.act(row)
    assert action.tokens.ndim == 1
    np.testing.assert_array_equal(action.tokens, sampler.act(observation).tokens[0])


@pytest.mark.parametrize("limits", [{}, {"top_k": 3}], ids=str)
def test_greedy_tokens_are_the_learners_and_have_no_log_probability(limits: dict[str, Any]) -> None:
    """Of an engine that says what it kept, too."""
    policy, env = learner(**limits), world(4)
    trajectories = rollout(env, on_torch(policy, env, says_kept=bool(limits)).at_temperature(0.0), EPISODES)
    expected = rollout(env, policy.at_temperature(0.0), EPISODES)
    for mine, theirs in zip(trajectories, expected, strict=True):
        np.testing.assert_array_equal(mine.tokens, theirs.tokens)
        assert np.isnan(mine.logprobs[mine.prompt_length :]).all()
        assert mine.action_masks is None


# Legal tokens


def test_masks_that_change_are_refused() -> None:
    policy = learner()
    with pytest.raises(InvalidArgumentError, match="changes within a completion"):
        on_torch(policy, world(1, legal_actions=lambda tokens, prompt_length: only(MOST).mask))
    env = world(1, legal_actions=only(MOST))
    unaware = VLLMPolicy(policy, stop_tokens=[EOS], engine=TorchEngine(policy.model))
    observation, info = env.reset(options={"problems": np.array([0])})
    with pytest.raises(InvalidArgumentError, match="takes one set of them"):
        unaware.act(observation, action_mask=info["action_mask"])
    with pytest.raises(InvalidArgumentError, match="takes one set of them"):
        on_torch(policy, env).act(observation, action_mask=1 - info["action_mask"])


@pytest.mark.parametrize(("characters", "named"), [(FEW, 3), (MOST, 5)])
def test_more_names_of_tokens_than_a_worker_takes_are_refused_before_it_dies_of_them(
    characters: str, named: int
) -> None:
    policy, env = learner(), world(1, legal_actions=only(characters))
    rollout(env, VLLMPolicy.for_env(policy, env, engine=TorchEngine(policy.model, most_named=named)), EPISODES[:1])
    with pytest.raises(
        InvalidArgumentError, match=f"here {named} of the model's 16, and take at most {named - 1} names: start vLLM"
    ):
        VLLMPolicy.for_env(policy, env, engine=TorchEngine(policy.model, most_named=named - 1))


def test_kept_tokens_that_are_not_allowed_are_left_out_of_the_record() -> None:
    class Generous(TorchEngine):
        """Says that it kept every token of the model, as top-k does where it has more to keep than are allowed."""

        def generate(self, requests: Any, sampling: Any) -> Any:
            everything = list(range(TOKENIZER.vocab_size + 3))
            completions = super().generate(requests, sampling)
            return [
                dataclasses.replace(completion, kept=[everything] * len(completion.tokens))
                for completion in completions
            ]

    policy, env = learner(top_k=100, spare_tokens=3), world(1, legal_actions=only(FEW))
    sampler = VLLMPolicy.for_env(policy, env, engine=Generous(policy.model, says_kept=True))
    (trajectory,) = rollout(env, sampler, EPISODES[:1])
    assert trajectory.action_masks is not None
    kept = np.unpackbits(trajectory.action_masks[-1], count=TOKENIZER.vocab_size)
    np.testing.assert_array_equal(kept, only(FEW).mask)


def test_an_engine_that_does_not_say_what_it_kept_is_refused() -> None:
    policy, env = learner(top_p=0.5), world(1)
    sampler = on_torch(policy, env)
    with pytest.raises(EngineError, match="does not report which tokens top-k, top-p and min-p kept"):
        rollout(env, sampler, EPISODES[:1])


# Weights


def shift(policy: Any, amount: float = 0.05) -> None:
    """Change the weights, as an optimiser step does."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(amount * torch.randn(parameter.shape, generator=generator))
    policy.weights_changed()


def test_new_weights_reach_the_engine_once_and_the_cache_is_emptied_after_them() -> None:
    policy, env = learner(), world(4)
    sampler = on_torch(policy, env)
    assert sampler.sync()["sampling/probe_difference"] < 1e-6
    assert sampler.engine.reported == ["load", "reset"]
    assert sampler.sync() == {}
    rollout(env, sampler, EPISODES)
    shift(policy)
    assert sampler.version == 0
    assert sampler.sync()["sampling/probe_difference"] < 1e-6
    assert sampler.engine.reported == ["load", "reset"] * 2
    assert sampler.version == 1
    trajectories = rollout(env, sampler, EPISODES)
    assert all((one.policy_version[one.prompt_length :] == 1).all() for one in trajectories)
    check_logprobs(trajectories, policy)
    policy.model.load_state_dict(learner().model.state_dict())  # under the old number
    assert sampler.sync() != {}


def test_a_cache_that_is_not_emptied_is_found_out() -> None:
    class Stale(TorchEngine):
        def reset_prefix_cache(self) -> None:
            pass

    policy, env = learner(), world(4)
    sampler = VLLMPolicy.for_env(policy, env, engine=Stale(policy.model))
    sampler.sync()
    shift(policy, 0.2)
    with pytest.raises(EngineError, match=r"off the learner's by .* nats per token"):
        sampler.sync()


def test_log_probabilities_at_another_temperature_are_found_out() -> None:
    class Raw(TorchEngine):
        def generate(self, requests: Any, sampling: Any) -> Any:
            return super().generate(requests, dataclasses.replace(sampling, temperature=1.0))

    policy, env = learner(temperature=0.5), world(4)
    with pytest.raises(EngineError, match="is its logprobs_mode 'processed_logprobs'"):
        VLLMPolicy.for_env(policy, env, engine=Raw(policy.model)).sync()


def test_weights_are_fitted_by_name_and_shape_before_anything_is_sent_and_tied_ones_left_out() -> None:
    policy, size = learner(), TOKENIZER.vocab_size
    weights = checkpoint_weights(policy.model)
    assert "lm_head.weight" in weights
    shapes = {name: list(weight.shape) for name, weight in weights.items() if name != "lm_head.weight"}
    assert list(fitted(weights, shapes)) == list(shapes)
    with pytest.raises(InvalidArgumentError, match="missing: extra"):
        fitted(weights, {**shapes, "extra": [1]})
    fewer = {name: shape for name, shape in shapes.items() if name != "model.norm.weight"}
    with pytest.raises(InvalidArgumentError, match=r"unknown to the engine: model\.norm\.weight"):
        fitted(weights, fewer)
    engine = TorchEngine(learner(spare_tokens=2).model)
    message = rf"of another shape: model.embed_tokens.weight is \[{size}, 64\], the engine's \[{size + 2}, 64\]"
    with pytest.raises(InvalidArgumentError, match=message):
        VLLMPolicy.for_env(policy, world(1), engine=engine)
    assert engine.reported == []


@pytest.mark.parametrize(("lora", "sent"), [("merged", "load"), ("adapter", "adapter")])
def test_an_adapter_is_merged_or_sent_alone_whenever_it_has_changed(lora: Any, sent: str) -> None:
    plain, env = learner(), world(4)
    names = list(checkpoint_weights(plain.model))
    policy = plain.with_model(add_lora(plain.model, rank=2))
    assert list(checkpoint_weights(policy.model)) == names
    engine = TorchEngine(learner().model)
    sampler = VLLMPolicy.for_env(policy, env, VLLMConfig(lora=lora), engine=engine)
    for _ in range(2):
        shift(policy, 0.3)
        # The sum of the products is not the product with the sum to the last digit, and an adapter begins at random.
        assert sampler.sync()["sampling/probe_difference"] < 1e-5
        assert sampler.sync() == {}
    assert engine.reported == [sent, "reset"] * 2
    assert not list(Path("/dev/shm").glob("rlvr-weights-*"))


def test_an_adapter_is_sent_alone_only_where_the_engine_has_its_base() -> None:
    policy, env = learner(), world(4)
    engine = TorchEngine(policy.model)
    with pytest.raises(InvalidArgumentError, match="the model to train, which has none: set a LoRA rank"):
        VLLMPolicy.for_env(policy, env, VLLMConfig(lora="adapter"), engine=engine)
    large = policy.with_model(add_lora(policy.model, rank=2))
    assert adapter_settings(large)["max_lora_rank"] == 8
    large.model.peft_config["default"].r = 513
    with pytest.raises(InvalidArgumentError, match="up to rank 512, got 513"):
        adapter_settings(large)


def test_a_sleeping_engine_wakes_for_weights_then_for_its_cache() -> None:
    policy, env = learner(), world(1)
    sampler = on_torch(policy, env, sleep=True)
    greedy = sampler.at_temperature(0.0)  # on the same engine, which is awake or asleep for both
    woken = ["wake weights", "load", "wake kv_cache", "reset", "sleep"]
    # It starts awake. Asleep it lost the weights, so that it needs them even where they have not changed.
    for policy_asked, calls in (
        (sampler, ["load", "reset", "sleep"]),
        (sampler, woken),
        (greedy, woken),
        (sampler, woken),
    ):
        sampler.engine.reported.clear()
        with policy_asked.sampling() as metrics:
            assert metrics["sampling/probe_difference"] < 1e-6
            assert policy_asked.sync() == {}  # what is awake and up to date is left alone
        assert sampler.engine.reported == calls


def test_an_engine_that_dies_is_not_put_to_sleep_and_its_own_error_is_the_one_that_is_seen() -> None:
    class Dying(TorchEngine):
        def generate(self, requests: Any, sampling: Any) -> Any:
            if self.requests:  # those of the probe
                raise EngineError("the vLLM engine died (exit status -9)")
            return super().generate(requests, sampling)

        def sleep(self) -> None:
            raise EngineError("the vLLM engine has ended and can't sleep")

    policy, env = learner(), world(1)
    sampler = VLLMPolicy.for_env(policy, env, VLLMConfig(sleep=True), engine=Dying(policy.model))
    with pytest.raises(EngineError, match="died"), sampler.sampling():
        rollout(env, sampler, EPISODES[:1])


def test_an_engine_is_put_to_sleep_where_something_else_breaks_off() -> None:
    policy, env = learner(), world(1)
    sampler = on_torch(policy, env, sleep=True)
    with pytest.raises(KeyboardInterrupt), sampler.sampling():
        raise KeyboardInterrupt
    assert sampler.engine.reported == ["load", "reset", "sleep"]


def test_the_weights_of_a_greedy_learner_are_compared_at_another_temperature() -> None:
    policy, env = learner(temperature=0.0), world(4)
    sampler = on_torch(policy, env)
    assert sampler.sync()["sampling/probe_difference"] < 1e-6
    for mine, theirs in zip(rollout(env, sampler, EPISODES), rollout(env, policy, EPISODES), strict=True):
        np.testing.assert_array_equal(mine.tokens, theirs.tokens)
    stale = TorchEngine(learner(seed=1).model)
    stale.rpc = lambda method, *arguments: [None] if "weights" in method else TorchEngine.rpc(stale, method, *arguments)  # type: ignore[method-assign]
    with pytest.raises(EngineError, match=r"off the learner's by [0-9.]+ nats"):
        VLLMPolicy.for_env(policy, env, engine=stale).sync()


def test_a_server_may_have_been_left_asleep() -> None:
    policy, env = learner(), world(1)
    for sleep, calls in ((True, ["wake weights", "load", "wake kv_cache", "reset"]), (False, ["load", "reset"])):
        sampler = on_torch(policy, env, sleep=sleep, server="http://localhost:1")
        sampler.sync()
        assert sampler.engine.reported == calls


def test_an_engine_that_is_awake_gets_new_weights_without_being_woken() -> None:
    policy, env = learner(), world(1)
    sampler = on_torch(policy, env, sleep=True)
    with sampler.sampling():
        shift(policy, 0.1)
        sampler.engine.reported.clear()
        sampler.sync()
        assert sampler.engine.reported == ["load", "reset"]


# Agents


def test_grpo_learns_from_an_engines_samples() -> None:
    policy, env = learner(temperature=1.0), world(32, max_new_tokens=2)
    config = GRPOConfig(problems_per_step=4, group_size=8, learner=LearnerConfig(learning_rate=1e-2))
    agent = GRPO(policy, config, sampler=on_torch(policy, env))
    seen: list[dict[str, float]] = []
    agent.learn(env, steps=16, callbacks=[lambda step, metrics: seen.append(dict(metrics))])
    assert np.mean([record["reward"] for record in seen[:2]]) < 0.3
    assert np.mean([record["reward"] for record in seen[-2:]]) > 0.8
    differences = [record["sampling/sampling_logp_difference/max"] for record in seen if record["skipped"] == 0]
    assert differences
    assert max(differences) < 1e-4
    assert all(record["sampling/probe_difference"] < 1e-5 for record in seen)
    assert agent.evaluate(env, greedy=True).score == 1.0
    assert agent.sampler.version == policy.version


def test_with_a_lag_the_engine_has_the_weights_of_the_update_before() -> None:
    policy, env = learner(temperature=1.0), world(8, max_new_tokens=2)
    config = GRPOConfig(problems_per_step=2, group_size=4, lag=1, learner=LearnerConfig(learning_rate=1e-2))
    agent = GRPO(policy, config, sampler=on_torch(policy, env))
    models, batches = [copy.deepcopy(policy.model)], []
    update = agent.update

    def kept(trajectories: Any) -> Any:
        batches.append(trajectories)
        return update(trajectories)

    def after(step: int, _: object) -> None:
        models.append(copy.deepcopy(policy.model))
        if step == 2:  # the learner's weights go to the engine and those of the lag come back
            agent.evaluate(env, greedy=True)

    agent.update = kept  # type: ignore[method-assign]
    agent.learn(env, steps=5, callbacks=[after])
    for number, batch in enumerate(batches):
        older = policy.with_model(models[max(0, number - 1)])
        check_logprobs(batch, older)
        for each in batch:
            assert set(each.policy_version[each.policy_mask].tolist()) == {max(0, number - 1)}
    moved = [learner_logprobs(policy.with_model(model), batches[-1][0]) for model in models[:-1]]
    assert any(np.abs(moved[-1] - other).max() > 1e-3 for other in moved[:-1])


def test_samples_of_an_engine_are_weighed_and_those_of_the_policy_are_not() -> None:
    policy, env = learner(), world(8)
    config = GRPOConfig(problems_per_step=2, group_size=4)

    def weights(agent: GRPO) -> Any:
        trajectories, _ = agent.collect(env, 0)
        return agent.prepare(make_batch(trajectories)).importance

    assert weights(GRPO(policy, config)) is None
    engine = on_torch(policy, env)
    importance = weights(GRPO(policy, config, sampler=engine))
    assert importance is not None
    np.testing.assert_allclose(importance[importance > 0].numpy(), 1.0, atol=1e-4)
    off = dataclasses.replace(config, importance_correction=Correction.NONE)
    assert weights(GRPO(policy, off, sampler=engine)) is None


def test_remax_takes_its_baseline_from_the_engine_too() -> None:
    policy, env = learner(), world(4)
    sampler = on_torch(policy, env)
    agent = ReMax(policy, ReMaxConfig(problems_per_step=4, group_size=1), sampler=sampler)
    calls = []
    inner = sampler.engine.generate
    sampler.engine.generate = lambda requests, sampling: calls.append(sampling.temperature) or inner(requests, sampling)  # type: ignore[method-assign, func-returns-value]
    trajectories, _ = agent.collect(env, 0)
    assert calls == [0.7, 0.0]
    assert all(trajectory.baseline is not None for trajectory in trajectories)


def test_an_agent_refuses_a_sampler_of_another_policy() -> None:
    env = world(1)
    with pytest.raises(InvalidArgumentError, match="the weights of a policy other than the one that learns"):
        GRPO(learner(), GRPOConfig(), sampler=on_torch(learner(), env))


# Settings


def test_arguments_of_the_command_line_go_to_the_config_or_to_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VLLMPolicy, "for_env", lambda policy, env, config: config)
    pairs = ["python=/other/bin/python", "sleep=True", "max_model_len=64", "quantization=fp8"]
    config: Any = sampler_for(learner(), world(1), "vllm", pairs)
    assert (config.python, config.sleep) == ("/other/bin/python", True)
    assert config.engine_args == {"max_model_len": 64, "quantization": "fp8"}
    with pytest.raises(InvalidArgumentError, match="engine 'torch' takes no arguments"):
        sampler_for(learner(), world(1), "torch", ["sleep=True"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(
            ({"lora": "adapter", **other}, "leave out server, sleep and weight_transfer")
            for other in ({"server": "http://localhost:8000"}, {"sleep": True}, {"weight_transfer": "nccl"})
        ),
        ({"lora": "adaptor"}, "Did you mean 'adapter'"),
        ({"weight_transfer": "ncl"}, "Did you mean 'nccl'"),
        ({"server": "http://localhost:8000", "dtype": "float32"}, "give a server its own options"),
        ({"server": ["http://localhost:1", "http://localhost:2"], "engines": 2}, "only apply to an engine that is"),
        ({"server": []}, "server is empty"),
        ({"engines": 2, "devices": ["1"]}, "devices must name the GPUs of each of the 2 engines, got 1"),
        ({"devices": "1"}, "devices must be "),
        ({"probe_tolerance": 0.0}, "probe_tolerance must be greater than 0"),
        *(
            ({"engine_args": {"max_model_len": most}}, f"max_model_len must be a whole number of .*, got {most!r}")
            for most in ("1k", 2.5, 0, -2)
        ),
    ],
)
def test_settings_that_have_no_effect_or_no_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=message):
        VLLMConfig(**settings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stop_tokens": [TOKENIZER.vocab_size]}, f"stop tokens must be below {TOKENIZER.vocab_size}"),
        ({"legal_tokens": np.ones(3, dtype=np.int8)}, "legal_tokens must have one entry for each"),
        ({"config": VLLMConfig(server="localhost:8000"), "engine": None}, "must begin with http"),
    ],
)
def test_tokens_and_addresses_that_are_none_are_refused(arguments: dict[str, Any], message: str) -> None:
    policy = learner()
    with pytest.raises(InvalidArgumentError, match=message):
        VLLMPolicy(policy, **{"stop_tokens": [EOS], "engine": TorchEngine(policy.model), **arguments})


@pytest.mark.parametrize(("most", "context"), [(20, 20), (None, CONTEXT), (-1, CONTEXT)])
def test_the_engines_context_is_its_max_model_len_or_else_the_models(most: int | None, context: int) -> None:
    policy, env = learner(), world(1, max_new_tokens=CONTEXT)
    with pytest.raises(InvalidArgumentError, match=f"the engine's context holds {context}"):
        rollout(env, on_torch(policy, env, engine_args={"max_model_len": most}), EPISODES[:1])


@pytest.mark.parametrize("temperature", [2.5, 0.005])
def test_temperatures_that_vllm_does_not_take_as_they_are_are_refused(temperature: float) -> None:
    env = world(1)
    with pytest.raises(InvalidArgumentError, match=r"at temperature 0 and from 0\.01 to 2\.0, got"):
        on_torch(learner(temperature=temperature), env)
    with pytest.raises(InvalidArgumentError, match=f"got {temperature}"):
        on_torch(learner(), env).at_temperature(temperature)


def test_an_engine_is_started_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its model is saved for it, of which transformers would draw a bar."""
    policy = learner()
    monkeypatch.setattr("agents.policies.vllm.launcher.ProcessEngine", lambda *_, **__: TorchEngine(policy.model))
    VLLMPolicy.for_env(policy, world(1), VLLMConfig(python="/other/bin/python")).close()
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


def test_rlvr_eval_samples_with_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedily, what the model itself says; the record names the engine, its arguments and the weights."""
    engines: list[TorchEngine] = []

    def start(self: EngineLauncher, numbers: Any) -> list[TorchEngine]:
        engines.append(TorchEngine(self.learner.model))
        return engines[-1:]

    monkeypatch.setattr(EngineLauncher, "start", start)
    monkeypatch.setattr("agents.policies.vllm.engine.require_vllm", lambda: None)
    save_model(tmp_path / "model", learner().model, TOKENIZER)
    own = greedy_evaluation(tmp_path, "torch")
    by_engine = greedy_evaluation(tmp_path, "vllm", "dtype=float32")
    assert by_engine.rows == own.rows
    assert engines[0].reported == ["close"]
    of_torch = {name: value for name, value in own.settings.items() if name != "precision"}
    assert by_engine.settings == of_torch | {"engine": "vllm", "engine_args": ["dtype=float32"]}


def greedy_evaluation(folder: Path, engine: str, *engine_args: str) -> RecordedRun:
    """The run of `rlvr eval` on a few sums by the model in a folder."""
    sizes = ["--problems", "6", "--num-envs", "4", "--env-args", "max_new_tokens=6"]
    arguments = ["--engine-args", *engine_args] if engine_args else []
    names = ["--model", str(folder / "model"), "--out", str(folder / engine), "--engine", engine]
    with pytest.raises(SystemExit) as ended:
        main(["eval", "--env", "Addition", *names, *sizes, *arguments])
    assert ended.value.code == 0
    return RecordedRun.read(folder / engine)
