"""The verifiers' court beyond mathematics: tables of docs/verifier-court.md on programs, SQL, JSON, instructions and choices.

    make court-fields                                           # in an environment of its own, with a new seed
    python benchmarks/court/of_fields.py --field sql --only skyrl-gym      # print the errors of one grader

Every label is first confirmed by an evaluation that shares no code with a grader. Each grader is asked about the same number of
cases of the kinds that it takes, in a process of its own; what raises, hangs or gives no verdict is in no rate.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib.metadata
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from field_graders import FIELD_GRADERS, FieldGrader
from loaded import Loaded
from of_verifiers import PAGE, share, table, written
from second_reading import confirmed

from verifiers.audit import Case, Label, ReportRow, draw_cases
from verifiers.audit.checks import ask_all
from verifiers.audit.questions import BOXED
from verifiers.audit.runner import Answer, Runner

sys.path.insert(0, str(Path(__file__).parents[2]))  # the second evaluation of these fields is part of the tests
from tests.audit.second_evaluation import is_right

DEADLINE_S = 20.0
OTHERS = "other"
"""All families of a label that no column before names."""
Columns = dict[str, tuple[Label, tuple[str, ...]]]
_RIGHT: Columns = {
    "golds refused": (Label.CORRECT, ("itself",)),
    "right answers after a thought refused": (Label.CORRECT, ("wording: thought",)),
    "other right answers refused": (Label.CORRECT, (OTHERS,)),
}
_NOTHING: Columns = {"answers in a thought alone, or none, accepted": (Label.WRONG, ("only a thought", "no answer"))}
COLUMNS: dict[str, Columns] = {
    "programs": {
        **_RIGHT,
        "mutants accepted": (Label.WRONG, ("mutant",)),
        "forgeries accepted": (Label.WRONG, ("forgery",)),
        **_NOTHING,
    },
    "sql": {
        **_RIGHT,
        "mutants accepted": (Label.WRONG, ("mutant",)),
        "rows twice accepted": (Label.WRONG, ("rows twice",)),
        "other wrong queries accepted": (Label.WRONG, (OTHERS,)),
        **_NOTHING,
    },
    "json_schema": {
        **_RIGHT,
        "wrong values accepted": (Label.WRONG, ("wrong value",)),
        "what is no JSON accepted": (Label.WRONG, ("not JSON", "two documents")),
        "wrong properties accepted": (Label.WRONG, ("a property missing", "a property more", "within a list")),
        "repeated properties accepted": (Label.WRONG, ("a property twice",)),
        **_NOTHING,
    },
    "instructions": {**_RIGHT, "least failures accepted": (Label.WRONG, ("least failure",)), **_NOTHING},
    "choice": {
        "golds refused": (Label.CORRECT, ("itself",)),
        "rewritings refused": (Label.CORRECT, ("rewriting",)),
        "right answers in other words refused": (Label.CORRECT, ("wording",)),
        "other letters accepted": (Label.WRONG, ("near miss",)),
        "superseded, hedged or denied answers accepted": (Label.WRONG, ("superseded", "hedge", "denied")),
        **{name: (label, (*families, "master key")) for name, (label, families) in _NOTHING.items()},
    },
}
"""Label and beginnings of families of each column."""
Pairs = Sequence[tuple[Case, Answer | None]]


def rates(columns: Columns, pairs: Pairs) -> list[str]:
    """The error rate of each column."""
    judged = [
        (case, answer) for case, answer in pairs if answer and answer.judged and answer.outcome != "verifier_error"
    ]
    named = tuple(family for _, families in columns.values() for family in families)
    cells = []
    for label, families in columns.values():
        mine = [
            answer.accepted != (label is Label.CORRECT)
            for case, answer in judged
            if case.label is label
            and (case.family.startswith(families) or (OTHERS in families and not case.family.startswith(named)))
        ]
        cells.append(share(ReportRow("", label, len(mine), sum(mine))))
    without = len(pairs) - len(judged)
    return [*cells, str(without), f"{1000 * sorted(answer.seconds for _, answer in judged)[len(judged) // 2]:.1f}"]


def asked(grader: FieldGrader, field: str, count: int, seed: int) -> Sequence[Case]:
    """The first cases of the kinds that a grader takes, which are at least three of five."""
    if grader.kinds is None:
        return drawn(field, count, seed, grader.answer_format or BOXED)
    return [case for case in drawn(field, int(1.8 * count), seed, BOXED) if case.kind in grader.kinds][:count]


@functools.cache
def drawn(field: str, count: int, seed: int, answer_format: str) -> Sequence[Case]:
    return draw_cases(count, seed, answer_format, field)


def check_labels(field: str, count: int, seed: int) -> None:
    """Confirm the labels of all that is asked; those of choices depend on no answer format."""
    cases = (case for grader in FIELD_GRADERS[field] for case in asked(grader, field, count, seed))
    seen = set()
    for case in cases if field != "choice" else drawn(field, count, seed, BOXED):
        if case.problem.id in seen:
            continue
        seen.add(case.problem.id)
        if not (confirmed(case) if field == "choice" else is_right(case) == (case.label is Label.CORRECT)):
            sys.exit(f"a label is not confirmed: that of {case}")


def verdicts(grader: FieldGrader, field: str, cases: Sequence[Case]) -> Pairs:
    named = isinstance(grader.verifier, str)
    arguments = {} if named else {"grader": f"field_graders:{grader.verifier.__name__}", "field": field}
    with Runner(grader.verifier if named else Loaded, arguments, memory_mib=4096) as runner:
        runner.convention()  # starts the process
        return list(zip(cases, ask_all(runner, cases, DEADLINE_S, lambda done, total: None), strict=True))


def errors(pairs: Pairs) -> str:
    """One line for each error, and for each case without a verdict."""
    lines = []
    for case, answer in pairs:
        if answer is None or not answer.judged or answer.accepted != (case.label is Label.CORRECT):
            why = "skipped after others that hung" if answer is None else answer.reason
            lines.append(f"{case.label} | {case.kind} | {case.family} | {case.completion!r} | {case.gold!r} | {why}")
    return "\n".join(lines)


def main() -> None:
    """Ask the graders and write their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--field", choices=FIELD_GRADERS, help="one field; by default all")
    parser.add_argument("--drawn", type=int, default=2000, help="number of cases of each grader")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the cases; by default a new one")
    parser.add_argument(
        "--only", default="", help="ask graders of packages whose names contain this, and print their errors"
    )
    arguments = parser.parse_args()
    for field in [arguments.field] if arguments.field else FIELD_GRADERS:
        lines, packages = [], []
        check_labels(field, arguments.drawn, arguments.seed)
        for grader in FIELD_GRADERS[field]:
            if arguments.only not in grader.package:
                continue
            pairs = verdicts(grader, field, asked(grader, field, arguments.drawn, arguments.seed))
            packages += [grader.package] if grader.package != "rlvr-envs" else []
            lines.append([f"{grader.package} {grader.name}", *rates(COLUMNS[field], pairs)])
            print(" | ".join(lines[-1]), flush=True)
            if arguments.only or grader.package == "rlvr-envs":
                print(errors(pairs), flush=True)
        if arguments.only:
            continue
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in dict.fromkeys(packages))
        today = datetime.date.today().isoformat()
        about = f"{arguments.drawn} cases each, seed {arguments.seed}; {versions}; {today}"
        made = table(["grader", *COLUMNS[field], "not judged", "ms, median"], lines)
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), field, f"{about}\n\n{made}"), encoding="utf-8")


if __name__ == "__main__":
    main()
