"""Which problems come next: passes, mixtures, learnability with a floor; the same for every way to train."""

from __future__ import annotations

import copy
import json
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import rlvr_envs
from agents import Agent, EvaluationRecord, Run, evaluate
from agents.distributed.ranks import Ranks
from agents.rollouts import problem_samplers
from agents.rollouts.problem_order import episodes_of_step, problems_of_step
from agents.rollouts.problem_parts import GroupOutcome, ProblemParts
from agents.rollouts.problem_samplers import DifficultySampler, UniformSampler, make_problem_sampler
from agents.seeding import episode_seeds
from tests.agents.agent_cases import all_weights, digits, env_with, make_agent, playing_policy, timeless
from tests.agents.test_lag import agent_for
from tests.agents.test_sampling import WORD, splitmix
from tests.commands import Command
from tests.distributed.threads import on_ranks
from tests.envs.helpers import PROBLEMS, vector_env
from verifiers import InvalidArgumentError, Problem

PARTS = ProblemParts((range(7), range(7, 12), range(12, 42)), (0.5, 0.2, 0.3), names=("a", "b", "c"))
_BUILDING = threading.Lock()
"""Weights are drawn with torch's global generator."""


def test_parts_have_their_shares_and_each_has_passes_of_its_own() -> None:
    sampler, drawn = UniformSampler(3), list[int]()
    for number in range(100):
        drawn += sampler.choose(PARTS, number, 6)
        for part, weight in enumerate(PARTS.weights):
            share = sum(PARTS.part_of(problem) == part for problem in drawn)
            assert abs(share - weight * len(drawn)) < 4  # at any time
        assert sampler.choose(ProblemParts((range(9),)), number, 4) == problems_of_step(9, number, 4, 3)
    assert sampler.choose(None, 3, 4) == [-1] * 4
    for problems in PARTS.ranges:
        mine = [problem for problem in drawn if problem in problems]
        for start in range(0, len(mine) - len(problems) + 1, len(problems)):
            assert sorted(mine[start : start + len(problems)]) == list(problems)


