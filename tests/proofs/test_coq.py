"""Coq as a verifier: what proves a statement, what does not, and what a hostile submission may try."""

from __future__ import annotations

import os
import shutil

import pytest

import verifiers
from tests.proofs.coq_cheats import CHEATS, ENDLESS, GREEDY
from verifiers import InvalidArgumentError, MissingDependencyError, Outcome, Problem, UnknownNameError
from verifiers.proofs import CoqGoal, CoqVerifier
from verifiers.proofs.coq.assumptions import CLOSED, objection

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed (Debian: apt install coq)")
CLASSIC = "Coq.Logic.Classical_Prop.classic"
PRIMITIVE = "Coq.Numbers.Cyclic.Int63.PrimInt63"
TREE = CoqGoal(
    "forall t, mirror (mirror t) = t.",
    "Inductive tree := leaf | node (l r : tree).\n"
    "Fixpoint mirror t := match t with leaf => leaf | node l r => node (mirror r) (mirror l) end.",
)
TREE_PROOF = "Theorem solution : forall t, mirror (mirror t) = t.\nProof. induction t; simpl; congruence. Qed."
EXCLUDED_MIDDLE = "Require Import Classical. Theorem solution : forall P, P \\/ ~ P. Proof. intro; apply classic. Qed."


@pytest.fixture(scope="module")
def coq():
    verifier = CoqVerifier(timeout_s=60)
    yield verifier
    verifier.close()


def judged(verifier, source, goal):
    return verifier(source, Problem("p", "", goal))


@needs_coq
def test_a_proof_about_definitions_of_the_goal_is_accepted(coq):
    verdict = judged(coq, f"By induction.\n```coq\n{TREE_PROOF}\n```\nDone.", TREE)
    assert verdict.outcome is Outcome.CORRECT
    assert verdict.answer == TREE_PROOF
    own = f"{TREE.definitions}\n{TREE_PROOF}"  # an inductive type of the submission is not that of the goal
    assert judged(coq, own, TREE).outcome is Outcome.INCORRECT
    assert verdict.detail["isolation"] in ("namespaces+landlock+seccomp", "landlock+seccomp", "namespaces+seccomp")


@needs_coq
def test_an_axiom_of_the_library_counts_only_where_the_goal_names_it(coq):
    statement = "forall P : Prop, P \\/ ~ P"
    refused = judged(coq, EXCLUDED_MIDDLE, statement)
    assert (refused.outcome, refused.detail["step"]) == (Outcome.INCORRECT, "assumptions")
    assert "classic" in str(refused.detail["error"])
    assert judged(coq, EXCLUDED_MIDDLE, {"statement": statement, "axioms": [CLASSIC]}).outcome is Outcome.CORRECT


