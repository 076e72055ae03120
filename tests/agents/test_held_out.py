"""Evaluations while an agent trains: they change nothing, resume exactly, and choose the checkpoint that is confirmed."""

from __future__ import annotations

import itertools
import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

import rlvr_envs
from agents import Agent, HeldOut, Run, StopWhen, evaluate
from agents.distributed.ranks import Ranks
from agents.runs.evaluation import summarize_evaluation
from agents.runs.evaluation_record import Sample
from agents.runs.held_out import HELD_OUT, HeldOutHistory
from agents.runs.plots import TrainingCurve, bands
from agents.runs.run import latest_checkpoint
from tests.agents.agent_cases import all_weights, digits, env_with, make_agent, playing_policy, sort_env, timeless
from tests.commands import Command
from tests.distributed.threads import on_ranks
from verifiers import InvalidArgumentError, Problem, Verdict, VerifierContractError, statistics
from verifiers.types import Outcome

STEPS = 6
_BUILDING = threading.Lock()
"""Weights are drawn with torch's global generator."""
SETTINGS: list[dict[str, Any]] = [{}, {"lag": 2}, {"carried_groups": 2, "segment_tokens": 1, "lag": 1}]


def plan(**settings: Any) -> HeldOut:
    """Sampled, so that the score depends on the weights."""
    merged = {"every": 2, "problems": 4, "samples": 2, "temperature": 1.0, **settings}
    return HeldOut({"sort": sort_env("grpo")}, **merged)


def learn(
    held_out: HeldOut | None, run: Run | None = None, steps: int = STEPS, **settings: Any
) -> tuple[Agent, list[dict[str, float]]]:
    """An agent after some steps, and the metrics of training."""
    env = sort_env("grpo")
    agent = make_agent("grpo", playing_policy(env), **{"problems_per_step": 2, **settings})
    rows: list[dict[str, float]] = []

    def keep(step: int, metrics: Any) -> None:
        rows.append({name: value for name, value in timeless(metrics).items() if name[:5] not in ("eval/", "sampl")})

    if run is not None and run.checkpoint is not None:
        agent.load(run.checkpoint)
    agent.learn(env, steps=steps, run=run, checkpoint_every=3, callbacks=[keep], held_out=held_out)
    return agent, rows


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_evaluations_change_nothing_in_training(settings: dict[str, Any], tmp_path: Path) -> None:
    alone, rows = learn(None, **settings)
    with Run(tmp_path / "run", {}, loggers=()) as run:  # so that the best checkpoint is loaded, and the last one again
        evaluated, others = learn(plan(every=4), run, **settings)
        assert run.held_out.of_step(STEPS, confirms=run.held_out.best_step)
    assert torch.equal(all_weights(evaluated), all_weights(alone))
    assert [str(row) for row in others] == [str(row) for row in rows]
    learned_on = [agent.learn(sort_env("grpo"), steps=STEPS + 2) or all_weights(agent) for agent in (alone, evaluated)]
    assert torch.equal(*learned_on)


@pytest.mark.parametrize("settings", [{}, {"lag": 1}], ids=str)
def test_several_ranks_measure_what_one_does_and_learn_what_they_would_without(settings: dict[str, Any]) -> None:
    def learned(held_out: Callable[[], HeldOut | None]) -> Callable[[Ranks], Any]:
        def on_rank(ranks: Ranks) -> Any:
            env = sort_env("grpo")
            with _BUILDING:
                policy = playing_policy(env)
            policy.model.double()  # so that no sample hangs on rounding
            agent = make_agent("grpo", policy, problems_per_step=3, **settings)
            scores: list[dict[str, float]] = []
            agent.learn(env, steps=4, callbacks=[lambda _, row: scores.append(dict(row))], held_out=held_out())
            return [{name: row[name] for name in row if name[:5] == "eval/"} for row in scores], all_weights(agent)

        return on_rank

    (one,) = on_ranks(1, learned(plan))
    results: Any = on_ranks(3, learned(plan))
    without: Any = on_ranks(3, learned(lambda: None))
    for (scores, weights), (_, unevaluated) in zip(results, without, strict=True):
        assert scores == one[0]  # type: ignore[index] # no error
        assert torch.equal(weights, unevaluated)
    assert len(results[0][0][1]) > 3


def resumed_is_whole(
    folder: Path, held_out: Callable[[], HeldOut], broken: HeldOut, cause: type[BaseException], done: int | None
) -> None:
    """Check a run that a cause ends with the checkpoint of a step, or with none, and is resumed."""
    with Run(folder / "whole", {}, loggers=()) as run:
        expected, _ = learn(held_out(), run)
    with Run(folder / "cut", {}, loggers=()) as run, pytest.raises(cause):
        learn(broken, run)
    with Run(folder / "cut", {}, loggers=(), resume=True) as run:
        assert latest_checkpoint(folder / "cut") == (None if done is None else run.checkpoint_folder(done))
        resumed, _ = learn(held_out(), run)
    assert (folder / "cut" / HELD_OUT).read_text() == (folder / "whole" / HELD_OUT).read_text()
    assert torch.equal(all_weights(resumed), all_weights(expected))


