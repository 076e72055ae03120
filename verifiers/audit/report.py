"""The report card of an audit."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from verifiers.audit.cases import Label
from verifiers.audit.checks import Check, Finding
from verifiers.statistics import proportion_interval

_SHOWN = 60
_WORST = 12


@dataclass(frozen=True, slots=True)
class ReportRow:
    """The results of one transformation, of one attack, of one kind of gold, or of all together."""

    family: str
    label: Label
    cases: int
    """Cases with a verdict."""
    wrong: int
    """Number of errors: false positives if the answers are wrong, false negatives if they are right."""

    @property
    def bounds(self) -> tuple[float, float]:
        """95 % Wilson bounds of the error rate."""
        interval = proportion_interval(self.wrong, self.cases)
        return interval.low, interval.high


@dataclass(frozen=True, slots=True)
class OptionRow:
    """Answers that a verifier may choose to accept, as the math verifier does with an option; accepting them is no error."""

    option: str
    """The option of the math verifier."""
    family: str
    cases: int
    accepted: int


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The results of an audit. All but `seconds` and the times of findings are determined by the seed."""

    verifier: str
    golds: int
    kinds: Mapping[str, int]
    """Number of golds of each kind."""
    rows: tuple[ReportRow, ...]
    checks: Mapping[str, int]
    """Number of cases that each check examined."""
    findings: tuple[Finding, ...]
    skipped: int
    """Number of cases skipped because too many similar cases had hung or crashed."""
    seconds: Mapping[str, Mapping[str, float]]
    """`p50`, `p90`, `p99` and `max` of a verdict's time, for ordinary and for hostile answers."""
    options: tuple[OptionRow, ...] = ()
    """How many of the optional answers the verifier accepts."""
    answer_format: str | None = None
    """How completions present an answer, with `ANSWER` in the answer's place; None if they present it as the gold completions
    do."""
    left_out: tuple[str, ...] = ()
    """Built-in golds that were left out because the verifier does not accept them as they stand."""
    slowest: tuple[Finding, ...] = ()
    """The cases that took longest; these are not findings."""
    kind_rows: tuple[ReportRow, ...] = ()
    """The cases grouped by the kind of their gold instead of by transformation or attack."""
    unusable: int = 0
    """Number of golds that the verifier does not accept as they stand."""

    @property
    def clean(self) -> bool:
        """Whether nothing was found and no case was skipped."""
        return not self.findings and not self.skipped

    def total(self, label: Label) -> ReportRow:
        """The row of all wrong or all right answers."""
        rows = [row for row in self.rows if row.label is label]
        name = "all right answers" if label is Label.CORRECT else "all wrong answers"
        return ReportRow(name, label, sum(row.cases for row in rows), sum(row.wrong for row in rows))

    def findings_of(self, check: Check) -> list[Finding]:
        """The findings of one check."""
        return [finding for finding in self.findings if finding.check is check]

    def to_dict(self) -> dict[str, object]:
        """The whole report as plain data for JSON."""
        data = dataclasses.asdict(self)
        data["rows"] = [_row_data(row) for row in (*self.rows, self.total(Label.CORRECT), self.total(Label.WRONG))]
        data["kind_rows"] = [_row_data(row) for row in self.kind_rows]
        data["clean"] = self.clean
        return data

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.items())
        sections = [
            f"verifier {self.verifier}: {self.golds} golds ({kinds})"
            + (f", presented as {self.answer_format!r}" if self.answer_format else "")
            + (f"; left out, since it does not accept them: {', '.join(self.left_out)}" if self.left_out else ""),
            self._rates(),
            self._options(),
            self._counts(),
            self._times(),
        ]
        if self.skipped:
            sections.append(f"{self.skipped} cases were skipped: too many like them hung or crashed")
        sections.append(self._worst())
        return "\n\n".join(section for section in sections if section)

    def _rates(self) -> str:
        lines = []
        for label, error in ((Label.CORRECT, "false negatives"), (Label.WRONG, "false positives")):
            rows = [row for row in self.rows if row.label is label]
            table = [(row.family, row.cases, row.wrong, percentages(row)) for row in (*rows, self.total(label))]
            lines.append(_table((f"{label} by construction", "cases", error, "rate, 95 % bounds"), table))
        return "\n\n".join(lines)

    def _options(self) -> str:
        rows = [(row.family, row.option, row.cases, row.accepted) for row in self.options]
        return _table(("accepted by choice", "option of math", "cases", "accepted"), rows) if rows else ""

    def _counts(self) -> str:
        findings = Counter(finding.check for finding in self.findings)
        rows = [(str(check), self.checks.get(check, 0), findings[check]) for check in Check]
        return _table(("check", "cases", "findings"), rows)

    def _times(self) -> str:
        names = ("p50", "p90", "p99", "max")
        rows = [(group, *(f"{1000 * times[name]:.3f}" for name in names)) for group, times in self.seconds.items()]
        return _table(("milliseconds", *names), rows)

    def _worst(self) -> str:
        shown = [_shown(finding) for finding in _spread(self.findings)]
        more = len(self.findings) - len(shown)
        if not shown:
            slow = self.slowest[0] if self.slowest else None
            return f"Nothing was found. Slowest: {_shown(slow)}" if slow else "Nothing was found."
        counts = Counter(finding.check for finding in self.findings)
        said = ", ".join(f"{counts[check]} {_SAID.get(check, check)}" for check in Check if counts[check])
        return "\n".join([f"{len(self.findings)} findings: {said}", *shown, *([f"and {more} more"] if more else [])])


_SAID = {
    Check.FALSE_POSITIVE: "wrong answers accepted, which a policy finds",
    Check.FALSE_NEGATIVE: "right answers refused",
    Check.SILENT_ERROR: "unusable references scored",
}


def _row_data(row: ReportRow) -> dict[str, object]:
    return dataclasses.asdict(row) | {"bounds": row.bounds}


def percentages(row: ReportRow) -> str:
    """The error rate of a row with its bounds, in percent."""
    low, high = row.bounds
    share = row.wrong / row.cases if row.cases else 0.0
    return f"{100 * share:.2f} % [{100 * low:.2f}, {100 * high:.2f}]"


def _spread(findings: Sequence[Finding]) -> list[Finding]:
    """A limited number of findings of each check, beginning with one finding of each family."""
    chosen: list[Finding] = []
    for check in Check:
        mine = [finding for finding in findings if finding.check is check]
        firsts = list({finding.family: finding for finding in reversed(mine)}.values())[::-1]
        rest = [finding for finding in mine if finding not in firsts] if len(firsts) < _WORST else []
        chosen += (firsts + rest)[:_WORST]
    return chosen


def _shown(finding: Finding) -> str:
    head = f"  [{finding.check}] {finding.family}, {finding.problem_id}"
    gold, answer = _clipped(finding.gold), _clipped(finding.answer)
    return f"{head}: gold {gold}, answer {answer}, {1000 * finding.seconds:.1f} ms\n    {finding.reason[:300]}"


def _clipped(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}… ({len(text)} characters)"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