@needs_coq
def test_a_goal_that_coq_refuses_is_the_references_fault(coq):
    refused = "(?s)the statement of problem 'p': File \"./Spec.v\", line 2.*nonsense"
    with pytest.raises(verifiers.UnreadableReferenceError, match=refused):
        judged(coq, "Definition solution := I.", "nonsense = 1")
    with pytest.raises(verifiers.UnreadableReferenceError, match=r"must be a CoqGoal.*statement"):
        judged(coq, "Definition solution := I.", {"theorem": "True"})


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("name", CHEATS)
def test_no_cheat_is_a_proof_of_false(coq, name):
    verdict = judged(coq, CHEATS[name], "False")
    assert verdict.outcome is Outcome.INCORRECT, verdict


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("option", ["Silent", "Printing Depth 0", "Printing Width 1", "Printing All", "Program Mode"])
def test_a_forged_message_hides_no_axiom_of_the_library(coq, option):
    forged = (
        'Notation solution := (ltac:(idtac "Closed under the global context"; exact Coq.Logic.Classical_Prop.classic)).'
    )
    source = f"Require Import Classical. Global Set {option}.\n{forged}"
    verdict = judged(coq, source, "forall P : Prop, P \\/ ~ P")
    assert (verdict.outcome, verdict.detail["step"]) == (Outcome.INCORRECT, "assumptions")


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "goal"),
    [
        ("Require Import ZArith Lia. Open Scope Z_scope. Lemma solution : forall x, x * x >= 0. Proof. nia. Qed.",
         CoqGoal("(forall x, x * x >= 0)%Z", "Require Export ZArith.")),
        ("Lemma helper n : n + 0 = n. Proof. induction n; simpl; congruence. Qed.\n"
         "Definition solution := helper.", "forall n, n + 0 = n"),
        ("Goal True. idtac \"Closed under the global context\". exact I. Qed. Definition solution := I.", "True"),
        ("Notation solution := (ltac:(exact I)).", "True"),
        ("Theorem solution : 10 * 10 = 100. Proof. native_compute. reflexivity. Qed.", "10 * 10 = 100"),
        ("Require Import ssreflect. Lemma solution : forall a : Prop, a -> a. Proof. by move=> a x. Qed.",
         "forall a : Prop, a -> a"),
        ("Require Import Ltac2.Ltac2. Theorem solution : True. Proof. exact I. Qed.", "True"),
        ("Require Import Program. Program Definition solution : {n : nat | n = 3} := 3.", "{n : nat | n = 3}"),
        ("Require Import Uint63. Lemma solution : (1 + 1 = 2)%uint63. Proof. reflexivity. Qed.",
         CoqGoal("(1 + 1 = 2)%uint63", "Require Export Uint63.", (f"{PRIMITIVE}.int", f"{PRIMITIVE}.add"))),
    ],
)  # fmt: skip
def test_right_proofs_of_many_kinds(coq, source, goal):
    assert judged(coq, source, goal).outcome is Outcome.CORRECT


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("source", [*ENDLESS.values(), *GREEDY.values()], ids=[*ENDLESS, *GREEDY])
def test_limits_hold(source):
    small = CoqVerifier(timeout_s=4, memory_mib=1024, output_mib=2)
    assert judged(small, source, "1 = 2").outcome in (Outcome.TIMEOUT, Outcome.INCORRECT)


@needs_coq
@pytest.mark.long
def test_time_that_runs_out_is_a_timeout():
    source = "Fixpoint f n := match n with 0 => 0 | S n => f n + f n end. Lemma solution : f 100 = 0. Proof. reflexivity. Qed."
    verdict = judged(CoqVerifier(timeout_s=2), source, "1 = 2")
    assert (verdict.outcome, verdict.detail["step"]) == (Outcome.TIMEOUT, "submission")


@needs_coq
@pytest.mark.long
def test_axioms_of_definitions_are_named_like_any_other(coq):
    goal = {"statement": "1 = 2", "definitions": "Axiom premise : 1 = 2."}
    source = "Definition solution := premise."
    assert judged(coq, source, goal).outcome is Outcome.INCORRECT
    assert judged(coq, source, {**goal, "axioms": ["Definitions.premise"]}).outcome is Outcome.CORRECT
    shadowed = "Axiom premise : 1 = 2. Definition solution := premise."
    assert judged(coq, shadowed, {**goal, "axioms": ["Definitions.premise"]}).outcome is Outcome.INCORRECT


@needs_coq
@pytest.mark.long
def test_an_unreadable_goal_spoils_no_other_row_of_a_batch(coq):
    problems = [Problem("a", "", "nonsense"), Problem("b", "", "True")]
    outcomes = [verdict.outcome for verdict in coq.verify_batch(["Definition solution := I."] * 2, problems)]
    assert outcomes == [Outcome.VERIFIER_ERROR, Outcome.CORRECT]


@needs_coq
@pytest.mark.parametrize("completion", ["", " \n", "```coq\n\n```", "<think>Theorem solution"])
def test_without_a_source_there_is_no_answer(coq, completion):
    assert judged(coq, completion, "True").outcome is Outcome.NO_ANSWER


@needs_coq
def test_a_verifier_that_is_closed_leaves_no_process_and_can_be_used_again():
    verifier = CoqVerifier(workers=1)
    for _ in range(2):
        assert judged(verifier, "Definition solution := I.", "True").outcome is Outcome.CORRECT
        servers = verifier._toolchain.runner._pool.idle_pids()
        assert servers
        verifier.close()
        assert not any(os.path.exists(f"/proc/{pid}") for pid in servers)


