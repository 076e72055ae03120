"""A verifier that applies a rule first, and asks a judge if the rule can't decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from verifiers.composition import Composition, PartSpec, applied_verdict
from verifiers.errors import InvalidArgumentError, unknown_name
from verifiers.registry import verify_batch
from verifiers.types import Outcome, Problem, Verdict

Undecided = Literal["no_answer", "unreadable_reference"]


class Hybrid(Composition):
    """Gives the verdict of a rule, or of a judge if the rule can't decide.

    The judge is asked if the rule finds `NO_ANSWER`, or if it can't use the problem's reference (a `VERIFIER_ERROR` with
    `detail["unreadable_reference"]`). An answer that the rule finds wrong stays wrong, and a rule that broke for another reason
    is a `VERIFIER_ERROR`. `detail["applied"]` is `"rule"` or `"judge"`; evaluations and training runs report the share of each.
    `detail["parts"]` holds the verdicts of the parts that were asked.

    Args:
        rule: The verifier that is asked first.
        judge: The verifier that judges the completions that the rule leaves undecided.
        when: The cases in which the judge is asked. Without `"no_answer"`, a completion that states no answer scores 0; with
            it, a policy may learn to state no answer, so that the judge decides.

    Raises:
        InvalidArgumentError: If `when` is empty or not a list.
        UnknownNameError: If `when` contains anything else.
    """

    _asks_all = False  # which part judges depends on the problem or the completion

    def __init__(
        self, rule: PartSpec, judge: PartSpec, when: Sequence[Undecided] = ("no_answer", "unreadable_reference")
    ) -> None:
        super().__init__({"rule": rule, "judge": judge})
        given: object = when  # the command line passes whatever it reads
        if isinstance(given, str) or not isinstance(given, Sequence) or not when:
            raise InvalidArgumentError(f"when must be a list of {', '.join(get_args(Undecided))}, got {when!r}")
        for name in when:
            if name not in get_args(Undecided):
                raise unknown_name("case for the judge", name, get_args(Undecided))
        self._when = frozenset(when)

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i; the judge gets the completions that the rule left undecided, in one batch."""
        rule, judge = self._parts.values()
        asked = [{"rule": verdict} for verdict in verify_batch(rule, completions, problems)]
        rows = [row for row, verdicts in enumerate(asked) if self._is_undecided(verdicts["rule"])]
        column = (
            verify_batch(judge, [completions[row] for row in rows], [problems[row] for row in rows]) if rows else []
        )
        for row, verdict in zip(rows, column, strict=True):
            asked[row]["judge"] = verdict
        return [applied_verdict(verdicts, [*verdicts][-1]) for verdicts in asked]

    def _is_undecided(self, verdict: Verdict) -> bool:
        if verdict.outcome is Outcome.NO_ANSWER:
            return "no_answer" in self._when
        return "unreadable_reference" in self._when and verdict.detail.get("unreadable_reference") is True
