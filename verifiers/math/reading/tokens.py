"""Tokens of LaTeX and plain mathematical text.

Every pattern is linear in the text (no nested quantifiers), and `tokenize` rejects text longer than `MAX_LENGTH`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.normalize import to_ascii
from verifiers.math.reading.numerals import based_literal, literal, starts_number
from verifiers.math.reading.phrases import in_digits
from verifiers.math.reading.spellings import plain_tex
from verifiers.math.tree import BasedNumber, Node
from verifiers.math.units import SINGLE_LETTER_UNITS, UNITS
from verifiers.math.vocabulary import (
    BOLD_COMMANDS,
    FUNCTIONS,
    GRAMMAR_WORDS,
    NAMES,
    ROMAN_COMMANDS,
    SILENT_COMMANDS,
    SYNONYMS,
    TEXT_COMMANDS,
)

MAX_LENGTH = 4000
"""Maximum length of an answer, in characters; also below Python's limit on the digits of an integer."""
MAX_TOKENS = 1500
"""Maximum number of tokens of an answer."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token: `kind` is `number`, `symbol`, `word`, `command`, `sign` or `end`."""

    kind: str
    text: str
    spaced: bool = False
    """Whether a space precedes the token."""
    value: Node | None = None
    """The value of a number."""
    bold: bool = False
    """Whether the token is a letter in bold, such as a vector or a matrix."""


_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)

_SCIENTIFIC_X = re.compile(r"\s*[xX]\s*(?=10\s*(?:\^|\*\*))")
_COMMAND = re.compile(r"\\([A-Za-z]+)\*?")
_LETTERS = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]{2}")
_PROSE_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?(?:[0-9]+(?![0-9.,]))?")
_SYLLABLE = re.compile(r"[b-df-hj-np-tv-z][aeiou][b-df-hj-np-tv-z]")  # "12 men", "3 red"
_UNIT_EXPRESSION = re.compile(r"(?:[A-Za-z]+\s*(?:\^\s*\{?[0-9]\}?\s*)?(?:[/*]\s*|\\cdot\s*)?)+$")
_ENDS_UNIT = re.compile(r"\.?\s*(?:$|[,.;/)}]|and\b|per\b|\\text|[0-9]+\s*(?:\\text\{\s*)?(?:sec|s\b|ms))")
_ROMAN_NUMERAL = re.compile(r"I{2,3}|I?V|VI{1,3}|IX")
_THEN_MINUTES = re.compile(r"\s*[0-9]{1,2}\s*(?:m|mins?)\b")
_BAR = re.compile(r"\s*(?:\||\\vert|\\rvert|\\lvert)")
_NO_BRACKET = re.compile(r"\s*\.")
_BOLD_LETTERS = re.compile(r"\s*(?:\{\s*([A-Za-z])\s*\}|\{\s*[A-Za-z]+|[A-Za-z](?![A-Za-z]))")
_CALLED_WITHOUT_SPACE = frozenset(("sin", "cos", "tan", "cot", "sec", "csc", "ln", "log"))
_SPACE = re.compile(r"(?:\s|\\[ ,;:!>]|~|\\(?:q?quad|thinspace)(?![A-Za-z]))+")
_SIGNS = frozenset(("\\\\", "\\{", "\\}", "\\|", "\\%", "\\$", "\\#", "\\&", "<=", ">=", "!=", "==", "**", "->", "=>"))


