"""Audits a verifier: makes cases from golds, performs all checks, and gives one report."""

from __future__ import annotations

import dataclasses
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from verifiers._settings import checked
from verifiers.audit.cases import Case, Label
from verifiers.audit.checks import (
    Check,
    Progress,
    Tally,
    ask_all,
    check_answers,
    check_processes,
    check_repeats,
    check_symmetry,
    check_threads,
    check_unusable_golds,
    finding_of,
)
from verifiers.audit.drawing import draw_cases
from verifiers.audit.examples import example_problems
from verifiers.audit.questions import BOXED, CaseMaker, choose, gold_of
from verifiers.audit.registry import TRANSFORMATIONS
from verifiers.audit.report import AuditReport, OptionRow, ReportRow
from verifiers.audit.runner import Answer, Runner
from verifiers.audit.subjects import FIELDS
from verifiers.bounds import AtLeast, Count, Seconds
from verifiers.errors import InvalidArgumentError, VerifierContractError, unknown_name
from verifiers.files import verifier_record
from verifiers.functions import ANSWER, ANSWER_FORMATS, Problems, gold_completion
from verifiers.registry import VerifierSpec
from verifiers.types import Problem

ATTACKS = (
    "empty",
    "hedge",
    "every-candidate",
    "denied",
    "only-thought",
    "restated-prompt",
    "huge",
    "malformed",
    "nested",
    "nested-gold",
    "control-characters",
    "long",
    "injection",
)
"""The names of the attacks."""
_ITSELF = "itself"
"""Name of the transformation that changes nothing."""
_FIELDS = {
    "choice": "choice",
    "unit_tests": "programs",
    "sql": "sql",
    "json_schema": "json_schema",
    "ifeval": "instructions",
}
"""The field of the cases that are drawn for a verifier, by the verifier's name; any other verifier gets mathematics."""
_PROBED = 24
"""Number of drawn problems on which an answer format is tried."""


