"""The command `rlvr check-dataset`."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

import rlvr_envs
import verifiers
from agents.commands.common import env_arguments, pairs_of_part, verifier_spec
from agents.commands.problems import check_data_arguments, make_verifier
from agents.console.counting import counted
from agents.console.progress import progress
from agents.runs.clusters import distinct_note, problem_cluster
from agents.runs.files.json_files import JsonLines
from agents.runs.files.outputs import check_new_file
from agents.runs.verdicts import is_unsupported
from verifiers import AtLeast, InvalidArgumentError, MissingDataError, Outcome, Problem, RLVRError, Verdict, Verifier
from verifiers.unit_tests import CONTRACTS, DeferredTests, Tests, UnitTestVerifier, contract_of, with_contract

_CHUNK = 32
_MOST_NAMED = 3
"""Number of problems with the same fault that are named."""


@dataclass(frozen=True)
class CheckDataset:
    """Check that every gold completion of a data set passes the data set's own verifier, and list the completions that fail."""

    name: Annotated[str, tyro.conf.Positional]
    """Environment whose data set is checked, such as GSM8K or rlvr/GSM8K-v0; separate several by commas."""
    split: str | None = None
    """Split of the data set; by default every split that can be loaded."""
    limit: Annotated[int | None, AtLeast(1)] = None
    """Number of problems to check, from the beginning of each split; all of them by default."""
    args: tuple[str, ...] = ()
    """Arguments of the data set, each as name=value, such as digits=3 or data_dir=FOLDER."""
    verifier: str | None = None
    """Verifier, or its module:attribute; by default the data set's own."""
    verifier_args: tuple[str, ...] = ()
    """Arguments of the verifier, each as name=value, such as packages=numpy."""
    contract: Literal["auto"] | None = None
    """With auto, the tests of each gold program first run in a separate process and, if these fail, together with the program;
    --out records under which of the two contracts the program passed."""
    out: Path = Path("contracts.jsonl")
    """File that --contract auto writes: id, contract and reason of each problem. Data sets read the file with
    contracts=FILE."""
    overwrite: bool = False
    """Replace the file that --out names, if it exists."""

    def __post_init__(self) -> None:
        if self.contract is not None and "," in self.name:
            raise InvalidArgumentError(f"--contract writes one file for one data set, got {self.name!r}")

    def run(self, console: Console) -> int:
        """Print the number of passing golds and each problem whose gold fails; return 0 if all pass.

        If a problem has no gold completion, only its reference is read.
        """
        if "," in self.name:
            names, codes = self.name.split(","), list[int]()
            for name in names:
                console.print(name)
                codes.append(replace(self, name=name, args=pairs_of_part(self.args, name, names)).run(console))
            return max(codes)
        task = rlvr_envs.environment_class(self.name).task
        arguments = env_arguments(self.args)
        check_data_arguments(task, arguments)
        spec = verifier_spec(self.verifier, self.verifier_args, None)
        if self.contract is not None:
            check_new_file(self.out, overwrite=self.overwrite)
            self._unfinished.unlink(missing_ok=True)
        results: list[bool] = []
        missing: MissingDataError | None = None
        for split in (self.split,) if self.split else task.splits:
            try:
                dataset = task.problems(split, **arguments)
            except MissingDataError as error:
                if self.split is not None:
                    raise
                missing = error
                console.print(f"{split}: not available here ({counted(task.sizes[split], 'problem')})")
                continue
            results.append(self._check(console, split, dataset, make_verifier(task, spec, dataset)))
        if not results and missing is not None:
            raise missing
        if self._unfinished.exists():
            self._unfinished.replace(self.out)
        return 0 if all(results) else 1

    @property
    def _unfinished(self) -> Path:
        """The temporary file of contracts, which replaces an earlier file of contracts once it is complete."""
        return self.out.with_name(f"{self.out.name}.unfinished")

    def _check(self, console: Console, split: str, dataset: rlvr_envs.Dataset, verifier: Verifier) -> bool:
        count = len(dataset) if self.limit is None else min(self.limit, len(dataset))
        outcomes: Counter[str] = Counter()
        unsupported: list[str] = []
        read: list[bool] = []
        faults: dict[str, list[tuple[str, str]]] = defaultdict(list)
        asked: set[str] = set()
        contracts: Counter[str] = Counter()
        with progress(f"{self.name} {split}", count) as advance:
            for start in range(0, count, _CHUNK):
                problems = [dataset[index] for index in range(start, min(start + _CHUNK, count))]
                asked |= {problem_cluster(problem) or problem.id for problem in problems}
                golds = [problem for problem in problems if "gold_completion" in problem.metadata]
                without = [problem for problem in problems if "gold_completion" not in problem.metadata]
                for problem in without:
                    fault = _unreadable(verifier, problem)
                    read.append(fault is None)
                    if fault is not None:
                        faults[_of_any(problem, fault)].append((problem.id, fault))
                for problem, verdict in zip(golds, self._judged(verifier, golds, contracts), strict=True):
                    outcomes[str(verdict.outcome)] += 1
                    if is_unsupported(verdict):
                        unsupported.append(problem.id)
                    if verdict.outcome is not Outcome.CORRECT:
                        fault = _reason(verdict)
                        faults[_of_any(problem, fault)].append((problem.id, fault))
                advance(start + len(problems))
        for alike in faults.values():
            console.print(f"{_named([name for name, _ in alike])}: {alike[0][1]}")
        passed, judged = outcomes[str(Outcome.CORRECT)], outcomes.total()
        others = "".join(f", {number} {outcome}" for outcome, number in outcomes.items() if outcome != Outcome.CORRECT)
        if judged or not read:
            console.print(f"{split}: {passed} of {judged} gold completions pass{others}")
        if read:
            console.print(
                f"{split}: {counted(len(read), 'problem')} without a gold completion; {sum(read)} have a readable reference"
            )
        if contracts:
            shares = " and ".join(f"{number} {contract}" for contract, number in sorted(contracts.items()))
            console.print(f"{split}: {shares}, as {self.out} says")
        if unsupported:
            console.print(f"{split}: the verifier does not support the tests of {_named(unsupported)}")
        if len(asked) < count:
            console.print(
                f"{split}: {counted(count, 'problem')}{distinct_note(count, len(asked))}: those with equal prompts are one "
                "cluster in every interval"
            )
        return passed == judged and all(read)

    def _judged(self, verifier: Verifier, golds: Sequence[Problem], contracts: Counter[str]) -> list[Verdict]:
        """The verdict on each gold completion; with `contract`, choose a contract for each problem, write it and count it."""
        if self.contract is None:
            return judge_golds(verifier, golds)
        choices = choose_contracts(verifier, golds)
        contracts.update(choice.contract for choice in choices)
        lines = JsonLines(self._unfinished)
        for choice in choices:
            lines.write(choice.row())
        lines.close()
        return [choice.verdict for choice in choices]