def test_where_coq_is_missing_the_error_names_the_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="apt-get install coq"):
        verifiers.make("coq")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"statement": " "}, "statement must not be empty"),
        ({"statement": 3}, "statement must be text, got 3"),
        ({"statement": "True", "axioms": "x"}, "axioms must be a tuple of texts, got 'x'"),
    ],
)
def test_a_goal_is_checked(fields, message):
    with pytest.raises(InvalidArgumentError, match=message):
        CoqGoal(**fields)
    with pytest.raises(UnknownNameError, match=r"isolation 'available'.*auto"):
        CoqVerifier(isolation="available")


REPORT = """
CONTEXT SUMMARY
===============

* Theory: Set is predicative
  
* Axioms: {axioms}
  
* Constants/Inductives relying on type-in-type: {type_in_type}
  
* Constants/Inductives relying on unsafe (co)fixpoints: {fixpoints}
  
* Inductives whose positivity is assumed: {positivity}
  
"""
CLEAN = {"axioms": "<none>", "type_in_type": "<none>", "fixpoints": "<none>", "positivity": "<none>"}
LIBRARY = f"\n    {CLASSIC}\n    Coq.Other.classic"
OWN = {"Submission", "Definitions", "Spec_1", "Check_1"}


def assumptions(printed=CLOSED, allowed=(), **sections):
    return objection(printed, REPORT.format(**{**CLEAN, **sections}), OWN, allowed)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({}, None),
        ({"axioms": LIBRARY}, None),
        ({"axioms": "\n    Submission.x"}, "the axiom Submission.x"),
        ({"axioms": "\n    Check_1.x"}, "the axiom Check_1.x"),
        ({"axioms": "\n    <>.x"}, "the axiom <>.x"),
        ({"axioms": "\n    Submission.x", "allowed": ["Coq.x"]}, "the axiom Submission.x"),
        ({"axioms": "\n    Definitions.x", "allowed": ["Definitions.x"]}, None),
        ({"type_in_type": "\n    Submission.T"}, "relying on type-in-type: Submission.T"),
        ({"fixpoints": "\n    Submission.f"}, "unsafe"),
        ({"positivity": "\n    Submission.I"}, "positivity is assumed: Submission.I"),
        ({"printed": ""}, "can't be read"),
        ({"printed": CLOSED + CLOSED}, "rests on Closed"),
        ({"printed": "x\n" + CLOSED}, "rests on x"),
        ({"printed": "Axioms:\nf is assumed to be guarded.\n"}, "rests on f"),
        ({"printed": "Axioms:\nclassic : P\n", "axioms": f"\n    {CLASSIC}"}, "rests on classic"),
        ({"printed": "Axioms:\nclassic\n  : P\n", "axioms": f"\n    {CLASSIC}", "allowed": [CLASSIC]}, None),
        ({"printed": "Axioms:\nclassic : P\n", "axioms": LIBRARY, "allowed": [CLASSIC]}, "rests on classic"),
        ({"printed": "Axioms:\nclassic : P\n", "allowed": [CLASSIC]}, "rests on classic"),
        ({"printed": "Axioms:\nc : P\nf is assumed to be guarded.\n", "axioms": "\n    Coq.c", "allowed": ["Coq.c"]},
         "rests on f is"),
        ({"printed": "Axioms:\nc : P\nTheory:\nType hierarchy is collapsed\n", "axioms": "\n    Coq.c", "allowed": ["Coq.c"]},
         "rests on Theory"),
    ],
)  # fmt: skip
def test_each_report_can_refuse(case, message):
    problem = assumptions(**case)
    assert (problem is None) if message is None else (problem is not None and message in problem)


@pytest.mark.parametrize(
    "report", ["", "* Axioms: <none>\n", REPORT.format(**CLEAN).replace("predicative", "impredicative")]
)
def test_a_report_that_cannot_be_read_is_no_acceptance(report):
    assert "can't be read" in str(objection(CLOSED, report, OWN, ()))
