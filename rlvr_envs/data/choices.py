"""Multiple-choice problems: a question with lettered choices, and the letter of the right choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from types import MappingProxyType

from rlvr_envs.data.rows import Row, own_id
from verifiers import Problem


def read_choices(row: Row, column: str) -> tuple[str, ...]:
    """Read a column's list of choices.

    Raises:
        DataError: If the column holds anything but a list of 2 to 26 texts, or a text contains half of a surrogate pair.
    """
    choices = row.texts(column)
    row.check_characters(choices, column)
    if not 2 <= len(choices) <= len(ascii_uppercase):
        raise row.error(f"column {column!r} should hold 2 to 26 choices, got {list(choices)}")
    return choices


def question_text(question: str, choices: Sequence[str]) -> str:
    """Put the choices below the question, one per line, such as `A) first choice`."""
    lines = (f"{letter}) {choice}" for letter, choice in zip(ascii_uppercase, choices, strict=False))
    return "\n".join([question, "", *lines])


def answer_letter(row: Row, column: str, choices: Sequence[str]) -> str:
    """Read the letter of the right choice from a column with the choice's position (from 0), letter or text.

    Raises:
        DataError: If the column names none of the choices, or names two choices because a letter is also the text of another
            choice.
    """
    value = row.value(column)
    if isinstance(value, int):
        return position_letter(row, column, choices)
    letters = ascii_uppercase[: len(choices)]
    named = {letter for letter, choice in zip(letters, choices, strict=True) if value in (letter, choice)}
    if len(named) > 1:
        raise row.error(
            f"column {column!r} should hold the name of one choice, got {value!r}, which is ambiguous: it is the letter or "
            "text of two choices. Write the position (from 0) of the right choice"
        )
    if not named:
        raise row.error(
            f"column {column!r} should hold the letter, position (from 0) or text of one of the {len(choices)} choices, got "
            f"{value!r}"
        )
    return named.pop()


def position_letter(row: Row, column: str, choices: Sequence[str]) -> str:
    """Read the letter of the right choice from a column with the choice's position, from 0.

    Raises:
        DataError: If there is no choice at that position.
    """
    position = row.integer(column)
    if not 0 <= position < len(choices):
        raise row.error(f"column {column!r} should hold a position from 0 to {len(choices) - 1}, got {position}")
    return ascii_uppercase[position]


def lettered(row: Row, column: str, choices: Sequence[str]) -> str:
    """Read the letter of the right choice from a column of letters.

    Raises:
        DataError: If there is no choice with that letter.
    """
    letters = ascii_uppercase[: len(choices)]
    letter = row.text(column).strip()
    if len(letter) != 1 or letter not in letters:
        raise row.error(f"column {column!r} should hold a letter from A to {letters[-1]}, got {letter!r}")
    return letter


def choice_problem(
    identifier: str, question: str, choices: Sequence[str], letter: str, metadata: Mapping[str, object]
) -> Problem:
    """Build the problem of a question with choices, for the verifier `choice`."""
    gold = {"choices": tuple(choices), "gold_completion": f"The answer is {letter}."}
    return Problem(identifier, question_text(question, choices), letter, {**metadata, **gold})


FORMS: Mapping[str, Callable[[Row, str, Sequence[str]], str]] = MappingProxyType(
    {"position": position_letter, "letter": lettered}
)
"""The forms in which a column can hold the right choice: its position, from 0, or its letter."""


@dataclass(frozen=True)
class ChoiceRows:
    """Turns rows with a question and its choices into problems; the other columns are metadata."""

    right: str
    """The column of the right choice."""
    form: str
    """The form of the right choice in its column: a key of `FORMS`."""
    question: str = "question"
    """The column of the question."""
    options: str = "options"
    """The column of the list of choices."""
    key: str | None = None
    """The column of a text that is the problem's id; None if there is no such column."""
    repeated: Sequence[str] = ()
    """Redundant columns, which are left out of the metadata."""

    def __call__(self, row: Row, default_id: str) -> Problem:
        """Make the problem; see `ToProblem`."""
        choices = read_choices(row, self.options)
        letter = FORMS[self.form](row, self.right, choices)
        metadata = row.without(*filter(None, (self.question, self.options, self.right, self.key, *self.repeated)))
        identifier = default_id if self.key is None else own_id(default_id, row.text(self.key))
        return choice_problem(identifier, row.text(self.question), choices, letter, metadata)
