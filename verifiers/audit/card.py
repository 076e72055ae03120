"""The card of an audit: its error rates and failures on one page, as Markdown or HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from verifiers.audit.cases import Label
from verifiers.audit.checks import Check, Finding
from verifiers.audit.report import AuditReport, ReportRow, percentages
from verifiers.errors import InvalidArgumentError

CARD_SUFFIXES = (".md", ".html")
_RATES = {Check.FALSE_POSITIVE, Check.FALSE_NEGATIVE}
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    text: str
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def write_card(report: AuditReport, path: Path) -> None:
    """Write the card of an audit.

    Args:
        report: The audit.
        path: The file to write; its suffix, .md or .html, determines the format.

    Raises:
        InvalidArgumentError: If the file has another suffix.
    """
    check_card(path)
    sections = list(_sections(report))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_html(sections) if path.suffix == ".html" else _markdown(sections), encoding="utf-8")


def check_card(path: Path) -> None:
    """Check the name of a card's file.

    Raises:
        InvalidArgumentError: If its suffix is neither .md nor .html.
    """
    if path.suffix not in CARD_SUFFIXES:
        raise InvalidArgumentError(f"a card is a file that ends in {' or '.join(CARD_SUFFIXES)}, got {str(path)!r}")


def read_card(path: Path) -> tuple[ReportRow, ReportRow]:
    """Read the error rates of a card, or of the JSON of a report.

    Returns:
        The row of all wrong answers, whose errors are false positives, and the row of all right answers.

    Raises:
        InvalidArgumentError: If there is no such file, or it has no error rates.
    """
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    rows = []
    for label, name in ((Label.WRONG, "all wrong answers"), (Label.CORRECT, "all right answers")):
        match = re.search(rf"{name}\D+(\d+)\D+(\d+)", text)  # the cells of a row, in Markdown, HTML and JSON
        if match is None or not int(match[2]) <= int(match[1]) > 0:
            raise InvalidArgumentError(
                f"expected error rates in a file that rlvr audit-verifier wrote with --card or --json, got {str(path)!r}, "
                f"which {'has no cases of ' + name if text else 'is no file'}"
            )
        rows.append(ReportRow(name, label, int(match[1]), int(match[2])))
    return rows[0], rows[1]


def _sections(report: AuditReport) -> Iterator[_Section]:
    presented = f", presented as {report.answer_format!r}" if report.answer_format else ""
    share = f"{report.unusable} of {report.golds} golds ({report.unusable / max(report.golds, 1):.1%})"
    yield _Section(
        f"Verifier {report.verifier}",
        f"{report.golds} golds{presented}. The verifier does not accept {share} as they stand: it can't judge these problems. "
        "Rates have 95 % Wilson bounds.",
    )
    totals = [report.total(Label.WRONG), report.total(Label.CORRECT)]
    yield _rates("Error rates", totals)
    for label, error in ((Label.WRONG, "False positives"), (Label.CORRECT, "False negatives")):
        yield _rates(f"{error} by kind of gold", [row for row in report.kind_rows if row.label is label])
        families = [row for row in report.rows if row.label is label]
        yield _rates(f"{error} by what was asked", families)
    yield _Section(
        "Seconds for a verdict",
        "",
        ("answers", "median", "90 %", "99 %", "worst"),
        [
            (group, *(f"{times[name]:.6f}" for name in ("p50", "p90", "p99", "max")))
            for group, times in report.seconds.items()
        ],
    )
    found = {check: report.findings_of(check) for check in Check if check not in _RATES}
    yield _Section(
        "Failures",
        "Crashes, hangs, verdicts that depend on threads, processes, batches or their order, and executed text.",
        ("check", "cases", "findings"),
        [(str(check), str(report.checks.get(check, 0)), str(len(findings))) for check, findings in found.items()],
    )
    smallest = [_smallest(report.findings_of(check)) for check in Check if report.findings_of(check)]
    if smallest:
        yield _Section(
            "Smallest failing examples",
            "",
            ("check", "asked", "gold", "answer", "result"),
            [(str(one.check), one.family, one.gold, one.answer, one.reason) for one in smallest],
        )


def _rates(title: str, rows: Sequence[ReportRow]) -> _Section:
    table = [(row.family, str(row.cases), str(row.wrong), percentages(row)) for row in rows]
    return _Section(title, "", ("", "cases", "errors", "rate"), table)


def _smallest(findings: Sequence[Finding]) -> Finding:
    return min(findings, key=lambda finding: len(finding.gold) + len(finding.answer))


def _clipped(cell: str) -> str:
    return cell if len(cell) <= _LONGEST else f"{cell[:_LONGEST]}… ({len(cell)} characters)"


def _markdown(sections: Sequence[_Section]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(" ".join(_clipped(cell).replace("|", "\\|").split()) for cell in cells) + " |"

    parts = []
    for number, section in enumerate(sections):
        parts += [f"{'##' if number else '#'} {section.title}", section.text]
        if section.rows:
            parts.append("\n".join([line(section.head), "|---" * len(section.head) + "|", *map(line, section.rows)]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _html(sections: Sequence[_Section]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(_clipped(cell))}</{tag}>" for cell in cells) + "</tr>"

    parts = [f"<!doctype html><meta charset=utf-8><title>{html.escape(sections[0].title)}</title>"]
    for number, section in enumerate(sections):
        tag = "h2" if number else "h1"
        parts.append(f"<{tag}>{html.escape(section.title)}</{tag}><p>{html.escape(section.text)}</p>")
        if section.rows:
            body = "\n".join([line(section.head, "th"), *(line(row, "td") for row in section.rows)])
            parts.append(f"<table>\n{body}\n</table>")
    return "\n".join(parts) + "\n"
