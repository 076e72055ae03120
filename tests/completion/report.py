"""Runs composed completions against the verifiers, and prints where these differ from the page."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from verifiers import Verifier, make
from verifiers.choice import ChoiceVerifier
from verifiers.countdown import CountdownVerifier

from .completions import Case, cases, rewrapped
from .pieces import VERIFIERS

JUDGES: dict[str, Verifier] = {
    "math": make("math"),
    "numeric": make("numeric"),
    "choice": ChoiceVerifier(),
    "countdown": CountdownVerifier(),
}
FAILURES = ("right refused", "wrong accepted", "wrong kind")


@dataclass(frozen=True, slots=True)
class Result:
    """A case, and what its verifier made of it."""

    case: Case
    outcome: str
    answer: str | None

    @property
    def failure(self) -> str:
        """What is wrong with the outcome, or nothing."""
        if self.case.expected == "correct":
            return "" if self.outcome == "correct" else "right refused"
        if self.outcome == "correct":
            return "wrong accepted"
        return "wrong kind" if self.case.expected == "no_answer" and self.outcome != "no_answer" else ""


def judged(case: Case) -> Result:
    """The verdict of the verifier of a case, an exception included, which is an outcome of its own."""
    try:
        verdict = JUDGES[case.verifier](case.completion, case.problem)
    except Exception as error:  # noqa: BLE001 - whatever it is, the report names it and goes on
        return Result(case, f"raised {error!r}", None)
    return Result(case, verdict.outcome.value, verdict.answer)


def table(results: Sequence[Result]) -> Iterable[str]:
    """Per verifier, for plain and for all cases: how many differ, of how many that can."""
    yield f"{'':<18}{'right refused':>22}{'wrong accepted':>22}{'wrong kind':>22}"
    for verifier in VERIFIERS:
        for name in ("plain", "all"):
            here = [r for r in results if r.case.verifier == verifier and (name == "all" or r.case.plain)]
            right = sum(r.case.expected == "correct" for r in here)
            unanswered = sum(r.case.expected == "no_answer" for r in here)
            counts = Counter(r.failure for r in here)
            cells = zip(FAILURES, (right, len(here) - right, unanswered), strict=True)
            line = "".join(f"{f'{counts[f]} of {n} {100 * counts[f] / max(n, 1):5.1f} %':>22}" for f, n in cells)
            yield f"{verifier:<10} {name:<7}{line}"


def pieces(results: Sequence[Result], least: int = 3) -> Iterable[str]:
    """The pieces with the largest share of failures."""
    seen, failed = Counter[str](), Counter[str]()
    for result in results:
        for piece in result.case.pieces:
            seen[piece] += 1
            failed[piece] += bool(result.failure)
    shares = sorted(((failed[p] / seen[p], p) for p in failed if failed[p] >= least), reverse=True)
    for share, piece in shares[:40]:
        yield f"{100 * share:5.1f} % of {seen[piece]:>5}  {piece}"


def examples(results: Sequence[Result], shown: int) -> Iterable[str]:
    """Failures, grouped by verifier, kind, scenario and form."""
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if result.failure:
            form = next((p.split()[1] for p in result.case.pieces if p.startswith("form ")), "no form")
            groups[f"{result.case.verifier}, {result.failure}: {result.case.pieces[0]}, {form}"].append(result)
    for name, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        yield f"\n{len(group)} x {name}"
        for result in sorted(group, key=lambda r: len(r.case.completion))[:shown]:
            yield f"  {result.case.completion!r}"
            gold = result.case.problem.reference
            yield f"    gold {gold!r}, expected {result.case.expected}, was {result.outcome} with {result.answer!r}"
            yield f"    {result.case.why}"


def main() -> None:
    """Reads the options and prints the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--show", type=int, default=0, help="examples of each group of failures")
    parser.add_argument("--pieces", action="store_true", help="the pieces that fail most often")
    parser.add_argument(
        "--rewrapped", action="store_true", help="also the cases with their wrappers in other orders, or twice"
    )
    options = parser.parse_args()
    results = [judged(case) for case in cases(options.seed, options.count)]
    print("\n".join(table(results)))
    if options.pieces:
        print("", *pieces(results), sep="\n")
    if options.show:
        print("\n".join(examples(results, options.show)))
    if options.rewrapped:
        good = [result.case for result in results if not result.failure]
        again = [judged(variant) for case in good for variant in rewrapped(case)]
        print("\nThe cases without a failure, with their wrappers in other orders, or twice:", *table(again), sep="\n")
        print("\n".join(examples(again, options.show)) if options.show else "")


if __name__ == "__main__":
    main()
