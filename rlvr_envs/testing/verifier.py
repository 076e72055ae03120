"""`check_verifier` checks by trial that a verifier judges as required."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import verifiers
from rlvr_envs.testing.expectation import expect
from verifiers import BatchVerifier, Outcome, Problem, Verdict, Verifier

_HOSTILE = (
    "",
    " \n",
    "\x00\x1b[2J\ufffd\u202e",
    "[" * 2000,
    "\\boxed{" * 200,
    "```python\n" * 200,
    "9" * 20_000,
    "{'answer': [1, {",
    "²½٣ⅷ𝟜",
)
"""Completions without an answer, as untrained or over-trained policies write them."""
_THREADS = 4


def check_verifier(
    spec: str | type | Callable[..., object],
    problem: Problem,
    *,
    correct: str,
    incorrect: str | Sequence[str] = (),
    **arguments: object,
) -> None:
    """Check a verifier on a problem.

    The verifier must score the right completion above the wrong completions: alone, in batches, from several threads, and
    whatever it has judged before. The verifier must judge any text without an error, and must not change the problem.

    Args:
        spec: As for `verifiers.make`: a name, a class, a factory or a verifier.
        problem: A problem.
        correct: A completion that answers the problem correctly.
        incorrect: Completions with wrong answers.
        **arguments: As for `verifiers.make`.

    Raises:
        InvalidArgumentError: If a check fails; the message states the expected and the actual result and the usual cause.
        VerifierContractError: If the spec is not a verifier, or the verifier returns anything but a verdict, a bool or a finite
            number.
    """
    checker = _VerifierChecker(verifiers.make(spec, **arguments), problem)
    wrong = [incorrect] if isinstance(incorrect, str) else list(incorrect)
    checker.outcomes(correct, wrong)
    checker.any_text()
    texts = [correct, *wrong, *_HOSTILE]
    checker.repeats(texts)
    checker.batches(texts)
    checker.threads(texts)
    checker.problem_unchanged()


class _VerifierChecker:
    def __init__(self, verifier: Verifier, problem: Problem) -> None:
        self.verifier = verifier
        self.problem = problem
        self.before = repr(problem)

    def _judged(self, completion: str) -> Verdict:
        (verdict,) = verifiers.verify_batch(self.verifier, [completion], [self.problem])
        return verdict

    def _expect(self, holds: bool, expected: str, came: object, hint: str) -> None:
        expect(holds, f"the verifier {self.verifier!r}", expected, came, hint)

    def outcomes(self, correct: str, wrong: Sequence[str]) -> None:
        """Check that the right completion is correct, and scores more than the wrong completions."""
        right = self._judged(correct)
        self._expect(
            right.outcome in (Outcome.CORRECT, Outcome.SCORED),
            f"correct, or a score, for {correct!r} with the reference {self.problem.reference!r}",
            _said(right),
            "An answer may be written in more than one way; what can't be judged raises",
        )
        for completion in wrong:
            verdict = self._judged(completion)
            self._expect(
                verdict.outcome is not Outcome.CORRECT and verdict.score < right.score,
                f"less than {right.score:g} for the wrong {completion!r}",
                _said(verdict),
                "A policy learns any wrong answer that is rewarded",
            )

    def any_text(self) -> None:
        """Check that no text causes an error, and that no text without an answer is correct."""
        for text in _HOSTILE:
            verdict = self._judged(text)
            self._expect(
                verdict.outcome is not Outcome.VERIFIER_ERROR,
                f"a verdict on {_short(text)}",
                _said(verdict),
                "A completion may be any text: one that can't be read has no answer. An exception means that nothing was "
                "learned from it, and a policy could write such text to avoid a low score",
            )
            self._expect(
                verdict.outcome is not Outcome.CORRECT,
                f"anything but correct for {_short(text)}",
                _said(verdict),
                "It answers nothing",
            )

    def repeats(self, texts: Sequence[str]) -> None:
        """Check that a second verdict equals the first, even after other verdicts."""
        first = {text: self._judged(text) for text in texts}
        for text in reversed(texts):
            self._same(
                first[text], self._judged(text), text, "the second time", "Keep no state, and seed what is random"
            )

    def batches(self, texts: Sequence[str]) -> None:
        """Check that verdicts do not depend on the batch."""
        if not isinstance(self.verifier, BatchVerifier):
            return
        for batch in (texts, texts[::-1]):
            verdicts = verifiers.verify_batch(self.verifier, batch, [self.problem] * len(batch))
            for text, verdict in zip(batch, verdicts, strict=True):
                hint = (
                    "verify_batch returns verdicts in the order of the completions, and each depends on its own alone"
                )
                self._same(self._judged(text), verdict, text, f"in a batch of {len(batch)}", hint)

    def threads(self, texts: Sequence[str]) -> None:
        """Check the verdicts of several threads at once, as in deferred verification."""
        alone = [self._judged(text) for text in texts]
        with ThreadPoolExecutor(_THREADS) as pool:
            together = list(pool.map(self._judged, list(texts) * _THREADS))
        for number, verdict in enumerate(together):
            index = number % len(texts)
            hint = "Share nothing between calls that they change, or hold a lock"
            self._same(alone[index], verdict, texts[index], f"in {_THREADS} threads at once", hint)

    def problem_unchanged(self) -> None:
        """Check that the problem is unchanged."""
        hint = "Other completions are judged against the same problem: copy what is changed"
        self._expect(repr(self.problem) == self.before, f"an unchanged {self.before}", repr(self.problem), hint)

    def _same(self, one: Verdict, other: Verdict, text: str, when: str, hint: str) -> None:
        same = repr(one.score) == repr(other.score) and (one.outcome, one.answer, dict(one.detail)) == (
            other.outcome,
            other.answer,
            dict(other.detail),
        )
        self._expect(same, f"the same verdict on {_short(text)} {when}", f"{_said(one)}, then {_said(other)}", hint)


def _said(verdict: Verdict) -> str:
    return f"{verdict.outcome} (score {verdict.score:g}, answer {verdict.answer!r}, {dict(verdict.detail)})"


def _short(text: str) -> str:
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}... ({len(text)} characters)"