@checked
def audit_verifier(
    verifier: VerifierSpec,
    problems: Problems | None = None,
    *,
    verifier_args: Mapping[str, object] | None = None,
    limit: Annotated[int | None, AtLeast(1)] = None,
    drawn: int | None = None,
    field: str | None = None,
    seed: int = 0,
    answer_format: str | None = None,
    skip: Collection[str] = (),
    deadline_s: Seconds = 5.0,
    memory_mib: Count = 4096,
    progress: Progress | None = None,
) -> AuditReport:
    """Look for errors in a verifier.

    Every gold is rewritten into equal forms and near misses, and attacked; the verifier runs in a process of its own.

    Args:
        verifier: The verifier, as for `verifiers.make`. A class or function must be importable by its name.
        problems: The problems, whose references are the golds: text or numbers. None uses the built-in problems whose golds the
            verifier accepts.
        verifier_args: Arguments of the verifier.
        limit: Number of golds to sample; by default all are used.
        drawn: Number of cases to draw with `draw_cases`; they replace the rewritings of the golds.
        field: The field of the drawn cases; by default the field that `field_of` derives from the verifier's name.
        seed: Determines the sample, the drawn cases and the orders of questions.
        answer_format: How completions present an answer: text with `ANSWER` in the answer's place, such as `"#### ANSWER"`.
            By default answers are presented as in the gold completions or, for a function, in the format in which the function
            accepts most golds.
        skip: Names of transformations and attacks to leave out because the verifier has another policy.
        deadline_s: Seconds that one verdict may take.
        memory_mib: Limit on the address space of the verifier's process.
        progress: Called with the number of finished cases and the number of all cases.

    Raises:
        InvalidArgumentError: If there is no gold answer, an option is invalid, or the verifier cannot be built in another
            process.
        UnknownNameError: If `skip` names something that does not exist.
        VerifierContractError: If the verifier is a function that accepts no gold in any format.
    """
    _check_options(problems, answer_format)
    for name in skip:
        if name not in TRANSFORMATIONS and name not in ATTACKS:
            raise unknown_name("transformation or attack", name, [*TRANSFORMATIONS, *ATTACKS])
    field = field or field_of(verifier)
    if drawn is not None and field != "mathematics":
        problems = [case.problem for case in draw_cases(_PROBED, seed, field=field)]
    chosen = choose(example_problems() if problems is None else problems, limit, seed)
    tally = Tally()
    left_out: tuple[str, ...] = ()
    with (
        tempfile.TemporaryDirectory(prefix="audit-") as folder,
        Runner(verifier, verifier_args or {}, memory_mib=memory_mib) as runner,
    ):
        convention = runner.convention()
        if drawn is not None and field in FIELDS:
            if answer_format is not None:
                raise InvalidArgumentError(f"answer_format has no effect on cases of {field}, which mark no answer")
        elif answer_format is None and (convention is not None or problems is None or drawn is not None):
            formats = [None, *ANSWER_FORMATS] if drawn is None else [form for form in ANSWER_FORMATS if form != ANSWER]
            answer_format, accepted = _accepted_format(
                runner, convention or repr(verifier), chosen, formats, deadline_s
            )
            convention = runner.convention()  # now the runner knows whether the function takes texts or messages
            if problems is None:
                left_out = tuple(str(problem.reference) for problem in chosen if problem not in accepted)
                chosen = accepted
        maker = CaseMaker(answer_format=answer_format, skip=frozenset(skip), folder=Path(folder))
        ordinary = maker.rewritten(chosen) if drawn is None else draw_cases(drawn, seed, answer_format or BOXED, field)
        cases = [*ordinary, *maker.hostile(chosen)]
        if drawn is not None:
            chosen = [case.problem for case in ordinary if case.family == _ITSELF]
        answers = ask_all(runner, cases, deadline_s, progress or _no_progress)
        with Runner(verifier, verifier_args or {}, memory_mib=memory_mib) as other:
            _check_all(tally, runner, other, cases, answers, deadline_s, seed)
    name = verifier if isinstance(verifier, str) else repr(verifier)
    _, record = verifier_record(name, verifier_args or {})
    arguments = ", ".join(f"{name}={value!r}" for name, value in record.items())
    title = f"{name}({arguments})" if arguments else name
    said = "" if convention is None else f", called as {convention}"
    report = _report(f"{title}{said}", answer_format, chosen, tally, cases, answers)
    return dataclasses.replace(report, left_out=left_out)


def field_of(verifier: VerifierSpec) -> str:
    """The field of the cases to draw for a verifier, chosen by its name; mathematics if the name belongs to no other field."""
    return _FIELDS.get(verifier, "mathematics") if isinstance(verifier, str) else "mathematics"


def _accepted_format(
    runner: Runner, verifier: str, problems: Sequence[Problem], formats: Sequence[str | None], deadline_s: float
) -> tuple[str | None, list[Problem]]:
    """The answer format in which a verifier accepts most golds, and the problems of the accepted golds.

    A format of None means that the gold completions are used.

    Raises:
        VerifierContractError: If the verifier accepts no gold in any format.
    """
    best: tuple[str | None, list[Problem]] = None, []
    reason = "no gold is text or a number"
    for answer_format in formats:
        golds = [
            (text, problem) for problem in problems if (text := gold_completion(problem, answer_format)) is not None
        ]
        answers = runner.ask("single", golds, deadline_s=deadline_s * max(len(golds), 1)) if golds else []
        accepted = [problem for (_, problem), answer in zip(golds, answers, strict=True) if answer.accepted]
        best = (answer_format, accepted) if len(accepted) > len(best[1]) else best
        reason = f"{answers[0].reason} for the gold {problems[0].reference!r}" if answers else reason
    if not best[1]:
        raise VerifierContractError(
            f"{verifier} accepts no gold answer: bare, boxed, behind '####', in tags or in a sentence: {reason}. Say how "
            "a completion presents its answer, as in answer_format='Answer: ANSWER' (--answer-format); or, if the parameters "
            "were misread, which one gets what, as in verifier_args={'reference': 'gold'} (--verifier-args reference=gold)"
        )
    return best


