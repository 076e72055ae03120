from __future__ import annotations

import dataclasses
import enum
import subprocess
import sys
from types import MappingProxyType

import numpy as np
import pytest

from rlvr_envs.data import ProblemDataset
from verifiers import DataError, InvalidArgumentError, Message, Problem

PROBLEMS = tuple(Problem(f"sums/{n}", f"What is {n} + 1?", str(n + 1), {"level": n}) for n in range(5))
SUMS = ProblemDataset("sums", "train", PROBLEMS)


def fingerprint(*problems: Problem) -> str:
    return ProblemDataset("x", "test", problems).fingerprint


def of_metadata(value: object) -> str:
    return fingerprint(Problem("a", "b", "c", {"value": value}))


def test_a_slice_is_a_data_set() -> None:
    part = SUMS[1:4:2]
    assert (part.name, part.split, part.problems) == ("sums", "train", (PROBLEMS[1], PROBLEMS[3]))
    assert part.fingerprint == ProblemDataset("other", "test", (PROBLEMS[1], PROBLEMS[3])).fingerprint


def test_two_problems_with_one_id() -> None:
    with pytest.raises(DataError) as caught:
        ProblemDataset("x", "test", (*PROBLEMS, PROBLEMS[1]))
    assert "x, split 'test': problems 1 and 5 (counted from 0) have the same id 'sums/1'; " in str(caught.value)


@pytest.mark.parametrize(
    "changed",
    [
        Problem("a", (Message("user", "b"),), "c", {"d": 1}),
        Problem("a", "b", ["c"], {"d": 1}),
        Problem("a", "b", "c", {"d": 2}),
        Problem("a", "b", "c", {"d": 1.0}),
        Problem("a", "bc", "", {"d": 1}),
    ],
)
def test_any_change_shows_in_the_fingerprint(changed: Problem) -> None:
    assert fingerprint(changed) != fingerprint(Problem("a", "b", "c", {"d": 1}))


def test_integers_too_long_for_pythons_json_have_a_fingerprint() -> None:
    long = 10**5000
    of_each = {of_metadata(value) for value in (long, -long, long + 1, [long], hex(long))}
    assert len(of_each) == 5
    assert of_metadata(10**5000) in of_each


@dataclasses.dataclass(frozen=True)
class AssertLike:
    asserts: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class CheckLike:
    asserts: tuple[str, ...]


class Colour(enum.StrEnum):
    RED = "red"


EQUAL: list[tuple[object, object]] = [
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ([1, [2]], (1, (2,))),
    (MappingProxyType({"d": 1}), {"d": 1}),
    ({3, 1, 2}, {2, 3, 1}),
    (AssertLike(("x",)), AssertLike(("x",))),
    (np.arange(3), np.arange(3)),
]
DIFFERENT: list[tuple[object, object]] = [
    ({"a": 1}, [["a", 1]]),
    ({1}, ["set", [1]]),
    (AssertLike(("x",)), CheckLike(("x",))),
    (AssertLike(("x",)), AssertLike(("y",))),
    (b"x", "x"),
    (Colour.RED, "red"),
    (True, 1),
    (np.r_[np.zeros(5000), 1.0, np.zeros(5000)], np.r_[np.zeros(5000), 2.0, np.zeros(5000)]),
    ("\ud800", "\ud801"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_what_counts_as_the_same_content(one: object, other: object) -> None:
    assert of_metadata(one) == of_metadata(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_counts_as_other_content(one: object, other: object) -> None:
    assert of_metadata(one) != of_metadata(other)


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    program = (
        "from rlvr_envs.data import ProblemDataset; from verifiers import Problem; "
        "print(ProblemDataset('x', 'test', (Problem('a', 'b', {'p', 'q', 'r', 's'}, {'z': 1, 'y': {'m', 'n'}}),))"
        ".fingerprint)"
    )
    here = fingerprint(Problem("a", "b", {"s", "r", "q", "p"}, {"y": {"n", "m"}, "z": 1}))
    for seed in ("1", "2", "3"):
        printed = subprocess.check_output([sys.executable, "-c", program], text=True, env={"PYTHONHASHSEED": seed})
        assert printed.strip() == here


@pytest.mark.parametrize("value", [lambda: 1, object(), [object()], {"deep": (len, lambda: 1)}])
def test_content_without_a_stable_form_has_no_fingerprint(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"problem 'a' has no fingerprint: it holds a (function|object) \("):
        of_metadata(value)
