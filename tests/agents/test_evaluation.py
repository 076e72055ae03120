"""Scores and their uncertainty, against published intervals, their defining equation and hand-worked means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from agents import (
    CausalLMPolicy,
    Evaluation,
    PolicyConfig,
    Reinforce,
    ReinforceConfig,
    Trajectory,
    evaluate,
    tiny_model,
)
from agents.runs.evaluation import summarize_evaluation
from agents.runs.evaluation_record import Sample
from agents.types import Action
from rlvr_envs import ByteTokenizer, Observation
from tests.agents.test_adapter import DrawnPrompt, third_party
from tests.agents.trajectories import scored, tiny_policy, trajectory
from tests.envs.helpers import PROBLEMS, vector_env
from verifiers import InvalidArgumentError, Outcome, Verdict
from verifiers.statistics import share_interval


def summary(trajectories: list[Trajectory], problems: int, samples: int) -> Evaluation:
    rows = [
        Sample.of(trajectory, problem=trajectory.group, sample=index) for index, trajectory in enumerate(trajectories)
    ]
    return summarize_evaluation(rows, problems, samples, trajectories=trajectories)


def ends(interval: Any) -> tuple[float, float]:
    return interval.low, interval.high


def unanswered(index: int) -> Sample:
    return Sample.failed("no answer", problem=index, problem_id=f"p{index}", sample=0, seed=0)


def judged(outcome: Outcome, group: int, **fields: Any) -> Trajectory:
    verdict = Verdict.of(outcome)
    return trajectory([0, 1], rewards=[0, verdict.score], verdict=verdict, group=group, **fields)


def test_right_or_wrong_gets_wilsons_interval() -> None:
    outcomes = [Outcome.CORRECT] * 3 + [Outcome.INCORRECT] * 4 + [Outcome.NO_ANSWER] * 2 + [Outcome.TIMEOUT]
    played = [judged(outcome, index, truncated=outcome is Outcome.NO_ANSWER) for index, outcome in enumerate(outcomes)]
    result = summary(played, 10, 1)
    assert result.score == 0.3
    assert result.outcomes == {"correct": 3, "incorrect": 4, "no_answer": 2, "timeout": 1}
    assert (result.problems, result.samples, result.truncated, result.verifier_errors) == (10, 1, 2, 0)
    assert result.trajectories == tuple(played)
    assert str(result) == "0.300 [0.087, 0.658, approximately] (10 problems x 1)"


def test_broken_verifiers_are_counted_and_left_out() -> None:
    outcomes = [Outcome.CORRECT, Outcome.VERIFIER_ERROR, Outcome.INCORRECT, Outcome.VERIFIER_ERROR, Outcome.CORRECT]
    result = summary([judged(outcome, index) for index, outcome in enumerate(outcomes)], 5, 1)
    assert result.score == pytest.approx(2 / 3)
    assert result.interval == ends(share_interval([1.0, 0.0, 1.0]))
    assert result.bounds == (2 / 5, 4 / 5)
    assert "(0.400 with all of them wrong, 0.800 with all right)" in str(result)
    assert result.verifier_errors == result.outcomes["verifier_error"] == 2
    assert "2 verifier errors left out" in str(result)


def test_the_score_is_a_mean_over_problems_and_not_over_completions() -> None:
    scores = {0: [1.0, 0.0, 1.0, math.nan], 1: [0.0, math.nan, math.nan, math.nan], 2: [0.5, 0.5, 0.5, 0.5]}
    trajectories = [scored(score, group=group) for group, members in scores.items() for score in members]
    result = summary(trajectories, 3, 4)
    means = np.array([2 / 3, 0, 0.5])
    assert result.score == pytest.approx(means.mean(), abs=1e-15)
    assert result.interval == ends(share_interval(means))
    assert result.bounds == pytest.approx((np.mean([0.5, 0, 0.5]), np.mean([0.75, 0.75, 0.5])))
    assert result.verifier_errors == 4


def test_scores_beyond_1_get_students_interval() -> None:
    scores = np.array([0.0, 1.0, 0.25, 2.0])
    result = summary([scored(score, group=index) for index, score in enumerate(scores)], 4, 1)
    half = 3.182446 * scores.std(ddof=1) / 2
    assert result.interval == pytest.approx((scores.mean() - half, scores.mean() + half), abs=1e-6)


def test_one_problem_with_several_samples_says_nothing_about_others_and_errors_nothing_at_all() -> None:
    result = summary([scored(1.0), scored(0.0)], 1, 2)
    assert (result.score, result.interval) == (0.5, (0.0, 1.0))
    results = summary([judged(Outcome.VERIFIER_ERROR, index) for index in range(3)], 3, 1)
    assert all(math.isnan(number) for number in (results.score, *results.interval))
    assert results.verifier_errors == 3


class SaysItsLetter:
    """Answers each of `PROBLEMS` with its letter, once for each of the prompt's characters, and then stops."""

    version = 0

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def act(self, observation: Observation, **_: object) -> Action:
        letters = ord("a") + (observation["tokens"] == ord("Q")).sum(axis=1, keepdims=True) - 1
        zeros = np.zeros(letters.shape, dtype=np.float32)
        return Action(letters.astype(np.int64), np.ones(len(letters), dtype=np.int64), zeros)

    def begin(self, rows: np.ndarray, seeds: np.ndarray) -> None:
        self.seeds += seeds.tolist()


