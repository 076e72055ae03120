"""Rows with a problem and its final answer, as in most data sets of mathematics."""

from __future__ import annotations

from dataclasses import dataclass

from rlvr_envs.data.rows import Row
from verifiers import Problem


def boxed_statement(answer: str) -> str:
    r"""A gold completion for an answer without a solution: it states the answer in `\boxed{}`."""
    return f"The answer is $\\boxed{{{answer}}}$."


@dataclass(frozen=True)
class FinalAnswers:
    """Turns rows with a problem and its final answer into problems: a string or an integer; the other columns are metadata."""

    name: str
    """Name of the benchmark, the first part of the ids."""
    problem: str = "problem"
    """The column of the problem."""
    answer: str = "answer"
    """The column of the final answer."""
    number: str | None = None
    """The column of the number that is the problem's id; None if rows have none, so that the index is used."""
    repeated: tuple[str, ...] = ()
    """Redundant columns, which are left out of the metadata."""

    def __call__(self, row: Row, default_id: str) -> Problem:
        """Make the problem; see `ToProblem`."""
        value = row.value(self.answer)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise row.wrong_type("an answer, a string or an integer", value, self.answer)
        answer = str(value)
        used = (self.problem, self.answer, *self.repeated, *([self.number] if self.number else []))
        return Problem(
            id=f"{self.name}/{row.integer(self.number)}" if self.number else default_id,
            prompt=row.text(self.problem),
            reference=answer,
            metadata=row.without(*used) | {"gold_completion": boxed_statement(answer)},
        )


def has_answer(row: Row, split: str) -> bool:
    """Whether a row has an answer: some published sets have a few rows without one, which nothing could judge."""
    return row.value("answer") not in (None, "")
