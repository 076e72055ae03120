"""Where definitions agree: advantages, losses, gradients and metrics are TRL's, to the rounding of float32.

Each pairing names an agent of ours and the settings of TRL 1.16 that mean the same. Batches have groups of several prompts,
completions of different lengths, tokens of the environment among the policy's own, and a reference that is not the policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs TRL, in the environment of make test-trl")

import torch
from torch import Tensor

from agents import Batch, Trajectory
from agents.advantages import soft_overlong_penalty
from agents.algorithms.grpo import GRPO
from agents.learn.agent import Agent
from agents.losses import clipped_surrogate
from tests.trl.batches import completions, mixed_scores, sampled_by
from tests.trl.sides import ROUNDING, Pairing, Step, both, gap, our_agent, our_step, silenced, their_step, their_trainer

pytestmark = silenced

SEQUENCE_MEAN = {"aggregation": "sequence-mean-token-mean"}
GSPO_CLIPS = {"importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4}
NOT_CORRECTED = {"use_bias_correction_kl": False}
PAIRINGS = {
    "GRPO of the paper": Pairing("grpo", {"loss_type": "grpo"}, SEQUENCE_MEAN),
    "GRPO, std of the batch": Pairing(
        "grpo", {"loss_type": "grpo", "scale_rewards": "batch"}, {**SEQUENCE_MEAN, "scale": "batch-std"}
    ),
    "GRPO, no scale": Pairing(
        "grpo", {"loss_type": "grpo", "scale_rewards": "none"}, {**SEQUENCE_MEAN, "scale": "none"}
    ),
    "GRPO, both defaults": Pairing("grpo"),
    "GRPO, temperature": Pairing("grpo", {"temperature": 0.7}, {"temperature": 0.7}),
    "GRPO, k3": Pairing("grpo", {"beta": 0.3, **NOT_CORRECTED}, {"kl_coefficient": 0.3}),
    "GRPO, k3 times the ratio": Pairing("grpo", {"beta": 0.3}, {"kl_coefficient": 0.3, "kl_estimator": "k3-ratio"}),
    "GRPO, entropy bonus": Pairing("grpo", {"entropy_coef": 0.1}, {"entropy_coefficient": 0.1}),
    "Dr. GRPO": Pairing(
        "dr-grpo", {"loss_type": "dr_grpo", "scale_rewards": "none", "max_completion_length": 11}, {"max_tokens": 11}
    ),
    "DAPO": Pairing("dapo", {"loss_type": "dapo", "epsilon_high": 0.28}),
    "GSPO": Pairing("gspo", {"loss_type": "grpo", **GSPO_CLIPS}),
    "GSPO, token mean": Pairing("gspo", {"loss_type": "dapo", **GSPO_CLIPS}, {"aggregation": "token-mean"}),
    "CISPO": Pairing("cispo", {"loss_type": "cispo", "epsilon_high": 1.3}, {"is_cap": 1.3}),
}
NOISE = {"GSPO": 1e-3, "GSPO, token mean": 1e-3}
"""How far the sampler is from the policy, so that some ratios are clipped and some are not; 0.4 for all others."""


def assert_same(ours: Step, theirs: Step) -> None:
    torch.testing.assert_close(ours.advantages.float(), theirs.advantages, atol=1e-5, rtol=1e-5)
    assert ours.loss == pytest.approx(theirs.loss, abs=2e-6)
    assert gap(ours, theirs) < ROUNDING


@pytest.mark.parametrize("name", PAIRINGS)
def test_on_and_off_policy(name: str, folder: Path) -> None:
    ours, theirs = both(folder, PAIRINGS[name], noise=NOISE.get(name, 0.4))
    assert_same(ours, theirs)
    on_policy, theirs = both(folder, PAIRINGS[name])
    assert_same(on_policy, theirs)
    assert gap(ours, on_policy) > 0.05  # ratios matter in this batch


def test_clipping_is_reached(folder: Path) -> None:
    ours, _ = both(folder, PAIRINGS["DAPO"], noise=0.4)
    assert ours.metrics["clip_ratio/low_mean"] > 0.05
    assert ours.metrics["clip_ratio/high_mean"] > 0.05


@pytest.mark.parametrize("name", ["GRPO of the paper", "GRPO, both defaults", "Dr. GRPO", "GSPO", "CISPO"])
def test_truncated_completions_masked(name: str, folder: Path) -> None:
    known = PAIRINGS[name]
    masking = {"mask_truncated_completions": True}
    pairing = Pairing(known.agent, {**known.theirs, **masking}, {**known.ours, "truncation": "mask"})
    ours, theirs = both(folder, pairing, truncated=(1, 6), noise=NOISE.get(name, 0.4))
    assert_same(ours, theirs)
    unmasked, _ = both(folder, known, truncated=(1, 6), noise=NOISE.get(name, 0.4))
    assert gap(ours, unmasked) > 0.05


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_rloo_on_policy(beta: float, folder: Path) -> None:
    pairing = Pairing("rloo", {"beta": beta}, {"kl_coefficient": beta}, trainer="rloo")
    ours, theirs = both(folder, pairing, tool_tokens=False)
    torch.testing.assert_close(ours.advantages.float(), theirs.advantages, atol=1e-5, rtol=1e-5)
    assert gap(ours, theirs) < ROUNDING


def test_gdpo(folder: Path) -> None:
    right = [0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0]
    short = [0.1, 0.9, 0.4, 0.3, 0.2, 0.2, 0.7, 0.1, 0.5, 0.5, 0.5, 0.5]  # the last group has nothing to compare
    parts = list(zip(map(float, right), short, strict=True))
    pairing = Pairing("gdpo", {"multi_objective_aggregation": "normalize_then_sum"})
    assert_same(*both(folder, pairing, scores=list(map(sum, parts)), parts=parts, noise=0.4))


@pytest.mark.parametrize("mode", ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"])
def test_importance_weights_of_another_sampler(mode: str, folder: Path) -> None:
    pairing = Pairing(
        "grpo",
        {"vllm_importance_sampling_mode": mode, "vllm_importance_sampling_clip_max": 1.5},
        {"importance_correction": mode.replace("_", "-"), "importance_cap": 1.5},
    )
    agent = our_agent(folder, pairing)
    trajectories = sampled_by(agent.policy, completions(mixed_scores()), noise=0.4)
    trainer = their_trainer(folder, pairing, trajectories)
    trainer.use_vllm = True  # set late: the correction is wanted, not the engine
    trainer._last_loaded_step = trainer.state.global_step
    assert_same(our_step(agent, trajectories), their_step(trainer, trajectories))


def test_dual_clip_is_their_delta(folder: Path) -> None:
    class DualClip(GRPO):
        def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
            return clipped_surrogate(logprobs, batch.old, advantages, 0.2, 0.2, dual_clip=1.5)

    pairing = Pairing("grpo", {"delta": 1.5})
    plain = our_agent(folder, pairing)
    trajectories = sampled_by(plain.policy, completions(mixed_scores()), noise=0.6)
    ours = our_step(DualClip(plain.policy, plain.config), trajectories)
    assert_same(ours, their_step(their_trainer(folder, pairing, trajectories), trajectories, sampled_elsewhere=True))
    single = our_step(our_agent(folder, pairing), trajectories)
    assert gap(ours, single) > 0.05


def test_soft_overlong_penalty() -> None:
    from trl.rewards import get_soft_overlong_punishment

    lengths = torch.arange(40)
    theirs = get_soft_overlong_punishment(max_completion_len=30, soft_punish_cache=12)
    expected = theirs(completion_ids=[[2] * int(length) for length in lengths])
    assert soft_overlong_penalty(lengths, 30, 12).tolist() == pytest.approx(expected)


def test_metrics_of_one_name_are_one_number(folder: Path) -> None:
    pairing = Pairing("grpo", {"beta": 0.3, **NOT_CORRECTED}, {"kl_coefficient": 0.3})
    agent = our_agent(folder, pairing)
    trajectories = sampled_by(agent.policy, completions(mixed_scores(), truncated=(2,)), noise=0.4)
    theirs = their_step(their_trainer(folder, pairing, trajectories), trajectories, sampled_elsewhere=True).metrics
    ours = all_metrics(agent, trajectories)
    shared = {
        "reward",
        "reward_std",
        "frac_reward_zero_std",
        "completions/mean_length",
        "completions/max_length",
        "completions/clipped_ratio",
        "entropy",
        "kl",
        "clip_ratio/low_mean",
        "clip_ratio/high_mean",
        "clip_ratio/region_mean",
    }
    assert shared == (ours.keys() & theirs.keys())
    assert {name: ours[name] for name in shared} == pytest.approx({name: theirs[name] for name in shared}, abs=1e-5)


def all_metrics(agent: Agent, trajectories: Sequence[Trajectory]) -> dict[str, float]:
    from agents.learn.metrics import summarize

    return summarize(trajectories) | agent.update(trajectories)


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_weights_after_two_optimiser_steps(micro_batches: int, folder: Path) -> None:
    """TRL's whole training loop, with its data loader, its shuffling, AdamW, clipped gradients and stale samples."""
    rate, norm = 0.01, 0.5
    pairing = Pairing(
        "grpo",
        {
            "num_iterations": 2,
            "max_steps": 2,
            "gradient_accumulation_steps": micro_batches,
            "learning_rate": rate,
            "lr_scheduler_type": "constant",
            "max_grad_norm": norm,
        },
        {"epochs": 2},
    )
    agent = our_agent(folder, pairing, learning_rate=rate, max_grad_norm=norm)
    trajectories = sampled_by(agent.policy, completions(mixed_scores()))
    trainer = their_trainer(folder, pairing, trajectories)
    before = [parameter.detach().clone() for parameter in agent.policy.parameters()]
    trainer.train()
    metrics = agent.update(trajectories)
    assert metrics["grad_norm"] > norm
    assert metrics["clip_ratio/region_mean"] > 0.1  # the second step is off-policy
    learned = zip(before, agent.policy.parameters(), trainer.model.parameters(), strict=True)
    for start, ours, theirs in learned:
        assert float((ours.detach() - start).abs().max()) > rate
        torch.testing.assert_close(ours, theirs, atol=1e-3 * rate, rtol=0)
