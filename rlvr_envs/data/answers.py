"""Rows with a problem and its final answer, as in most data sets of mathematics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rlvr_envs.data.rows import Row, own_id
from verifiers import Problem
from verifiers.completion import boxed_answer

_MARK = "#### "


def boxed_statement(answer: str) -> str:
    r"""Make a gold completion for an answer without a solution, which states the answer in `\boxed{}`."""
    return f"The answer is $\\boxed{{{answer}}}$."


def _plain(row: Row, column: str) -> str:
    value = row.value(column)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise row.wrong_type("an answer, a string or an integer", value, column)
    return str(value)


def _after_hashes(row: Row, column: str) -> str:
    solution = row.text(column)
    _, mark, answer = solution.rpartition(_MARK)
    if not mark or not answer.strip():
        raise row.error(f"column {column!r} should end with the final answer after {_MARK!r}, got: …{solution[-60:]!r}")
    return answer.strip()


def _boxed(row: Row, column: str) -> str:
    solution = row.text(column)
    answer = boxed_answer(solution)
    if not answer:
        raise row.error(f"column {column!r} should hold its final answer in \\boxed{{}}, got: …{solution[-60:]!r}")
    return answer


def _number(row: Row, column: str) -> str:
    value = row.value(column)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise row.wrong_type("a finite number", value, column)
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise row.wrong_type("a finite number", value, column)
    return str(int(number)) if number.is_integer() else str(value)


FORMS: Mapping[str, Callable[[Row, str], str]] = MappingProxyType(
    {"plain": _plain, "text": Row.text, "hashes": _after_hashes, "boxed": _boxed, "number": _number}
)
r"""The forms of an answer in its column. `plain`: a string or an integer; `text`: a string; `hashes`: the text after the last
`####` of a solution, as in GSM8K; `boxed`: the last `\boxed{}` of a solution, as in MATH; `number`: a number in a column of
floats, in which integers lose the decimal point."""


@dataclass(frozen=True)
class FinalAnswers:
    """Turns rows with a problem and its final answer into problems; the other columns are metadata."""

    problem: str | Sequence[str] = "problem"
    """The column of the problem. If several columns are given, the first column that a row has is used."""
    answer: str = "answer"
    """The column of the final answer."""
    form: str = "plain"
    """The form of the answer in its column: a key of `FORMS`."""
    solution: str | None = None
    """The column of a solution, which becomes the gold completion; None if the gold completion only states the answer."""
    number: str | None = None
    """The column of an integer that is the problem's id; None if there is no such column."""
    key: str | None = None
    """The column that holds the problem's id as text; None if there is no such column."""
    repeated: Sequence[str] = ()
    """Redundant columns, which are left out of the metadata."""

    def __call__(self, row: Row, default_id: str) -> Problem:
        """Make the problem; see `ToProblem`."""
        columns = (self.problem,) if isinstance(self.problem, str) else tuple(self.problem)
        used = (*columns, self.answer, self.solution, self.number, self.key, *self.repeated)
        answer = FORMS[self.form](row, self.answer)
        gold = row.text(self.solution) if self.solution else boxed_statement(answer)
        metadata = row.without(*filter(None, used)) | {"gold_completion": gold}
        return Problem(self._id(row, default_id), row.text(*columns), answer, metadata)

    def _id(self, row: Row, default_id: str) -> str:
        if self.number is not None:
            return own_id(default_id, row.integer(self.number))
        return default_id if self.key is None else own_id(default_id, row.text(self.key))


def has_answer(row: Row, split: str) -> bool:
    """Whether a row has an answer. In some published sets a few rows have none, and these rows can't be judged."""
    return row.value("answer") not in (None, "")
