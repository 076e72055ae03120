"""Terms judged by an SMT solver: what is proved, what is refuted, and what is no term."""

from __future__ import annotations

import importlib.util
import pickle

import pytest

import verifiers
from verifiers import InvalidArgumentError, MissingDependencyError, Outcome, Problem, UnreadableReferenceError
from verifiers.proofs import SmtGoal, SmtVerifier
from verifiers.proofs.smt.terms import MAX_DEPTH, MAX_LENGTH, OPERATORS, TermError, read_term

needs_z3 = pytest.mark.skipif(importlib.util.find_spec("z3") is None, reason="z3-solver is not installed")

MAXIMUM = SmtGoal(
    "(f ((x Int) (y Int)) Int)",
    "(and (>= (f a b) a) (>= (f a b) b) (or (= (f a b) a) (= (f a b) b)))",
    "(declare-const a Int) (declare-const b Int)",
)
WITNESS = SmtGoal("(n () Int)", "(and (> n 10) (= (mod n 7) 3))")
EQUIVALENT = SmtGoal(
    "(f ((x (_ BitVec 8))) (_ BitVec 8))",
    "(= (f a) (bvmul a #x02))",
    "(declare-const a (_ BitVec 8))",
    operators=("bvadd", "bvshl"),
)
# x := 0, y := 10; while x < y: x := x + 1. Wanted: x = y at the end.
INVARIANT = {
    "function": "(inv ((x Int) (y Int)) Bool)",
    "goal": "(and (inv 0 10) (=> (and (inv x y) (< x y)) (inv (+ x 1) y)) (=> (and (inv x y) (not (< x y))) (= x y)))",
    "declarations": "(declare-const x Int)\n(declare-const y Int) ; the state",
}


@pytest.fixture(scope="module")
def smt():
    return SmtVerifier()


def judged(verifier, completion, goal):
    return verifier(completion, Problem("p", "", goal))


@needs_z3
@pytest.mark.parametrize(
    ("term", "goal"),
    [
        ("(ite (>= x y) x y)", MAXIMUM),
        ("I compare them.\n```smt2\n(ite (> x y) x  ; the larger\n y)\n```", MAXIMUM),
        ("17", WITNESS),
        ("(bvshl x #x01)", EQUIVALENT),
        ("(<= x y)", INVARIANT),
    ],
)
def test_a_term_that_satisfies_the_goal_is_correct(smt, term, goal):
    assert judged(smt, term, goal).outcome is Outcome.CORRECT


@needs_z3
@pytest.mark.parametrize(
    ("term", "goal", "detail"),
    [
        ("(ite (>= x y) y x)", MAXIMUM, "counterexample"),
        ("16", WITNESS, "counterexample"),
        ("true", INVARIANT, "counterexample"),
        ("false", INVARIANT, "counterexample"),
        ("(div 24 0)", WITNESS, "counterexample"),
        ("true", WITNESS, "sort mismatch"),
        ("(ite x y x)", MAXIMUM, "Sort mismatch"),
        ("(ite (>= a b) a b)", MAXIMUM, "'a' is neither a number"),
        ("(f x y)", MAXIMUM, "'f' is not an operator"),
        ("(bvmul x #x02)", EQUIVALENT, "'bvmul' is not an operator"),
        ("x) (assert false", MAXIMUM, "closed that was not opened"),
        ("x) (assert false) (define-fun g () Int (+ 1 1)", MAXIMUM, "closed that was not opened"),
        ("(assert false)", MAXIMUM, "'assert' is not an operator"),
        ("x y", MAXIMUM, "expected one term, got 2"),
        ("(exists ((z Int)) (> z x))", INVARIANT, "'exists' is not an operator"),
        ("(! x :named y)", MAXIMUM, "'!' is not an operator"),
        ("((as const Int) 1)", MAXIMUM, "expected the name of an operator"),
        ("(- 5", WITNESS, "not closed"),
        ("|17|", WITNESS, "unexpected text"),
        ("(+ 1 -1)", WITNESS, "'-1' is neither"),
        ("()", WITNESS, "expected an operator"),
        ("9" * 500, WITNESS, "neither a number"),
    ],
)
def test_what_is_wrong_with_a_term_is_said(smt, term, goal, detail):
    verdict = judged(smt, f"<answer>{term}</answer>", goal)
    assert verdict.outcome is Outcome.INCORRECT
    assert detail in str(dict(verdict.detail))


