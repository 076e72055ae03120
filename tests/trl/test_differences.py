"""Where definitions differ: each difference from TRL 1.16 by name, with what it does to numbers.

The test of a difference has its name in the table of docs/agents.md; tests/test_docs_pages.py holds them together.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs TRL, in the environment of make test-trl")

import gymnasium as gym
import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel
from trl import GRPOConfig
from trl.trainer.utils import split_tensor_dict

from agents import GRPO, CausalLMPolicy, GRPOConfig as GRPOAgentConfig, tiny_model
from agents.learn.metrics import summarize
from tests.trl import oracle
from tests.trl.batches import completions, mixed_scores, sampled_by
from tests.trl.sides import ROUNDING, Pairing, both, gap, our_agent, our_step, silenced, their_step, their_trainer

pytestmark = silenced

DIFFERENT = 0.02
"""A relative gap of gradients that no rounding makes."""


def test_groups_without_spread(folder: Path) -> None:
    ours, theirs = both(folder, Pairing("grpo"), scores=[0.3] * 8 + [0.0] * 4 + [1.0] * 4, group_size=8)
    assert theirs.advantages[:8].abs().max() > 1e-5
    assert ours.advantages[:8].tolist() == [0.0] * 8
    torch.testing.assert_close(ours.advantages[8:].float(), theirs.advantages[8:])


def test_broken_verifiers(folder: Path) -> None:
    scores = [0.3, math.nan, 0.7, 1.0, math.nan, math.nan, math.nan, 1.0, 0.0, 1.0, 0.0, 0.0]
    token_mean = Pairing("grpo")
    ours, theirs = both(folder, token_mean, scores=scores)
    torch.testing.assert_close(ours.advantages.float(), theirs.advantages, atol=1e-5, rtol=1e-5)
    batch = completions(scores)
    kept = sum(int(trajectory.policy_mask.sum()) for trajectory in batch if not trajectory.errored)
    generated = sum(int(trajectory.policy_mask.sum()) for trajectory in batch)
    assert gap(ours.scaled(kept / generated), theirs) < ROUNDING
    sequence_mean = Pairing("grpo", {"loss_type": "grpo"}, {"aggregation": "sequence-mean-token-mean"})
    ours, theirs = both(folder, sequence_mean, scores=scores)
    assert gap(ours.scaled(8 / 12), theirs) < ROUNDING


RLOO = Pairing("rloo", {"beta": 0.0}, trainer="rloo")


def test_value_of_rloos_loss(folder: Path) -> None:
    ours, theirs = both(folder, RLOO, tool_tokens=False)
    assert theirs.loss == pytest.approx(0.0, abs=1e-6)  # the mean advantage
    assert abs(ours.loss) > 0.1
    assert gap(ours, theirs) < ROUNDING


def test_ratio_of_rloo(folder: Path) -> None:
    ours, theirs = both(folder, RLOO, tool_tokens=False, noise=0.2)
    assert theirs.metrics["clip_ratio/region_mean"] > 0
    assert gap(ours, theirs) > DIFFERENT
    on_policy, _ = both(folder, RLOO, tool_tokens=False)
    assert gap(ours, on_policy) == 0  # ours does not look at who sampled


def test_kl_in_gspo(folder: Path) -> None:
    gspo = {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4}
    corrected = Pairing("gspo", {**gspo, "beta": 0.3}, {"kl_coefficient": 0.3, "kl_estimator": "k3-ratio"})
    plain = Pairing("gspo", {**gspo, "beta": 0.3, "use_bias_correction_kl": False}, {"kl_coefficient": 0.3})
    assert gap(*both(folder, corrected, noise=0.4)) > DIFFERENT
    assert gap(*both(folder, plain, noise=0.4)) < ROUNDING


def test_entropy_bonus(folder: Path) -> None:
    bonus = {"entropy_coef": 0.5}
    by_completion = Pairing(
        "grpo",
        {"loss_type": "grpo", **bonus},
        {"aggregation": "sequence-mean-token-mean", "entropy_coefficient": 0.5},
    )
    by_token = Pairing("grpo", bonus, {"entropy_coefficient": 0.5})
    assert gap(*both(folder, by_completion)) > DIFFERENT
    assert gap(*both(folder, by_token)) < ROUNDING


def test_extreme_ratios(folder: Path) -> None:
    pairing = Pairing("grpo")
    agent = our_agent(folder, pairing)
    trajectories = sampled_by(agent.policy, completions(mixed_scores()))
    unlikely = trajectories[1]  # its score is below the mean, so nothing clips a ratio that grows
    logprobs = unlikely.logprobs.copy()
    logprobs[-1] -= 30.0
    trajectories[1] = dataclasses.replace(unlikely, logprobs=logprobs)
    ours = our_step(agent, trajectories)
    theirs = their_step(their_trainer(folder, pairing, trajectories), trajectories, sampled_elsewhere=True)
    assert theirs.loss / ours.loss == pytest.approx(math.exp(10), rel=1e-3)
    assert max(float(gradient.abs().max()) for gradient in theirs.gradients) > 1e9
    assert max(float(gradient.abs().max()) for gradient in ours.gradients) < 10


def test_minibatches(folder: Path) -> None:
    scores = [*mixed_scores(), 0.0, 0.0, 1.0, 1.0]
    pairing = Pairing("grpo", {"steps_per_generation": 2, "per_device_train_batch_size": 8})
    agent = our_agent(folder, pairing)
    trajectories = sampled_by(agent.policy, completions(scores))
    trainer = their_trainer(folder, pairing, trajectories)
    first = split_tensor_dict(oracle.inputs_of(trainer, trajectories), 2)[0]
    loss, gradients = oracle.backward(trainer, first)
    ours = our_step(agent, trajectories[:8])
    theirs = dataclasses.replace(ours, loss=loss, gradients=gradients)
    own = sum(int(trajectory.policy_mask.sum()) for trajectory in trajectories[:8])
    mean = sum(int(trajectory.policy_mask.sum()) for trajectory in trajectories) / 2
    assert own != mean
    assert gap(ours.scaled(own / mean), theirs) < ROUNDING


def gpt2(tmp_path: Path, dropout: float) -> Path:
    config = GPT2Config(
        vocab_size=16,
        n_positions=32,
        n_embd=16,
        n_layer=1,
        n_head=2,
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=dropout,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(0)
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(5.0)  # far from uniform
    model.save_pretrained(tmp_path)
    return tmp_path


def log_ratios(folder: Path) -> torch.Tensor:
    """log pi of TRL's old policy less that of a plain forward pass of the same weights: its largest size f[b]."""
    pairing = Pairing("grpo", {"num_iterations": 2})
    agent = our_agent(folder, pairing)
    trajectories = sampled_by(agent.policy, completions(mixed_scores(), tool_tokens=False))
    assert our_step(agent, trajectories).metrics["sampling/sampling_logp_difference/max"] < 1e-5
    moved_again = their_trainer(folder, pairing, trajectories)
    inputs = oracle.inputs_of(moved_again, trajectories)
    plain = oracle.sampled_elsewhere(inputs, trajectories)["old_per_token_logps"]
    return ((plain - inputs["old_per_token_logps"]) * inputs["completion_mask"]).abs().amax(1)


