"""One row of a source, with typed access to its columns and errors that name the file and the line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from verifiers import DataError, Message, _integers


class Stored(Protocol):
    """The place in storage where a row is kept.

    This place can be pickled, so that a problem made from the row can be pickled, too.
    """

    def read(self, columns: Sequence[str]) -> dict[str, object]:
        """Read these columns of the row again, if the row has them.

        Raises:
            DataError: If the row is no longer there.
        """
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a data source."""

    values: Mapping[str, object]
    """The row's values by column."""
    index: int
    """Position among the rows of its split, from 0; blank lines do not count."""
    location: str
    """Location of the row for error messages, such as `"data/gsm8k/test.jsonl, line 18"`; lines count from 1."""
    stored: Stored | None = field(default=None, compare=False, repr=False)
    """The place from which large columns can be read again, so that these columns need not stay in memory. None for a row that
    exists only in memory."""

    def value(self, *columns: str) -> object:
        """Return the value of the first of these columns that the row has.

        A name with dots is a path, unless a column has this name: `reward_model.ground_truth` is a key in the column
        `reward_model`, and `prompt.0.content` is a key in the first item of the column `prompt`.

        Raises:
            DataError: If the row has none of these columns; the message names the location, the existing columns or keys, and
                the nearest of them.
        """
        for column in columns:
            if column in self.values:
                return self.values[column]
        for column in columns:
            if column.partition(".")[0] in self.values:
                return self._nested(column)
        wanted = " or ".join(map(repr, columns))
        present = ", ".join(map(repr, self.values)) or "none"
        if len(self.values) == 1 and re.search(r"[;\t|]", next(iter(self.values))):
            present += " (one column: are the values separated by commas?)"
        raise self.error(f"no column {wanted}. Columns found: {present}.{self._nearest(columns)}")

    def _nested(self, path: str) -> object:
        first, *rest = path.split(".")
        value, reached = self.values[first], first
        for name in rest:
            if isinstance(value, Mapping) and name in value:
                value = value[name]
            elif isinstance(value, list | tuple) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            else:
                raise self.error(f"no {path!r}: {reached!r} holds {_content(value)}")
            reached = f"{reached}.{name}"
        return value

    def text(self, *columns: str) -> str:
        """Return the string in the first of these columns that the row has.

        Raises:
            DataError: If there is no such column, the value is not a string, or the text contains half of a surrogate pair.
        """
        value = self.value(*columns)
        if not isinstance(value, str):
            raise self.wrong_type("a string", value, *columns)
        self.check_characters(value, self._present(columns))
        return value

    def integer(self, *columns: str) -> int:
        """Return the integer in the first of these columns that the row has.

        Raises:
            DataError: If there is no such column, or the value is not an integer.
        """
        value = self.value(*columns)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong_type("an integer", value, *columns)
        return value

    def texts(self, *columns: str) -> tuple[str, ...]:
        """Return the strings in the first of these columns that the row has.

        Raises:
            DataError: If there is no such column, or the value is not a list of strings.
        """
        value = self.value(*columns)
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise self.wrong_type("a list of strings", value, *columns)
        return tuple(value)

    def check_characters(self, value: object, column: str) -> None:
        r"""Check that a column's text, or all text in its lists and mappings, consists of valid Unicode characters.

        Raises:
            DataError: If a text contains half of a surrogate pair, such as JSON's `"\ud800"`; the message names the location.
        """
        if isinstance(value, str):
            if (half := _half_pair(value)) is not None:
                raise self.error(
                    f"column {column!r} holds half of a surrogate pair as its character {half + 1}, in "
                    f"{value[max(half - 20, 0) : half + 21]!a}, where Unicode text was expected: write the character itself or "
                    "both halves, or leave the row out"
                )
        elif isinstance(value, Mapping):
            for key, item in value.items():
                self.check_characters(item, f"{column}.{key}")
        elif isinstance(value, list | tuple):
            for index, item in enumerate(value):
                self.check_characters(item, f"{column}.{index}")

    def check_prompt(self, prompt: str | Sequence[Message], column: str) -> None:
        """Check that a prompt is not empty and consists of valid Unicode characters.

        Raises:
            DataError: If the prompt's text or all its messages are empty, or any text contains half of a surrogate pair.
        """
        if isinstance(prompt, str):
            self.check_characters(prompt, column)
            empty = prompt == ""
        else:
            self.check_characters([{"role": said.role, "content": said.content} for said in prompt], column)
            empty = not any(said.content for said in prompt)
        if empty:
            raise self.error(
                f"column {column!r} holds an empty prompt, where a question was expected: write it, or leave the row out"
            )

    def without(self, *columns: str) -> dict[str, object]:
        """The row without these columns; the other columns become a problem's metadata."""
        return {column: value for column, value in self.values.items() if column not in columns}

    def error(self, message: str) -> DataError:
        """Build the error for this row."""
        return DataError(f"{self.location}: {message}")

    def wrong_type(self, expected: str, value: object, *columns: str) -> DataError:
        """Build the error for a column whose value is not of the expected type."""
        return self.error(
            f"column {self._present(columns)!r} should hold {expected}, got {type(value).__name__}: {_excerpt(value)}"
        )

    def _present(self, columns: tuple[str, ...]) -> str:
        """The name of the first of these columns that the row has; the first name if the row has none of these columns."""
        return next((name for name in columns if name in self.values), columns[0])

    def _nearest(self, columns: tuple[str, ...]) -> str:
        for column in columns:
            near = difflib.get_close_matches(column, list(self.values), n=1, cutoff=0.5)
            if near:
                return f" Did you mean {near[0]!r}?"
        return ""


def own_id(default_id: str, own: str | int) -> str:
    """The id of a problem whose source has ids of its own, such as `"aime25/7"` instead of the default `"aime25/test/0"`."""
    return f"{default_id.partition('/')[0]}/{own}"


def _half_pair(text: str) -> int | None:
    """The position of the first half of a surrogate pair without its other half in a text; None if the text is valid."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def _content(value: object) -> str:
    """Describe the content of a value, for an error about a path with a name that is not in the value."""
    if isinstance(value, Mapping):
        return f"the keys {', '.join(map(repr, value)) or 'none'}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return "nothing" if value is None else f"{type(value).__name__}: {_excerpt(value)}"


def _excerpt(value: object, limit: int = 80) -> str:
    text = _integers.shown(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
