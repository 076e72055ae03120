"""The verifiers' court: graders of mathematics on the same drawn cases, the tables of docs/verifier-court.md.

    make court                                                  # in an environment of its own, with a new seed
    python benchmarks/court/of_verifiers.py --only math_reward     # print the audit of one grader

Every label is first confirmed by `second_reading.py`. Each grader gets answers in the form that it expects, in a process of its
own; what raises, hangs or gives no verdict is counted by itself, and in no rate. Pins: constraints/court.txt.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from graders import GRADERS, Grader
from loaded import Loaded
from second_reading import confirmed

from verifiers import verify
from verifiers.audit import AuditReport, Label, ReportRow, audit_verifier, draw_cases, write_card
from verifiers.audit.subjects import SUBJECTS

PAGE = Path(__file__).parents[2] / "docs" / "verifier-court.md"
COLUMNS = {
    "golds refused": (Label.CORRECT, ("itself",)),
    "rewritings refused": (Label.CORRECT, ("rewriting",)),
    "right answers in other words refused": (Label.CORRECT, ("wording",)),
    "near misses accepted": (Label.WRONG, ("near miss",)),
    "superseded, hedged, denied or no answers accepted": (
        Label.WRONG,
        ("superseded", "hedge", "denied", "only a thought", "no answer", "master key"),
    ),
    "echoes of the question accepted": (Label.WRONG, ("echo",)),
}
"""Label and families of each column."""
HOSTILE = ("huge", "malformed", "nested", "nested-gold", "control-characters", "long", "injection")


def total(rows: Sequence[ReportRow], label: Label, families: tuple[str, ...] = ("",)) -> ReportRow:
    mine = [row for row in rows if row.label is label and row.family.startswith(families)]
    return ReportRow("", label, sum(row.cases for row in mine), sum(row.wrong for row in mine))


def share(row: ReportRow) -> str:
    """An error rate with its 95 % bounds, in percent."""
    low, high = row.bounds
    return f"{100 * row.wrong / row.cases:.1f} [{100 * low:.1f}, {100 * high:.1f}]" if row.cases else "-"


def name_of(grader: Grader) -> str:
    return f"{grader.package} {grader.name}"


def line(grader: Grader, report: AuditReport, drawn: int) -> list[str]:
    """A row of the first table."""
    rows = [row for row in report.rows if row.family not in HOSTILE]
    judged = sum(row.cases for row in rows)
    times = report.seconds["ordinary"]
    return [
        name_of(grader),
        *(share(total(rows, *column)) for column in COLUMNS.values()),
        str(drawn - judged),
        f"{1000 * times['p50']:.2f} / {1000 * times['max']:.0f}",
    ]


def by_subject(reports: dict[str, AuditReport]) -> list[list[str]]:
    """A line for each subject: percent of right answers refused and of wrong ones accepted, by grader."""
    lines = []
    for subject in SUBJECTS:
        cells = []
        for report in reports.values():
            mine = [row for row in report.kind_rows if row.family == subject]
            rates = [total(mine, label) for label in (Label.CORRECT, Label.WRONG)]
            cells.append(" / ".join(f"{100 * row.wrong / row.cases:.0f}" if row.cases else "-" for row in rates))
        lines.append([subject, *cells])
    return lines


def by_reward_doctor() -> list[list[str]]:
    """A line for each grader: its errors on the cases of reward-doctor, as published with it."""
    from reward_doctor import audit

    def ours(completion: str, reference: str) -> float:
        return float(verify("math", completion, reference).score)

    lines = []
    for grader in GRADERS:
        found = audit(ours if isinstance(grader.verifier, str) else grader.verifier, threshold=0.49)
        wrong, right = len(found.should_reject), len(found.should_accept)
        errors = [f"{len(found.false_positives)} of {wrong}", f"{len(found.false_negatives)} of {right}"]
        lines.append([name_of(grader), *errors, str(len(found.errors))])
    return lines


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *lines)])


def written(text: str, name: str, made: str) -> str:
    """A page with what stands between two marks replaced."""
    start, end = f"<!-- court {name} -->", "<!-- end court -->"
    if start not in text:
        sys.exit(f"{PAGE} has no {start}")
    return re.sub(re.escape(start) + ".*?" + re.escape(end), lambda _: f"{start}\n{made}\n{end}", text, flags=re.DOTALL)


def main() -> None:
    """Audit the graders and write their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drawn", type=int, default=4000, help="number of cases")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the cases; by default a new one")
    parser.add_argument("--only", default="", help="audit graders whose names contain this, and print their reports")
    parser.add_argument("--cards", type=Path, help="folder for the card of each grader")
    arguments = parser.parse_args()
    unconfirmed = [case for case in draw_cases(arguments.drawn, arguments.seed) if not confirmed(case)]
    if unconfirmed:
        sys.exit(f"{len(unconfirmed)} labels are not confirmed, such as that of {unconfirmed[0]}")
    reports: dict[str, AuditReport] = {}
    lines = []
    for grader in GRADERS:
        if arguments.only not in name_of(grader):
            continue
        named = isinstance(grader.verifier, str)
        report = audit_verifier(
            grader.verifier if named else Loaded,
            verifier_args={} if named else {"grader": f"graders:{grader.verifier.__name__}", "field": "mathematics"},
            drawn=arguments.drawn,
            seed=arguments.seed,
            answer_format=grader.answer_format,
            skip=HOSTILE,
        )
        reports[name_of(grader)] = report
        lines.append(line(grader, report, arguments.drawn))
        print(report if arguments.only else " | ".join(lines[-1]), flush=True)
        if arguments.cards is not None:
            write_card(report, arguments.cards / f"{re.sub(r'[^a-z0-9]+', '-', name_of(grader).lower()).strip('-')}.md")
    if arguments.only:
        return
    packages = dict.fromkeys(grader.package for grader in GRADERS if grader.package != "rlvr-envs")
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in packages)
    about = f"{arguments.drawn} cases, seed {arguments.seed}; {versions}; {datetime.date.today().isoformat()}"
    heads = ["grader", *COLUMNS, "not judged", "ms, median / worst"]
    text = PAGE.read_text(encoding="utf-8")
    text = written(text, "verifiers", f"{about}\n\n{table(heads, lines)}")
    text = written(text, "subjects", table(["subject", *reports], by_subject(reports)))
    heads = ["grader", "wrong answers accepted", "right answers refused", "exceptions"]
    about = f"reward-doctor {importlib.metadata.version('reward-doctor')}; {datetime.date.today().isoformat()}"
    text = written(text, "reward-doctor", f"{about}\n\n{table(heads, by_reward_doctor())}")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
