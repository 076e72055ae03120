"""Verifiers that the user named, tried on the first references before anything is sampled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import rlvr_envs  # noqa: F401 - registers the ids
from verifiers import InvalidArgumentError, Problem


@pytest.mark.parametrize(
    ("env_id", "verifier", "reason"),
    [
        ("Bandit", "math", "the gold answer is a ProcessStart, .*"),
        ("Sort", "math", "the gold answer cannot be read: .*"),
        ("Addition", "choice", "the reference of multiple choice must be one letter of A to Z, got '.*"),
        ("Addition", "unit_tests", ".* expected a reference of type CheckTests, .* got str"),
        ("Addition", ("countdown", {"use_all": False}), ".*: the countdown verifier needs a CountdownReference.*"),
        ("Addition", "sql", ".* expected an SQLReference, .*"),
        ("Addition", "json_schema", ".* a schema is an object, true or false, got int"),
        ("GuessNumber", "numeric", "the numeric verifier needs a literal number .*"),
        ("Function", "exact", r"exact match compares with a string or an integer, .* \.\.\."),
    ],
)
def test_a_verifier_that_can_use_no_reference_is_refused(env_id: str, verifier: Any, reason: str) -> None:
    pytest.importorskip("jsonschema")
    name = verifier if isinstance(verifier, str) else verifier[0]
    tried = f"^the verifier {name!r} can't use the reference of any of the first 8 problems"
    match = rf"(?s){tried}: {reason}\. Leave verifier= out"
    with pytest.raises(InvalidArgumentError, match=match):
        gymnasium.make_vec(f"rlvr/{env_id}-v0", num_envs=2, verifier=verifier)


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_a_verifier_in_a_file_is_tried_too(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"judge.{suffix}"
    file.write_text('verifier = "choice"' if suffix == "toml" else '{"verifier": "choice"}')
    with pytest.raises(InvalidArgumentError, match="the verifier 'choice' can't use the reference"):
        gymnasium.make("rlvr/Addition-v0", verifier=str(file))


@pytest.mark.parametrize(
    ("env_id", "verifier"),
    [("Addition", "math"), ("Addition", "exact"), ("Function", "unit_tests"), ("Countdown", ("countdown", {}))],
)
def test_a_verifier_that_can_use_them_is_taken(env_id: str, verifier: Any) -> None:
    gymnasium.make(f"rlvr/{env_id}-v0", verifier=verifier)


def text(references: Sequence[object], verifier: Any) -> None:
    problems = [Problem(f"p{index}", "Why?", reference) for index, reference in enumerate(references)]
    gymnasium.make("rlvr/Text-v0", dataset=problems, verifier=verifier)


def test_one_reference_that_can_be_used_is_enough() -> None:
    text([None] * 7 + ["7"], "numeric")
    with pytest.raises(InvalidArgumentError, match="the reference of any of the first 8 problems"):
        text([None] * 8 + ["7"], "numeric")
    with pytest.raises(InvalidArgumentError, match=r"the reference of the first problem: .*got None.*or name another$"):
        text([None], "numeric")


def test_verifiers_that_may_cost_something_are_not_asked() -> None:
    asked: list[str] = []

    def judge(completion: str, problem: Problem) -> float:
        asked.append(completion)
        raise ConnectionError

    text([None], judge)
    text([None], ("weighted_sum", {"parts": {"judge": judge}}))
    assert not asked