def test_absolute_positions(tmp_path: Path) -> None:
    lengths = np.array([trajectory.prompt_length for trajectory in completions(mixed_scores())])
    wrong = log_ratios(gpt2(tmp_path, dropout=0.0)).numpy()
    assert (wrong[lengths == lengths.max()] < 1e-5).all()  # not padded
    assert (wrong[lengths < lengths.max()] > 0.1).all()


def test_dropout(tmp_path: Path) -> None:
    assert (log_ratios(gpt2(tmp_path, dropout=0.1)) > 0.1).all()


def test_what_is_truncated(folder: Path) -> None:
    pairing = Pairing("grpo", {"mask_truncated_completions": True}, {"truncation": "mask"})
    agent = our_agent(folder, pairing)
    # Two completions end with a stop string and not with EOS.
    trajectories = [
        dataclasses.replace(trajectory, terminated=True, truncated=False)
        for trajectory in sampled_by(agent.policy, completions(mixed_scores(), truncated=(1, 6)))
    ]
    ours = our_step(agent, trajectories)
    theirs = their_step(their_trainer(folder, pairing, trajectories), trajectories)
    assert theirs.metrics["completions/clipped_ratio"] == pytest.approx(2 / 12)
    assert summarize(trajectories)["completions/clipped_ratio"] == 0
    assert gap(ours, theirs) > DIFFERENT
    unmasked = their_step(their_trainer(folder, Pairing("grpo"), trajectories), trajectories)
    assert gap(ours, unmasked) < ROUNDING