def test_weights_of_tokens_give_tokens_these_shares() -> None:
    parts = ProblemParts(PARTS.ranges, PARTS.weights, by="tokens")
    sampler, tokens, lengths = UniformSampler(0), Counter[int](), (10, 100, 1000)
    generator = np.random.default_rng(0)
    for number in range(400):
        for problem in sampler.choose(parts, number, 6):
            part = parts.part_of(problem)
            sampled = int(generator.integers(lengths[part] // 2, 3 * lengths[part] // 2))
            tokens[part] += sampled if number >= 40 else 0  # lengths are known only after some groups
            sampler.observe(parts, [GroupOutcome(problem, (1.0,), sampled)])
    shares = [tokens[part] / tokens.total() for part in range(3)]
    assert shares == pytest.approx(PARTS.weights, abs=0.05)


def test_learnability_is_the_variance_of_the_discounted_share_above_the_floor() -> None:
    sampler = problem_samplers.LearnabilitySampler(1, 0.25)
    groups = [(0, (1, 1)), (1, (1, 0)), (1, (0, 0, 0)), (2, (0,) * 50), (3, ())]
    sampler.observe(ProblemParts((range(5),)), [GroupOutcome(problem, scores, 1) for problem, scores in groups])
    counts = np.array([2, problem_samplers.DISCOUNT * 2 + 3, 50, 0, 0])
    rights = np.array([2, problem_samplers.DISCOUNT * 1, 0, 0, 0])
    rates = (rights + 1) / (counts + 2)
    weights = rates * (1 - rates) * [1, 1, 1, 0.5, 1]  # the errored group of problem 3 halves its weight
    expected = 0.25 / 5 + 0.75 * weights / weights.sum()
    rounds = 4000
    drawn = Counter(sampler.choose(ProblemParts((range(5),)), number, 1)[0] for number in range(rounds))
    for problem, share in enumerate(expected):
        assert share >= 0.05
        assert drawn[problem] / rounds == pytest.approx(share, abs=4 * (share * (1 - share) / rounds) ** 0.5)
    several = sampler.choose(ProblemParts((range(5),)), 0, 5)
    assert sorted(several) == list(range(5))  # no problem twice in a round that can do without


def test_problems_whose_verifier_breaks_keep_no_more_than_the_floor_until_it_works_again() -> None:
    sampler, parts = problem_samplers.LearnabilitySampler(1, 0.1), ProblemParts((range(100),))

    def draws(rounds: range, broken: range) -> float:
        """The share of the draws that went to the first five problems."""
        drawn = 0
        for number in rounds:
            for problem in sampler.choose(parts, number, 4):
                drawn += problem < 5
                scores = () if problem in broken else (float(problem % 2),) * 8
                sampler.observe(parts, [GroupOutcome(problem, scores, 1)])
        return drawn / len(rounds) / 4

    assert draws(range(300), range(5)) < 0.05  # no more than their share of all problems
    assert draws(range(300, 1000), range(5)) < 0.01  # that of the floor is 0.005
    draws(range(1000, 4000), range(0))
    assert not sampler.state()["errored"]


def test_a_part_that_was_not_evaluated_has_no_rates_of_another() -> None:
    parts = {name: gymnasium.make_vec("rlvr/Sort-v0", num_envs=2, tokenizer="byte").unwrapped for name in "ab"}
    env: Any = rlvr_envs.mix(parts)
    data = env.streams.dataset
    own = {parts["a"].streams.dataset[index].id: [0.0, 1.0] for index in range(3)}
    with pytest.raises(InvalidArgumentError, match=r"not which of the parts \['a', 'b'\]"):
        DifficultySampler(0, 0.1, own).prepare(env)
    for recorded, evaluated in ((own, "b"), ({f"b/{name}": scores for name, scores in own.items()}, None)):
        sampler = DifficultySampler(0, 0.1, recorded, evaluated)
        sampler.prepare(env)
        assert sorted(sampler._known()) == [data.starts[1] + index for index in range(3)]


def test_difficulty_is_that_of_an_evaluation_and_what_is_observed_changes_nothing(tmp_path: Path) -> None:
    env = mixed_env("problems")
    agent = make_agent("grpo", playing_policy(env))
    alone = gymnasium.make_vec(
        "rlvr/Sort-v0", num_envs=6, tokenizer="byte", copy=False, max_new_tokens=4, verifier=varied
    )
    with EvaluationRecord(tmp_path / "rates") as record:
        rates = evaluate(alone, agent.policy, problems=6, samples=4, record=record)
    sampler = make_problem_sampler("difficulty", 0, 0.0, str(tmp_path / "rates"))
    sampler.prepare(env)
    weights = np.full(8, 0.25)  # of which two are not in the evaluation
    for index in range(6):
        scores = [row.score or 0.0 for row in rates.rows if row.problem == index]
        mean = (sum(scores) + 1) / (len(scores) + 2)
        weights[index] = mean * (1 - mean)
    assert len(set(weights)) > 2
    parts = ProblemParts((range(8),))
    before = [sampler.choose(parts, number, 1)[0] for number in range(3000)]
    for problem, share in enumerate(weights / weights.sum()):
        assert before.count(problem) / 3000 == pytest.approx(share, abs=4 * (share * (1 - share) / 3000) ** 0.5)
    sampler.observe(parts, [GroupOutcome(0, (1.0,) * 50, 1)])
    again = sampler.with_state(sampler.state())
    assert [again.choose(parts, number, 1)[0] for number in range(3000)] == before
    other = gymnasium.make_vec("rlvr/Addition-v0", num_envs=2)
    with pytest.raises(InvalidArgumentError, match="none of the 6 problems of the recorded evaluation"):
        make_problem_sampler("difficulty", 0, 0.0, str(tmp_path / "rates")).prepare(other)


@pytest.mark.parametrize("name", ["uniform", "learnability"])
def test_choices_follow_from_seed_and_observations_alone_and_states_go_on(name: Any) -> None:
    parts = ProblemParts(PARTS.ranges, PARTS.weights, by="tokens")
    one, two = make_problem_sampler(name, 4, 0.1), make_problem_sampler(name, 4, 0.1)
    generator = np.random.default_rng(2)
    for number in range(30):
        chosen = one.choose(parts, number, 5)
        assert two.choose(parts, number, 5) == chosen == one.choose(parts, number, 5)
        seen = [
            GroupOutcome(problem, tuple(generator.integers(0, 2, 3) + 0.0), int(generator.integers(1, 99)))
            for problem in chosen
        ]
        one.observe(parts, seen)
        two.observe(parts, seen)
        two = two.with_state(copy.deepcopy(two.state()))
    assert one.choose(parts, 30, 5) != make_problem_sampler(name, 5, 0.1).choose(parts, 30, 5)


def test_problems_without_a_right_completion_in_their_last_groups_are_listed() -> None:
    sampler, parts = UniformSampler(0), ProblemParts((range(4),))
    for number in range(problem_samplers.UNSOLVED_GROUPS):
        sampler.observe(parts, [GroupOutcome(0, (0.0, 0.5), 1), GroupOutcome(1, (0.0, float(number == 1)), 1)])
        sampler.observe(parts, [GroupOutcome(2, (), 1)])
    assert sampler.never_solved == [0]
    kinds = {"new": 0.5, "hard": 0.25, "middling": 0.25, "easy": 0.0}
    assert sampler.shares([0, 1, 2, 3]) == {f"problems/{kind}": share for kind, share in kinds.items()}


def test_levels_are_added_once_the_hardest_is_solved_and_four_are_drawn_from() -> None:
    parts = ProblemParts(tuple(range(10 * one, 10 * one + 10) for one in range(7)), (1 / 7,) * 7, by="levels")
    sampler, levels, drawn = UniformSampler(0), list[int](), list[set[int]]()
    for number in range(80):
        chosen = sampler.choose(parts, number, 16)
        drawn.append({parts.part_of(problem) for problem in chosen})
        able = 2 if number < 40 else 7  # levels below this one are solved
        scores = [(1.0, 1.0) if parts.part_of(problem) < able else (1.0, 0.0) for problem in chosen]
        sampler.observe(parts, [GroupOutcome(one, two, 1) for one, two in zip(chosen, scores, strict=True)])
        sampler = sampler.with_state(sampler.state())
        levels.append(sampler.level)
    assert levels[0] == 1  # 32 right completions
    assert levels == sorted(levels)
    assert levels[39] == 2
    assert levels[-1] == 6
    assert all(max(one) - min(one) < 4 for one in drawn)
    assert set().union(*drawn[-10:]) == {3, 4, 5, 6}
    env = rlvr_envs.with_levels(rlvr_envs.environment_class("Addition"), "digits", (1, 2, 3)).make_vec(2)
    assert [len(env.streams.dataset[start].prompt) for start in env.streams.dataset.starts[:3]] == [4, 6, 8]


# Training

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "lag": {"lag": 2},
    "carried": {"carried_groups": 2, "segment_tokens": 2},
    "carried with a lag": {"carried_groups": 2, "segment_tokens": 2, "lag": 1},
}


def mixed_env(by: Any = "tokens") -> Any:
    """Two tasks of which a policy with random weights solves some, one with several turns."""

    def part(name: str, **settings: Any) -> Any:
        return gymnasium.make_vec(f"rlvr/{name}-v0", num_envs=6, tokenizer="byte", copy=False, **settings)

    parts = {
        "Sort": part("Sort", max_new_tokens=4, verifier=varied),
        "Addition": part("Addition", max_new_tokens=6, verifier=digits),
        "GuessNumber": part("GuessNumber", max_new_tokens=12, max_turns=3),
    }
    return rlvr_envs.mix(parts, (2, 2, 1), by=by)


def varied(completion: str, problem: Problem) -> float:
    return min(len(set(completion)) / 3, 1.0)


def learn(run: Run | None = None, steps: int = 6, **settings: Any) -> tuple[Agent, list[dict[str, float]]]:
    env = mixed_env()
    with _BUILDING:
        policy = playing_policy(env)
    policy.model.double()  # so that no sample hangs on rounding
    merged = {"problems_per_step": 4, "problem_sampler": "learnability", **settings}
    agent, rows = make_agent("grpo", policy, **merged), list[dict[str, float]]()
    if run is not None and run.checkpoint is not None:
        agent.load(run.checkpoint)

    def keep(step: int, metrics: Any) -> None:
        rows.append({name: value for name, value in timeless(metrics).items() if name != "sampling/hidden"})
        if run is not None and step == 3 and not run.checkpoint:
            raise KeyboardInterrupt

    agent.learn(env, steps=steps, run=run, callbacks=[keep])
    return agent, rows


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_an_interrupted_run_on_a_mixture_goes_on_with_its_problems(settings: dict[str, Any], tmp_path: Path) -> None:
    whole, rows = learn(**settings)
    with Run(tmp_path / "run", {}, loggers=()) as run, pytest.raises(KeyboardInterrupt):
        learn(run, **settings)
    with Run(tmp_path / "run", {}, loggers=(), resume=True) as run:
        resumed, others = learn(run, **settings)
    drawn, again = (
        [{name: row[name] for name in row if name[:5] in ("parts", "probl", "rewar")} for row in every]
        for every in (rows, others)
    )
    assert again == drawn[3:]
    assert torch.equal(all_weights(resumed), all_weights(whole))
    assert resumed.progress.problems.state() == whole.progress.problems.state()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_several_ranks_draw_the_problems_of_one(settings: dict[str, Any]) -> None:
    def learned(ranks: Ranks) -> Any:
        agent, rows = learn(steps=4, **settings)
        return agent.progress.problems.state(), rows, all_weights(agent)

    (one,) = on_ranks(1, learned)
    for state, rows, weights in on_ranks(3, learned):  # type: ignore[misc] # no error
        assert state == one[0]  # type: ignore[index]
        assert [row["reward"] for row in rows] == [row["reward"] for row in one[1]]  # type: ignore[index]
        torch.testing.assert_close(weights, one[2], rtol=1e-5, atol=1e-6)  # type: ignore[index]


def test_groups_never_mix_parts_and_metrics_are_those_of_each() -> None:
    env = mixed_env("problems")
    agent = make_agent("grpo", playing_policy(env), problems_per_step=5)
    seen: list[Any] = []
    agent.update = lambda trajectories, plain=agent.update: seen.append(list(trajectories)) or plain(trajectories)  # type: ignore[method-assign, misc, assignment]
    rows: list[dict[str, float]] = []
    agent.learn(env, steps=4, callbacks=[lambda _, metrics: rows.append(dict(metrics))])
    for trajectories, metrics in zip(seen, rows, strict=True):
        names = [one.problem_id.partition("/")[0] for one in trajectories]
        groups: dict[int, set[str]] = {}
        for name, one in zip(names, trajectories, strict=True):
            groups.setdefault(one.group, set()).add(name)
        assert all(len(parts) == 1 for parts in groups.values())
        for name in set(names):
            scores = [one.score for part, one in zip(names, trajectories, strict=True) if part == name]
            assert metrics[f"parts/{name}/reward"] == pytest.approx(np.mean(scores))
            assert metrics[f"parts/{name}/groups"] == pytest.approx(names.count(name) / len(names))
    assert sum(metrics["parts/Sort/groups"] for metrics in rows) / 4 == pytest.approx(0.4, abs=0.15)


def test_groups_that_are_left_out_of_a_batch_are_observed_and_errored_ones_are_not() -> None:
    """DAPO leaves out groups whose scores are all equal, which say most about a problem."""
    env = env_with(lambda completion, problem: float(len(problem.prompt) % 2 == 0 and "0" < completion[:1] < "9"))
    agent = agent_for(env, "dapo", problem_sampler="learnability", max_rounds=2)
    agent.learn(env, steps=2)
    observed = agent.progress.problems.state()["seen"]
    assert len(observed) > 4

    def broken(completion: str, problem: Problem) -> float:
        raise ZeroDivisionError

    env = env_with(broken)
    agent = agent_for(env, "grpo", problem_sampler="learnability", max_error_share=1.0)
    with pytest.warns(UserWarning, match="the verifier broke"):
        agent.learn(env, steps=2)
    assert agent.progress.problems.state()["seen"] == {}


def test_a_sampler_that_chooses_needs_problems_with_indices() -> None:
    env = gymnasium.make_vec("rlvr/MazeState-v0", num_envs=2)
    with pytest.raises(InvalidArgumentError, match="draws them itself"):
        make_agent("grpo", problem_sampler="learnability").require_env(env)
    with pytest.raises(InvalidArgumentError, match=r"floor=0.5 has no effect"):
        make_agent("grpo", floor=0.5)


OWN = """
from rlvr_envs import TaskEnv, TaskSpec
from verifiers import Problem


def problems(split):
    return [Problem(f"{split}-{number}", f"say {number}:", str(number)) for number in range(3)]


class Echo(TaskEnv):
    task = TaskSpec(load=problems, sizes={"train": 3, "test": 3}, source="made", verifier=("exact", {}), max_new_tokens=3)
"""


def test_commands_take_mixtures_and_list_what_was_not_solved(
    tmp_path: Path, rlvr: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*words: str) -> str:
        code, output, errors = rlvr(*words)
        return errors if code else output

    monkeypatch.chdir(tmp_path)
    Path("own_envs.py").write_text(OWN)
    mixture, arguments = ("--env", "own_envs:Echo,Addition"), ("--env-args", "Addition.max_new_tokens=2")
    sizes = ("--problems-per-step", "4", "--group-size", "2", "--steps", "4", "--loggers", "--num-envs", "8")
    said = run("train", "grpo", *mixture, "--mix", "3,1", "--run-folder", "run", *sizes, *arguments)
    parts = json.loads(Path("run/config.json").read_text())["environment"]["mixture"]
    assert parts["weights"] == [0.75, 0.25]
    assert [part["max_new_tokens"] for part in parts["parts"].values()] == [3, 2]
    assert "3 problems without a right completion in the last 3 groups" in said
    never_solved = json.loads(Path("run/problems.json").read_text())["never_solved"]
    assert never_solved == [f"Echo/train-{one}" for one in range(3)]
    assert "--env-args Addition.max_new_tokens=2" in said
    assert "own_envs:Echo" in run("eval", *mixture, "--model", "run", "--problems", "2", *arguments)
    assert "train: 3 problems without a gold completion" in run("check-dataset", "own_envs:Echo,own_envs:Echo")
    assert "takes numbers separated by commas" in run("train", "grpo", *mixture, "--mix", "3,x")
    assert "there is one environment" in run("train", "grpo", "--env", "Addition", "--mix", "3")
    said = run("train", "grpo", "--env", "Addition", "--adaptive", "digits=1,2", "--run-folder", "levels", *sizes)
    config = json.loads(Path("levels/config.json").read_text())
    assert [*config["environment"]["mixture"]["parts"]] == ["digits-1", "digits-2"]
    assert config["environment"]["mixture"]["by"] == "levels"
    last = json.loads(Path("levels/metrics.jsonl").read_text().splitlines()[-1])
    assert (last["problems/level"], last["parts/digits-1/groups"], last["parts/digits-2/groups"]) == (0, 1, 0)
    assert "with two values or more" in run("train", "grpo", "--env", "Addition", "--adaptive", "digits=1")
    assert "needs difficulty" in run("train", "grpo", "--env", "Addition", "--problem-sampler", "difficulty")


# The order of passes


@settings(max_examples=60)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(-(2**63), 2**64))
def test_every_problem_comes_once_in_each_epoch(size: int, per_step: int, seed: int) -> None:
    steps = -(-3 * size // per_step)
    drawn = [problem for step in range(steps) for problem in problems_of_step(size, step, per_step, seed)]
    for epoch in range(3):
        assert sorted(drawn[epoch * size : (epoch + 1) * size]) == list(range(size))


def test_the_order_depends_on_seed_and_epoch_and_not_on_the_size_of_steps_or_what_was_asked_before() -> None:
    def drawn(per_step: int, steps: Sequence[int]) -> list[int]:
        chosen = {step: problems_of_step(10, step, per_step, 1) for step in steps}
        return [problem for step in sorted(chosen) for problem in chosen[step]]

    whole = drawn(1, range(24))
    for per_step in (1, 3, 8, 24):
        steps = range(24 // per_step)
        assert drawn(per_step, steps) == drawn(per_step, steps[::-1]) == whole
    epochs = [tuple(problems_of_step(20, step, 20, seed)) for seed in range(10) for step in range(10)]
    # A seed of more than 32 bits is two words to NumPy, and the epoch is another.
    epochs += [tuple(problems_of_step(20, 0, 20, seed)) for seed in (2**32, 7 + 3 * 2**32)]
    assert len(set(epochs)) == 102


# Seeds


@settings(max_examples=50)
@given(st.integers(-(2**63), 2**64), st.integers(0, 2**63 + 5))
def test_episode_seeds_equal_integer_arithmetic(seed: int, stream: int) -> None:
    base = splitmix(splitmix(seed % WORD) ^ (stream % WORD))
    expected = [splitmix(base ^ splitmix(index)) for index in range(4)]
    assert episode_seeds(seed, stream, 4).tolist() == expected


# Episodes


def test_episodes_of_a_step_are_whole_groups() -> None:
    env = vector_env(2)
    for step in range(4):
        episodes = episodes_of_step(env, step, 3, 4, 9)
        assert [episode.group for episode in episodes] == [0] * 4 + [1] * 4 + [2] * 4
        problems = problems_of_step(len(PROBLEMS), step, 3, 9)
        assert [episode.problem for episode in episodes] == [problem for problem in problems for _ in range(4)]
        assert [episode.seed for episode in episodes] == episode_seeds(9, step, 12).tolist()


class Endless(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """An environment that does not say how many problems it has."""


def test_members_of_a_group_share_the_seed_of_an_environment_that_draws() -> None:
    env = Endless()
    assert {episode.problem for episode in episodes_of_step(env, 0, 6, 1, 0)} == {-1}
    assert len({episode.seed for episode in episodes_of_step(env, 0, 6, 1, 0)}) == 6
    seeds = [[episode.env_seed for episode in episodes_of_step(env, step, 2, 3, 0)] for step in range(50)]
    for one in seeds:
        assert one == [one[0]] * 3 + [one[3]] * 3
    assert len({seed for one in seeds for seed in one}) == 100
    assert seeds[7] == [episode.env_seed for episode in episodes_of_step(env, 7, 2, 3, 0)]
    assert seeds[7] != [episode.env_seed for episode in episodes_of_step(env, 7, 2, 3, 1)]
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(vector_env(1))
    assert {episode.env_seed for episode in episodes_of_step(wrapped, 0, 2, 3, 0)} == {None}
