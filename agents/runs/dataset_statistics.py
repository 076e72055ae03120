"""Statistics of a data set: lengths, levels, kinds of references, repetitions, and problems that can't be judged."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import verifiers
from agents.runs.clusters import problem_cluster
from agents.runs.contamination import text_of
from verifiers import Problem, RLVRError, Verifier
from verifiers.unit_tests import AssertTests, CallTests, DeferredTests, StdioTests, Tests

QUANTILES = {"min": 0.0, "5%": 0.05, "25%": 0.25, "median": 0.5, "75%": 0.75, "95%": 0.95, "max": 1.0}
_SHOWN = 5
"""Maximum number of problems that are named for each kind of fault."""
_MOST_VALUES = 12
"""Maximum number of different values of a column that are all counted; with more, quantiles are given for numbers, and the most
frequent values for texts."""
_LEVELS = ("difficulty", "level", "rating")
"""Texts that mark a column of levels if its name contains one of them."""
_PROBE = "The answer is \\boxed{0}."
"""A completion that makes a verifier read the reference."""
_CHUNK = 256


class DatasetStatistics:
    """Counts the contents of a data set, problem by problem, without keeping the problems."""

    def __init__(self, measure: Callable[[Problem], int], unit: str, verifier: Verifier, verifier_name: str) -> None:
        """Begin with empty counts.

        Args:
            measure: Returns the length of a problem's prompt.
            unit: The unit of that length: `"characters"` or `"tokens"`.
            verifier: Reads the references, to find those that can't be read.
            verifier_name: The verifier's name, which determines how kinds of text are distinguished.
        """
        self._measure, self._unit = measure, unit
        self._verifier, self._verifier_name = verifier, verifier_name
        self._lengths: list[int] = []
        self._asked: set[str] = set()
        self._levels: dict[str, list[object]] = {}
        self._kinds: Counter[str] = Counter()
        self._prompts: dict[bytes, tuple[str, bytes]] = {}
        self._repeated: dict[str, list[str]] = {"exact": [], "white_space": [], "other_reference": []}
        self._faults: dict[str, list[tuple[str, str]]] = {"unreadable_references": [], "without_tests": []}
        self._without_gold = 0

    def add(self, problems: Sequence[Problem]) -> None:
        """Add problems to the counts."""
        for start in range(0, len(problems), _CHUNK):
            chunk = problems[start : start + _CHUNK]
            for problem in chunk:
                self._lengths.append(self._measure(problem))
                self._asked.add(problem_cluster(problem) or problem.id)
                self._without_gold += "gold_completion" not in problem.metadata
                for name, value in problem.metadata.items():
                    if any(part in name.lower() for part in _LEVELS) and isinstance(value, str | int | float):
                        self._levels.setdefault(name, []).append(value)
                self._count_repetition(problem)
            self._read_references(chunk)

    def _count_repetition(self, problem: Problem) -> None:
        text = text_of(problem)
        reference = _digest(_reference_text(problem.reference))
        for kind, key in (("exact", text), ("white_space", " ".join(text.split()))):
            first, earlier = self._prompts.setdefault(_digest(f"{kind}{key}"), (problem.id, reference))
            if first != problem.id:
                self._repeated[kind].append(problem.id)
                if kind == "white_space" and earlier != reference:
                    self._repeated["other_reference"].append(problem.id)

    def _read_references(self, problems: Sequence[Problem]) -> None:
        tested = [problem for problem in problems if isinstance(problem.reference, Tests | DeferredTests)]
        others = [problem for problem in problems if not isinstance(problem.reference, Tests | DeferredTests)]
        for problem in tested:
            self._kinds[self._read_tests(problem)] += 1
        verdicts = verifiers.verify_batch(self._verifier, [_PROBE] * len(others), others)
        for problem, verdict in zip(others, verdicts, strict=True):
            self._kinds[self._kind(problem.reference)] += 1
            if verdict.detail.get("unreadable_reference"):
                reason = verdict.detail.get("reason") or verdict.detail.get("error")
                self._faults["unreadable_references"].append((problem.id, str(reason)))

    def _read_tests(self, problem: Problem) -> str:
        """Return the kind of a problem's tests; record a problem without tests, or whose tests can't be made."""
        reference = problem.reference
        try:
            tests = reference.load() if isinstance(reference, DeferredTests) else reference
        except RLVRError as error:
            self._faults["without_tests"].append((problem.id, str(error)))
            return "unreadable tests"
        empty = isinstance(tests, CallTests | StdioTests) and not tests.cases
        if empty or (isinstance(tests, AssertTests) and not tests.asserts):
            self._faults["without_tests"].append((problem.id, "there are no cases"))
        return type(tests).__name__

    def _kind(self, reference: object) -> str:
        from verifiers.math import kind_of  # here, since `rlvr data --help` needs no verifier

        return kind_of(reference) if self._verifier_name == "math" else type(reference).__name__

    def report(self) -> dict[str, Any]:
        """The counts as plain data."""
        return {
            "problems": len(self._lengths),
            "distinct": len(self._asked),
            "prompt_length": {"unit": self._unit, **_quantiles(self._lengths)},
            "levels": {name: _distribution(values) for name, values in sorted(self._levels.items())},
            "references": dict(self._kinds.most_common()),
            "repeated_prompts": {kind: _listed(ids) for kind, ids in self._repeated.items()},
            **{kind: _with_reasons(pairs) for kind, pairs in self._faults.items()},
            "without_gold_completion": self._without_gold,
        }


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _reference_text(reference: object) -> str:
    """A text that is the same for equal references; tests that are not loaded are identified by a digest."""
    return str(getattr(reference, "digest", None) or repr(reference))


def _quantiles(numbers: Sequence[float]) -> dict[str, float]:
    if not numbers:
        return {}
    values = np.quantile(np.asarray(numbers, dtype=np.float64), list(QUANTILES.values()))
    return {**dict(zip(QUANTILES, map(_short, values), strict=True)), "mean": _short(float(np.mean(numbers)))}


def _short(number: float) -> float:
    return int(number) if float(number).is_integer() else round(float(number), 4)


def _distribution(values: Sequence[object]) -> dict[str, Any]:
    """How often each value occurs, or the quantiles of many numbers."""
    counts = Counter(values)
    numbers = [value for value in values if isinstance(value, int | float) and math.isfinite(value)]
    if len(counts) > _MOST_VALUES and len(numbers) == len(values):
        return {"quantiles": _quantiles(numbers)}
    frequent = counts.most_common(_MOST_VALUES)
    rest = len(values) - sum(number for _, number in frequent)
    return {
        "counts": {str(value): number for value, number in _in_order(frequent)},
        **({"others": rest} if rest else {}),
    }


def _in_order(pairs: Sequence[tuple[object, int]]) -> Iterator[tuple[object, int]]:
    """Sort numbers by size; leave other values sorted by frequency."""
    if all(isinstance(value, int | float) for value, _ in pairs):
        return iter(sorted(pairs))
    return iter(pairs)


def _listed(ids: Sequence[str]) -> dict[str, Any]:
    return {"count": len(ids), "first": list(ids[:_SHOWN])}


def _with_reasons(pairs: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
    return {"count": len(pairs), "first": [{"id": name, "reason": reason} for name, reason in pairs[:_SHOWN]]}