_ANY_COMPLETION = "?"
"""The completion that is judged to see whether a verifier can read a reference."""


def _unreadable(verifier: Verifier, problem: Problem) -> str | None:
    """The reason why a verifier can't read a problem's reference; None if the verifier can read it."""
    if isinstance(problem.reference, DeferredTests):  # no program need be run
        try:
            problem.reference.load()
        except RLVRError as error:
            return str(error)
        return None
    (verdict,) = verifiers.verify_batch(verifier, [_ANY_COMPLETION], [problem])
    return _reason(verdict) if verdict.outcome is Outcome.VERIFIER_ERROR else None


def _of_any(problem: Problem, fault: str) -> str:
    """A fault's text without the problem's id and without a plain reference, so that equal faults have equal texts."""
    named = fault.replace(repr(problem.id), "")
    return named.replace(repr(problem.reference), "") if isinstance(problem.reference, str | float) else named


def _named(ids: Sequence[str]) -> str:
    """The first ids, and the number of further ids."""
    others = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return ", ".join(ids[:_MOST_NAMED]) + others


def judge_golds(verifier: Verifier, problems: Sequence[Problem]) -> list[Verdict]:
    """Verify the gold completion of each problem; a problem without a gold completion gives NO_ANSWER."""
    golds = [str(problem.metadata.get("gold_completion", "")) for problem in problems]
    return verifiers.verify_batch(verifier, golds, problems)


def _reason(verdict: Verdict) -> str:
    return f"{verdict.outcome}, answer {verdict.answer!r}, {dict(verdict.detail)}"


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
    """Choose separate or, if a problem's gold completion fails under this contract, together.

    If the gold completion fails under both contracts, the data set's contract stays.
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
        reference = with_contract(problem.reference, contract)
    except InvalidArgumentError:
        return None
    return dataclasses.replace(problem, reference=_Ready(reference) if isinstance(reference, Tests) else reference)


@dataclass(frozen=True)
class _Ready:
    """Tests as deferred tests, so that a verifier that can't read them refuses one problem instead of the whole batch."""

    tests: Tests

    def load(self) -> Tests:
        return self.tests


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
