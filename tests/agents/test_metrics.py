"""What a step reports, by numbers worked out by hand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from agents import GRPO, PPOConfig, TokenOutputs, make_batch
from agents.learn.metrics import advantage_metrics, merge, pass_metrics, pass_sums, sampling_metrics, summarize
from agents.losses import clipped_tokens
from agents.types import Trajectory
from tests.agents.agent_cases import make_agent, scored_verdict, some_batch
from tests.agents.rounding import FLOAT64
from tests.agents.trajectories import scored, tiny_policy, trajectory
from verifiers import InvalidArgumentError, Outcome, Verdict


def test_the_share_of_what_each_part_of_a_hybrid_decided() -> None:
    def decided(part: str) -> Verdict:
        right = {"outcome": "correct", "detail": {"applied": part, "parts": {}}}
        return Verdict(1.0, Outcome.SCORED, detail={"parts": {"form": {"detail": {}}, "right": right}})

    episodes = [scored(1.0), *(trajectory([0, 1], verdict=decided(part)) for part in ("rule", "rule", "judge"))]
    results = summarize(episodes)
    shares = {name: share for name, share in results.items() if name.startswith("applied/")}
    assert shares == pytest.approx({"applied/judge": 1 / 3, "applied/rule": 2 / 3})
    assert not any(name.startswith("applied/") for name in summarize(episodes[:1]))
    assert not any(name.startswith("outcomes/") for name in summarize([trajectory([0, 1], rewards=[0, 1.0])]))


def test_a_batch_of_episodes_by_hand() -> None:
    episodes = [
        scored(1.0, length=3, group=0),
        scored(1.0, length=4, group=0),
        scored(0.0, length=5, group=1, truncated=True),
        scored(2.0, length=3, group=1),
        scored(math.nan, length=9, group=1, truncated=True),
        scored(5.0, length=2, group=2),
    ]
    results = summarize(episodes)
    assert results["reward"] == pytest.approx(9 / 5)
    assert results["reward_std"] == pytest.approx(np.std([1, 1, 0, 2, 5], ddof=1))
    assert results["frac_reward_zero_std"] == pytest.approx(1 / 2)  # of groups 0 and 1: group 2 has one score
    assert results["completions/mean_length"] == pytest.approx((2 + 3 + 4 + 2 + 8 + 1) / 6)
    assert results["completions/max_length"] == 8
    assert results["completions/clipped_ratio"] == pytest.approx(2 / 6)
    assert results["verifier_errors"] == 1
    for outcome in Outcome:
        count = {Outcome.SCORED: 5, Outcome.VERIFIER_ERROR: 1}.get(outcome, 0)
        assert results[f"outcome_counts/{outcome}"] == count
        assert results[f"outcomes/{outcome}"] == pytest.approx(count / 6)


def test_groups_without_a_signal_are_told_apart_by_their_verdicts() -> None:
    def judged(group: int, *outcomes: Outcome) -> list[Any]:
        return [
            dataclasses.replace(scored(float(one is Outcome.CORRECT), group=group), verdict=Verdict.of(one))
            for one in outcomes
        ]

    right, wrong, broken = Outcome.CORRECT, Outcome.INCORRECT, Outcome.VERIFIER_ERROR
    batch = [
        *judged(0, right, right, broken),
        *judged(1, wrong, Outcome.NO_ANSWER),
        *judged(2, right, wrong),
        *judged(3, Outcome.TIMEOUT, wrong),
        *judged(4, right, broken),  # one completion tells nothing
        scored(0.5, group=5),
        scored(0.5, group=5),
    ]
    results = summarize(batch)
    assert (results["frac_all_correct"], results["frac_all_wrong"]) == (1 / 4, 2 / 4)
    assert "frac_all_wrong" not in summarize(batch[-2:])


def test_parts_of_a_score_are_reported_each() -> None:
    episodes = [
        trajectory([0, 1], rewards=[0, score], verdict=scored_verdict(score, part))
        for score, part in ((1.0, 1.0), (0.5, 0.0))
    ]
    results = summarize([*episodes, trajectory([0, 1], rewards=[0, math.nan], verdict=scored_verdict(math.nan, 0.0))])
    assert results["rewards/one/mean"] == 0.5
    assert results["rewards/two/mean"] == 0.5  # 0 and 1, of weight 0.5
    assert results["rewards/one/std"] == pytest.approx(np.std([1, 0], ddof=1))


def test_the_pass_rate_where_verdicts_can_be_forged_stands_apart() -> None:
    def episode(score: float, detail: Mapping[str, object]) -> Trajectory:
        outcome = Outcome.CORRECT if score else Outcome.INCORRECT
        return trajectory([0, 1], rewards=[0, score], verdict=Verdict.of(outcome, detail=detail))

    together = {"tests": "together"}
    composed = {"parts": {"tests": {"outcome": "correct", "detail": together}, "form": {"detail": None}}}
    episodes = [episode(1, together), episode(1, composed), episode(0, together), episode(0, {}), episode(1, {})]
    means = {"contracts/together/reward": 2 / 3, "contracts/separate/reward": 0.5}
    assert {key: summarize(episodes)[key] for key in means} == pytest.approx(means)
    assert "contracts/separate/reward" not in summarize(episodes[:3])
    assert not any(key.startswith("contracts/") for key in summarize(episodes[3:]))


def test_parts_that_are_plain_numbers_are_no_weighted_sum() -> None:
    for parts in ({"one": 1.0}, {"one": {"weight": 1.0}}, {"one": "text"}, {}, None):
        verdict = Verdict(1.0, Outcome.SCORED, detail={"parts": parts})
        assert trajectory([0, 1], rewards=[0, 1.0], verdict=verdict).reward_parts == {}


def test_the_spread_of_groups_is_reported_only_where_groups_have_several_scores() -> None:
    def share(*episodes: Trajectory) -> float | None:
        return summarize(episodes).get("frac_reward_zero_std")

    assert share(*(scored(0.3) for _ in range(8))) == 1  # in float32 their standard deviation is 3e-8
    assert share(*(scored(float(group % 2), group=group) for group in range(6))) is None
    assert share(scored(math.nan, group=0), *(scored(float(n), group=n // 2) for n in (1, 2, 3))) == 0
    results = summarize([scored(math.nan)])
    assert math.isnan(results["reward"])
    assert (results["verifier_errors"], results["reward_std"], share(scored(math.nan))) == (1, 0, None)


def test_the_learning_rate_of_a_step_is_that_of_its_last_optimiser_step() -> None:
    rates = [{"learning_rate": rate, "learning_rate/critic": 2 * rate} for rate in (0.4, 0.3, 0.1)]
    skipped = {"skipped": 1.0}  # a step that had nothing to learn from has no rate
    results = merge([*rates, skipped])
    assert (results["learning_rate"], results["learning_rate/critic"]) == (0.1, 0.2)


def sums_of(
    ratios: list[float], advantages: list[float], clip: tuple[float, float] | None = (0.2, 0.25)
) -> dict[str, float]:
    """One row of tokens with these ratios."""
    length = len(ratios)
    logprobs = torch.full((1, length), -1.0, dtype=torch.float64)
    batch = make_batch([trajectory([1] * length)])
    old = logprobs - torch.tensor(ratios, dtype=torch.float64).log()
    batch.__dict__.update(old_logprobs=old, reference_logprobs=logprobs - math.log(2))
    outputs = TokenOutputs(logprobs, torch.arange(length)[None].double())
    weighed = torch.tensor([advantages], dtype=torch.float64)
    return pass_sums(batch, outputs, None if clip is None else clipped_tokens(logprobs, old, weighed, *clip))


def test_the_metrics_of_a_pass_by_hand() -> None:
    # Clipped: below 0.8 where less is wanted, above 1.25 where more is wanted.
    first = sums_of([0.5, 0.5, 0.5, 2.0, 2.0, 2.0, 2.0, 1.0], [1, -1, -1, 1, 1, 1, -1, 5])
    results = pass_metrics([first, sums_of([4.0], [1])])
    shares = {"low": 2 / 9, "high": 4 / 9, "region": 6 / 9}
    assert {name: results[f"clip_ratio/{name}_mean"] for name in shares} == pytest.approx(shares)
    ratios = {"min": 0.5, "max": 4, "mean": 14.5 / 9}
    assert {name: results[f"ratio/{name}"] for name in ratios} == pytest.approx(ratios)
    assert results["entropy"] == pytest.approx(28 / 9)  # 0 to 7, and 0
    assert results["kl"] == pytest.approx(0.5 - 1 + math.log(2))
    assert "clip_ratio/low_mean" not in pass_metrics([sums_of([1.0], [1], None)])
    assert pass_metrics([]) == {"loss": 0.0}


def test_sampler_and_learner_by_hand() -> None:
    """Two tokens that the learner finds 0.1 and 0.3 nats likelier than the sampler did, and one that is not its own."""
    batch = make_batch([trajectory([1, 0, 1], logprobs=[-1.1, 5.0, -1.3])])
    learner = torch.full((1, 3), -1.0)
    kl = (math.exp(0.1) - 1 - 0.1 + math.exp(0.3) - 1 - 0.3) / 2
    read_before = dataclasses.replace(batch, old_logprobs=learner)
    outputs = TokenOutputs(learner, torch.zeros(1, 3))
    for results in (sampling_metrics(read_before), pass_metrics([pass_sums(batch, outputs, None)])):
        names = ("kl", "sampling_logp_difference/mean", "sampling_logp_difference/max")
        assert [results[f"sampling/{name}"] for name in names] == pytest.approx([kl, 0.2, 0.3], rel=1e-5)
    # Each is said once: by the pass where there was none before.
    assert sampling_metrics(batch) == {}
    assert not any(name.startswith("sampling/") for name in pass_sums(read_before, outputs, None))
    assert sampling_metrics(dataclasses.replace(read_before, loss_mask=torch.zeros(1, 3, dtype=torch.bool))) == {}


@FLOAT64
@pytest.mark.parametrize("learns", [False, True])
def test_a_sampler_that_is_off_shows_even_where_nothing_is_learned(learns: bool) -> None:
    """Where all members of each group score alike, no token has a gradient."""
    agent = make_agent("grpo", importance_correction="token-truncate", importance_cap=1.5)
    rows = [dataclasses.replace(one, rewards=one.rewards * learns) for one in some_batch(agent.policy)]
    metrics = agent.update([dataclasses.replace(one, logprobs=one.logprobs - np.float32(0.5)) for one in rows])
    assert ("entropy" in metrics) == learns
    assert metrics["sampling/sampling_logp_difference/mean"] == pytest.approx(0.5, abs=10 * 2**-23)
    assert metrics["sampling/kl"] == pytest.approx(math.exp(0.5) - 1.5, abs=10 * 2**-23)
    # The learner finds every token e^0.5 times as likely as the sampler did, cut to 1.5.
    weights = [metrics[f"sampling/importance_sampling_ratio/{end}"] for end in ("min", "max")]
    assert weights == pytest.approx([1.5, 1.5])
    assert metrics["sampling/effective_sample_size"] == pytest.approx(1.0)


def test_optimiser_steps_are_merged_to_one_line() -> None:
    names = ("loss", "skipped", "nonfinite_gradients", "ratio/max", "ratio/min", "sampling/kl")
    first, second, expected = (
        dict(zip(names, values, strict=True))
        for values in ((1.0, 0.0, 0.0, 1.5, 0.9, 0.1), (3.0, 1.0, 1.0, 1.2, 0.5, 0.9), (2.0, 2.0, 1.0, 1.5, 0.5, 0.1))
    )
    assert merge([first, second, {"skipped": 1.0}]) == expected
    assert math.isnan(merge([{"loss": 1.0}, {"loss": math.nan}])["loss"])


def test_advantages_are_those_of_the_tokens_that_are_learned_from() -> None:
    batch = make_batch([trajectory([0, 1, 1]), trajectory([0, 1])])
    advantages = torch.tensor([[9.0, 1.0, -3.0], [9.0, 2.0, 9.0]])
    results = advantage_metrics(batch, advantages)
    assert results["advantages/mean"] == 0
    assert results["advantages/std"] == pytest.approx(np.std([1, -3, 2], ddof=1))
    assert results["advantages/abs_max"] == 3
    assert advantage_metrics(make_batch([scored(math.nan)]), torch.zeros(1, 3)) == {}


@pytest.mark.parametrize("case", ["ppo", "trpo", "npg", "grpo/kl", "a2c", "reinforce/value", "dapo", "gspo"])
def test_every_kind_of_agent_reports_what_a_run_logs(case: str) -> None:
    agent = make_agent(case)
    metrics = agent.update(some_batch(agent.policy))
    wanted = {"loss", "entropy", "ratio/mean", "grad_norm", "advantages/std", "sampling/kl", "skipped", "tokens"}
    wanted |= {"nonfinite_gradients"}
    if agent.models.critic is not None:
        wanted |= {"explained_variance", "loss/value", "grad_norm/critic"}
    if case in ("trpo", "npg"):
        wanted |= {"learning_rate/critic"}
    if agent.models.reference is not None:
        wanted |= {"kl", "kl_coefficient", "loss/kl", "loss/policy"}
    if case in ("ppo", "grpo/kl", "dapo", "gspo"):
        wanted |= {"clip_ratio/low_mean", "clip_ratio/high_mean", "clip_ratio/region_mean"}
    assert wanted <= metrics.keys()
    assert all(math.isfinite(metrics[name]) for name in wanted - {"explained_variance"})


@pytest.mark.parametrize(
    ("name", "ratios", "advantage", "low", "high"),
    [
        # The geometric mean of 2 and 1/2 is 1, that of 2 and 1 is above 1.4.
        ("gspo", [2.0, 0.5], 1.0, [False, False], [False, False]),
        ("gspo", [2.0, 1.0], 1.0, [False, False], [True, True]),
        ("gspo", [2.0, 1.0], -1.0, [False, False], [False, False]),
        ("gspo", [0.5, 1.0], -1.0, [True, True], [False, False]),
        ("cispo", [6.0, 4.0], 1.0, [False, False], [True, False]),
        ("cispo", [6.0, 4.0], -1.0, [False, False], [True, False]),
    ],
)
def test_gspo_is_clipped_as_a_completion_and_cispo_says_where_it_caps(
    name: str, ratios: list[float], advantage: float, low: list[bool], high: list[bool]
) -> None:
    agent = make_agent(name, **({"is_cap": 5.0} if name == "cispo" else {"clip_low": 0.1, "clip_high": 0.1}))
    batch = make_batch([trajectory([1, 1], logprobs=[-1.0, -1.0])])
    logprobs = batch.logprobs + torch.tensor(ratios).log()
    result = agent.clipped(batch, logprobs, torch.full((1, 2), advantage, dtype=torch.float64))
    assert result is not None
    assert [one[0].tolist() for one in result] == [low, high]


def test_an_agent_is_told_by_its_own_config() -> None:
    with pytest.raises(InvalidArgumentError, match="GRPO expects a GRPOConfig, got PPOConfig"):
        GRPO(tiny_policy(), PPOConfig())  # type: ignore[arg-type]
