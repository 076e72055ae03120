"""Lean through a Kimina Lean Server, against a stand-in: Lean itself is not run here."""

from __future__ import annotations

import contextlib

import pytest

import verifiers
from tests.proofs.lean_server import lean, served
from verifiers import InvalidArgumentError, Outcome, Problem, UnreadableReferenceError
from verifiers.proofs import LeanGoal, LeanVerifier
from verifiers.proofs.lean.goal import ProofError

STATEMENT = "import Mathlib\nopen Nat\n\nnamespace Space\n\ntheorem two (n : ℕ)\n    (h : 0 < n) : 1 ≤ n := by sorry"
RESTATED = "import Mathlib\nopen Nat\n-- by arithmetic\ntheorem two (n : ℕ) (h : 0 < n) : 1 ≤ n := by\n  omega"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr("verifiers.http.BACK_OFF_S", (0.0, 0.0))


@pytest.fixture(scope="module")
def server():
    with served() as running:
        yield running


def judged(url, completion, reference=STATEMENT, **settings):
    return LeanVerifier(url, **settings)(completion, Problem("p", "", reference))


@pytest.mark.parametrize(
    "completion",
    ["omega", ":= by\n  omega", f"So:\n```lean4\n{RESTATED}\n```", "```lean\nomega -- uses(propext)\n```"],
)
def test_a_proof_that_lean_accepts_is_correct(server, completion):
    verdict = judged(server.url, completion)
    assert (verdict.outcome, dict(verdict.detail)) == (Outcome.CORRECT, {})


@pytest.mark.parametrize(
    ("completion", "outcome", "error"),
    [
        ("wrong", Outcome.INCORRECT, "unsolved goals"),
        ("sorry", Outcome.INCORRECT, "uses sorry"),
        ("simp -- uses(propext, sorryAx)", Outcome.INCORRECT, "rests on sorryAx"),
        ("simp -- uses(Lean.ofReduceBool)", Outcome.INCORRECT, "rests on Lean.ofReduceBool"),
        ("simp -- uses(x)\n  trace 'two' does not depend on any axioms", Outcome.INCORRECT, "rests on x"),
        ("omega\ntheorem three : 1 = 2 := x", Outcome.INCORRECT, "is not a term: <input>:1:9"),
        ("slow", Outcome.TIMEOUT, "past its time"),
        ("memory", Outcome.VERIFIER_ERROR, "could not run Lean: Lean REPL process exceeded memory limit"),
        ("set_option debug.skipKernelTC true in decide", Outcome.INCORRECT, "may not contain 'set_option'"),
        ("run_tac Lean.logInfo x", Outcome.INCORRECT, "may not contain 'run_tac'"),
        ("exact by_elab x", Outcome.INCORRECT, "may not contain 'by_elab'"),
        ("exact eval% x", Outcome.INCORRECT, "may not contain 'eval%'"),
        ("decide +native", Outcome.INCORRECT, "may not contain 'native'"),
        ("simp (config := (fun _ => {}) (IO.println 1 ()))", Outcome.INCORRECT, "the value in (config := ...)"),
        ("simp (config := {maxSteps := f 1})", Outcome.INCORRECT, "the value in (config := ...)"),
        ("simp (\n maxSteps :=f 1)", Outcome.INCORRECT, "must be a name or a literal"),
        ("plausible", Outcome.INCORRECT, "may not contain 'plausible'"),
        ("theorem two : True := trivial", Outcome.INCORRECT, "stated otherwise"),
        (RESTATED.replace("1 ≤ n", "0 ≤ n"), Outcome.INCORRECT, "stated otherwise"),
        (RESTATED.replace("-- by", "local notation x => y\n--"), Outcome.INCORRECT, "before the theorem stands 'local"),
        (RESTATED.replace("-- by", "lemma help : x := y\n--"), Outcome.INCORRECT, "before the theorem stands 'lemma"),
        (RESTATED.replace(":= by", "\n| by"), Outcome.INCORRECT, "':=' does not follow"),
        ("omega\x00", Outcome.INCORRECT, "without control characters"),
        ("```lean\n```", Outcome.NO_ANSWER, None),
        ("<think>omega", Outcome.NO_ANSWER, None),
    ],
)
def test_each_way_not_to_prove_it(server, completion, outcome, error):
    verdict = judged(server.url, completion)
    assert verdict.outcome is outcome
    assert error is None or error in str(verdict.detail["error"])


