"""Verifiers made of verifiers: a weighted sum, a gate, the first part that applies, and a part for each kind of problem.

Each composition sends the whole batch to a part at once. A composition that asks several parts stores each part's score (None
if the part broke), outcome, answer and detail in `detail["parts"]`, by the part's name. If a part breaks, the whole verdict is
a `VERIFIER_ERROR`, never a score of 0.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, cast

from verifiers._settings import check_arguments, is_number
from verifiers.bounds import FINITE
from verifiers.errors import InvalidArgumentError, RLVRError
from verifiers.files import is_verifier_file
from verifiers.registry import VerifierSpec, make, verify_batch
from verifiers.types import Outcome, Problem, Verdict, Verifier

PartSpec = VerifierSpec | tuple[VerifierSpec, Mapping[str, object]]
"""Any verifier that `make` accepts, or a pair of such a verifier and its arguments, such as `("numeric", {"whole": True})`."""
Parts = Mapping[str, PartSpec] | Sequence[PartSpec]
"""Parts by name, or in order; parts in order are named by their positions, `"0"`, `"1"`, ..."""


class Composition(abc.ABC):
    """A verifier made of verifiers.

    Args:
        parts: The verifiers, by name or in order; see `Parts`.

    Raises:
        InvalidArgumentError: If there are no parts.
    """

    _asks_all: ClassVar[bool] = True
    """Whether every part judges every completion."""

    def __init__(self, parts: Parts) -> None:
        given: object = parts  # the command line passes whatever it reads
        if isinstance(given, str) or not isinstance(given, Mapping | Sequence) or not given:
            raise InvalidArgumentError(
                f"parts must be a list of verifiers or a mapping of names to them, got {parts!r}"
            )
        named = parts if isinstance(parts, Mapping) else {str(index): part for index, part in enumerate(parts)}
        self._parts = {name: _made(name, part) for name, part in named.items()}

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion."""
        return self.verify_batch([completion], [problem])[0]

    @property
    def unconditional_parts(self) -> tuple[Verifier, ...]:
        """The parts that judge every completion."""
        return tuple(self._parts.values()) if self._asks_all else ()

    @abc.abstractmethod
    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i."""

    def _rows(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[dict[str, Verdict]]:
        """Every part's verdict on each completion, by the part's name."""
        columns = [verify_batch(part, completions, problems) for part in self._parts.values()]
        return [dict(zip(self._parts, row, strict=True)) for row in zip(*columns, strict=True)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._parts!r})"


def _made(name: str, part: PartSpec) -> Verifier:
    try:
        spec, arguments = part_spec(part)
        return make(spec, **arguments)
    except RLVRError as error:
        raise type(error)(f"part {name!r}: {error}") from error


def part_spec(part: PartSpec) -> tuple[VerifierSpec, Mapping[str, object]]:
    """Split a part into the verifier that `make` takes and its arguments.

    Raises:
        InvalidArgumentError: If the part is neither a verifier nor a pair of a verifier and its arguments, or if it is a file,
            whose contents no record of the composition would show.
    """
    pair: tuple[object, ...] = part if isinstance(part, tuple) else (part, {})
    if len(pair) != 2 or (not callable(pair[0]) and not isinstance(pair[0], str)) or not isinstance(pair[1], Mapping):
        raise InvalidArgumentError(
            "expected a verifier or a pair (verifier, arguments), in a file a table with the key 'verifier'; "
            f"got {part!r}"
        )
    if is_verifier_file(pair[0]):
        raise InvalidArgumentError(f"a part can't be a file: replace {pair[0]} with its contents")
    return cast("tuple[VerifierSpec, Mapping[str, object]]", pair)


class WeightedSum(Composition):
    """Scores with the weighted sum of the parts' scores, as a `SCORED` verdict.

    The answer comes from the first part that found one. Each part in `detail` also has its `weight`.

    Args:
        parts: The verifiers, by name or in order; see `Parts`.
        weights: The weight of each part, by name or in the parts' order; by default 1 each.

    Raises:
        InvalidArgumentError: If there are no parts, or the weights do not match them, are not finite, or sum to 0, so that a
            score on which all parts agree would not count.
    """

    def __init__(self, parts: Parts, weights: Mapping[str, float] | Sequence[float] | None = None) -> None:
        super().__init__(parts)
        self._weights = _named_weights(list(self._parts), weights)

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i."""
        return [self._sum(verdicts) for verdicts in self._rows(completions, problems)]

    def _sum(self, verdicts: Mapping[str, Verdict]) -> Verdict:
        parts = {name: {"weight": self._weights[name], **report(verdict)} for name, verdict in verdicts.items()}
        errored = any(verdict.outcome is Outcome.VERIFIER_ERROR for verdict in verdicts.values())
        outcome = Outcome.VERIFIER_ERROR if errored else Outcome.SCORED
        score = math.nan if errored else sum(self._weights[name] * verdicts[name].score for name in verdicts)
        paid = None if errored else self._token_scores(verdicts)
        return Verdict(score, outcome, first_answer(verdicts), {"parts": parts}, paid, cost=total_cost(verdicts))

    def _token_scores(self, verdicts: Mapping[str, Verdict]) -> tuple[tuple[int, float], ...] | None:
        """Return the parts' token scores, weighted like their scores."""
        pairs = [
            (end, self._weights[name] * amount)
            for name, verdict in verdicts.items()
            for end, amount in verdict.token_scores or ()
        ]
        return tuple(sorted(pairs)) or None


