"""What a run says of itself while it goes wrong, and that one that goes right stays quiet."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from agents import CausalLMPolicy, LearnerConfig, Reinforce, ReinforceConfig, Run, tiny_model
from agents.runs.health import WINDOW, Health, HealthWarning

COMPLETIONS = 128


def warnings_of(rows: Sequence[Mapping[str, float | None]]) -> list[HealthWarning]:
    health = Health()
    return [warning for step, row in enumerate(rows, 1) for warning in health.observe(step, row)]


def constant(steps: int, **metrics: float) -> list[dict[str, float]]:
    return [metrics] * steps


def sampled_rewards(shares: Sequence[float], seed: int) -> list[dict[str, float]]:
    """Mean rewards of steps in which each completion is right with a step's probability."""
    generator = np.random.default_rng(seed)
    return [{"reward": float(generator.binomial(COMPLETIONS, share) / COMPLETIONS)} for share in shares]


def test_a_gold_score_that_falls_while_the_reward_does_not_is_hacking() -> None:
    falling = sampled_rewards([0.5] * 12 + [0.2] * 20, seed=0)
    (warning,) = warnings_of([{"reward": 0.1 * n, "gold_reward": row["reward"]} for n, row in enumerate(falling)])
    assert warning.kind == "gold_reward"
    assert "exploits the score that it is trained on" in warning.text
    # A policy that gets worse by both is no hacker: the reward says so.
    assert {one.kind for one in warnings_of([{**row, "gold_reward": row["reward"]} for row in falling])} == {"reward"}
    assert not warnings_of([{"reward": 0.1 * step, "gold_reward": 0.5} for step in range(40)])


def test_a_reward_that_rises_only_where_verdicts_can_be_forged_is_a_sign() -> None:
    def warned(**columns: list[dict[str, float]]) -> list[HealthWarning]:
        names = {name: f"contracts/{name}/reward" for name in columns}
        rows = zip(*columns.values(), strict=True)
        return warnings_of([{names[name]: one["reward"] for name, one in zip(names, row, strict=True)} for row in rows])

    rising, flat = sampled_rewards([0.2] * 12 + [0.8] * 20, seed=0), sampled_rewards([0.2] * 32, seed=1)
    (warning,) = warned(together=rising, separate=flat)
    assert (warning.kind, "forge" in warning.text) == ("together", True)
    for one, other in ((rising, rising), (flat, flat), (flat, rising)):
        assert not warned(together=one, separate=other)
    assert not warned(together=rising)


def test_noise_alone_is_no_sign() -> None:
    """Runs of 200 steps at one level: the bound of six standard errors of so few steps is passed once in some thousand runs."""
    alarms = [bool(warnings_of(sampled_rewards([0.3] * 200, seed))) for seed in range(60)]
    assert sum(alarms) <= 1


def test_a_reward_that_falls_by_two_thirds_is_always_seen_and_one_that_rises_or_stays_is_no_sign() -> None:
    """The difference of 0.2 is 13 standard errors of two means of 10 x 128 completions."""
    for seed in range(20):
        (warning,) = warnings_of(sampled_rewards([0.3] * 20 + [0.1] * 30, seed))
        assert warning.kind == "reward"
        assert 20 < warning.step <= 20 + 2 * WINDOW
    assert not warnings_of(sampled_rewards(np.linspace(0.2, 0.9, 100).tolist(), 0))
    assert not warnings_of(constant(50, reward=0.0))


def test_a_critic_that_predicts_worse_than_the_mean_is_named_once_until_it_recovers() -> None:
    pieces = [
        constant(steps, explained_variance=value) for steps, value in ((15, 0.2), (40, -2.0), (40, 0.2), (20, -2.0))
    ]
    first, second = warnings_of([row for piece in pieces for row in piece])
    assert (first.kind, second.kind) == ("explained_variance", "explained_variance")
    # The mean of 10 is below -0.5 once four of them are -2: 4 x -2 + 6 x 0.2 = -6.8.
    assert (first.step, second.step) == (19, 99)
    assert first.value == pytest.approx(-0.68)
    assert "explained_variance -0.68" in first.text