class _Tokenizer:
    """Reads tokens from one text; `brackets` is the number of open round, square and set brackets."""

    def __init__(self, text: str, *, thousands: bool, decimal_comma: bool, prose: bool) -> None:
        self.text, self.thousands, self.decimal_comma, self.prose = text, thousands, decimal_comma, prose
        self.position, self.brackets, self.spaced = 0, 0, False
        self.bold_end = 0  # the end of the last letters in bold
        self.tokens: list[Token] = []

    def read(self) -> list[Token]:
        while self.position < len(self.text):
            if len(self.tokens) > MAX_TOKENS:
                raise UnreadableError(f"more than {MAX_TOKENS} tokens")
            if space := _SPACE.match(self.text, self.position):
                self.position, self.spaced = space.end(), True
            else:
                self._next()
        return self.tokens

    def emit(self, kind: str, text: str, value: Node | None = None) -> None:
        bold = kind == "symbol" and self.position <= self.bold_end
        self.tokens.append(Token(kind, text, self.spaced, value, bold))
        self.spaced = False

    def _next(self) -> None:
        sign = self.text[self.position]
        if starts_number(self.text, self.position) or (sign == "(" and based_literal(self.text, self.position)):
            self._number()
        elif sign.isalpha():
            self._letters()
        elif sign == "\\":
            self._command()
        else:
            self._sign()

    def _sign(self) -> None:
        pair = self.text[self.position : self.position + 2]
        if pair == "!=" and not self.spaced and self.tokens and self.tokens[-1].kind == "number":
            pair = "!"  # a factorial and its value
        text = pair if pair in _SIGNS else "..." if self.text.startswith("...", self.position) else pair[0]
        if not text.isprintable():
            raise UnreadableError(f"the control character {text!r}")
        self.position += len(text)
        if text == "$":
            self._dollar()
            return
        self.brackets += (text in ("(", "[", "\\{")) - (text in (")", "]", "\\}") and self.brackets > 0)
        self.emit("sign", text)

    def _dollar(self) -> None:
        """Read a dollar sign: as currency if the text has an odd number of them, otherwise as a delimiter of mathematics."""
        if self.text.replace("\\$", "").count("$") % 2:
            self.emit("sign", "\\$")
        else:
            self.spaced = True

    def _number(self) -> None:
        before = self.tokens[-1].text if self.tokens else ""
        raised = before == "^" and self.text[self.position] != "("  # an index then belongs to the base
        number = None if raised else based_literal(self.text, self.position)
        number = number or literal(
            self.text,
            self.position,
            grouped=before not in ("_", "^", "sqrt"),
            listed=not self.thousands or self.brackets > 0,
            decimal_comma=self.decimal_comma,
        )
        self.position = number.end
        self.emit("number", number.text, number.value)
        if not isinstance(number.value, BasedNumber) and (x := _SCIENTIFIC_X.match(self.text, self.position)):
            self.position = x.end()
            self.emit("command", "times")

    def _letters(self) -> None:
        match = (_PROSE_WORD if self.prose else _LETTERS).match(self.text, self.position)
        if match is None:
            raise UnreadableError(f"the unsupported letter {self.text[self.position]!r}")
        self.position = match.end()
        run = match[0]
        if (
            self.prose
            or not run.isascii()
            or _is_word(run, self.tokens, spaced=self.spaced, raised=self.text.startswith("^", self.position))
            or self._is_letter_unit(run)
        ):
            self.emit("word", run)
        elif run in FUNCTIONS:
            self.emit("word" if self._is_time_unit(run) else "command", run)
        elif len(run) > 1 and _ROMAN_NUMERAL.fullmatch(run):
            self.emit("symbol", run)
        elif run.lower() in NAMES and run not in ("Pi", "PI"):
            self.emit("command", NAMES[run.lower()])
        else:
            self._symbols(run)

    def _is_letter_unit(self, run: str) -> bool:
        """Whether a letter starts the unit that ends the answer: `m` after a number and a space, or `s` in `km/s`."""
        before = self.tokens[-1] if self.tokens else None
        if before is None or run not in SINGLE_LETTER_UNITS:
            return False
        if before.text in ("/", "cdot", "*"):
            return len(self.tokens) > 1 and self.tokens[-2].kind == "word"
        if run == "h" and before.kind == "number" and _THEN_MINUTES.match(self.text, self.position):
            return True
        script = len(self.tokens) > 1 and self.tokens[-2].text in ("^", "_")
        if not self.spaced or not (before.kind == "number" or before.text == "}"):
            return False
        rest = _UNIT_EXPRESSION.fullmatch(self.text, self.position - len(run))
        if rest is None or not all(name in UNITS for name in _LETTERS.findall(rest[0])):
            return False
        quotient = "/" in rest[0]
        return quotient or (not script and before.kind == "number" and ("^" not in rest[0] or run == "m"))

    def _is_time_unit(self, run: str) -> bool:
        """Whether `min` or `sec` after a number is a unit: nothing that could be its argument follows."""
        if run not in ("min", "sec") or not self.tokens:
            return False
        below = self.tokens[-1].text == "/" and len(self.tokens) > 1 and self.tokens[-2].kind == "word"
        return (below or _ends_value(self.tokens[-1])) and _ENDS_UNIT.match(self.text, self.position) is not None

    def _symbols(self, run: str) -> None:
        """Split a run of letters into a known function or name at its end, and a symbol for each other letter."""
        for name in ("sqrt", "pi", "sin", "cos", "tan", "log", "ln"):
            if run.endswith(name) and 0 < len(run) - len(name) <= 2:
                self._symbols(run[: -len(name)])
                self.emit("command", name)
                return
        for letter in run:
            self.emit("symbol", letter)

    def _command(self) -> None:
        match = _COMMAND.match(self.text, self.position)
        if match is None:
            self._sign()
            return
        name = SYNONYMS.get(match[1], match[1])
        self.position = match.end()
        if name not in FUNCTIONS and name[:-1] in _CALLED_WITHOUT_SPACE:
            name, self.position = name[:-1], self.position - 1
        if name in TEXT_COMMANDS or name in ROMAN_COMMANDS:
            self._upright(name)
        elif name in SILENT_COMMANDS:
            self._silent(name)
        elif name in "{}[]|:()":
            self.position -= 1
            self.text = self.text[: self.position] + " " + self.text[self.position + 1 :]
            self.emit("sign", "\\" + name if name in "{}" else name)
        else:
            self.emit("command", name)

    def _silent(self, name: str) -> None:
        r"""Skip typography; only `\\left|` and `\\right|` matter, since they show whether a bar opens or closes."""
        if name in BOLD_COMMANDS:
            letters = _BOLD_LETTERS.match(self.text, self.position)
            self.bold_end = letters.end() if letters is not None else 0
            if letters is not None and letters[1] is not None:  # the letter may have scripts and arguments
                self.position = letters.end()
                self.emit("symbol", letters[1])
            return
        bar = _BAR.match(self.text, self.position)
        if bar and name in ("left", "right", "bigl", "bigr", "Bigl", "Bigr"):
            self.position = bar.end()
            self.emit("command", "lvert" if name.endswith(("left", "l")) else "rvert")
        elif (dot := _NO_BRACKET.match(self.text, self.position)) and name in ("left", "right"):
            self.position = dot.end()

    def _closing_brace(self, start: int) -> int:
        depth = 0
        for match in _BRACE.finditer(self.text, start):
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if depth == 0:
                return match.start()
        raise UnreadableError("an unclosed group")

    def _upright(self, name: str) -> None:
        """Read text inside mathematics: words, except single roman letters, constants and function names."""
        content = self._upright_content(name)
        formula = name in TEXT_COMMANDS and "\\" in content and not _WORD.search(_COMMAND.sub(" ", content))
        inner = _Tokenizer(
            content, thousands=self.thousands, decimal_comma=self.decimal_comma, prose=not formula
        ).read()
        if name in ROMAN_COMMANDS or self._is_upright_name(content.strip()):
            follows_number = name != "operatorname" and self._follows_number()
            called = self.text.startswith(("(", "\\left("), self.position)
            inner = [one for token in inner for one in _roman(token, may_be_unit=follows_number and not called)]
        if inner:
            inner[0] = Token(inner[0].kind, inner[0].text, inner[0].kind == "word", inner[0].value)
        self.tokens += inner
        self.spaced = not inner or inner[-1].kind == "word"

    def _follows_number(self) -> bool:
        """Whether a unit may be here: after a value, or after another unit."""
        if not self.tokens:
            return False
        before = self.tokens[-1]
        joined = before.text in ("/", "cdot", "*") and len(self.tokens) > 1 and self.tokens[-2].kind == "word"
        return before.kind == "word" or joined or (before.kind != "symbol" and _ends_value(before))

    def _upright_content(self, name: str) -> str:
        """The argument: a group in braces; without braces, a name (TeX would take only its first letter) or one letter."""
        start = self.text.find("{", self.position)
        if start >= 0 and not self.text[self.position : start].strip(" *"):
            end = self._closing_brace(start)
            self.position = end + 1
            return self.text[start + 1 : end]
        bare = re.compile(r"[\s*]*([A-Za-z]+)").match(self.text, self.position)
        if bare is None:
            raise UnreadableError(f"\\{name} without an argument")
        length = len(bare[1]) if bare[1] in FUNCTIONS or bare[1] in UNITS else 1
        self.position = bare.start(1) + length
        return bare[1][:length]

    def _is_upright_name(self, content: str) -> bool:
        r"""Whether text is upright mathematics, such as the constants in `5\text{i}` and `\text{e}^2`, or `\text{lcm}(4,6)`."""
        rest = self.text[self.position :].strip()
        alone = not self.tokens and not rest
        if len(content) == 1:
            counted = content.isupper() and bool(self.tokens) and _ends_value(self.tokens[-1])
            return not alone and content not in UNITS and not counted
        called = rest.startswith(("(", "\\left("))
        return content in NAMES or (content in FUNCTIONS and bool(rest) and (called or content not in UNITS))