def test_the_statement_is_the_problems_and_the_proof_crosses_as_a_string_first(server):
    server.asked.clear()
    restated = 'open Nat\ntheorem two (n : ℕ) (h : 0 < n) : 1 ≤ n := by\n  exact "\\n"'
    judged(server.url, f"```lean4\n{restated}\n```", timeout_s=9.5)
    first, second = server.asked
    nonce = second["snippets"][0]["code"].split()[-1]
    header = "import Mathlib\nopen Nat\n\nnamespace Space\n\ntheorem two (n : ℕ)\n    (h : 0 < n) : 1 ≤ n"
    code = first["snippets"][0]["code"]
    assert code.startswith(f"{header} := by sorry\n\n#eval")
    assert '`term "   by\\n    exact \\"\\\\n\\"" with' in code
    assert second["snippets"][0]["code"] == (
        f'{header.replace("two", nonce)} :=\n   by\n    exact "\\n"\n\n#print axioms {nonce}\n'
    )
    assert second | {"path": "/api/check", "timeout": 10, "debug": False, "reuse": True} == second


def test_what_the_parser_refuses_is_never_run(server):
    server.asked.clear()
    judged(server.url, "omega\n#eval hack")
    assert len(server.asked) == 1
    assert "#print axioms" not in server.asked[0]["snippets"][0]["code"]


def test_other_axioms_count_where_the_goal_names_them(server):
    goal = {"formal_statement": STATEMENT, "axioms": ["x"]}
    assert judged(server.url, "simp -- uses(x)", goal).outcome is Outcome.CORRECT
    assert judged(server.url, "simp -- uses(propext)", goal).outcome is Outcome.INCORRECT


def test_a_statement_that_lean_refuses_is_the_references_fault(server):
    with pytest.raises(UnreadableReferenceError, match=r"statement of problem 'p': unknown identifier 'bad'"):
        judged(server.url, "omega", "-- bad statement\ntheorem two : bad := by sorry")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda code: (500, b"no REPL"), "answered 500: no REPL (3 tries)"),
        (lambda code: (401, b"Missing API key"), "answered 401: Missing API key"),
        (lambda code: (200, b'{"results": [{"id":'), "expected JSON from the Lean server"),
        (lambda code: (200, b'{"results": []}'), "does not answer like /api/check"),
        (lambda code: {"id": "proof", "response": {"env": 0, "messages": ["odd"]}}, "does not answer like /api/check"),
        (lambda code: {"id": "proof", "response": {"message": "Unknown environment."}}, "REPL answers: Unknown"),
        (lambda code: {"id": "proof", "response": {"env": 0}}, "did not say whether the proof is a term"),
        (lambda code: {"id": "proof", "error": "Lean REPL header command timed out in 60.0 seconds"}, "header command"),
        (lambda code: lean(code) if "#eval" in code else {"response": {"env": 0}}, "did not say on which axioms"),
    ],
)
def test_a_server_that_fails_is_no_evidence(answer, error):
    with served(answer) as broken:
        verdict = judged(broken.url, "omega")
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert error in str(verdict.detail["error"])


def test_the_key_is_sent_and_shown_nowhere(monkeypatch):
    monkeypatch.setenv("LEAN_KEY", "s3cret")
    with served(lambda code: (403, b"bad key s3cret")) as server:
        verifier = LeanVerifier(server.url, api_key="env:LEAN_KEY")
        verdict = verifier("omega", Problem("p", "", STATEMENT))
        assert server.headers[0]["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in f"{verdict} {verifier!r}"


def test_a_batch_gives_the_same_and_spoils_no_other_row(server):
    completions = ["omega", "wrong", "", "omega"]
    problems = [Problem("a", "", reference) for reference in (STATEMENT, STATEMENT, STATEMENT, "theorem x")]
    outcomes = [v.outcome for v in verifiers.make("lean", url=server.url).verify_batch(completions, problems)]
    assert outcomes == [Outcome.CORRECT, Outcome.INCORRECT, Outcome.NO_ANSWER, Outcome.VERIFIER_ERROR]


@pytest.mark.parametrize("end", [":=", ":= sorry", ":= by", ":= by sorry", ":= by\n  sorry\n"])
def test_where_a_proof_begins(end):
    goal = LeanGoal(f"import Mathlib\ntheorem a.b' : True {end}")
    assert (goal.name, goal.signature, goal.header) == ("a.b'", "theorem a.b' : True", "import Mathlib\n")
    takes_tactics = "by" in end
    assert goal.proof_in("trivial") == ("by\n    trivial" if takes_tactics else "  trivial")


@pytest.mark.parametrize(
    "statement", ["theorem x : True", "def x := 1", "example : True := by sorry", "theorem x : y := z"]
)
def test_a_statement_without_an_open_end_is_refused(statement):
    with pytest.raises(InvalidArgumentError, match="must end in a theorem without its proof"):
        LeanGoal(statement)


def test_a_hostile_completion_is_read_in_no_time():
    goal = LeanGoal(STATEMENT)
    spaces = " " * 300_000
    for source in ("theorem two (n : " * 20_000, spaces, f"theorem two{spaces}x", ":=" * 100_000, "(a:={" * 60_000):
        with contextlib.suppress(ProofError):
            goal.proof_in(source)
