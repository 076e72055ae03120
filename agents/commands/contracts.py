"""`rlvr check-dataset --contract auto`: the contract under which the tests of each problem accept its gold completion."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import verifiers
from verifiers import InvalidArgumentError, Outcome, Problem, Verdict, Verifier
from verifiers.unit_tests import CONTRACTS, UnitTestVerifier, contract_of, with_contract

_CAUSE = 200
"""Maximum number of characters recorded of a failure's cause."""


@dataclass(frozen=True)
class ContractChoice:
    """The contract chosen for a problem."""

    problem: Problem
    contract: str
    reason: str
    verdict: Verdict
    """The verdict on the gold completion under the contract."""

    def row(self) -> dict[str, str]:
        """The line for the file that a data set reads with `contracts=`."""
        return {"id": self.problem.id, "contract": self.contract, "reason": self.reason}


def choose_contracts(verifier: Verifier, problems: Sequence[Problem]) -> list[ContractChoice]:
    """Choose the first contract, of separate and together, under which a problem's gold completion passes.

    If it passes under neither, the data set's contract stays.
    """
    if not isinstance(verifier, UnitTestVerifier):
        raise InvalidArgumentError(
            f"--contract auto chooses how tests run, and these problems are judged by {type(verifier).__name__}: name a data "
            "set of programs, or --verifier unit_tests"
        )
    verdicts: list[dict[str, Verdict]] = [{} for _ in problems]
    for contract in CONTRACTS:
        asked = {
            index: form
            for index, problem in enumerate(problems)
            if not _passed(verdicts[index]) and (form := _under(problem, contract)) is not None
        }
        golds = [str(form.metadata["gold_completion"]) for form in asked.values()]
        judged = verifiers.verify_batch(verifier, golds, [*asked.values()])
        for index, verdict in zip(asked, judged, strict=True):
            verdicts[index][contract] = verdict
    return [_choice(problem, own) for problem, own in zip(problems, verdicts, strict=True)]


def _under(problem: Problem, contract: str) -> Problem | None:
    """A problem under a contract; None if its tests can't run under it."""
    try:
        return dataclasses.replace(problem, reference=with_contract(problem.reference, contract))
    except InvalidArgumentError:
        return None


def _choice(problem: Problem, verdicts: Mapping[str, Verdict]) -> ContractChoice:
    own = contract_of(problem.reference)
    failed = "; ".join(f"{name}: {_cause(verdict)}" for name, verdict in verdicts.items() if not _right(verdict))
    if not _passed(verdicts):
        return ContractChoice(problem, own, f"the gold completion fails; {failed}", verdicts[own])
    *_, (contract, verdict) = verdicts.items()
    return ContractChoice(problem, contract, f"the gold completion passes{failed and f'; {failed}'}", verdict)


def _right(verdict: Verdict) -> bool:
    return verdict.outcome is Outcome.CORRECT


def _passed(verdicts: Mapping[str, Verdict]) -> bool:
    return any(map(_right, verdicts.values()))


def _cause(verdict: Verdict) -> str:
    exception = verdict.detail.get("exception")
    text = exception.get("message", "") if isinstance(exception, Mapping) else ""
    said = (verdict.detail.get(name) for name in ("failure", "reason", "error"))
    return ", ".join(str(one) for one in (*said, text) if one)[:_CAUSE] or str(verdict.outcome)
