"""Reads from a problem what a comparison needs: the gold answer, the prompt, and the options of multiple choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from verifiers.completion.explicit import boxed_answer
from verifiers.math.reading.normalize import folded_words
from verifiers.math.reading.read import tree_or_none
from verifiers.math.reading.tokens import MAX_LENGTH
from verifiers.math.tree import (
    BasedNumber,
    Bracketed,
    Choice,
    Clock,
    Degrees,
    Divide,
    ListOf,
    Matrix,
    Mixed,
    NamedSet,
    Negate,
    Node,
    Number,
    Percent,
    Quantity,
    Relation,
    Sentence,
    SetOf,
    SetOperation,
    Words,
)
from verifiers.types import Problem


def gold_text(reference: object) -> str | None:
    """A reference as answer text; for a worked solution, its final answer. None if the reference holds no answer."""
    if isinstance(reference, bool) or not isinstance(reference, str | int | float | Fraction):
        return None
    if not isinstance(reference, str):
        limit = 10**MAX_LENGTH
        short = reference.denominator < limit if isinstance(reference, Fraction) else True
        return str(reference) if short and abs(reference) < limit else None  # None for NaN, too
    if "\\boxed" in reference or "\\fbox" in reference:
        boxed = boxed_answer(reference)
        return reference if boxed is None else boxed
    return reference.rpartition("####")[2].strip()


_KINDS: tuple[tuple[str, tuple[type[Node], ...]], ...] = (
    ("number", (Number, Mixed, BasedNumber, Percent)),
    ("quantity", (Quantity, Degrees, Clock)),
    ("words", (Words, Sentence)),
    ("choice", (Choice,)),
    ("set", (SetOf, NamedSet, SetOperation)),
    ("list", (ListOf,)),
    ("tuple or interval", (Bracketed,)),
    ("matrix", (Matrix,)),
    ("relation", (Relation,)),
)


def kind_of(reference: object) -> str:
    """The form of a gold answer: `"number"`, `"expression"`, `"words"` and so on, or `"unreadable"`."""
    text = gold_text(reference)
    tree = None if text is None else tree_or_none(text)
    if tree is None:
        return "unreadable"
    while isinstance(tree, Negate):
        tree = tree.value
    if isinstance(tree, Divide) and isinstance(tree.numerator, Number) and isinstance(tree.denominator, Number):
        return "number"
    return next((kind for kind, classes in _KINDS if isinstance(tree, classes)), "expression")


def prompt_text(problem: Problem | None) -> str:
    """The problem's prompt as one text."""
    if problem is None:
        return ""
    if isinstance(problem.prompt, str):
        return problem.prompt
    return "\n".join(message.content for message in problem.prompt if message.role != "assistant")


def choices_of(problem: Problem | None) -> dict[str, str]:
    """The text of each option by its letter, from the problem's metadata."""
    given = problem.metadata.get("choices") if problem is not None else None
    if isinstance(given, Mapping):
        return {str(letter).strip("() .").upper(): str(option) for letter, option in given.items()}
    if isinstance(given, Sequence) and not isinstance(given, str):
        return {chr(ord("A") + index): str(option) for index, option in enumerate(given)}
    return {}


def option_behind(letter: str, texts: Mapping[str, str]) -> Node | None:
    """The parsed option of a letter; None if the problem has no option with this letter."""
    tree = tree_or_none(f"({letter}) {texts[letter]}") if letter in texts else None
    return tree.content if isinstance(tree, Choice) else Words(folded_words(texts[letter])) if letter in texts else None
