r"""Answers that mix words and mathematics, and answers in numbered parts.

A sentence such as `\text{increasing on }(0,\frac12)` is read as a sequence of words and formulas. Two sentences are the same
answer if their words are the same and their formulas are equal, so that no list of words decides what a sentence means. Words
without formulas are `Words`, which are compared as text.

An answer such as `(a) 2 (b) 3` is read in parts, so that the letters do not become factors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby

from verifiers.math.reading.cursor import CLOSING_BRACKETS, OPENING_BRACKETS
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.normalize import folded_words
from verifiers.math.reading.tokens import Token
from verifiers.math.tree import ListOf, Node, Relation, Sentence, Symbol, Words, walk
from verifiers.math.vocabulary import FUNCTIONS, RELATIONS, SIGNS_OF_STATEMENTS

FormulaReader = Callable[[list[Token]], Node]
"""Reads the tokens of one formula or one part; the last token is the end token."""

_PUNCTUATION = frozenset((",", ";", ":", ".", "'", '"', "`", "!", "?", "*", "**", "\\\\"))
_OPENING, _CLOSING = frozenset("(["), frozenset(")]")
_BETWEEN_WORDS = frozenset((".", ",", "-", "'"))
_NAMES = (tuple("abcdefgh"), ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii"), tuple("12345678"))
_MAX_WORDS_OF_ITEM = 3
_ARTICLE_AT_END = re.compile(r"(?:^|\s)(?:a|an|the)$")  # before a formula
_OPERATORS = frozenset(("cdot", "circ", "times", "div", "to"))
_END = Token("end", "")


def sentence(tokens: list[Token], read: FormulaReader) -> Node:
    """Read a sequence of words and formulas, or a list of short sentences such as `center (1,2), radius 3`.

    Raises:
        UnreadableError: If a formula cannot be read.
    """
    if tokens[0].text in ("a", "A") and tokens[1].kind == "word" and tokens[1].text not in RELATIONS:  # an article
        tokens = tokens[1:]
    words = words_alone(tokens)
    pieces = _pieces(tokens[:-1])
    if len(pieces) > 1 and (words or all(map(says_something, pieces))):
        ended = [[*piece, _END] for piece in pieces]
        items = [_named_value(piece, read) or words_alone(piece) or _one_sentence(piece, read) for piece in ended]
        if all(_word_count(item) <= _MAX_WORDS_OF_ITEM for item in items):
            return ListOf(tuple(items))
    return words or _one_sentence(tokens, read)


def words_alone(tokens: list[Token]) -> Words | None:
    """Read words, letters and the punctuation between them as prose; None for anything else."""
    if tokens[0].text == "-" or not all(
        (token.kind in ("word", "symbol", "end") and not token.bold) or token.text in _BETWEEN_WORDS for token in tokens
    ):
        return None
    return Words(folded_words("".join(f" {token.text}" if token.spaced else token.text for token in tokens)))


def _pieces(tokens: list[Token]) -> list[list[Token]]:
    """The pieces between commas and `and`, outside of brackets."""
    pieces: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in OPENING_BRACKETS) - (token.text in CLOSING_BRACKETS)
        if depth == 0 and token.text in (",", ";", "and"):
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [piece for piece in pieces if piece]


def _named_value(tokens: list[Token], read: FormulaReader) -> Relation | None:
    """Read a value after words and a colon; None for anything else."""
    colon = next((index for index, token in enumerate(tokens) if token.text == ":"), 0)
    if not colon or words_alone([*tokens[:colon], _END]) is None:
        return None
    try:
        value = read(tokens[colon + 1 :])
    except UnreadableError:
        return None
    name = Symbol(f"text:{folded_words(_text(tokens[:colon]))}")
    return None if isinstance(value, Relation) else Relation((":",), (name, value))


def _word_count(node: Node) -> int:
    return sum(len(subtree.text.split()) for subtree in walk(node) if isinstance(subtree, Words))


def _one_sentence(tokens: list[Token], read: FormulaReader) -> Node:
    """Read a sequence of words and formulas; without formulas, it becomes `Words`."""
    parts: list[Node] = []
    for wordy, group in groupby(range(len(tokens) - 1), key=lambda index: _says(tokens, index)):
        run = [tokens[index] for index in group]
        run = run if wordy else _formula(run, behind_word=bool(parts))
        if not run:
            continue
        part = Words(_ARTICLE_AT_END.sub("", folded_words(_text(run)))) if wordy else _read_or_quoted(run, read)
        before = parts[-1] if parts else None
        if isinstance(part, Words) and isinstance(before, Words):
            parts[-1] = Words(f"{before.text} {part.text}")
        elif part != Words(""):
            parts.append(part)
    return parts[0] if len(parts) == 1 else Sentence(tuple(parts))


def says_something(tokens: list[Token]) -> bool:
    """Whether the tokens contain a word, or a sign that is read as a word."""
    return any(_says(tokens, index) for index in range(len(tokens)))


def _says(tokens: list[Token], index: int) -> bool:
    """Whether a token is a word but not the name of an environment."""
    token = tokens[index]
    if token.kind == "word":
        return not (index > 1 and tokens[index - 1].text == "{" and tokens[index - 2].text in ("begin", "end"))
    if token.text in ("max", "min") and token.kind == "command":  # a noun
        after = tokens[min(index + 1, len(tokens) - 1)]
        noun = index > 0 and tokens[index - 1].kind == "word" and after.text in (".", ",", ";", "")
        return after.kind == "word" or noun
    if token.text in ("A", "I") and index + 1 < len(tokens) and tokens[index + 1].kind == "word":
        return index == 0 or tokens[index - 1].text in (".", ",")  # the article, the pronoun
    if token.text == "!":  # exactly one
        return index > 0 and tokens[index - 1].text == "exists"
    return token.kind == "command" and token.text in SIGNS_OF_STATEMENTS and not _is_below(tokens, index)


def _is_below(tokens: list[Token], index: int) -> bool:
    """Whether an arrow is inside braces, as in the subscript of a limit."""
    before = [token.text for token in tokens[:index]] if tokens[index].text == "to" else []
    return before.count("{") > before.count("}")


def _text(tokens: list[Token]) -> str:
    return " ".join(token.text for token in tokens).replace("exists !", "exists one")


def _formula(run: list[Token], *, behind_word: bool) -> list[Token]:
    """The tokens between two words, without surrounding punctuation and without hyphens that link them to the words."""
    while run and (run[0].text in _PUNCTUATION or (run[0].text == "-" and behind_word and not run[0].spaced)):
        run = run[1:]
    run = _without_punctuation(run)
    opened = sum((token.text in _OPENING) - (token.text in _CLOSING) for token in run)
    stray = ("(", ")")[opened < 0] if opened else ""  # the bracket of a remark in words
    if run and run[0].text == stray:
        return _formula(run[1:], behind_word=behind_word)
    return _formula(run[:-1], behind_word=behind_word) if run and run[-1].text == stray else run


def _without_punctuation(run: list[Token]) -> list[Token]:
    """Tokens without final punctuation, such as a hyphen; a factorial or a prime is kept."""
    while run and ((run[-1].text == "-" and len(run) > 1) or run[-1].text in _PUNCTUATION - {"!", "'"}):
        run = run[:-1]
    return run


def _read_or_quoted(run: list[Token], read: FormulaReader) -> Node:
    """Read a formula; keep signs and letters that form no formula, such as an arrow or the index of a word, as words.

    Raises:
        UnreadableError: If unreadable tokens have a value that would have to be compared.
    """
    try:
        return read([*run, _END])
    except UnreadableError:
        of_word = run[0].text in ("_", "^") or (len(run) == 1 and run[0].text in FUNCTIONS)
        if not of_word and any(_has_meaning(token) for token in run):
            raise
        return Words(_text(run))


def _has_meaning(token: Token) -> bool:
    """Whether a token outside any readable formula belongs to mathematics rather than to a word or a unit."""
    return token.kind == "number" or (
        token.kind == "command" and token.text not in _OPERATORS and token.text not in RELATIONS
    )


def numbered_parts(tokens: list[Token], read: FormulaReader) -> ListOf | None:
    """Read the parts of an answer such as `(a) 2 (b) 3`, named by these marks; None if it does not start with the first mark.

    Raises:
        UnreadableError: If a part cannot be read.
    """
    marks = _marks(tokens)
    names = [name for name, _, _ in marks]
    if len(marks) < 2 or marks[0][1] != 0 or not any(sorted(names) == sorted(known[: len(names)]) for known in _NAMES):
        return None
    ends = [start for _, start, _ in marks[1:]] + [len(tokens) - 1]
    bodies = [_without_punctuation(tokens[start:end]) for (_, _, start), end in zip(marks, ends, strict=True)]
    if not all(bodies):
        return None
    values = [read([*body, _END]) for body in bodies]
    return ListOf(
        tuple(Relation(("=",), (Symbol(f"part {name}"), value)) for name, value in zip(names, values, strict=True))
    )


def _marks(tokens: list[Token]) -> list[tuple[str, int, int]]:
    """Every bracketed letter or number that spaces or a text command set off: name, start, and the index after it."""
    marks: list[tuple[str, int, int]] = []
    for end, token in enumerate(tokens[:-1]):
        as_text = end > 1 and tokens[end - 1].kind == "word" and tokens[end - 2].text == "("
        if token.text != ")" or not (as_text or tokens[end + 1].spaced):
            continue
        start = end - 2 if as_text else end
        while start > 0 and not (
            as_text or tokens[start].spaced or (tokens[start].text, tokens[start - 1].text) == ("(", ",")
        ):
            start -= 1
        name = "".join(inner.text for inner in tokens[start:end]).removeprefix("(")
        if any(name in known for known in _NAMES):
            marks.append((name, start, end + 1))
    return marks