@pytest.mark.parametrize(
    ("judged", "cause", "done"),
    [
        (1, KeyboardInterrupt, 0),
        (17, KeyboardInterrupt, 4),
        *((judged, VerifierContractError, done) for judged, done in ((1, None), (9, 2), (30, 6))),
    ],
)
def test_a_run_that_ends_in_an_evaluation_loses_no_step_and_goes_on(
    judged: int, cause: type[BaseException], done: int | None, tmp_path: Path
) -> None:
    """The first evaluation has 8 completions; the cause comes with one of the first, the second, ... evaluation."""
    count = itertools.count(1)

    def interrupting(completion: str, problem: Problem) -> float:
        if next(count) == judged:
            raise cause
        return digits(completion, problem)

    broken = HeldOut({"sort": env_with(interrupting)}, every=2, problems=4, samples=2, temperature=1.0)
    resumed_is_whole(tmp_path, plan, broken, cause, done)


def test_a_run_killed_between_the_first_evaluation_and_its_checkpoint_begins_again(tmp_path: Path) -> None:
    def equal() -> HeldOut:  # so that the first is the best
        return HeldOut({"sort": env_with(lambda completion, problem: 1.0)}, every=2, problems=4)

    keep = Run.keep_checkpoint

    def killed(run: Run, *arguments: Any) -> Any:
        if run.folder.name == "cut" and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            raise SystemExit
        return keep(run, *arguments)

    with mock.patch.object(Run, "keep_checkpoint", killed):
        resumed_is_whole(tmp_path, equal, equal(), SystemExit, None)
    with Run(tmp_path / "cut", {}, loggers=(), resume=True) as run:
        assert run.best_checkpoint() == run.checkpoint_folder(0)
        assert (run.held_out.best_step, run.held_out.best_steps) == (0, 4)  # all are equal
        steps = [row["step"] for row in run.rows() if "reward" not in row]
    assert steps == [0, 2, 4, 6, 6]  # the last one confirms the best


def test_the_best_checkpoint_is_kept_and_confirmed_on_other_problems_with_its_own_weights(tmp_path: Path) -> None:
    with Run(tmp_path / "run", {}, loggers=(), keep=1) as run:
        agent, _ = learn(plan(), run)
        means, best = run.held_out.means, run.held_out.best_step
        assert list(means) == [0, 2, 4, 6]
        assert best == next(step for step, mean in means.items() if mean == max(means.values()))
        assert run.best_checkpoint() == run.checkpoint_folder(best)
        (confirmed,) = run.held_out.of_step(STEPS, confirms=best)
    agent.load(tmp_path / "run" / "checkpoints" / f"step-{best:06d}")
    both = evaluate(sort_env("grpo"), agent.policy, problems=8, samples=2, seed=agent.config.seed)
    by_problem = [np.mean([row.score or 0.0 for row in both.rows if row.problem == index]) for index in range(8)]
    chosen = run.held_out.of_step(best)[0]
    assert chosen.scores == pytest.approx(by_problem[:4])
    assert confirmed.scores == pytest.approx(by_problem[4:])
    assert (confirmed.first, confirmed.problems) == (4, 4)
    curve = TrainingCurve.read(tmp_path / "run", "eval/sort")
    (band,) = bands([curve])
    assert band.steps.tolist() == [0, 2, 4, 6]
    assert band.mean.tolist() == list(means.values())
    assert (band.low < band.mean).all()
    assert TrainingCurve.read(tmp_path / "run").steps.tolist() == list(range(1, STEPS + 1))


def evaluation(scores: list[float | None]) -> Any:
    """An evaluation of problems with one completion each; None where the verifier broke."""
    rows = []
    for index, score in enumerate(scores):
        verdict = Verdict(math.nan, Outcome.VERIFIER_ERROR) if score is None else Verdict(score, Outcome.SCORED)
        rows.append(Sample.judged(verdict, problem=index, problem_id=index, sample=0, score=score or 0.0))
    return summarize_evaluation(rows, len(rows), 1)


def test_changes_are_paired_by_problem_and_what_has_no_score_never_is_the_best(tmp_path: Path) -> None:
    first, second = [0.0, 0.0, 1.0, None, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0, None, 1.0]
    history = HeldOutHistory(tmp_path / HELD_OUT)
    history.add(0, {"a": evaluation(first)}, first={"a": 0})
    metrics = history.add(5, {"a": evaluation(second)}, first={"a": 0})
    reference = statistics.compare([0, 0, 1, 0], [1, 0, 1, 1])
    assert metrics["eval/a/change"] == reference.difference == 0.5
    assert metrics["eval/a/change_low"] == reference.interval.low
    assert metrics["eval/a/verifier_errors"] == 1
    assert metrics["eval/a"] == 0.8
    nothing = history.add(10, {"a": evaluation([None] * 6)}, first={"a": 0})
    assert "eval/a" not in nothing
    assert history.means == {0: 0.4, 5: 0.8}
    history.close()
    again = HeldOutHistory(tmp_path / HELD_OUT)
    assert (again.means, again.of_step(10)) == (history.means, history.of_step(10))
    again.keep_until(4)
    assert again.means == {0: 0.4}
    again.close()


