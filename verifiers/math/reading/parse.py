"""Parses LaTeX or plain text into a typed tree.

Nothing is evaluated here. `MAX_DEPTH` limits the nesting both during parsing and in the resulting tree, so that every recursion
over a tree is bounded.
"""

from __future__ import annotations

import contextlib
import re

from verifiers.math import tree
from verifiers.math.reading.cursor import MAX_DEPTH
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.grammar import Parser
from verifiers.math.reading.normalize import unwrap
from verifiers.math.reading.phrases import answer_in_words, essence
from verifiers.math.reading.sentences import numbered_parts, says_something, sentence, words_alone
from verifiers.math.reading.tokens import Token, tokenize
from verifiers.math.tree import Node, Words

_DATE = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]|[0-3]?[0-9]/[0-3]?[0-9]/[0-9]{4}")
_LEADING_ZERO = re.compile(r"\b0(?=[0-9])")


def parse(
    text: str, *, thousands: bool = True, decimal_comma: bool = False, vectors: frozenset[str] = frozenset()
) -> Node:
    """Read an answer.

    Args:
        text: The answer, LaTeX or plain.
        thousands: Whether digits grouped by bare commas are one number.
        decimal_comma: Whether a comma between digits is the decimal sign.
        vectors: Names to read as vectors and matrices even without marks.

    Returns:
        The tree; `Words` for prose, a `Sentence` for words with mathematics among them.

    Raises:
        UnreadableError: If the text is neither mathematics within the bounds nor prose.
    """
    text = essence(unwrap(text))
    if not text:
        raise UnreadableError("an empty answer")
    if _DATE.fullmatch(text):
        return Words(_LEADING_ZERO.sub("", text))
    tokens = tokenize(text, thousands=thousands, decimal_comma=decimal_comma)
    if len(tokens) == 1:
        raise UnreadableError("an empty answer")
    words = words_alone(tokens)
    if words is not None and (known := answer_in_words(words.text)) is not None:
        return known
    node = read_tokens(tokens, vectors)
    if not _depth_within(node, MAX_DEPTH + 20):
        raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
    return node


def read_tokens(tokens: list[Token], vectors: frozenset[str]) -> Node:
    """Read tokens as the first of these that fits: implication, numbered parts, mathematics, named value, sentence.

    Raises:
        UnreadableError: If the tokens are none of these.
    """
    if (implication := _implication(tokens)) is not None:
        return implication
    with contextlib.suppress(UnreadableError):  # the letters in brackets may then be factors
        if (parts := numbered_parts(tokens, lambda part: read_tokens(part, vectors))) is not None:
            return parts
    try:
        return Parser(_with_set_braces(_last_conclusion(tokens)), vectors).answer()
    except UnreadableError:
        if not says_something(tokens):
            raise
        return sentence(tokens, lambda formula: Parser(formula, vectors).answer())


def _with_set_braces(tokens: list[Token]) -> list[Token]:
    """Tokens in which the braces of a set by condition, `{x|x>3}`, are set braces; all other tokens are unchanged."""
    texts = [token.text for token in tokens]
    if len(texts) < 7 or (texts[0], texts[-2]) != ("{", "}") or tokens[1].kind != "symbol":
        return tokens
    domain = 5 + (texts[4:5] == ["{"]) * 2 if texts[2:4] == ["in", "mathbb"] else 2
    bars = [sign for sign in texts if sign in ("|", ":")]
    if texts[domain] not in bars or len(bars) > 1 or "}" in texts[domain:-2]:
        return tokens
    return [Token("sign", "\\{"), *tokens[1:-2], Token("sign", "\\}"), tokens[-1]]


def _last_conclusion(tokens: list[Token]) -> list[Token]:
    """The tokens after the last arrow of implication."""
    last = max((index for index, token in enumerate(tokens) if token.text in ("implies", "=>")), default=-1)
    return tokens[last + 1 :]


def _implication(tokens: list[Token]) -> Words | None:
    """Read an implication between two letters for statements, which has no conclusion; None for anything else."""
    kinds = [token.kind for token in tokens]
    if len(tokens) != 4 or kinds[0] != "symbol" or kinds[2] != "symbol" or tokens[1].text not in ("implies", "=>"):
        return None
    return Words(f"{tokens[0].text} implies {tokens[2].text}")


def _depth_within(node: Node, limit: int) -> bool:
    level = [node]
    for _ in range(limit):
        level = [child for parent in level for child in tree.children(parent)]
        if not level:
            return True
    return False