def _named_weights(names: list[str], weights: Mapping[str, float] | Sequence[float] | None) -> dict[str, float]:
    if weights is None:
        return dict.fromkeys(names, 1.0)
    given: object = weights
    if not isinstance(given, Mapping | Sequence):
        raise InvalidArgumentError(f"weights must be a list or a mapping of part names to numbers, got {weights!r}")
    fits = weights.keys() == set(names) if isinstance(weights, Mapping) else len(weights) == len(names)
    if not fits:
        raise InvalidArgumentError(f"expected one weight for each of the parts {names}, got {weights!r}")
    named = weights if isinstance(weights, Mapping) else dict(zip(names, weights, strict=True))
    if not all(is_number(weight) and math.isfinite(weight) for weight in named.values()):
        raise InvalidArgumentError(f"weights must be finite numbers, got {weights!r}")
    if abs(math.fsum(named.values())) <= 1e-9 * math.fsum(map(abs, named.values())):
        raise InvalidArgumentError(f"weights must not sum to 0, since equal scores would cancel out; got {weights!r}")
    return {name: float(named[name]) for name in names}


class Gate(Composition):
    """Is correct if every part passes; otherwise gives the outcome of the first part that does not pass.

    A part passes when it is `CORRECT`, or `SCORED` with a score of at least `threshold`; a lower score counts as
    `INCORRECT`. `detail["failed"]` names the parts that did not pass.

    Args:
        parts: The verifiers, by name or in order; see `Parts`.
        threshold: Lowest passing score of a part whose outcome is `SCORED`.

    Raises:
        InvalidArgumentError: If there are no parts, or the threshold is not finite.
    """

    def __init__(self, parts: Parts, threshold: float = 1.0) -> None:
        super().__init__(parts)
        check_arguments(Annotated[float, FINITE], threshold=threshold)
        self._threshold = threshold

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i."""
        return [self._all(verdicts) for verdicts in self._rows(completions, problems)]

    def _all(self, verdicts: Mapping[str, Verdict]) -> Verdict:
        outcomes = {name: self._passed(verdict) for name, verdict in verdicts.items()}
        failed = {name: outcome for name, outcome in outcomes.items() if outcome is not Outcome.CORRECT}
        outcome = next(iter(failed.values()), Outcome.CORRECT)
        if Outcome.VERIFIER_ERROR in failed.values():
            outcome = Outcome.VERIFIER_ERROR
        detail = {"parts": reports(verdicts), "failed": list(failed)}
        return Verdict.of(outcome, first_answer(verdicts), detail=detail, cost=total_cost(verdicts))

    def _passed(self, verdict: Verdict) -> Outcome:
        if verdict.outcome is not Outcome.SCORED:
            return verdict.outcome
        return Outcome.CORRECT if verdict.score >= self._threshold else Outcome.INCORRECT


class FirstThatApplies(Composition):
    """Gives the verdict of the first part whose condition holds for the problem and which finds an answer.

    If a part's verdict is `NO_ANSWER`, the completion passes to the next part; if no part is left, the verdict is `NO_ANSWER`.
    `detail["applied"]` names the part that decided (None if none did); `detail["parts"]` holds the parts that were asked.

    Args:
        parts: The verifiers, by name or in order; see `Parts`.
        when: Conditions, by part name, for parts that judge only some problems. A part is asked only if its condition returns
            true for the problem.

    Raises:
        InvalidArgumentError: If there are no parts, or `when` is not a mapping of their names to functions.
    """

    _asks_all = False  # which part judges depends on the problem or the completion

    def __init__(self, parts: Parts, when: Mapping[str, Callable[[Problem], bool]] | None = None) -> None:
        super().__init__(parts)
        check_arguments(Mapping[str, Callable[..., bool]] | None, when=when)
        self._when = dict(when or {})
        unknown = self._when.keys() - self._parts
        if unknown:
            raise InvalidArgumentError(
                f"when names {sorted(unknown)}, which are not among the parts {list(self._parts)}"
            )

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i; a part sees only completions that no earlier part decided."""
        judged: list[dict[str, Verdict]] = [{} for _ in problems]
        for name, part in self._parts.items():
            undecided = [row for row, verdicts in enumerate(judged) if not _decided(verdicts)]
            rows = [row for row in undecided if self._applies(name, problems[row])]
            column = verify_batch(part, [completions[row] for row in rows], [problems[row] for row in rows])
            for row, verdict in zip(rows, column, strict=True):
                judged[row][name] = verdict
        return [applied_verdict(verdicts, [*verdicts][-1] if _decided(verdicts) else None) for verdicts in judged]

    def _applies(self, name: str, problem: Problem) -> bool:
        return name not in self._when or self._when[name](problem)


