"""Makes cases from problems: the answers of all transformations and attacks, presented as in the data set's completions."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from verifiers.audit.attacks import Attack, another_answer, attacks_on, hostile_attacks, restates
from verifiers.audit.cases import Case, Label
from verifiers.audit.golds import Gold, Kind
from verifiers.audit.recognition import recognise
from verifiers.audit.registry import TRANSFORMATIONS, Transformation
from verifiers.errors import InvalidArgumentError
from verifiers.functions import ANSWER, Problems
from verifiers.types import Problem, prompt_text

BOXED = f"\\boxed{{{ANSWER}}}"
_HOSTILE_GOLDS = 3


def answer_format_of(problem: Problem) -> str:
    """How the gold completion of a problem presents its answer: boxed, after `####`, or bare."""
    completion = str(problem.metadata.get("gold_completion", ""))
    if "####" in completion:
        return f"#### {ANSWER}"
    return ANSWER if completion.strip() and completion.strip() == str(problem.reference).strip() else BOXED


def gold_text(problem: Problem) -> str:
    """The gold answer of a problem as text.

    Raises:
        InvalidArgumentError: If the reference is neither text nor a number.
    """
    reference = problem.reference
    if isinstance(reference, bool) or not isinstance(reference, str | int | float):
        raise InvalidArgumentError(
            f"the audit rewrites gold answers, which are text or numbers; the reference of problem {problem.id!r} is a "
            f"{type(reference).__name__}"
        )
    return str(reference)


def gold_of(problem: Problem) -> Gold:
    """The recognised gold of a problem; its kind is unknown if the reference is tests, a query, a schema or the like."""
    reference = problem.reference
    is_answer = isinstance(reference, str | int | float) and not isinstance(reference, bool)
    return recognise(str(reference)) if is_answer else Gold(str(reference), Kind.UNKNOWN)


def choose(problems: Problems, limit: int | None, seed: int) -> list[Problem]:
    """All problems, or a sample of `limit` problems, in their original order."""
    if limit is None or limit >= len(problems):
        return [problems[index] for index in range(len(problems))]
    picked = sorted(random.Random(seed).sample(range(len(problems)), limit))
    return [problems[index] for index in picked]


class CaseMaker:
    """Makes the cases of an audit.

    Args:
        answer_format: Text with `ANSWER` in the answer's place; None uses the format of each problem's gold completion.
        skip: Transformations and attacks to leave out.
        folder: The folder in which injections would create their canaries.
    """

    def __init__(self, *, answer_format: str | None, skip: frozenset[str], folder: Path) -> None:
        self._format = answer_format
        self._skip = skip
        self._folder = folder

    def rewritten(self, problems: Sequence[Problem]) -> list[Case]:
        """The cases of each gold: its rewritings, and attacks that a policy might try."""
        cases: list[Case] = []
        for problem in problems:
            gold = recognise(gold_text(problem))
            for transformation in TRANSFORMATIONS.values():
                if transformation.name not in self._skip:
                    self._add_rewrites(cases, transformation, problem, gold)
            cases += self._attacks(attacks_on(gold, prompt_text(problem.prompt, "\n")), problem, gold)
            cases += self._presented_attacks(problem, gold)
        return cases

    def hostile(self, problems: Sequence[Problem]) -> list[Case]:
        """The cases that are meant to break a verifier, against a few golds of different kinds."""
        golds = [gold_of(problem) for problem in problems]
        few = _one_for_each_kind(problems, golds)
        return [case for problem, gold in few for case in self._attacks(iter(hostile_attacks(gold)), problem, gold)]

    def _add_rewrites(self, cases: list[Case], transformation: Transformation, problem: Problem, gold: Gold) -> None:
        prompt = prompt_text(problem.prompt, "\n")
        for answer in dict.fromkeys(transformation(gold)):
            if transformation.label is Label.CORRECT and restates(answer, gold, prompt):
                continue
            completion = self._present(answer, problem)
            cases.append(Case(transformation.name, transformation.label, answer, completion, problem))
            if transformation.symmetric and answer != gold.text:
                cases.append(self._mirrored(cases[-1], gold, len(cases) - 1))

    def _mirrored(self, case: Case, gold: Gold, index: int) -> Case:
        """The case with gold and answer exchanged, without the prompt, which belongs to the gold."""
        problem = dataclasses.replace(case.problem, prompt="", reference=case.answer)
        completion = self._present(gold.text, case.problem)
        return dataclasses.replace(
            case,
            family=f"{case.family} (swapped)",
            answer=gold.text,
            completion=completion,
            problem=problem,
            mirror=index,
        )

    def _attacks(self, attacks: Iterator[Attack], problem: Problem, gold: Gold) -> Iterator[Case]:
        for number, attack in enumerate(attacks):
            if attack.family in self._skip:
                continue
            canary = str(self._folder / f"canary-{number}") if attack.canary else ""
            answer = attack.answer.replace("CANARY", canary) if attack.canary else attack.answer
            label = Label.ANY if attack.hostile and gold.kind is Kind.UNKNOWN else attack.label
            completion = answer if attack.raw else self._present(answer, problem)
            yield Case(attack.family, label, answer, completion, problem, hostile=attack.hostile, canary=canary)

    def _presented_attacks(self, problem: Problem, gold: Gold) -> Iterator[Case]:
        """Attacks in which the gold is presented as an answer, but before a wrong answer or in a thought."""
        other = another_answer(gold)
        if other is None:
            return
        right, wrong = self._present(gold.text, problem), self._present(other, problem)
        for family, text in (
            ("hedge", f"{right} or {wrong}"),
            ("only-thought", f"<think>It could be {right}</think>\n{wrong}"),
            ("only-thought", f"<think>It is {right}</think>\nI can't say."),
            ("only-thought", f"<think>It is {right}"),
        ):
            if family not in self._skip:
                yield Case(family, Label.WRONG, text, text, problem)

    def _present(self, answer: str, problem: Problem) -> str:
        return (self._format or answer_format_of(problem)).replace(ANSWER, answer)


def _one_for_each_kind(problems: Sequence[Problem], golds: Sequence[Gold]) -> list[tuple[Problem, Gold]]:
    first: dict[Kind, tuple[Problem, Gold]] = {}
    for problem, gold in zip(problems, golds, strict=True):
        first.setdefault(gold.kind, (problem, gold))
    if len(first) > 1:
        first.pop(Kind.UNKNOWN, None)
    return list(first.values())[:_HOSTILE_GOLDS]
