"""maj@k of recorded samples, with the equality of answers that the verifier itself has."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, strategies as st

import verifiers
from agents import CausalLMPolicy, EvaluationRecord, evaluate, tiny_model
from agents.runs.at_k import AtK, answer_classes, answer_verifier, count_votes, estimate_maj_at
from agents.runs.evaluation_record import Sample
from rlvr_envs import ByteTokenizer
from tests.envs.helpers import vector_env
from verifiers import InvalidArgumentError, Outcome, Problem, Verdict

COMPLETIONS = ("4", "4.0", "5", "5.00", "5", "6", "no number", "not 7", "so 8/2", "5 or 6")
"""To 2+2: three right, six wrong of which three and two agree, and one without an answer."""


def judged(completions: tuple[str, ...], verifier: Any, problem: Problem, index: int = 0) -> list[Sample]:
    verdicts = verifiers.verify_batch(verifier, completions, [problem] * len(completions))
    return [
        Sample.judged(verdict, problem=index, problem_id=problem.id, sample=number, score=verdict.score)
        for number, verdict in enumerate(verdicts)
    ]


def maj_at(problems: list[Problem], rows: list[Sample], verifier: Any, k: int) -> AtK:
    return estimate_maj_at(count_votes(rows, problems, answer_verifier(verifier)), k)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10])
def test_the_vote_is_that_of_all_draws_counted_one_by_one(k: int) -> None:
    verifier, problem = verifiers.make("numeric"), Problem("p", "2+2=", "4")
    majorities = ["4", "4", "5", "5", "5", "6", None, "7", "4", "6"]
    total, draws = 0.0, list(itertools.combinations(majorities, k))
    for drawn in draws:
        counts = Counter(filter(None, drawn))
        leaders = [vote for vote, count in counts.items() if count == max(counts.values())]
        total += ("4" in leaders) / max(1, len(leaders))
    result = maj_at([problem], judged(COMPLETIONS, verifier, problem), verifier, k)
    assert result.value == pytest.approx(total / len(draws), abs=1e-12)
    assert str(result).startswith(f"maj@{k} ")


def test_a_wrong_answer_never_votes_with_the_right_one() -> None:
    """Even where the two have one value, and only the form that was asked for is wrong."""
    verifier, problem = verifiers.make("math"), Problem("p", "Simplify 4/8.", "1/2")
    rows = judged((r"\boxed{1/2}", r"\boxed{4/8}", r"\boxed{4/8}", r"\boxed{2/4}", r"\boxed{3}"), verifier, problem)
    (votes,) = count_votes(rows, [problem], answer_verifier(verifier))
    assert rows[0].outcome == Outcome.CORRECT
    assert all((vote == votes[0]) == (row.outcome == Outcome.CORRECT) for row, vote in zip(rows, votes, strict=True))
    assert votes[1] == votes[2]


def test_only_samples_that_are_right_or_wrong_vote_and_problems_with_fewer_are_left_out() -> None:
    verifier = verifiers.make("exact")
    problems = [Problem("a", "", "x"), Problem("b", "", "x"), Problem("c", "", "x")]
    rows = [row for index in range(2) for row in judged(("x", "y", "x"), verifier, problems[index], index)]
    rows[4] = Sample.failed("no answer", problem=1, problem_id="b", sample=1, seed=0)
    rows += [Sample.judged(Verdict(0.5, Outcome.SCORED), problem=2, problem_id="c", sample=0, score=0.5)]
    result = maj_at(problems, rows, verifier, 3)
    assert (result.value, result.problems, result.left_out) == (1.0, 1, 2)
    assert maj_at(problems, rows, verifier, 4).summary()["value"] is None


class Parity:
    """Any number of the reference's parity is right."""

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        right = len(completion) % 2 == problem.reference
        return Verdict.of(Outcome.CORRECT if right else Outcome.INCORRECT, completion)

    def same_answer(self, first: str, second: str, problem: Problem) -> bool:
        return len(first) == len(second)


