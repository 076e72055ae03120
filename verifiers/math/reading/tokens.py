"""Tokens of LaTeX and plain mathematical text.

Every pattern is linear in the text (no nested quantifiers), and `tokenize` rejects text longer than `MAX_LENGTH`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from verifiers.math.reading.normalize import to_ascii
from verifiers.math.reading.phrases import in_digits
from verifiers.math.tree import BasedNumber, Node, Number
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
MAX_EXPONENT = 4000
"""Largest power of ten in a literal in scientific notation."""


class UnreadableError(ValueError):
    """Text that cannot be read as mathematics."""


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
    """Whether a letter is in bold, as vectors and matrices are."""


_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)

_SEPARATOR = r"(?:\{,\}|\\,|,\s*\\!\s*|\\!\s*,\s*(?:\\!\s*)?|\\;|\\ |~)"
_DIGITS = (
    rf"[0-9]{{1,3}}(?:(?:\s*{_SEPARATOR}\s*[0-9]{{3}})+(?![0-9])|(?:(?:,[0-9]{{3}})+|(?: [0-9]{{3}})+)(?![0-9])(?!,[0-9]))"
    r"|[0-9]+"
)
_NUMBER = re.compile(rf"(?P<whole>{_DIGITS})?(?P<point>\.(?P<decimals>[0-9]*))?")
_UNGROUPED_NUMBER = re.compile(r"(?P<whole>[0-9]+)?(?P<point>\.(?P<decimals>[0-9]*))?")
_BARE_COMMAS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+")
_BELOW_MIXED = re.compile(r"\s?/\s?[0-9]")
# If a comma is the decimal sign, points separate groups of three; a point that can't do so is a decimal sign too.
_COMMA_NUMBER = re.compile(
    r"(?P<whole>[0-9]{1,3}(?:\.[0-9]{3})+(?!\.?[0-9])|[0-9]+)?(?P<point>[,.](?P<decimals>[0-9]+)(?![,.]?[0-9]))?"
)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,6})(?![0-9A-Za-z.])")
_REPEATING = re.compile(
    r"\s*(?:\\(?:overline|bar|dot|overset\{\\cdot\})\s*\{([0-9]+)\}|\\(?:bar|overline|dot)\s*([0-9])|\(([0-9]+)\))"
)
_DOTTED_PERIOD = re.compile(r"\s*\\dot\s*\{?([0-9])\}?([0-9]*)\\dot\s*\{?([0-9])\}?")
_ELLIPSIS = re.compile(r"\s*(?:\.\.\.|\\(?:l|c)?dots(?![A-Za-z]))")
_NUMBER_START = re.compile(r"\.?[0-9]|\.\s*\\(?:overline|bar|dot)(?![A-Za-z])")
_BASED = re.compile(
    r"(?P<digits>[0-9][0-9A-Z]*(?:\.[0-9A-Z]+)?)\s*_\s*(?:(?P<bare>[0-9])"
    r"|\{\s*(?:\\text\s*\{\s*(?P<text>[0-9]{1,2}|[a-z]{3,8})\s*\}|\(?(?P<braced>[0-9]{1,2}|[a-z]{3,8})\)?)\s*\})"
)
_PARENTHESISED_BASE = re.compile(
    r"\(\s*(?P<digits>[0-9][0-9A-Z]*)\s*\)\s*_\s*(?:\{\s*(?P<braced>[0-9]{1,2})\s*\}|(?P<bare>[0-9]))"
)
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
_BOLD_LETTERS = re.compile(r"\s*(?:\{\s*[A-Za-z]+|[A-Za-z](?![A-Za-z]))")
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
        if _NUMBER_START.match(self.text, self.position):
            self._number()
        elif sign == "(" and (based := _PARENTHESISED_BASE.match(self.text, self.position)):
            self._based(based)
        elif sign.isalpha():
            self._letters()
        elif sign == "\\":
            self._command()
        else:
            self._sign()

    def _sign(self) -> None:
        pair = self.text[self.position : self.position + 2]
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
        """Read a dollar sign: currency before a number in text without a second one; otherwise a delimiter of mathematics."""
        if self.text.replace("\\$", "").count("$") % 2:
            self.emit("sign", "\\$")
        else:
            self.spaced = True

    def _number(self) -> None:
        raised = bool(self.tokens) and self.tokens[-1].text == "^"  # then an index belongs to the base
        if not raised and (based := _BASED.match(self.text, self.position)) and self._base(based) is not None:
            self._based(based)
            return
        script = bool(self.tokens) and self.tokens[-1].text in ("_", "^", "sqrt") and not self.decimal_comma
        pattern = _COMMA_NUMBER if self.decimal_comma else _UNGROUPED_NUMBER if script else _NUMBER
        match = pattern.match(self.text, self.position)
        if match is None or match.end() == self.position:
            raise UnreadableError("a number with ambiguous points and commas")
        whole = match["whole"] or ""
        mixed = " " in whole and _BELOW_MIXED.match(self.text, match.end())
        listed = (not self.thousands or self.brackets) and _BARE_COMMAS.fullmatch(whole)
        if mixed or listed or (len(whole) > 3 and whole[0] == "0" and not whole.isdigit()):  # not groups of one number
            match = _UNGROUPED_NUMBER.match(self.text, self.position)
            assert match is not None
            whole = match["whole"]
        self.position = match.end()
        digits = "".join(sign for sign in whole if sign.isdigit())
        self.emit("number", digits + (match["point"] or ""), self._value(digits, match["decimals"]))
        if scientific := _SCIENTIFIC_X.match(self.text, self.position):
            self.position = scientific.end()
            self.emit("command", "times")

    def _value(self, digits: str, decimals: str | None) -> Number:
        if decimals is not None and (repeating := self._repetend(decimals)) is not None:
            prefix, block = repeating
            return Number(repeating_decimal(digits, prefix, block))
        exponent = 0
        if match := _EXPONENT.match(self.text, self.position):
            exponent = int(match[1])
            if abs(exponent) > MAX_EXPONENT:
                raise UnreadableError("a power of ten beyond the limit")
            self.position = match.end()
        value = Fraction(int(digits + (decimals or "") or "0"), 10 ** len(decimals or "")) * Fraction(10) ** exponent
        if not decimals and not exponent:
            return Number(value)
        significant = len((digits + (decimals or "")).lstrip("0"))
        return Number(value, len(decimals or "") - exponent, significant)

    def _repetend(self, decimals: str) -> tuple[str, str] | None:
        """The non-repeating and the repeating digits of the decimal that ends here, if it is marked as repeating."""
        if match := _DOTTED_PERIOD.match(self.text, self.position):  # dots over the first and the last digit
            self.position = match.end()
            return decimals, match[1] + match[2] + match[3]
        if match := _REPEATING.match(self.text, self.position):
            self.position = match.end()
            return decimals, match[1] or match[2] or match[3]
        if match := _ELLIPSIS.match(self.text, self.position):
            self.position = match.end()
            if (block := _visible_block(decimals)) is None:
                raise UnreadableError("a decimal that ends in dots and does not repeat visibly")
            return decimals, block
        return None

    def _base(self, match: re.Match[str]) -> int | None:
        text = next(filter(None, (match.groupdict().get(name) for name in ("bare", "braced", "text"))))
        return int(text) if is_numeral(match["digits"], text) else None

    def _based(self, match: re.Match[str]) -> None:
        base = self._base(match) if "braced" in match.groupdict() else None
        if base is None:
            raise UnreadableError("a digit that its base does not have")
        self.position = match.end()
        self.emit("number", match["digits"], BasedNumber(significant_digits(match["digits"]), base))

    def _letters(self) -> None:
        match = (_PROSE_WORD if self.prose else _LETTERS).match(self.text, self.position)
        if match is None:
            raise UnreadableError(f"the unsupported letter {self.text[self.position]!r}")
        self.position = match.end()
        run = match[0]
        if (
            self.prose
            or not run.isascii()
            or _is_word(run, self.tokens, spaced=self.spaced)
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
        """Split a run of letters into a known function or name at its end and one symbol for each other letter."""
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
        r"""Skip typography; only `\\left|` and `\\right|` show whether a bar opens or closes."""
        if name in BOLD_COMMANDS:
            letters = _BOLD_LETTERS.match(self.text, self.position)
            self.bold_end = letters.end() if letters is not None else 0
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
            inner = [_roman(token, may_be_unit=follows_number and not called) for token in inner]
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
        """The argument: a group, or without braces a name (TeX would take only one letter) or one letter."""
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
        r"""Whether text is upright mathematics: the constants of `5\text{i}` and `\text{e}^2`, `\text{lcm}(4,6)`."""
        rest = self.text[self.position :].strip()
        alone = not self.tokens and not rest
        if len(content) == 1:
            counted = content.isupper() and bool(self.tokens) and _ends_value(self.tokens[-1])
            return not alone and content not in UNITS and not counted
        called = rest.startswith(("(", "\\left("))
        return content in NAMES or (content in FUNCTIONS and bool(rest) and (called or content not in UNITS))


def _ends_value(token: Token) -> bool:
    return token.kind in ("number", "symbol") or token.text in ("}", ")", "pi")


def _roman(token: Token, *, may_be_unit: bool) -> Token:
    if token.kind != "word" or (may_be_unit and token.text in UNITS):
        return token
    if token.text in FUNCTIONS:
        return Token("command", token.text, token.spaced)
    if token.text in NAMES:
        return Token("command", NAMES[token.text], token.spaced)
    return Token("symbol", token.text, token.spaced) if len(token.text) == 1 else token


def _is_word(run: str, before: list[Token], *, spaced: bool) -> bool:
    if len(run) == 1 or run in FUNCTIONS or run.lower() in NAMES:
        return False
    if run.isupper() and len(run) == 2 and before and before[-1].text == "{":
        return False  # a segment, as in `\\frac{NO}{BO}`
    counted = spaced and bool(before) and before[-1].kind == "number" and _SYLLABLE.fullmatch(run) is not None
    name = len(run) > 2 and run.istitle()
    if (
        counted
        or name
        or run.lower() in GRAMMAR_WORDS
        or run == "Rs"
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


def _roman_group(match: re.Match[str]) -> str:
    r"""TeX's font switches as commands with an argument: `{\\rm cm}` and `\\rm cm` as `\\mathrm{cm}`."""
    content = match[2] if match[1] else match[4]
    return r"\mathrm" if content is None else rf"\mathrm{{{content}}}"


