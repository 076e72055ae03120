"""The setting `thoughts`, which every verifier has that cuts thoughts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from verifiers import InvalidArgumentError, MissingDependencyError, Problem, make
from verifiers.countdown import CountdownReference
from verifiers.proofs import CoqGoal, SmtGoal
from verifiers.unit_tests import CheckTests

NOWHERE = "http://localhost:9"
"""An address where no server answers: a verifier that asks it has not cut the thought."""
QUERIES = {"query": "SELECT 1", "scripts": ["CREATE TABLE t (a)"]}
TESTS = CheckTests("f", "def check(candidate):\n    assert candidate() == 1")
VERIFIERS: dict[str, tuple[Mapping[str, object], object, str]] = {
    "math": ({}, "42", r"\boxed{42}"),
    "numeric": ({}, "42", "42"),
    "choice": ({}, "C", "The answer is C."),
    "countdown": ({}, CountdownReference((2, 3), 6), "2*3"),
    "exact": ({}, "42", "42"),
    "ifeval": ({}, {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}, "42"),
    "sql": ({}, QUERIES, "```sql\nSELECT 1\n```"),
    "json_schema": ({}, {"type": "number"}, "```json\n42\n```"),
    "unit_tests": ({}, TESTS, "def f():\n    return 1"),
    "judge": ({"model": "m", "base_url": f"{NOWHERE}/v1", "attempts": 1}, "42", "42"),
    "lean": ({"url": NOWHERE}, "theorem a : True := by sorry", "trivial"),
    "smt": ({}, SmtGoal("(n () Int)", "(> n 10)"), "11"),
    "coq": ({}, CoqGoal("True"), "Definition solution : True := I."),
    "reasoning_gym": ({}, {"dataset": "gcd", "seed": 1, "index": 0}, "<answer>1</answer>"),
}
"""Arguments of each verifier, a reference, and a completion with an answer."""


@pytest.mark.parametrize("name", VERIFIERS)
def test_a_setting_names_the_tags_of_thoughts(name: str) -> None:
    arguments, reference, answer = VERIFIERS[name]
    try:
        verifiers = [make(name, **arguments, thoughts=thoughts) for thoughts in ("plan,draft", ["think"])]
    except MissingDependencyError as error:
        pytest.skip(str(error))
    problem = Problem("p", "", reference)
    for tag, expected in (("plan", [True, False]), ("draft", [True, False]), ("think", [False, True])):
        is_cut = [verifier(f"<{tag}>\n{answer}", problem).outcome == "no_answer" for verifier in verifiers]
        assert is_cut == expected, tag
    with pytest.raises(InvalidArgumentError, match="thoughts must be names of tags"):
        make(name, **arguments, thoughts=["<plan>"])