class ByMetadata(Composition):
    """Gives the verdict of the part that the problem's metadata names, for data sets of several kinds of problems.

    Args:
        parts: The verifiers, by the values that `metadata[key]` may have.
        key: The entry of the metadata that names the part, such as `"data_source"`.

    Raises:
        InvalidArgumentError: If there are no parts, or the key is not text.
    """

    _asks_all = False  # which part judges depends on the problem or the completion

    def __init__(self, parts: Parts, key: str) -> None:
        super().__init__(parts)
        check_arguments(str, key=key)
        self._key = key

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i; a problem that names no part is a `VERIFIER_ERROR`."""
        verdicts: dict[int, Verdict] = {}
        for name, part in self._parts.items():
            rows = [row for row, problem in enumerate(problems) if problem.metadata.get(self._key) == name]
            judged = verify_batch(part, [completions[row] for row in rows], [problems[row] for row in rows])
            verdicts.update(zip(rows, judged, strict=True))
        return [verdicts.get(row) or self._unnamed(problem) for row, problem in enumerate(problems)]

    def _unnamed(self, problem: Problem) -> Verdict:
        value = problem.metadata.get(self._key)
        error = f"problem {problem.id!r} has {self._key}={value!r}, which is none of {list(self._parts)}"
        return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": error})


def _decided(verdicts: Mapping[str, Verdict]) -> bool:
    return any(verdict.outcome is not Outcome.NO_ANSWER for verdict in verdicts.values())


def applied_verdict(verdicts: Mapping[str, Verdict], applied: str | None) -> Verdict:
    """The verdict of the part `applied` (`NO_ANSWER` if None), with the verdicts of all parts that judged in `detail`."""
    verdict = Verdict.of(Outcome.NO_ANSWER) if applied is None else verdicts[applied]
    detail = {"parts": reports(verdicts), "applied": applied}
    return Verdict(verdict.score, verdict.outcome, verdict.answer, detail, verdict.token_scores, total_cost(verdicts))


def reports(verdicts: Mapping[str, Verdict]) -> dict[str, dict[str, object]]:
    """The contents of `detail["parts"]`."""
    return {name: report(verdict) for name, verdict in verdicts.items()}


def report(verdict: Verdict) -> dict[str, object]:
    """Return the fields of a part's verdict that `detail` keeps, as plain data."""
    # None instead of a broken part's NaN: NaN is unequal to itself, and equal questions must have equal details.
    score = None if verdict.outcome is Outcome.VERIFIER_ERROR else verdict.score
    said: dict[str, object] = {"score": score, "outcome": str(verdict.outcome), "answer": verdict.answer}
    said["detail"] = dict(verdict.detail)
    return said if verdict.token_scores is None else {**said, "token_scores": verdict.token_scores}


def first_answer(verdicts: Mapping[str, Verdict]) -> str | None:
    """The answer of the first part that found an answer."""
    return next((verdict.answer for verdict in verdicts.values() if verdict.answer is not None), None)


def total_cost(verdicts: Mapping[str, Verdict]) -> dict[str, float]:
    """The sum of the parts' costs under each name."""
    total: dict[str, float] = {}
    for verdict in verdicts.values():
        for name, amount in verdict.cost.items():
            total[name] = total.get(name, 0.0) + amount
    return total