def test_training_ends_at_a_score_or_when_it_is_stale() -> None:
    history, score, stale = HeldOutHistory(), StopWhen(score=0.5), StopWhen(stale=2)
    reasons = []
    for step, right in enumerate([1, 2, 2, 1, 4]):
        history.add(step, {"a": evaluation([1.0] * right + [0.0] * (4 - right))}, first={"a": 0})
        reasons.append((history.stop_reason(score) is not None, history.stop_reason(stale) is not None))
    assert reasons == [(False, False), (True, False), (True, False), (False, True), (True, False)]
    for score_to_reach, steps in ((0.0, 0), (1e9, STEPS)):
        agent, _ = learn(plan(stop_when=StopWhen(score=score_to_reach)))
        assert agent.steps == steps


def test_a_plan_that_can_measure_nothing_is_refused() -> None:
    env: Any = sort_env("grpo")
    agent = make_agent("grpo", playing_policy(env), problems_per_step=2, lag=1)
    held = HeldOut({"held": env}, problems=4)
    for wrong, message in (
        (lambda: HeldOut({}), "has no environment"),
        (lambda: plan(temperature=0.0), "all 2 samples of a problem are the same at temperature 0"),
        (lambda: StopWhen(), "has no condition"),
        (lambda: agent.learn(env, steps=2, held_out=held), "'held' in the environment of training or a part of it"),
        (lambda: agent.learn(rlvr_envs.mix({"a": env}), steps=2, held_out=held), "'held' in the environment of train"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            wrong()
    assert agent.steps == 0


def test_problems_of_training_are_no_held_out_ones(tmp_path: Path, rlvr: Command) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text("".join(f'{{"question": "{n}+1=", "answer": "{n + 1}"}}\n' for n in range(6)), encoding="utf-8")
    options = ["train", "grpo", "--env", "Text", "--env-args", f"dataset={path}", "max_new_tokens=20", "--steps", "1"]
    options += ["--problems-per-step", "2", "--group-size", "2", "--loggers", "--eval-every", "1"]
    for name, others, warned in (("a", [], 1), ("b", ["--eval-env", "Addition"], 0)):
        code, _, errors = rlvr(*options, *others, "--run-folder", tmp_path / name)
        assert (code, errors.count("evaluations of Text use the problems of training")) == (0, warned)
    sort, mixed = sort_env("grpo"), rlvr_envs.mix({"sort": sort_env("grpo")})
    assert plan().of_training(sort) == plan().of_training(mixed) == ["sort"]
    other: Any = rlvr_envs.environment_class("Sort").make_vec(2, split="test")
    assert plan().of_training(other) == []
    # Whatever their references are, problems are compared by their prompts.
    dataset = [Problem(str(n), f"{n}+1=", np.array([n, n])) for n in range(3)]
    one, same = (SimpleNamespace(unwrapped=SimpleNamespace(dataset=dataset)) for _ in range(2))
    assert HeldOut({"own": one}).of_training(same) == ["own"]  # type: ignore[dict-item, arg-type]


def test_the_command_evaluates_stops_and_says_so(tmp_path: Path, rlvr: Command) -> None:
    options = ["train", "grpo", "--env", "Sort", "--env-args", "max_new_tokens=20", "size=4", "--loggers"]
    options += ["--problems-per-step", "2", "--group-size", "2", "--steps", "4", "--run-folder", str(tmp_path / "run")]
    options += ["--eval-every", "2", "--eval-env", "Sort,Addition", "--eval-problems", "3", "--stop-when", "stale=1"]
    code, said, _ = rlvr(*options)
    assert code == 0
    few = "evaluations of Sort have 2 problems, not 3 (--eval-problems): of 4 in the split, the others are kept"
    assert (few in said, "evaluations of Addition have" in said) == (True, False)
    assert "training ended early: the held-out score has not exceeded" in said
    assert "on problems that did not choose it: Sort" in said
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {"eval/Sort", "eval/Addition", "eval/mean"} <= rows[0].keys()
    last = rows[-1]["step"]
    assert last < 4
    options[options.index("--steps") + 1], options[options.index("--run-folder") + 1] = str(last), str(tmp_path / "all")
    _, output, _ = rlvr(*options)
    assert "training ended early" not in output  # the condition holds after the last step
    for wrong, message in (
        (["--stop-when", "stail=1", "--eval-every", "2"], "Did you mean 'stale'?"),
        (["--eval-split", "train"], "set --eval-every"),
        (["--eval-every", "2", "--eval-env", "Sort,Sort"], "one environment twice"),
    ):
        _, _, errors = rlvr("train", "grpo", "--env", "Sort", "--run-folder", tmp_path / "other", *wrong)
        assert message in errors