def test_frac_reward_zero_std(folder: Path) -> None:
    scores = [0.5] * 4 + [0.0, 1.0, 0.0, 0.0] + [1.0] * 4
    _, by_batch = both(folder, Pairing("grpo", {"scale_rewards": "batch"}, {"scale": "batch-std"}), scores=scores)
    _, by_group = both(folder, Pairing("grpo"), scores=scores)
    assert by_batch.metrics["frac_reward_zero_std"] == 0
    assert by_group.metrics["frac_reward_zero_std"] == pytest.approx(2 / 3)
    assert summarize(completions(scores))["frac_reward_zero_std"] == pytest.approx(2 / 3)


def test_means_over_skipped_completions(folder: Path) -> None:
    scores = [0.5] * 4 + [0.0, 1.0, 0.0, 0.0] + [1.0] * 4
    ours, theirs = both(folder, Pairing("grpo"), scores=scores)
    assert abs(ours.metrics["entropy"] - theirs.metrics["entropy"]) > 1e-3
    assert gap(ours, theirs) < ROUNDING
    agent = our_agent(folder, Pairing("grpo"), skip_zero_advantages=False)
    everything = our_step(agent, sampled_by(agent.policy, completions(scores)))
    assert everything.metrics["entropy"] == pytest.approx(theirs.metrics["entropy"], abs=1e-5)


def test_kl_of_rloo(folder: Path) -> None:
    pairing = Pairing("rloo", {"beta": 0.3}, {"kl_coefficient": 0.3}, trainer="rloo")
    ours, theirs = both(folder, pairing, tool_tokens=False)
    assert ours.metrics["kl"] > 0.1  # k3 is never negative
    assert theirs.metrics["kl"] < 0.1


def test_num_tokens(folder: Path) -> None:
    trajectories = completions(mixed_scores())
    trainer = their_trainer(folder, Pairing("grpo"), trajectories)
    read = sum(trajectory.prompt_length + int(trajectory.policy_mask.sum()) for trajectory in trajectories)
    assert their_step(trainer, trajectories).metrics["num_tokens"] == read
    envs = gym.make_vec("rlvr_envs:rlvr/Addition-v0", num_envs=8, tokenizer="char", max_new_tokens=5)
    policy = CausalLMPolicy(tiny_model(envs.single_action_space.n, layers=1))
    seen: list[Mapping[str, float]] = []
    agent = GRPO(policy, GRPOAgentConfig(problems_per_step=2, group_size=4))
    agent.learn(envs, steps=1, callbacks=[lambda step, metrics: seen.append(metrics)])
    assert seen[0]["num_tokens"] == pytest.approx(8 * seen[0]["completions/mean_length"])


def test_cispo_by_default(folder: Path) -> None:
    ours, theirs = both(folder, Pairing("cispo", {"loss_type": "cispo"}))
    assert gap(ours.scaled(GRPOConfig.epsilon), theirs) < ROUNDING
    assert gap(*both(folder, Pairing("cispo", {"loss_type": "cispo", "epsilon_high": 5.0}))) < ROUNDING


def test_gspo_by_default(folder: Path) -> None:
    level = {"importance_sampling_level": "sequence"}
    assert gap(*both(folder, Pairing("gspo", level))) > DIFFERENT
    theirs_here = {"aggregation": "token-mean", "clip_low": 0.2, "clip_high": 0.2}
    assert gap(*both(folder, Pairing("gspo", level, theirs_here), noise=0.4)) < ROUNDING


def test_dr_grpo_by_default(folder: Path) -> None:
    loss_type = {"loss_type": "dr_grpo"}
    assert gap(*both(folder, Pairing("dr-grpo", loss_type, {"max_tokens": 9}))) > DIFFERENT
    assert gap(*both(folder, Pairing("dr-grpo", loss_type, {"max_tokens": 9, "scale": "group-std"}))) < ROUNDING


def test_k3_by_default(folder: Path) -> None:
    ours, theirs = both(folder, Pairing("grpo", {"beta": 0.3}, {"kl_coefficient": 0.3}))
    assert ours.loss == pytest.approx(theirs.loss, abs=2e-6)  # the ratio is 1, its gradient is not 0
    assert gap(ours, theirs) > DIFFERENT
