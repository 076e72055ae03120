"""Tasks of the fields other than mathematics: problems whose reference is tests, a query, a schema or instructions."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """A problem with right and wrong answers, each under the name of its family."""

    subject: str
    prompt: str
    reference: object
    """The reference as plain data, so that the problem can be sent anywhere."""
    right: Mapping[str, Sequence[str]]
    """Right answers by family; the family `itself` holds the answer from which the other answers were made."""
    wrong: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Field:
    """A kind of task, and the ways in which a completion gives an answer to it."""

    draw: Callable[[random.Random], Task]
    wordings: tuple[str, ...]
    """Texts with `{answer}` in the answer's place."""
    no_answers: tuple[str, ...] = ("I can't do this.", "", "Let me think about what is asked.", "<think>\nFirst, ")
    """Completions that are wrong for every task."""


def swaps(table: str) -> dict[str, tuple[str, ...]]:
    """Make the table for `mutants` from text such as `"< <= >, in not_in, not"`: each token with its replacements."""
    rows = ([token.replace("_", " ") for token in row.split(" ")] for row in table.split(", "))
    return {token: tuple(others) or ("",) for token, *others in rows}


def mutants(text: str, swaps: Mapping[str, Sequence[str]]) -> list[str]:
    """All texts in which one word or operator is replaced as the table says; operators of several characters stay whole."""
    words = "|".join(re.escape(token) for token in swaps if token[0].isalnum())
    signs = "|".join(re.escape(token) for token in swaps if not token[0].isalnum())
    pattern = rf"(?<![\w.'\"])(?:{words})(?![\w.'\"])|(?<![-+*/%<>=!])(?:{signs})(?![-+*/%<>=!])"
    return [
        text[: match.start()] + other + text[match.end() :]
        for match in re.finditer(pattern, text)
        for other in swaps[match[0]]
    ]


def fenced(language: str, *, bare: bool) -> tuple[str, ...]:
    """Wordings with an answer in a block of a language or, if `bare`, also as the whole completion."""
    block = f"```{language}\n{{answer}}\n```"
    words = (
        f"Here is my solution.\n\n{block}\n\nIt does what was asked.",
        f"1. Read the task.\n2. Answer it:\n\n{block}",
    )
    return (block, *words, f"{block}<|im_end|>", *(["{answer}"] if bare else []))
