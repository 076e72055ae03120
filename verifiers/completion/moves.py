"""The move that a player's turn makes in a game."""

from __future__ import annotations

import re

from verifiers.completion import words
from verifiers.completion.answers import Kind, find
from verifiers.completion.cut import cut
from verifiers.completion.mark import EXPLICIT, Form

_CUES = words.CueFinder(words.MOVES.pattern, words.MOVES)
_ASIDE = re.compile(r"[,;:.!?(]|\s(?:because|since|as|so|which|to)\b", re.IGNORECASE)
_FORMS: tuple[Form, ...] = (*EXPLICIT, "phrase", "value")


def move_in(turn: str) -> str:
    """The part of a turn that it marks or names as its move; without such a part, the whole turn without its thoughts.

    An explanation in a separate paragraph below the move is left out.
    """
    response = cut(turn).text
    marked = find(response, _Moves(), _FORMS).value
    return response.strip().partition("\n\n")[0] if marked is None else marked


class _Moves(Kind[str]):
    """Any text can be a move; words that explain it are left out."""

    cues = _CUES

    def read(self, content: str, form: Form) -> str | None:
        if form == "second":
            return None
        return (_ASIDE.split(content.strip(), maxsplit=1)[0] if form == "phrase" else content) or None
