"""Code for rows of `mathematics.toml`: make problems with a context, and find the rows of NuminaMath that can be judged."""

from __future__ import annotations

from rlvr_envs.data import Row
from rlvr_envs.data.answers import boxed_statement
from rlvr_envs.data.programs import optional_text
from verifiers import Problem

_NO_ANSWER = ("", "proof", "notfound", "not found")


def olympiadbench(row: Row, default_id: str) -> Problem:
    """Make a problem from a row of OlympiadBench; see `ToProblem`."""
    answers = row.texts("final_answer")
    if not answers or not all(answer.strip() for answer in answers):
        raise row.wrong_type("at least one answer", list(answers), "final_answer")
    answer = ", ".join(text.strip() for text in answers)
    context = optional_text(row, "context").strip()
    used = ("question", "context", "final_answer")
    # The columns for pictures are dropped, since this part of the data set has no pictures.
    metadata = {name: value for name, value in row.without(*used).items() if not name.startswith("image")}
    return Problem(
        default_id,
        f"{context}\n\n{row.text('question')}" if context else row.text("question"),
        answer,
        metadata | {"gold_completion": boxed_statement(answer)},
    )


def can_be_judged(row: Row, split: str) -> bool:
    """Whether a row of NuminaMath is marked as valid, is not a proof, and has an answer."""
    return (
        row.value("question_type") != "proof"
        and row.value("problem_is_valid") == "Yes"
        and row.value("solution_is_valid") == "Yes"
        and _text(row, "problem") != ""
        and _text(row, "answer").lower() not in _NO_ANSWER
    )


def _text(row: Row, column: str) -> str:
    value = row.value(column)
    return "" if value is None else str(value).strip()