def _no_progress(done: int, total: int) -> None:
    pass


def _check_options(problems: Problems | None, answer_format: str | None) -> None:
    if problems is not None and not len(problems):
        raise InvalidArgumentError("an audit needs at least one problem with a gold answer, got none")
    if answer_format is not None and "ANSWER" not in answer_format:
        raise InvalidArgumentError(f"answer_format must contain ANSWER where the answer goes, got {answer_format!r}")


def _check_all(
    tally: Tally,
    runner: Runner,
    other: Runner,
    cases: Sequence[Case],
    answers: Sequence[Answer | None],
    deadline_s: float,
    seed: int,
) -> None:
    check_answers(tally, cases, answers)
    check_symmetry(tally, cases, answers)
    pairs = [(case, answer) for case, answer in zip(cases, answers, strict=True) if _is_repeatable(answer)]
    settled = [(case, answer) for case, answer in pairs if answer is not None]
    rng = random.Random(seed)
    check_repeats(tally, runner, settled, deadline_s, rng)
    check_threads(tally, runner, settled, deadline_s, rng)
    check_processes(tally, other, settled, deadline_s, rng)
    check_unusable_golds(tally, runner, cases[0], deadline_s)


def _is_repeatable(answer: Answer | None) -> bool:
    return answer is not None and answer.judged


def _report(
    verifier: str,
    answer_format: str | None,
    problems: Sequence[Problem],
    tally: Tally,
    cases: Sequence[Case],
    answers: Sequence[Answer | None],
) -> AuditReport:
    answered = [(case, answer) for case, answer in zip(cases, answers, strict=True) if answer is not None]
    kinds = {case.problem.id: case.kind for case in cases}
    slowest = sorted(answered, key=lambda pair: -pair[1].seconds)[:5]
    return AuditReport(
        verifier=verifier,
        answer_format=answer_format,
        golds=len(problems),
        kinds=dict(Counter(kinds.get(problem.id) or str(gold_of(problem).kind) for problem in problems).most_common()),
        rows=_rows(answered, lambda case: case.family),
        kind_rows=_rows(answered, lambda case: case.kind or str(gold_of(case.problem).kind)),
        unusable=sum(case.family == _ITSELF and not answer.accepted for case, answer in answered),
        options=_option_rows(answered),
        checks={str(check): tally.looked_at[check] for check in Check},
        findings=tuple(tally.findings),
        skipped=len(cases) - len(answered),
        seconds={
            "ordinary": _percentiles([answer.seconds for case, answer in answered if not case.hostile]),
            "hostile": _percentiles([answer.seconds for case, answer in answered if case.hostile]),
        },
        slowest=tuple(finding_of(Check.DEADLINE, case, answer, answer.reason) for case, answer in slowest),
    )


def _rows(answered: Sequence[tuple[Case, Answer]], group: Callable[[Case], str]) -> tuple[ReportRow, ...]:
    totals: Counter[tuple[str, Label]] = Counter()
    wrong: Counter[tuple[str, Label]] = Counter()
    for case, answer in answered:
        if answer.judged and answer.outcome != "verifier_error" and case.label is not Label.ANY:
            totals[group(case), case.label] += 1
            wrong[group(case), case.label] += answer.accepted != (case.label is Label.CORRECT)
    return tuple(ReportRow(*key, count, wrong[key]) for key, count in totals.items())


def _option_rows(answered: Sequence[tuple[Case, Answer]]) -> tuple[OptionRow, ...]:
    rows = []
    for transformation in TRANSFORMATIONS.values():
        judged = [answer for case, answer in answered if case.family == transformation.name and answer.judged]
        if transformation.option and judged:
            accepted = sum(answer.accepted for answer in judged)
            rows.append(OptionRow(transformation.option, transformation.name, len(judged), accepted))
    return tuple(rows)


def _percentiles(seconds: list[float]) -> dict[str, float]:
    """Nearest-rank percentiles."""
    ordered = sorted(seconds) or [0.0]
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    percentiles = {name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in ranks.items()}
    return percentiles | {"max": ordered[-1]}