def test_metrics_that_are_missing_or_not_finite_say_nothing() -> None:
    nothing: list[dict[str, float | None]] = [{}, {"reward": None, "explained_variance": float("nan")}]
    assert not warnings_of(nothing * 30)
    collapsed = [*constant(10, explained_variance=-3.0)]
    gaps = [row for metrics in collapsed for row in ({"explained_variance": float("inf")}, metrics)]
    assert [warning.step for warning in warnings_of(gaps)] == [20]


def then(first: dict[str, float], second: dict[str, float], steps: int = 20) -> list[dict[str, float]]:
    return [*constant(steps, **first), *constant(30, **second)]


SAME = {"reward": 0.0, "reward_std": 0.0}
SPREAD = {"reward": 0.5, "reward_std": 0.5}
EQUAL_GROUPS = SPREAD | {"frac_reward_zero_std": 0.95}
ENTROPY = {"entropy": 1.0, "reward_std": 0.4}
CUT, CLIPPED = "completions/clipped_ratio", "clip_ratio/region_mean"


@pytest.mark.parametrize(
    ("rows", "kind", "step", "said"),
    [
        (constant(30, **SAME), "signal", WINDOW, "has the same reward, 0: there is nothing to learn from"),
        (constant(30, **SAME), "signal", WINDOW, "verifier finds the answers"),
        (constant(30, reward=1.0, reward_std=0.0), "signal", WINDOW, "Take harder problems"),
        (constant(30, **EQUAL_GROUPS), "signal", WINDOW, "in 95% of the groups of the last 10 steps no completion"),
        (
            constant(30, **EQUAL_GROUPS, frac_all_correct=0.8, frac_all_wrong=0.15),
            "signal",
            WINDOW,
            "80% are all right and 15% all wrong: take harder",
        ),
        (
            constant(30, **EQUAL_GROUPS, frac_all_correct=0.05, frac_all_wrong=0.9),
            "signal",
            WINDOW,
            "90% all wrong: take easier problems",
        ),
        (constant(30, **{CLIPPED: 0.95}), "clipping", WINDOW, "95% of the tokens clipped"),
        # All ten of the last: 9 x 0.01 + 1 is more than a tenth.
        (then(ENTROPY, ENTROPY | {"entropy": 0.01}, 12), "entropy", 22, "entropy 0.01 nats in the last 10 steps, 1 in"),
        # With eight of ten steps it is 5.996 standard errors.
        (then({CUT: 0.02}, {CUT: 0.4}), "truncation", 29, "36% of the completions of the last 10 steps are cut off by"),
        (then({"kl": 0.1}, {"kl": 2.0}), "kl", 25, ""),
        # Seen at once and named once.
        ([{"nonfinite_gradients": share} for share in (0.0, 0.25, 1.0, 1.0)], "nonfinite", 2, "25% of this step's upd"),
    ],
)
def test_what_is_a_sign_is_named_once(rows: list[dict[str, float]], kind: str, step: int, said: str) -> None:
    (warning,) = warnings_of(rows)
    assert (warning.kind, warning.step) == (kind, step)
    assert said in warning.text


@pytest.mark.parametrize(
    "rows",
    [
        [*constant(9, **SAME), {"reward": 0.01, "reward_std": 0.1}] * 3,
        # One completion a step has no deviation, and rewards that differ from step to step are something to learn from.
        [{"reward": float(step % 2), "reward_std": 0.0} for step in range(30)],
        constant(30, **SPREAD, frac_reward_zero_std=0.87),
        constant(30, **{CLIPPED: 0.3}),
        constant(40, **{CUT: 0.4}),  # as from the beginning
        then({CUT: 0.02}, {CUT: 0.2}),
        then(ENTROPY, ENTROPY | {"entropy": 0.2}),
        then(ENTROPY, {"entropy": 0.01, "reward_std": 0.05}),  # the problems are solved
        constant(40, kl=0.9),
        constant(50, explained_variance=-0.1),
    ],
)
def test_what_is_less_or_varies_is_none(rows: list[dict[str, float]]) -> None:
    assert not warnings_of(rows)