def _ends_value(token: Token) -> bool:
    return token.kind in ("number", "symbol") or token.text in ("}", ")", "pi")


def _roman(token: Token, *, may_be_unit: bool) -> list[Token]:
    """Read upright letters as a function, a constant or symbols (two may be a product); words and units are unchanged."""
    text = token.text
    if token.kind != "word" or (may_be_unit and text in UNITS):
        return [token]
    if text in FUNCTIONS:
        return [Token("command", text, token.spaced)]
    if text in NAMES:
        return [Token("command", NAMES[text], token.spaced)]
    product = len(text) == 2 and text.islower() and not (text in UNITS or text in GRAMMAR_WORDS or may_be_unit)
    return [Token("symbol", letter, token.spaced) for letter in text] if len(text) == 1 or product else [token]


def _is_word(run: str, before: list[Token], *, spaced: bool, raised: bool) -> bool:
    if len(run) == 1 or run in FUNCTIONS or run.lower() in NAMES or (run == "in" and _in_exponent(before)):
        return False
    if run.isupper() and len(run) == 2 and before and before[-1].text == "{":
        return False  # a segment, as in `\\frac{NO}{BO}`
    counted = spaced and bool(before) and before[-1].kind == "number" and _SYLLABLE.fullmatch(run) is not None
    name = len(run) > 2 and run.istitle() and not raised  # `Cxe^x` is not a name
    if (
        counted
        or name
        or run.lower() in GRAMMAR_WORDS
        or run in ("Rs", "So", "We", "If", "By")
        or (before and before[-1].kind == "word" and run.islower())
    ):
        return True
    if run in UNITS and before:
        abbreviated = before[-1].text == "." and len(before) > 1 and before[-2].kind == "word"
        if abbreviated or before[-1].kind in ("number", "word") or before[-1].text in ("}", ")", "pi"):
            return True
    return len(run) >= 4 and not any(
        run.endswith(name) and len(run) - len(name) <= 2 for name in ("sqrt", "sin", "cos", "tan", "log")
    )


