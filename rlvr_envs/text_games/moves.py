"""Draw random moves that may be legal in a game that describes its moves in words.

TextArena's games don't list the legal moves. Nearly all games expect a move in brackets, and show in brackets all legal moves
(`[0], [4], [7]`), examples (`[play 3]`) or a pattern (`[row col]`). So moves are drawn from the texts in brackets, with or
without other numbers and squares. The game decides which moves are legal.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

_BRACKETED = re.compile(r"(\[(?:[^\[\]\n]|\[[^\[\]\n]*\]){1,80}\])( \$?[A-Z\d]+(?:\.[A-Z\d]+)?(?!\w))?")
_TAG = re.compile(r"\[(?:Player \d+|GAME)\]")
_ANY = ("[0]", "[0 0]", "[0, 0]", "[0 0 0 0]", "[a1]", "[a1 a1]")
"""Patterns of moves in many games."""
_SQUARE = re.compile(r"(?<![A-Za-z])([A-Za-z])(\d)(?!\d)")
_NUMBER = re.compile(r"\d+")
_WORDS = re.compile(r"<[^<>]*>|[A-Za-z_]+")
_KEEP = 0.2
"""Probability that a square stays unchanged."""
_LARGEST = 12
"""A new number is at most this number, or at most twice the number that it replaces."""
_DRAWS = 4
"""Number of draws for each requested move; more than one, since some moves are drawn twice."""


def draw_moves(view: Sequence[str], rng: random.Random, count: int) -> list[str]:
    """Draw up to `count` different moves, in the order in which they should be tried.

    Args:
        view: The game's messages to a player and the player's turns, alternating; the first and the last are messages.
        rng: Generator of random numbers.
        count: Maximum number of moves.
    """
    latest = _patterns(view[-1:])
    patterns = list(dict.fromkeys((*_patterns(view[::2]), *_ANY)))
    shown = rng.sample(latest, len(latest)) + rng.sample(patterns, len(patterns))
    moves: dict[str, None] = {}
    for _ in range(count * _DRAWS):
        if shown and rng.random() < 0.5:
            move = shown.pop(0)
        else:
            move = _changed(rng.choice(latest if latest and rng.random() < 0.5 else patterns), rng)
        moves[move] = None
        if len(moves) == count:
            break
    return list(moves)


def _patterns(texts: Sequence[str]) -> list[str]:
    """All different texts in brackets, each alone and with the text after it, such as `[Propose] $1.50`."""
    found = [match for text in texts for match in _BRACKETED.finditer(text) if not _TAG.match(match[0])]
    return list(dict.fromkeys(part for match in found for part in (match[1], match[0])))


def _changed(pattern: str, rng: random.Random) -> str:
    """Replace a pattern's numbers and squares by others; a pattern without any gets numbers in place of words."""
    if _SQUARE.search(pattern) and rng.random() < 0.8:
        return _other_squares(pattern, rng)
    if _NUMBER.search(pattern):
        return _NUMBER.sub(lambda match: str(rng.randint(0, max(_LARGEST, 2 * int(match[0][:6])))), pattern)
    single = len(_WORDS.findall(pattern)) == 1
    return _WORDS.sub(lambda match: _number(match[0], rng, single=single), pattern)


def _other_squares(pattern: str, rng: random.Random) -> str:
    """Replace a pattern's squares. A later square is often near an earlier square, since many pieces move a step or two."""
    near = rng.random() < 0.7
    last: tuple[int, int] | None = None

    def square(match: re.Match[str]) -> str:
        nonlocal last
        first = ord("A" if match[1].isupper() else "a")
        if rng.random() < _KEEP:
            column, row = ord(match[1]) - first, int(match[2])
        elif near and last is not None:
            step = 1 if rng.random() < 0.7 else 2
            column, row = (min(max(at + rng.randint(-step, step), 0), 9) for at in last)
        else:
            size = 9 if rng.random() < 0.8 else 10  # the last square of most boards is h8
            column, row = rng.randrange(size - 1), rng.randrange(size)
        last = column, row
        return f"{chr(first + column)}{row}"

    return _SQUARE.sub(square, pattern)


def _number(word: str, rng: random.Random, *, single: bool) -> str:
    """A number to replace a placeholder such as `X`, `<number>` or `row`, or sometimes the word itself."""
    likely = single or len(word) == 1 or word.startswith("<")
    return str(rng.randint(0, _LARGEST)) if rng.random() < (0.9 if likely else 0.5) else word