def _micro_unit(match: re.Match[str]) -> str:
    unit = match["upright"] or (match["plain"] if match["gap"] else None)
    return match[0] if unit is None else rf"\text{{ micro{unit}}}"


def _counted_choices(match: re.Match[str]) -> str:
    r"""Combinations as `\\binom`, permutations as a quotient of factorials."""
    upper, lower = match[1] or match[2], match[5] or match[6]
    if "C" in (match[3], match[4]):
        return rf"\binom{{{upper}}}{{{lower}}}"
    return rf"\frac{{({upper})!}}{{(({upper})-({lower}))!}}"


def is_numeral(digits: str, base: str) -> bool:
    """Whether these are digits, with at most one point, of a base from 2 to 36."""
    if len(base) > 2 or not base.isdigit() or not 2 <= int(base) <= 36:
        return False
    return digits.count(".") < 2 and all(int(digit, 36) < int(base) for digit in digits if digit != ".")


def significant_digits(digits: str) -> str:
    """A numeral without leading zeros, except one before a point."""
    shorter = digits.lstrip("0")
    return shorter if shorter and shorter[0] != "." else f"0{shorter}"


def _visible_block(decimals: str) -> str | None:
    """The period shown by the digits before an ellipsis: a digit three times, or a longer block twice."""
    for length in range(1, len(decimals) // 2 + 1):
        block = decimals[-length:]
        if decimals.endswith(block * (3 if length == 1 else 2)):
            return block
    return None


def repeating_decimal(whole: str, prefix: str, block: str) -> Fraction:
    """The value of a decimal whose last digits repeat for ever."""
    head = Fraction(int(whole or "0")) + Fraction(int(prefix or "0"), 10 ** len(prefix))
    return head + Fraction(int(block), (10 ** len(block) - 1) * 10 ** len(prefix))


def _all_but(match: re.Match[str]) -> str:
    """All real numbers except some, with words set as text."""
    return _plain_tex(match[1].strip() + " " + match[2].strip(" $"))


def _with_round_brackets(match: re.Match[str]) -> str:
    """Intervals with open ends written as outward brackets."""
    return re.sub(
        r"([][])\s*([^][,;]+[,;][^][,;]+?)\s*([][])",
        lambda piece: f"{piece[1].replace(']', '(')}{piece[2]}{piece[3].replace('[', ')')}",
        match[0],
    )


def _degrees(match: re.Match[str]) -> str:
    """Degrees with minutes and seconds of arc as degrees."""
    return rf"({match[1]}+{match[2]}/60+{match[3] or 0}/3600)^\circ"


_ORDINAL = r"(?:\\(?:text|mathrm)\s?\{\s*(?:st|nd|rd|th)\s*\}|(?:st|nd|rd|th)\b)"
_MONTHS = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_UPRIGHT_UNIT = r"\\(?:text|mathrm)\s?\{[^{}]*\}(?:\s?\^\s?\{?[0-9]\}?)?"
# A required substring, a pattern of typography or a rare spelling, and its replacement.
_REWRITINGS: list[tuple[str, str, str | Callable[[re.Match[str]], str]]] = [
    ("\\", r"\\(?:hspace|vspace|phantom|color|textcolor|label|tag)\*?\s*\{[^{}]*\}", " "),
    ("\\", r"\\\\\s*\[\s*-?[0-9.]+\s*(?:pt|em|ex|mm|cm)\s*\]", r"\\\\"),
    ("mathbb", r"\\mathbb\s*\{?\s*([EP])\s*\}?", r"\1"),  # a probability or an expectation, not a set
    ("\\", r"\{\s*\\(rm|it|sf)\b\s*([^{}]*)\}|\\(rm|it|sf)\b\s*(?:(?=\{)|([A-Za-z]+))", _roman_group),
    ("_", r"\\(?:mathrm|text)\s?\{\s{0,3}([0-9A-Z]{1,20})\s{0,3}\}(?=\s{0,3}_\s{0,3}\{?\s{0,3}[0-9])", r"\1"),
    ("\\not", r"\\not\s{0,3}=", r"\\ne "),
    (
        "\\in",
        r"(?:\s|\\[ ,;:!]|\\quad){0,9}\(\s?([a-z])\s?\\in\s?(?:Z|\\mathbb\s?\{?\s?Z\s?\}?)\s?\)\s?$",
        r", \1\\in\\mathbb{Z}",
    ),
    *((ending, rf"\b({_MONTHS} [0-9]{{1,2}}){ending}\b", r"\1") for ending in ("st", "nd", "rd", "th")),
    # A unit only if it is upright, or separate from its number.
    (
        "\\mu",
        r"(?<=[0-9}])(?P<gap>(?:\s|\\[ ,;:]|~|\\text\s?\{\s?\}){0,4})\\mu\s{0,3}"
        r"(?:\\(?:text|mathrm|rm)\s?\{\s{0,3}(?P<upright>m|s|g|[lL]|F|C|A|V|W|Pa|mol)\s{0,3}\}|(?P<plain>[msgF]))(?=\s{0,3}$)",
        _micro_unit,
    ),
    ("\\frac", rf"\\frac\s*\{{\s*({_UPRIGHT_UNIT})\s*\}}\s*\{{\s*({_UPRIGHT_UNIT})\s*\}}", r"\1/\2"),
    # An integral with its differential in the numerator after its sign.
    (
        "\\int",
        r"(\\int\s*(?:[_^]\s*(?:\{[^{}]*\}|\\?\w+)\s*){0,2})\\frac\s*\{([^{}]*?)d\s?([a-z])\s*\}\s*\{((?:[^{}]|\{[^{}]*\})*)\}",
        lambda match: rf"{match[1]}\frac{{{match[2].strip() or 1}}}{{{match[4]}}}\,d {match[3]}",
    ),
    (
        "real",
        r"^all real (?:numbers|values|x)(?: of x)?,? ex(?:cept|cluding)(?: for)? (.+)$",
        r"\\mathbb{R}\\setminus\\{\1\\}",
    ),
    ("real", r"^\\text\s?\{\s?(all real [^{}]*)\}(.*)$", _all_but),
    ("Omega", r"(?<=[0-9}])(?:\s|\\[,;: ])*\\Omega\s*$", r"\\text{ ohm}"),
    ("cup", r"([<>]|\\[lg]eq?(?:slant)?\b)([^<>]*?)\\cup(?=\s*[A-Za-z]\s*(?:[<>]|\\[lg]e))", r"\1\2\\text{ or }"),
    ("cap", r"([<>]|\\[lg]eq?(?:slant)?\b)([^<>]*?)\\cap(?=\s*[A-Za-z]\s*(?:[<>]|\\[lg]e))", r"\1\2\\text{ and }"),
    ("_", r"(\\log\s*_\s*)([0-9])([0-9]+)(?=\s*(?:$|[-+=,)}]))", r"\1{\2}\3"),  # as TeX reads it
    ("]", r"^[^][()]*\].*", _with_round_brackets),  # intervals such as ]0,1[
    ("[", r".*\[[^][()]*$", _with_round_brackets),
    ("(", r"\(\s*or\s+([^()]*)\)$", r" or \1"),
    ("(", r"\(\s*(?:\\approx(?![A-Za-z])|(?:approximately|approx\.?|about|roughly)\s)([^()]*)\)$", r"\\approx \1"),
    ("circ", r"\^\s*\{\s*\\circ\s*\}", r"^\\circ "),
    ("^", rf"(?<=[0-9])\s*\^\s*(?:\{{\s*{_ORDINAL}\s*\}}|{_ORDINAL})", ""),
    (
        "prime",
        r"\^\s*(?:\{\s*((?:\\prime\s*)+)\}|\\prime(?![A-Za-z]))",
        lambda match: "'" * (match[1] or " \\").count("\\"),
    ),
    (
        "\\math",
        r"\\math(?:rm|it)\s*(?:\{\s*d\s*\}|d(?=\s*[A-Za-z](?![A-Za-z])))\s*(?=[A-Za-z\\{}^])",
        "d ",
    ),  # a differential
    # A name, in which nothing must cancel.
    (
        "\\frac",
        r"\\frac\s*\{\s*(?:d|\\partial)\s*([A-Za-z])\s*\}\s*\{\s*(?:d|\\partial)\s*([A-Za-z])\s*\}",
        r"D_{\1\2}",
    ),
    ("base", r"\b([0-9][0-9A-Z]*)\s*(?:\\text\s?\{\s*base\s*\}|\(?base)\s*([0-9]{1,2})\b\)?", r"\1_{\2}"),
    ("m", r"(?<=[0-9])\s*((?:\\(?:text|mathrm)\s?\{\s*)?)([AaPp])\.\s?[Mm]\b\.?", r" \1\2m"),
    ("'", r"([0-9]+)\s*'\s*([0-9.]+)\s*(?:\"|'')", r"\1\\text{ ft }\2\\text{ in}"),
    ("'", r"([0-9]+)\s*\^\s*\{?\s*\\circ\s*\}?\s*([0-9]+)\s*'(?:\s*([0-9]+)\s*'')?", _degrees),
    ("\\right", r"\\left\s*\\(?:\{|lbrace)\s*(?=\\begin)(?=.*\\right\s*(?:\.|$))", ""),
    ("\\\\", r"\\\\(?=[A-Za-z]{2})", r"\\"),
    ("{", r"(?<![\\A-Za-z*])\{\s*([-+=:.])\s*\}", r"\1"),
    ("{", r"(?:\\mathbf|(?<![A-Za-z]))\{\s{0,3}(\([A-J]\))\s{0,3}\}", r"\1"),
    ("{", r"(?<![^-+=(,$])\{\s{0,3}([0-9]{1,9})\s{0,3}\}(?=\s{0,3}\\[dtc]?frac)", r"\1"),  # of a mixed number
    # Of a set: "10 C 3" and "10 P 3" with both numbers as scripts.
    (
        "_",
        r"(?<![\w)\]}])(?:\{\s*\})?\s*[_^]\s*(?:\{([^{}]{1,20})\}|(\w))"
        r"\s*(?:\\(?:mathrm|text|rm)\s*\{\s*([CP])\s*\}|([CP]))\s*_\s*(?:\{([^{}]{1,20})\}|(\w))",
        _counted_choices,
    ),
]
_COMPILED = [(sign, re.compile(pattern, re.DOTALL), replacement) for sign, pattern, replacement in _REWRITINGS]


def _plain_tex(text: str) -> str:
    """Text without typography, and with rare spellings replaced by usual ones."""
    for sign, pattern, replacement in _COMPILED:
        if sign in text and not (sign == "\\\\" and "\\begin" in text):  # which has rows
            text = pattern.sub(replacement, text)
    return text


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
    if not text.isdecimal():  # as most answers are
        text = _plain_tex(in_digits(text))
    tokens = _Tokenizer(text, thousands=thousands, decimal_comma=decimal_comma, prose=False).read()
    tokens.append(Token("end", ""))
    return _subscripts_first(tokens) if "_" in text and "^" in text else tokens


def _subscripts_first(tokens: list[Token]) -> list[Token]:
    """Tokens with every subscript before the superscript next to it, since `v^2_0` is `v_0^2`."""
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
