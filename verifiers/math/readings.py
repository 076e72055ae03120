"""The possible readings of an ambiguous answer, given its gold."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping

from verifiers.math.compare.choices import choice_letter
from verifiers.math.reading.assemble import mixed_number
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.normalize import folded_words
from verifiers.math.reading.read import ParsedAnswer, read, tree_or_none
from verifiers.math.reading.vector_marks import aligned, is_marked
from verifiers.math.tree import BasedNumber, Choice, ListOf, Node, SetOf, Words

_COMMA_GROUP = re.compile(r"[0-9],[0-9]{3}")
_LETTER_AS_BASE = re.compile(r"([0-9]+)_\{?([a-z])\}?")


def without_letter_as_base(answer: str, prompt: str) -> str:
    """Drop a letter that stands for the base of a numeral, as in `100100_b`, if the prompt mentions that base."""
    match = _LETTER_AS_BASE.fullmatch(answer)
    return match[1] if match is not None and re.search(rf"\bbase[-\s]\$?{match[2]}\b", prompt) else answer


def pairs_of_trees(
    gold: ParsedAnswer, answer: ParsedAnswer, choices: Mapping[str, Node], *, base_optional: bool
) -> Iterator[tuple[Node, Node]]:
    """Pair the gold's tree with each possible tree of the answer's text.

    Args:
        gold: The gold.
        answer: The answer.
        choices: The content of each letter of a multiple-choice problem.
        base_optional: Whether the base of a numeral may be omitted.
    """
    expected = gold.tree
    if choice_letter(expected) in choices:
        expected = Choice(str(choice_letter(expected)))
    elif isinstance(answer.tree, BasedNumber):
        expected = _in_capitals(gold) or expected
    marked = is_marked(gold.normal) or is_marked(answer.normal)
    for tree in _trees(gold, answer, choices, base_optional=base_optional):
        yield aligned(expected, tree) if marked else (expected, tree)


def _trees(
    gold: ParsedAnswer, answer: ParsedAnswer, choices: Mapping[str, Node], *, base_optional: bool
) -> Iterator[Node]:
    collection = isinstance(gold.tree, ListOf | SetOf)
    letters = answer.normal.replace(" ", "").isalpha()
    if isinstance(gold.tree, Words) and letters and folded_words(answer.normal) == gold.tree.text:
        yield gold.tree  # letters that were read as a product
    yield answer.tree
    if collection and _COMMA_GROUP.search(answer.text):
        with contextlib.suppress(UnreadableError):  # the first reading is then the only one
            yield read(answer.text, thousands=False).tree
    if isinstance(gold.tree, BasedNumber):
        if base_optional and answer.normal.upper() == gold.tree.digits:
            yield gold.tree
        elif (numeral := _in_capitals(answer)) is not None:
            yield numeral
    if (mixed := mixed_number(answer.tree)) is not None and not collection:
        yield mixed
    bare = not (isinstance(answer.tree, Choice) and answer.tree.content is not None)
    if bare and (letter := choice_letter(answer.tree)) in choices:
        yield Choice(str(letter))


def _in_capitals(text: ParsedAnswer) -> BasedNumber | None:
    """Read a numeral whose lower-case letters may be digits of its base; None for anything else."""
    tree = tree_or_none(text.normal.upper())
    return tree if isinstance(tree, BasedNumber) else None