def _in_exponent(tokens: list[Token]) -> bool:
    """Whether a group in braces after a caret is open, in which `in` is a product with the imaginary unit."""
    depth = 0
    for index in range(len(tokens) - 1, 0, -1):
        depth += (tokens[index].text == "{") - (tokens[index].text == "}")
        if depth > 0 and tokens[index - 1].text == "^":
            return True
        depth = min(depth, 0)
    return False


def tokenize(text: str, *, thousands: bool = True, decimal_comma: bool = False) -> list[Token]:
    """Split an answer into tokens.

    Args:
        text: The answer, LaTeX or plain, without mathematics delimiters around it.
        thousands: Whether digits grouped by bare commas are one number (never inside brackets).
        decimal_comma: Whether a comma between digits is the decimal sign.

    Raises:
        UnreadableError: If the text is too long or contains something that is not a token.
    """
    text = to_ascii(text.replace("\\pounds", "£"))
    if len(text) > MAX_LENGTH:
        raise UnreadableError(f"{len(text)} characters; at most {MAX_LENGTH} are read")
    if not text.isdecimal():  # most answers are decimal
        text = plain_tex(in_digits(text))
    tokens = _Tokenizer(text, thousands=thousands, decimal_comma=decimal_comma, prose=False).read()
    tokens.append(Token("end", ""))
    return _subscripts_first(tokens) if "_" in text and "^" in text else tokens


def _subscripts_first(tokens: list[Token]) -> list[Token]:
    """Put every subscript before the superscript next to it, since `v^2_0` means `v_0^2`."""
    index = 0
    while index < len(tokens):
        middle = _end_of_script(tokens, index) if tokens[index].text == "^" else index
        if middle > index and middle < len(tokens) and tokens[middle].text == "_":
            end = _end_of_script(tokens, middle)
            tokens[index:end] = tokens[middle:end] + tokens[index:middle]
            index += end - middle
        index += 1
    return tokens


def _end_of_script(tokens: list[Token], start: int) -> int:
    """The end of the super- or subscript whose sign is at `start`."""
    depth = 0
    for index in range(start + 1, len(tokens)):
        depth += (tokens[index].text == "{") - (tokens[index].text == "}")
        if depth <= 0:
            return index + 1
    return start