def test_evaluate_plays_every_sample_of_the_first_problems() -> None:
    policy = SaysItsLetter()
    results = evaluate(vector_env(4), policy, problems=3, samples=2, seed=1)
    assert [t.problem_id for t in results.trajectories] == ["p0", "p0", "p1", "p1", "p2", "p2"]
    assert [t.group for t in results.trajectories] == [0, 0, 1, 1, 2, 2]
    assert results.score == 6  # as many letters as fit
    assert results.truncated == 6
    assert len(set(policy.seeds)) == 6


def test_an_environment_that_says_no_number_of_problems_is_evaluated_on_as_many_as_are_asked_for() -> None:
    """A plain SyncVectorEnv: each problem is drawn from a seed, the same for its samples and in every evaluation."""

    def results(rows: int, **settings: Any) -> Evaluation:
        return evaluate(third_party(rows, DrawnPrompt), tiny_policy(), problems=6, samples=2, **settings)

    def starts_of(evaluation: Evaluation) -> list[int]:
        return [int(trajectory.tokens[0]) for trajectory in evaluation.trajectories]

    one = results(4)
    starts = starts_of(one)
    assert (one.problems, len(starts)) == (6, 12)
    assert starts[::2] == starts[1::2]
    assert len(set(starts)) > 2
    assert starts_of(results(3)) == starts != starts_of(results(4, seed=1))
    agent = Reinforce(tiny_policy(), ReinforceConfig(problems_per_step=4))
    assert agent.evaluate(third_party(2, DrawnPrompt), problems=6, samples=2).score == one.score


def test_what_cannot_be_evaluated_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"has no num_problems: say how many .*problems=100"):
        evaluate(third_party(2), tiny_policy())
    with pytest.raises(InvalidArgumentError, match="can't evaluate 0 problems x 1: at least 1 of each"):
        evaluate(third_party(2), tiny_policy(), problems=0)
    for problems, samples in ((len(PROBLEMS) + 1, 1), (0, 1), (1, 0)):
        with pytest.raises(InvalidArgumentError, match=f"{problems} problems x {samples}.*has 5 problems"):
            evaluate(vector_env(1), SaysItsLetter(), problems=problems, samples=samples)


def test_a_samples_tokens_depend_on_no_other_sample() -> None:
    """Neither on how many problems and samples there are, nor on how many are played at once."""

    def tokens(rows: int, **counts: int) -> dict[tuple[int, int], list[int]]:
        played = evaluate(vector_env(rows), policy, seed=3, **counts)
        keys = [row.key for row in played.rows]
        return dict(zip(keys, (trajectory.tokens.tolist() for trajectory in played.trajectories), strict=True))

    policy = CausalLMPolicy(tiny_model(ByteTokenizer().vocab_size, layers=1, hidden_size=16, heads=2))
    whole = tokens(7, problems=5, samples=4)
    assert len({tuple(trajectory) for trajectory in whole.values()}) == 20
    fewer = tokens(2, problems=3, samples=2)
    assert fewer == {key: whole[key] for key in fewer}
    assert len(fewer) == 6


def test_samples_that_are_all_the_same_are_warned_of() -> None:
    model = tiny_model(ByteTokenizer().vocab_size, layers=1, hidden_size=16, heads=2)
    policy = CausalLMPolicy(model, PolicyConfig(temperature=0))
    with pytest.warns(UserWarning, match="all 3 samples of a problem are the same at temperature 0: choose a higher"):
        evaluate(vector_env(2), policy, problems=2, samples=3)
    evaluate(vector_env(2), policy, problems=2)  # a warning would be an error


@pytest.mark.parametrize(("errored", "said"), [(0, None), (2, None), (3, "3 of 200 samples (1.5%) have no score")])
def test_more_than_one_errored_sample_in_a_hundred_is_warned_of(errored: int, said: str | None) -> None:
    rows = [unanswered(index) for index in range(errored)]
    rows += [Sample.of(judged(Outcome.CORRECT, index), problem=index, sample=0) for index in range(errored, 200)]
    warning = summarize_evaluation(rows, 200, 1).warning
    assert warning is None if said is None else warning is not None and warning.startswith(said)


def test_without_any_score_none_is_said_to_be_that_of_the_others() -> None:
    result = summarize_evaluation([unanswered(index) for index in range(3)], 3, 1)
    assert result.warning == "none of the 3 samples has a score, since their verifier broke or their request failed"
    assert str(result).startswith("unknown (3 problems x 1, 3 failed requests left out")
    assert "nan" not in str(result)
