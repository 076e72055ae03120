"""A piece of a response without its markup: emphasis, quotation marks, formula delimiters, TeX's text commands, HTML, bullets.

Markup comes in pairs, whose order and number do not matter. An unpaired sign is text, as are `$` in `$5` and `*` in `3 * 4`.
Two asterisks are never text, since a piece may begin or end inside bold text.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

TEXT_COMMANDS = (
    "text|textbf|textit|textrm|textsf|texttt|textnormal|mathbf|mathrm|mathit|mathsf|boldsymbol|bm|emph|underline"
    "|mbox|hbox"
)
"""TeX commands that change only the typeface."""
BOX_COMMANDS = "boxed|fbox|framebox"
_TOKEN = re.compile(
    rf"""^(?=[ \t]*+[>\#*+•–`~-])(?P<line>[ \t]*+(?:(?:`{{3,}}+|~{{3,}}+)[^`\n]*+$
    |(?:>[ \t]?)*+(?:\#{{1,6}}+(?=[ \t*_])[ \t]*+|[-*+•–][ \t]++(?=\S))?))
    |(?=[\\{{}}$<*_`"'“”‘’])(?:(?P<literal>\\\\|\\[$%&\#_*`,;:!~])
    |(?P<command>\\(?:(?P<box>{BOX_COMMANDS})|{TEXT_COMMANDS})[ \t]*+\{{)
    |(?P<brace>\\?[{{}}])
    |(?P<math>\$\$?|\\[()\[\]])
    |(?P<emphasis>\*+|_+|`+|"{{1,2}}|'{{1,2}}|[“”‘’])
    |(?P<html></?(?:b|strong|i|em|u|p|span|mark|center|div|code|br)(?:[ ][^<>\n]{{0,100}}+)?/?>))
    |(?P<gap>\n[ \t]*+(?=\n))""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_LINE_MARK = re.compile(r"[>#\-+•–]|\*[ \t]")
_ANY_SIGN = re.compile(r"[\\{}$<*_`\"'“”‘’>#~\-+•–]")
_ANY_MARK = re.compile(r"[\\{}$<*_`\"'“”‘’]|^[ \t]*+[>#~\-+•–]", re.MULTILINE)
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_BEFORE_EMPHASIS = frozenset(" \t\r\n([{\"'“‘-–—/:,;.!?>*_$`")
_OPENING = frozenset(" \t\r\n([{“‘")
_AFTER_EMPHASIS = frozenset(" \t\r\n)]}\"'”’-–—/:,;.!?<*_$`…\\")
_CLOSER = {"$": "$", "$$": "$$", r"\(": r"\)", r"\[": r"\]"}


@dataclass(slots=True)
class _Piece:
    """A part of the source: text, or markup, which the plain text leaves out."""

    start: int
    end: int
    at: int
    """The position of the piece in the plain text; for markup, the position where it would be."""
    kind: str = "text"
    """`"text"`, or the kind of markup: in lower case if the piece opens the markup, in upper case if it closes it."""
    partner: int = -1
    """The index of the other piece of the pair; -1 without a pair."""


def view_of(source: str, *, inline: bool = False) -> View:
    """The view of a text. Recent views are cached, since the reader and a verifier look at the same texts.

    Args:
        source: The text.
        inline: Whether the text begins within a line, so that no character at its start marks a list or a heading.
    """
    return _view(source, inline and _LINE_MARK.match(source) is not None)


class View:
    """A text with and without its markup; `view_of` makes it."""

    __slots__ = ("_pieces", "_source", "plain", "values")

    def __init__(self, source: str, first: int) -> None:
        self._source = self.plain = source
        self._pieces = [_Piece(0, len(source), 0)]
        self.values: list[tuple[int, int]] = []
        """Spans of the plain text that are a formula, bold or code; of nested spans, only the outermost."""
        if _ANY_SIGN.search(source) and _ANY_MARK.search(source):
            self._pieces = _Reader(source, first).pieces()
            self.plain = "".join(source[piece.start : piece.end] for piece in self._pieces if piece.kind == "text")
            self.values = sorted(self._marked())

    def _marked(self) -> Iterator[tuple[int, int]]:
        end = -1
        for piece in self._pieces:
            if piece.kind in ("math", "bold", "code", "box") and piece.partner >= 0 and piece.at >= end:
                end = self._pieces[piece.partner].at
                if end > piece.at:
                    yield piece.at, end

    def formulas(self) -> list[tuple[int, int]]:
        """The spans of formulas in the plain text; no sentence ends within a formula."""
        pieces = self._pieces
        return [
            (piece.at, pieces[piece.partner].at)
            for piece in pieces
            if piece.kind in ("math", "box") and piece.partner >= 0
        ]

    def origin(self, at: int) -> int:
        """The position in the source of a character of the plain text."""
        if at >= len(self.plain):
            return len(self._source)
        number = bisect_right(self._pieces, at, key=lambda piece: piece.at) - 1
        while self._pieces[number].kind != "text" or self._pieces[number].start == self._pieces[number].end:
            number -= 1
        piece = self._pieces[number]
        return piece.start + at - piece.at

    def place(self, origin: int) -> int:
        """The position in the plain text of a character of the source; for markup, the position where it would be."""
        for piece in self._pieces:
            if origin < piece.end:
                return piece.at + (max(0, origin - piece.start) if piece.kind == "text" else 0)
        return len(self.plain)

    def content(self, start: int, end: int) -> str:
        """The source of a span of the plain text, with the pairs of TeX delimiters inside it and without any other markup."""
        if len(self.plain) == len(self._source):  # nothing is marked
            return self.plain[start:end].strip()
        parts: list[str] = []
        inside = [
            number for number, piece in enumerate(self._pieces)
            if (piece.at < end and piece.at + (piece.end - piece.start if piece.kind == "text" else 0) > start)
            or (piece.kind != "text" and start <= piece.at <= end)
        ]  # fmt: skip
        numbers = set(inside)
        for number in inside:
            piece = self._pieces[number]
            if piece.kind == "text":
                first, last = max(start - piece.at, 0), min(end - piece.at, piece.end - piece.start)
                parts.append(self._source[piece.start + first : piece.start + last])
            elif piece.kind in ("math", "MATH", "tex", "TEX") and piece.partner in numbers:
                parts.append("$" if piece.kind in ("math", "MATH") else self._source[piece.start : piece.end])
        return "".join(parts).strip()


_view = functools.lru_cache(64)(View)


class _Reader:
    """Divides a text into pieces and pairs the marks."""

    def __init__(self, source: str, first: int) -> None:
        self._source = source
        self._tokens = list(_TOKEN.finditer(source, first))
        self._pieces: list[_Piece] = []
        self._open: list[tuple[str, str, int]] = []
        """The open markup: kind, closing sign, and index of the piece."""
        self._formula = ""
        self._nested = 0
        self._closers = self._closing_places()

    def pieces(self) -> list[_Piece]:
        """The pieces of the whole text, in order."""
        position = 0
        for token in self._tokens:
            if token.start() < position:
                continue
            self._add(position, token.start(), "text")
            position = token.end()
            if not self._mark(token):
                self._add(token.start(), token.end(), "text")
        self._add(position, len(self._source), "text")
        self._restore()
        at = 0
        for piece in self._pieces:
            piece.at = at
            at += piece.end - piece.start if piece.kind == "text" else 0
        return self._pieces

    def _add(self, start: int, end: int, kind: str) -> None:
        if end > start:
            self._pieces.append(_Piece(start, end, 0, kind))

    def _mark(self, token: re.Match[str]) -> bool:
        """Treat a token as markup; False if it is text."""
        if token["brace"]:
            return self._brace(token)
        if token["command"]:
            self._opened(token, "box" if token["box"] else "tex", "}")
            return True
        if token["math"]:
            return self._math(token)
        if token["literal"] or (self._formula and not self._wraps(token)):
            return False
        if token["html"]:
            self._html(token)
            return True
        if token["emphasis"]:
            return self._emphasis(token)
        if token["line"]:
            self._add(token.start(), token.end(), "line")
            return True
        self._open = [entry for entry in self._open if entry[0] in ("tex", "box", "brace", "math")]
        return False

    def _wraps(self, token: re.Match[str]) -> bool:
        """Whether a token in a formula encloses the whole content of the formula, or of other markup in the formula."""
        if token["html"]:
            return token[0].startswith("</") or f"</{_tag_name(token[0])}>" in self._source[token.end() :]
        if not token["emphasis"] or not self._open:
            return False
        opening = self._pieces[self._open[-1][2]] if self._open[-1][2] >= 0 else None
        if opening is not None and not self._source[opening.end : token.start()].strip():
            return True
        if self._open[-1][0] not in ("bold", "code", "quote") or len(self._open) < 2:
            return False
        outer = self._open[-2][1]
        return (
            re.compile(rf"\s*(?:{re.escape(outer)}|</{re.escape(outer)}>)").match(self._source, token.end()) is not None
        )

    def _opened(self, token: re.Match[str], kind: str, closing: str) -> None:
        self._open.append((kind, closing, len(self._pieces)))
        self._add(token.start(), token.end(), kind)

    def _closed(self, index: int, start: int, end: int) -> None:
        kind, _, number = self._open[index]
        del self._open[index:]
        self._pieces[number].partner = len(self._pieces)
        self._add(start, end, kind.upper())
        self._pieces[-1].partner = number

    def _brace(self, token: re.Match[str]) -> bool:
        if token[0].startswith("\\"):
            return False
        if token[0] == "{":
            self._open.append(("brace", "}", -1))
            return False
        for index in range(len(self._open) - 1, -1, -1):
            kind, closing, _ = self._open[index]
            if closing == "}":
                if kind == "brace":
                    del self._open[index:]
                    return False
                self._closed(index, token.start(), token.end())
                return True
        return False

    def _math(self, token: re.Match[str]) -> bool:
        sign = token[0]
        if self._formula:
            if sign == self._formula and self._nested:
                self._nested -= 1
                self._add(token.start(), token.end(), "stray")
                return True
            if sign != self._formula and _CLOSER.get(sign) == self._formula:
                self._nested += 1  # the same delimiters twice
                self._add(token.start(), token.end(), "stray")
                return True
            if sign != self._formula or not self._closes(token):
                return False
            for index in range(len(self._open) - 1, -1, -1):
                if self._open[index][0] == "math":
                    self._closed(index, token.start(), token.end())
                    break
            self._formula = ""
            return True
        closing = _CLOSER.get(sign)
        if closing is None:
            return False
        if not self._is_closed(token, closing):
            return False
        self._opened(token, "math", closing)
        self._formula = closing
        return True

    def _closes(self, token: re.Match[str]) -> bool:
        if token[0] != "$":
            return True
        before, after = self._source[: token.start()][-1:], self._source[token.end() : token.end() + 1]
        return before != "" and not before.isspace() and not ("0" <= after <= "9")

    def _is_closed(self, token: re.Match[str], closing: str) -> bool:
        """Whether a formula that begins here is closed; only the next single dollar sign can close a single dollar sign."""
        places = self._closers[closing]
        following = bisect_right(places, (token.end(), True))
        if following == len(places):
            return False
        return closing != "$" or (places[following][1] and not self._source[token.end()].isspace())

    def _closing_places(self) -> dict[str, list[tuple[int, bool]]]:
        """The positions of each closing sign, each with whether a formula can end there."""
        places: dict[str, list[tuple[int, bool]]] = {closing: [] for closing in _CLOSER.values()}
        for token in self._tokens:
            if token["math"] in places:
                places[token["math"]].append((token.start(), self._closes(token)))
        return places

    def _html(self, token: re.Match[str]) -> None:
        name = _tag_name(token[0])
        if token[0].startswith("</"):
            for index in range(len(self._open) - 1, -1, -1):
                if self._open[index][:2] == ("bold", name):
                    return self._closed(index, token.start(), token.end())
        elif name != "br":
            return self._opened(token, "bold", name)
        return self._add(token.start(), token.end(), "html")

    def _emphasis(self, token: re.Match[str]) -> bool:
        sign = token[0]
        before = self._source[token.start() - 1 : token.start()] if token.start() else ""
        after = self._source[token.end() : token.end() + 1]
        if sign[0] in _QUOTES or sign in _QUOTES.values():
            return self._quote(token, before, after)
        if sign[0] == "`":
            return self._paired(token, sign, "code") or self._start(token, sign, "code")
        is_edge_before = not before or before in _BEFORE_EMPHASIS
        is_edge_after = not after or after in _AFTER_EMPHASIS
        if len(sign) > 1 and sign[0] == "*":  # one asterisk may multiply, two only between digits and letters
            is_edge_before = is_edge_after = (
                is_edge_before or is_edge_after or not (before.isalnum() and after.isalnum())
            )
        if is_edge_after and before and before not in _OPENING and self._paired(token, sign, "bold"):
            return True
        if is_edge_before and after and not after.isspace():
            return self._start(token, sign, "bold")
        if len(sign) > 1 and sign[0] == "*" and is_edge_after and before and before not in _OPENING:
            self._add(token.start(), token.end(), "stray")
            return True
        return False

    def _quote(self, token: re.Match[str], before: str, after: str) -> bool:
        sign = token[0]
        if before and not before.isspace() and (not after or after in _AFTER_EMPHASIS):
            for index in range(len(self._open) - 1, -1, -1):
                if self._open[index][:2] == ("quote", sign):
                    self._closed(index, token.start(), token.end())
                    return True
        is_edge = not before or before in _BEFORE_EMPHASIS or sign in "“‘"
        if sign[0] in _QUOTES and after and not after.isspace() and is_edge:
            self._opened(token, "quote", _QUOTES.get(sign, sign))
            return True
        return False

    def _start(self, token: re.Match[str], sign: str, kind: str) -> bool:
        self._opened(token, kind, sign)
        return True

    def _paired(self, token: re.Match[str], sign: str, kind: str) -> bool:
        """Close the emphasis that a run of signs ends; one run may close several emphases."""
        start = token.start()
        while start < token.end():
            rest = token.end() - start
            for index in range(len(self._open) - 1, -1, -1):
                open_kind, opened, _ = self._open[index]
                if (
                    open_kind == kind
                    and opened[0] == sign[0]
                    and len(opened) <= rest
                    and (kind != "code" or len(opened) == rest)
                ):
                    self._closed(index, start, start + len(opened))
                    start += len(opened)
                    break
            else:
                break
        if start == token.start():
            return False
        if start < token.end():
            self._add(start, token.end(), "stray")
        return True

    def _restore(self) -> None:
        """Turn marks that were never closed into text, except double asterisks, tags and commands."""
        for piece in self._pieces:
            sign = self._source[piece.start : piece.end]
            if (
                piece.partner < 0
                and piece.kind in ("bold", "code", "math", "quote")
                and sign[0] != "<"
                and sign != "**"
            ):
                piece.kind = "text"


def _tag_name(tag: str) -> str:
    return tag.strip("</>").split(" ")[0].casefold()
