"""`LeanVerifier`: Lean 4, on a Kimina Lean Server, decides whether a completion proves a theorem."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

from verifiers._settings import checked
from verifiers.bounds import Address, Count, Seconds
from verifiers.completion.blocks import block_or_text
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.words import THOUGHTS
from verifiers.errors import UnreadableReferenceError
from verifiers.functions import verify_in_threads
from verifiers.http import ServerError
from verifiers.proofs.lean.goal import LeanGoal, ProofError
from verifiers.proofs.lean.server import LeanAnswer, LeanServer
from verifiers.proofs.references import goal_of
from verifiers.redaction import redacted, secret
from verifiers.types import Outcome, Problem, Verdict

_LANGUAGES = ("lean", "lean4")
_SHOWN = 1000


class LeanVerifier:
    """Judges proofs: a completion is correct if Lean accepts its proof of the theorem as the problem states it.

    Only a proof (a term or tactics) is taken from a completion's last code block, which may repeat the theorem; the
    completion's own helper lemmas, notations and options are not used. The server is asked twice. First, Lean's parser decides
    whether the proof is one term; this question contains the proof as a string, so that no part of the proof runs. Then Lean
    checks the theorem with the proof, and `#print axioms` lists its axioms. The proof is accepted if there is no error, no
    `sorry`, and no axiom except the goal's, by default the three of ordinary mathematics.

    A proof may not contain `set_option`, nor the forms of terms and tactics that run their own code during the check. The
    values of named arguments must be names, literals, or `{field := value}` of these, since tactics evaluate some of them.
    `docs/proofs.md` says what this protects against, and what would need an independent checker of Lean's proofs.

    `Problem.reference` is a `LeanGoal`, a mapping of its fields, or a formal statement. If the proof was not accepted, the
    verdict's `detail` holds an `error`. If the server does not answer or can't run Lean, the verdict is a `VERIFIER_ERROR`.

    Args:
        url: Address of the server, such as `http://localhost:8000`.
        api_key: The server's key, if it requires one; `env:NAME` reads it from that environment variable.
        timeout_s: Seconds that Lean may take for one file, rounded up; exceeding them is `TIMEOUT`.
        concurrency: Maximum number of proofs of a batch that are checked at once.
        thoughts: Names of the tags that enclose thoughts, which are cut off; a sequence, or text with commas between the names.

    Raises:
        InvalidArgumentError: If an argument is out of range.
    """

    @checked
    def __init__(
        self,
        url: Address,
        *,
        api_key: str | None = None,
        timeout_s: Seconds = 60.0,
        concurrency: Count = 8,
        thoughts: str | Sequence[str] = THOUGHTS,
    ) -> None:
        self._thoughts = thought_names(thoughts)
        self._url = url
        self._concurrency = concurrency
        self._server = LeanServer(url, None if api_key is None else secret(api_key), timeout_s)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            UnreadableReferenceError: If the reference is not a goal, or Lean does not accept the statement.
        """
        goal = goal_of(LeanGoal, problem)
        source = block_or_text(cut(completion, thoughts=self._thoughts).text, _LANGUAGES)
        if source is None:
            return Verdict.of(Outcome.NO_ANSWER)
        try:
            proof = goal.proof_in(source)
        except ProofError as error:
            return Verdict.of(Outcome.INCORRECT, source, detail={"error": str(error)})
        started = time.monotonic()
        try:
            outcome, reason = self._judge(goal, proof, problem.id)
        except ServerError as error:
            outcome, reason = Outcome.VERIFIER_ERROR, str(error)
        detail = {"error": reason[:_SHOWN]} if reason else {}
        return Verdict.of(outcome, source, detail=detail, cost={"seconds": time.monotonic() - started})

    def _judge(self, goal: LeanGoal, proof: str, problem: str) -> tuple[Outcome, str]:
        """The outcome; also the reason, unless the outcome is `CORRECT`."""
        nonce = f"proof_{secrets.token_hex(8)}"
        parsed = self._server.check(goal.parsing_source(proof, nonce))
        refusals = [error for error in parsed.errors if error.startswith(f"{nonce} ")]
        if refusals:
            return Outcome.INCORRECT, f"the proof is not a term: {refusals[0].removeprefix(f'{nonce} ')}"
        if parsed.errors:
            raise UnreadableReferenceError(
                f"Lean does not accept the statement of problem {problem!r}: {parsed.errors[0]}"
            )
        if parsed.timed_out or [info.strip() for info in parsed.infos].count(f"{nonce} term") != 1:
            return Outcome.VERIFIER_ERROR, "Lean did not say whether the proof is a term"
        checked = self._server.check(goal.checking_source(proof, nonce))
        outcome, reason = _outcome(checked, checked.axioms_of(nonce), goal)
        return outcome, reason.replace(nonce, goal.name)

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i, several completions at once.

        Raises:
            InvalidArgumentError: If the numbers of completions and problems differ.
        """
        return verify_in_threads(self, completions, problems, self._concurrency)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({redacted(self._url)!r})"


def _outcome(checked: LeanAnswer, said: list[frozenset[str]], goal: LeanGoal) -> tuple[Outcome, str]:
    if checked.timed_out:
        return Outcome.TIMEOUT, "Lean ran past its time"
    if checked.errors:
        return Outcome.INCORRECT, checked.errors[0]
    if checked.uses_sorry:
        return Outcome.INCORRECT, "the proof uses sorry"
    if not said:
        return Outcome.VERIFIER_ERROR, "Lean did not say on which axioms the theorem rests"
    foreign = sorted(frozenset().union(*said) - {*goal.axioms})
    return (Outcome.INCORRECT, f"the proof rests on {', '.join(foreign)}") if foreign else (Outcome.CORRECT, "")
