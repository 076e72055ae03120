"""What two graders say of the same completions, counted, and the table that `docs/agreement.md` has of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "agreement.md"


@dataclass(frozen=True)
class Judged:
    """One completion, by both."""

    name: str
    """Which completion it is, for messages."""
    theirs: bool
    ours: bool
    kind: str | None
    """Of the disagreement; None where they agree, and where no kind explains it."""


def disagreements(judged: Iterable[Judged]) -> Counter[tuple[str, bool]]:
    """How many there are of each kind that we accept, and that they do.

    Raises:
        AssertionError: If one is of no kind.
    """
    apart = [pair for pair in judged if pair.theirs != pair.ours]
    unexplained = [pair for pair in apart if pair.kind is None]
    assert not unexplained, f"{len(unexplained)} of {len(apart)} disagreements have no explanation: {unexplained[:10]}"
    return Counter((str(pair.kind), pair.ours) for pair in apart)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def assert_documented(text: str) -> None:
    """Compare a table with the page's."""
    assert text in PAGE.read_text(encoding="utf-8"), f"docs/agreement.md should have\n\n{text}\n"


def counted(grader: str, forms: Sequence[str], judged: Sequence[Judged]) -> str:
    """A table of how many completions of each form each grader accepts."""
    rows = []
    for form in dict.fromkeys(forms):
        own = [pair for pair, its in zip(judged, forms, strict=True) if its == form]
        apart = sum(pair.theirs != pair.ours for pair in own)
        rows.append((form, len(own), sum(pair.theirs for pair in own), sum(pair.ours for pair in own), apart))
    return table(("completion", "number", f"{grader} accepts", "we accept", "they differ on"), rows)


def compare(
    grader: str, programs: Sequence[Any], verdicts: Sequence[Any], theirs: Sequence[bool], kinds: Sequence[str | None]
) -> Counter[tuple[str, bool]]:
    """Compare verdicts on programs with another grader's, and their numbers with the page's; give the disagreements."""
    judged = [
        Judged(f"{program}: {verdict.detail['failure']}", accepted, verdict.score == 1, kind)
        for program, verdict, accepted, kind in zip(programs, verdicts, theirs, kinds, strict=True)
    ]
    assert_documented(counted(grader, [program.form for program in programs], judged))
    return disagreements(judged)