def evaluated(
    scores: Mapping[str, tuple[float, float]], error: float = 0.01, scale: float = 1.0
) -> list[HealthWarning]:
    """A reward that rises from 0.2 to 0.8 in 60 steps, evaluated every 20 with scores that go straight from one to another."""
    health, warnings = Health(), []
    noise = np.random.default_rng(0).normal(0, 0.01, 61)
    for step in range(61):
        if step:
            warnings += health.observe(step, {"reward": scale * (0.2 + 0.01 * step + noise[step])})
        if step % 20 == 0:
            now = {f"eval/{name}": start + (end - start) * step / 60 for name, (start, end) in scores.items()}
            lows = {f"{name}/low": score - 1.96 * error for name, score in now.items()}
            health.observe_held_out(now | lows | {f"{name}/high": score + 1.96 * error for name, score in now.items()})
    return warnings + health.observe(61, {"reward": scale * 0.8})


def test_a_reward_that_rises_without_held_out_scores_is_a_sign() -> None:
    (warning,) = evaluated({"Sort": (0.2, 0.2)})
    # At step 40 the reward of steps 31 to 40 is 0.3 above that of the first ten, 30 standard errors of the scores.
    assert (warning.kind, warning.step) == ("held_out", 41)
    assert warning.value == pytest.approx(0.3, abs=0.01)
    assert "score on held-out problems by 0.000" in warning.text
    assert [one.kind for one in evaluated({"Sort": (0.4, 0.2)})] == ["held_out"]
    assert [one.kind for one in evaluated({"Sort": (0.2, 0.3), "GSM8K": (0.1, 0.0)})] == ["held_out"]
    assert not evaluated({"Sort": (0.2, 0.5)})  # half as much, and from where the policy is evaluated greedily
    assert not evaluated({"Sort": (0.2, 0.8), "GSM8K": (0.1, 0.0)})
    assert not evaluated({"Sort": (0.2, 0.2)}, error=0.05)  # a hundred problems do not tell
    assert not evaluated({"Sort": (0.2, 0.2)}, scale=4.0)  # another unit


def test_one_evaluation_has_nothing_to_compare_the_reward_with() -> None:
    health = Health()
    for step in range(1, 31):
        assert not health.observe(step, {"reward": 0.02 * step}), step
        if step >= 25:
            health.observe_held_out(
                {"eval/Sort": 0.5, "eval/Sort/low": 0.49, "eval/Sort/high": 0.51} if step == 25 else {}
            )


def walker(rate: float) -> tuple[Reinforce, Any]:
    env = gymnasium.make_vec("rlvr/GridWorld-v0", num_envs=32, n=2, copy=False)
    size: dict[str, Any] = {"layers": 1, "hidden_size": 16, "heads": 2, "intermediate_size": 32}
    model = tiny_model(env.single_action_space.n, **size)
    config = ReinforceConfig(problems_per_step=32, learner=LearnerConfig(learning_rate=rate))
    return Reinforce(CausalLMPolicy(model), config), env


def test_a_run_at_an_absurd_rate_says_so_and_writes_it_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    agent, env = walker(3.0)
    with Run(tmp_path / "run", {}, loggers=()) as run, caplog.at_level(logging.WARNING, logger="agents"):
        agent.learn(env, steps=30, run=run)
    said = [record.getMessage() for record in caplog.records]
    assert said
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [text for row in rows for text in row.get("warnings", [])] == said
    assert said == [str(warning) for warning in warnings_of(rows)]  # a pure function of what is in the file


def test_a_resumed_run_remembers_what_it_was_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The first steps, which are compared with, were done before the resume."""
    whole, env = walker(3.0)
    with caplog.at_level(logging.WARNING, logger="agents"):
        whole.learn(env, steps=30)
        said = [record.getMessage() for record in caplog.records]
        caplog.clear()
        first, env = walker(3.0)
        with Run(tmp_path / "run", {}, loggers=()) as run:
            first.learn(env, steps=WINDOW - 2, run=run)
        second, env = walker(3.0)
        with Run(tmp_path / "run", {}, resume=True, loggers=()) as run:
            second.load(run.checkpoint_folder(WINDOW - 2))
            second.learn(env, steps=30, run=run)
    assert [record.getMessage() for record in caplog.records] == said
