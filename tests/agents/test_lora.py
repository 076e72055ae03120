"""Adapters: what learns, what the reference is, and that a checkpoint of an adapted model is whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from agents import (
    GRPO,
    CausalLMPolicy,
    Episode,
    GRPOConfig,
    LearnerConfig,
    ReferencePolicy,
    add_lora,
    make_batch,
    rollout,
)
from agents.learn.batch_passes import token_logprobs
from agents.policies.transformers.lora import merged
from tests.agents.rounding import FLOAT64, assert_equal, assert_equal_stored
from tests.agents.test_adapter import third_party
from tests.agents.trajectories import VOCAB, on_policy_logprobs, random_trajectory, tiny_policy
from tests.commands import Command
from verifiers import CheckpointError, InvalidArgumentError

pytest.importorskip("peft")


def adapted(**settings: Any) -> CausalLMPolicy:
    return CausalLMPolicy(add_lora(tiny_policy().model, rank=2, alpha=4, **settings))


def some_batch(policy: CausalLMPolicy) -> list[Any]:
    generator = np.random.default_rng(0)
    played = [random_trajectory(generator, score=float(index % 2), group=index // 4) for index in range(8)]
    return [replace(trajectory, logprobs=on_policy_logprobs(policy, trajectory)) for trajectory in played]


def trained(policy: CausalLMPolicy) -> GRPO:
    agent = GRPO(policy, GRPOConfig(kl_coefficient=0.1, learner=LearnerConfig(learning_rate=0.02)))
    for _ in range(3):
        agent.update(some_batch(policy))
    return agent


def test_only_the_adapter_learns() -> None:
    policy = adapted()
    assert 0 < sum(p.numel() for p in policy.parameters()) < sum(p.numel() for p in policy.model.parameters()) / 2
    before = {name: p.detach().clone() for name, p in policy.model.named_parameters()}
    trained(policy)
    changed = {name for name, p in policy.model.named_parameters() if not torch.equal(p, before[name])}
    assert changed
    assert all("lora_" in name for name in changed)


def test_first_weights_depend_on_the_seed_alone_and_leave_the_global_generator_alone() -> None:
    def drawn(seed: int, elsewhere: int) -> torch.Tensor:
        torch.manual_seed(elsewhere)
        before = torch.get_rng_state()
        policy = adapted(seed=seed)
        assert torch.equal(torch.get_rng_state(), before)
        return torch.cat([p.detach().reshape(-1) for name, p in policy.model.named_parameters() if "lora_A" in name])

    assert torch.equal(drawn(3, elsewhere=1), drawn(3, elsewhere=2))
    assert not torch.equal(drawn(3, elsewhere=1), drawn(4, elsewhere=1))


def test_runs_of_the_command_with_one_seed_are_one_run(rlvr: Command, tmp_path: Path) -> None:
    weights = []
    for number, (seed, elsewhere) in enumerate(((5, 1), (5, 2), (6, 1))):
        torch.manual_seed(elsewhere)
        small = ["--env", "Sort", "--env-args", "tokenizer=char", "max_new_tokens=3", "--problems-per-step", "2"]
        small += ["--group-size", "2", "--steps", "1", "--lora-rank", "2", "--learning-rate", "0.01"]
        run = tmp_path / str(number)
        assert rlvr("train", "grpo", *small, "--seed", seed, "--run-folder", run)[0] == 0
        state = torch.load(run / "checkpoints" / "step-000001" / "state.pt", weights_only=True)
        weights.append(torch.cat([weight.reshape(-1) for weight in state["adapter"].values()]))
    first, again, other = weights
    assert torch.equal(again, first)
    assert not torch.equal(other, first)


def test_the_reference_is_the_model_without_its_adapter_and_holds_no_weights() -> None:
    plain = tiny_policy()
    policy = adapted()
    agent = trained(policy)
    batch = make_batch(some_batch(policy))
    assert isinstance(agent.models.reference, ReferencePolicy)
    with agent.models.reference.switched_on():
        result = token_logprobs(agent.models.reference.policy, batch, 64)
    assert torch.equal(result, token_logprobs(plain, batch, 64))
    assert not torch.allclose(token_logprobs(policy, batch, 64), result, atol=1e-3)
    assert agent.models.reference.state_dict() is None


def test_a_checkpoint_goes_on_and_is_a_model_like_any_other(tmp_path: Path) -> None:
    agent = trained(adapted())
    agent.save(tmp_path / "saved")
    other = GRPO(adapted(), agent.config)
    other.load(tmp_path / "saved")
    batch = make_batch(some_batch(agent.policy))
    expected = token_logprobs(agent.policy, batch, 64)
    assert torch.equal(token_logprobs(other.policy, batch, 64), expected)
    first, second = agent.update(some_batch(agent.policy)), other.update(some_batch(other.policy))
    assert first == second
    with pytest.raises(CheckpointError, match=r"the model has no adapter, and the checkpoint at .* has one"):
        GRPO(tiny_policy(), agent.config).load(tmp_path / "saved")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": 3}, r"the shape of .*lora_A.* is \(2, \d+\) there and \(3, \d+\) here"),
        ({"alpha": 8}, "its alpha is 4 there and 8 here"),
        ({"targets": ("q_proj",)}, r"the shape of .*lora_.* is \(.*\) there and None here"),
        ({"base": 1.01}, "its checksum of its base is .* there and .* here"),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    agent = trained(adapted())
    agent.save(tmp_path / "saved")
    plain = tiny_policy().model
    with torch.no_grad():
        plain.get_output_embeddings().weight.mul_(change.get("base", 1.0))
    settings = {"rank": 2, "alpha": 4, **{name: value for name, value in change.items() if name != "base"}}
    other = GRPO(CausalLMPolicy(add_lora(plain, **settings)), agent.config)
    before = [weight.detach().clone() for weight in other.policy.model.parameters()]
    with pytest.raises(CheckpointError, match=message):
        other.load(tmp_path / "saved")
    assert all(torch.equal(*pair) for pair in zip(before, other.policy.model.parameters(), strict=True))
    assert other.steps == 0


@FLOAT64
def test_a_merged_copy_on_a_device_leaves_the_model_as_it_is() -> None:
    policy = trained(adapted()).policy
    before = {name: weight.detach().clone() for name, weight in policy.model.named_parameters()}
    copied = merged(policy.model, device="cpu")
    assert not {id(weight) for weight in copied.parameters()} & {id(weight) for weight in policy.model.parameters()}
    assert not any("lora_" in name for name, _ in copied.named_parameters())
    tokens = torch.arange(8)[None]
    with torch.no_grad():
        assert_equal(copied(tokens).logits, merged(policy.model)(tokens).logits)
        assert_equal(copied(tokens).logits, policy.model(tokens).logits)
    assert all(torch.equal(weight, before[name]) for name, weight in policy.model.named_parameters())


def test_bad_settings_are_named() -> None:
    for model, rank, message in (
        (tiny_policy().model, 0, "least 1, got 0"),
        (adapted().model, 2, "an adapter already"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            add_lora(model, rank=rank)


@FLOAT64
def test_prompts_of_different_lengths_are_sampled_right_where_positions_are_learned() -> None:
    """GPT-2 has to be told where the tokens of a padded prompt stand, behind an adapter too."""
    small: dict[str, Any] = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}
    config = GPT2Config(vocab_size=VOCAB, **small, bos_token_id=None, eos_token_id=None)
    torch.manual_seed(0)
    policy = CausalLMPolicy(add_lora(GPT2LMHeadModel(config), rank=2, alpha=4))
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter.mul_(4.0)
    played = rollout(third_party(4), policy, [Episode(-1, number, seed=number) for number in range(9)])
    batch = make_batch(played)
    assert len({int(one.policy_mask.sum()) for one in played}) > 1
    assert_equal_stored(token_logprobs(policy, batch, 64), batch.logprobs)