def test_an_evaluation_reports_it_by_a_verifier_of_ones_own_and_resumed_too(tmp_path: Path) -> None:
    problems = [Problem(f"p{index}", "Q", index % 2) for index in range(4)]
    env = vector_env(3, problems=problems, verifier=verifiers.make(Parity))
    policy = CausalLMPolicy(tiny_model(ByteTokenizer().vocab_size, layers=1, hidden_size=16, heads=2))

    def evaluated(samples: int, **how: Any) -> Any:
        with EvaluationRecord(tmp_path / "a", **how) as record:
            return evaluate(env, policy, samples=samples, maj_at=[1, 2], record=record)

    evaluated(2)
    result = evaluated(5, resume=True)
    assert result.maj_at == evaluate(env, policy, samples=5, maj_at=[1, 2]).maj_at
    assert result.maj_at[0].value == pytest.approx(result.score)
    assert [estimate["k"] for estimate in result.summary()["maj_at"]] == [1, 2]


def test_a_verifier_that_compares_no_answers_is_refused_before_any_sample() -> None:
    never: Any = SimpleNamespace(version=0, begin=mock.Mock(side_effect=AssertionError))
    with pytest.raises(InvalidArgumentError, match=r"maj@k needs a verifier that compares answers .*got CountLetters"):
        evaluate(vector_env(2), never, maj_at=[1])
    with pytest.raises(InvalidArgumentError, match="maj@3 is not possible: k must be from 1 to 2"):
        evaluate(vector_env(2), never, samples=2, maj_at=[3])


@pytest.mark.parametrize(
    ("name", "same", "different"),
    [
        ("exact", ("a ", " a"), ("a", "A")),
        ("numeric", ("1/2", "0.50"), ("1/2", "0.51")),
        ("numeric", ("2x", "2x"), ("2x", "2")),
        ("choice", ("B", "B"), ("B", "B, C")),
        ("math", (r"\frac{1}{2}", "0.5"), (r"\frac{1}{2}", "0.6")),
        ("math", ("(x+1)^2", "x^2+2x+1"), ("x", "y")),
        ("math", ("))) (", "))) ("), ("))) (", "1")),
    ],
)
def test_answers_are_the_same_as_to_a_verifier(name: str, same: tuple[str, str], different: tuple[str, str]) -> None:
    verifier, problem = answer_verifier(verifiers.make(name)), Problem("p", "What is it?", "unrelated")
    for pair, expected in ((same, True), (different, False)):
        for first, second in (pair, pair[::-1]):
            assert verifier.same_answer(first, second, problem) is expected


ANSWERS = (
    r"-2 -1 -0 0 1 2 3 10 0.0 0.5 1.50 \frac12 \frac{1}{2} \dfrac{6}{4} 1/2 3/2 1/0 1/3 0.3333333333 50\% "
    "12_8 1,000 1000 (1,2) B x x+x 2x"
)
OPTIONS: list[dict[str, Any]] = [{}, {"rounding_digits": 2}, {"rel_tol": 0.5}, {"preset": "olympiadbench"}]


@given(answers=st.lists(st.sampled_from(ANSWERS.split()), max_size=12), options=st.sampled_from(OPTIONS))
def test_classes_are_those_that_comparing_each_with_each_finds(answers: list[str], options: dict[str, Any]) -> None:
    verifier, problem = verifiers.make("math", **options), Problem("p", "How many?", None)
    firsts: list[str] = []
    expected = []
    for answer in answers:
        same = [number for number, first in enumerate(firsts) if verifier.same_answer(answer, first, problem)]  # type: ignore[attr-defined]
        same = [firsts.index(answer)] if answer in firsts else same
        firsts += [] if same else [answer]
        expected.append(same[0] if same else len(firsts) - 1)
    assert answer_classes(answers, problem, answer_verifier(verifier)) == expected