@needs_z3
@pytest.mark.parametrize("completion", ["", "\n ", "<answer></answer>", "```smt2\n```", "<think>17"])
def test_without_a_term_there_is_no_answer(smt, completion):
    assert judged(smt, completion, WITNESS).outcome is Outcome.NO_ANSWER


@needs_z3
def test_what_the_solver_does_not_decide_in_time_is_a_timeout(smt):
    prime = SmtGoal(
        "(n () (_ BitVec 128))",
        "(=> (and (bvugt a one) (bvugt b one) (bvult a limit) (bvult b limit)) (distinct (bvmul a b) n))",
        "(declare-const a (_ BitVec 128)) (declare-const b (_ BitVec 128))"
        f"(define-const one (_ BitVec 128) #x{1:032x}) (define-const limit (_ BitVec 128) #x{1 << 64:032x})",
    )
    verifier = SmtVerifier(timeout_s=0.5)
    of_two_large_primes = f"#x{9223372036854775783 * 18446744073709551557:032x}"
    assert judged(verifier, of_two_large_primes, prime).outcome is Outcome.TIMEOUT
    assert judged(verifier, "17", WITNESS).outcome is Outcome.CORRECT  # in a new process


@needs_z3
def test_a_goal_that_the_solver_refuses_is_the_references_fault(smt):
    with pytest.raises(UnreadableReferenceError, match=r"Z3 can't read the goal of problem 'p': .*unknown constant"):
        judged(smt, "17", SmtGoal("(n () Int)", "(> n missing)"))
    with pytest.raises(UnreadableReferenceError, match=r"must be a SmtGoal.*function, goal, declarations, operators"):
        judged(smt, "17", {"function": "(n () Int)", "formula": "(> n 1)"})


@needs_z3
def test_a_batch_and_a_copy_give_the_same_verdicts(smt):
    completions = ["17", "16", "", "(assert"]
    problems = [Problem(str(row), "", WITNESS) for row in range(4)]
    singles = [smt(*pair) for pair in zip(completions, problems, strict=True)]
    assert verifiers.verify_batch(smt, completions, problems) == singles
    assert pickle.loads(pickle.dumps(smt))("17", problems[0]) == singles[0]


def test_limits_on_size_and_depth():
    deep = "(- " * MAX_DEPTH + "x" + ")" * MAX_DEPTH
    assert read_term(deep, ["x"], OPERATORS) == deep
    with pytest.raises(TermError, match="nested deeper"):
        read_term(f"(- {deep})", ["x"], OPERATORS)
    with pytest.raises(TermError, match="longer than"):
        read_term("(+ " + "x " * MAX_LENGTH + ")", ["x"], OPERATORS)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"function": "f", "goal": "f"}, "function must be a name, its parameters and a sort"),
        ({"function": "(f ((x Int) (x Int)) Int)", "goal": "(f 1 2)"}, "function must be a name"),
        ({"function": "(n () Int)", "goal": "(> 1 0)"}, "must be one formula that mentions 'n'"),
        ({"function": "(n () Int)", "goal": "(> n 0"}, "not closed"),
        ({"function": "(n () Int)", "goal": "(> n 0)", "declarations": "(assert false)"}, "assumptions belong in the"),
        ({"function": "(n () Int)", "goal": "(> n 0)", "operators": "+"}, "operators must be a tuple of texts"),
    ],
)
def test_a_goal_is_checked(fields, message):
    with pytest.raises(InvalidArgumentError, match=message):
        SmtGoal(**fields)


def test_without_the_solver_the_error_names_the_package(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"rlvr-envs\[smt\]"):
        verifiers.make("smt")
