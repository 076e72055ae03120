r"""A second evaluation of drawn cases, which shares no code with a verifier or with the audit's own reader.

The last `\boxed{}` of a completion and the gold are read by the few rules below, as far as drawn cases need them, and evaluated
with mpmath in 60 digits: expressions at random points, sets of numbers by their members on a grid, families by their members
between -15 and 15. `confirmed` says whether a case's label follows.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import mpmath

from verifiers.audit import Case, Label

BY_FORM = ("hedge", "denied", "no answer", "echo", "master key")
"""Families that are wrong whatever the values are."""
_GRID = [mpmath.mpf(n) / 2 for n in range(-44, 45)] + [mpmath.mpf(10) ** 6, -(mpmath.mpf(10) ** 6)]
_WORDS = ("word", "choice")
_SEVERAL = ("set of roots", "conjugate roots")
_REGIONS = ("interval", "union")
_TOKEN = re.compile(r"\d+\.?\d*|\.\d+|\\[A-Za-z]+|[A-Za-z]|[-+*/^(){}_|=]|\\%|%")
_POINTS = [
    {letter: mpmath.mpf(p) / q for letter, p in zip("xyzwvut", (7, -11, 13, -17, 19, -23, 29), strict=True)}
    for q in (3, 5)
]


class Unreadable(Exception):
    """The rules do not cover a text."""


def confirmed(case: Case) -> bool | None:
    """Whether the label of a case follows from a second evaluation; None if the answer can't be read."""
    if case.family.startswith(BY_FORM):
        return case.label is Label.WRONG
    answer = last_box(case.completion)
    with mpmath.workdps(60):
        gold = meaning(case.kind, case.gold)
        try:
            same = _same(gold, meaning(case.kind, answer))
        except Unreadable:
            return None
    return same == (case.label is Label.CORRECT)


def last_box(text: str) -> str:
    """The content of the last box of a completion."""
    start = text.rindex("\\boxed{") + len("\\boxed{")
    depth, end = 1, start
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[start : end - 1]


def meaning(subject: str, text: str) -> object:
    """What a text stands for as an answer to a subject's problem: numbers, members or words, which `_same` compares."""
    if subject in _WORDS:
        return _word(subject, text)
    text = _plain(text)
    if subject in _REGIONS:
        return tuple(_is_member(text, x) for x in _GRID)
    if subject == "family":
        return _members(text)
    if subject in _SEVERAL:
        return _numbers(text)
    if subject == "matrix":
        rows = re.sub(r"\\(?:begin|end)\{(?:[pb]matrix|array)\}(?:\{cc\})?|[\[\]]", "", text)
        return [[value(entry) for entry in row.split("&")] for row in rows.split("\\\\") if row.strip()]
    if subject == "point":
        inner = re.fullmatch(r"\s*(?:M\s*=)?\s*\((.*)\)\s*", text)
        if inner is None:
            raise Unreadable(text)
        return [value(item) for item in re.split("[,;]", inner[1])]
    if subject == "line":
        return _line(text)
    if subject == "numeral":
        match = re.fullmatch(r"\(?(\d+)\)?_\{?(\d+)\}?", text.strip())
        if match is None:
            raise Unreadable(text)
        return [mpmath.mpf(int(match[1], int(match[2])))]
    text = re.sub(r"(?:\\mathrm\{km\}|\bkilometers|\bkm)\s*$", "", text)
    text = re.sub(r"^\s*(?:p\(x\)|y)\s*=", "", text)
    return [value(text, **point) for point in _POINTS]


def _same(one: object, two: object) -> bool:
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_same, one, two))
    if isinstance(one, list | tuple | str) or isinstance(two, list | tuple | str):
        return one == two
    difference = abs(one - two)
    if mpmath.mpf(10) ** -45 < difference < mpmath.mpf(10) ** -30:
        raise Unreadable("too near to tell")
    return difference <= mpmath.mpf(10) ** -45


def _plain(text: str) -> str:
    """A text without spacing commands and words' commands, with one spelling of fractions, and digits in one piece."""
    text = re.sub(r"\\(?:left|right)(?![A-Za-z])|\\[,;!]|~|(?<!\\)\\ |\\quad", " ", text)
    text = re.sub(r"\\[dt]frac", r"\\frac", text)
    text = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text)
    text = text.replace("{,}", ",").replace("\\leqslant", "\\le").replace("\\leq", "\\le").replace("\\lor", " or ")
    return re.sub(r"(?<=\d)[, ](?=\d{3}(?:[, ]\d{3})*(?!\d))", "", text)


def _word(subject: str, text: str) -> str:
    text = re.sub(r"\\(?:text|textbf|mathrm|mathbf)\{([^{}]*)\}", r"\1", text).strip(" .")
    if subject == "choice":
        match = re.fullmatch(r"\(?([A-D])\)?(?:\s+\d+)?", text)
        return match[1] if match else text
    return text.removeprefix("a ")


def _numbers(text: str) -> list[mpmath.mpc]:
    """The different numbers of a list, in ascending order."""
    text = re.sub(r"x(?:_\{?[\d,]+\}?)?\s*(?:=|\\in)", " ", text).replace("\\{", "").replace("\\}", "")
    items = [item for item in re.split(r",|\bor\b|\band\b", text) if item.strip()]
    both = [item.replace("\\pm", sign) for item in items for sign in ("+", "-")]
    found: list[mpmath.mpc] = []
    for number in sorted(map(value, both), key=lambda number: number.real):
        if not found or abs(found[-1] - number) > mpmath.mpf(10) ** -40:
            found.append(number)
    return found


def _line(text: str) -> list[mpmath.mpc]:
    """The y of an equation that is linear in it, at four x; empty for what is no equation in both."""
    left, equals, right = text.partition("=")
    if not equals or "x" not in text or "y" not in text:
        return []
    ys = []
    for x in (0, 1, 2, 3):
        at = [value(left, x=x, y=y) - value(right, x=x, y=y) for y in (0, 1)]
        ys.append(at[0] / (at[0] - at[1]))
    return ys


def _is_member(text: str, x: mpmath.mpf) -> bool:
    text = re.sub(r"^\s*x\s*\\in(?![a-z])", "", text.strip()).strip()
    for pattern, rule in (("\\cup", any), (r"\bor\b", any), (r"\band\b", all)):
        parts = re.split(re.escape(pattern) if pattern == "\\cup" else pattern, text)
        if len(parts) > 1 and not (text.startswith("\\{") and pattern != "\\cup"):
            return rule(_is_member(part, x) for part in parts)
    if builder := re.fullmatch(r"\\\{\s*x(?:\\in\\mathbb\{R\})?\s*(?:\\mid|:)(.*)\\\}", text):
        return _is_member(builder[1], x)
    if outside := re.fullmatch(r"\\mathbb\{R\}\s*\\setminus(.*)", text):
        return not _is_member(outside[1], x)
    if interval := re.fullmatch(r"([\[(])([^,]*),([^,]*)([\])])", text):
        low, high = _end(interval[2]), _end(interval[3])
        above = x >= low if interval[1] == "[" else x > low
        return bool(above and (x <= high if interval[4] == "]" else x < high))
    sides = re.split(r"(<|>|\\le(?![a-z])|\\ge(?![a-z]))", text)
    if len(sides) < 3 or "x" not in text:
        raise Unreadable(text)
    return all(_holds(*sides[at : at + 3], x) for at in range(0, len(sides) - 2, 2))


def _holds(left: str, sign: str, right: str, x: mpmath.mpf) -> bool:
    one, two = (value(side, x=x).real for side in (left, right))
    return {"<": one < two, ">": one > two, "\\le": one <= two, "\\ge": one >= two}[sign]


def _end(text: str) -> mpmath.mpf:
    if "\\infty" in text:
        return mpmath.mpf("-inf" if "-" in text else "inf")
    return value(text).real


def _members(text: str) -> list[mpmath.mpc]:
    """The members of a family between -15 and 15, in ascending order; all but a family's members are none."""
    if "\\notin" in text:
        return []
    text = re.sub(r"[,(]?\s*(?:for|where)?\s*([a-z])\s*(?:\\in\s*\\mathbb\{Z\}|is an integer)\s*\)?", r"@\1", text)
    text, _, letter = text.replace("\\{", "").replace("\\}", "").strip().partition("@")
    text = re.sub(r"^\s*x\s*=|[:,(]\s*$", "", text.strip())
    members = [value(text, **{letter[:1] or "n": n}).real for n in (range(-80, 81) if letter else (0,))]
    return sorted(member for member in members if abs(member) < 15)


# Expressions


def value(text: str, **names: mpmath.mpf) -> mpmath.mpc:
    """The value of an expression."""
    text = re.sub(r"\s*\\?%|\bpercent\b", "", text) if re.search(r"%|percent", text) else text
    if "percent" in text or re.search(r"[A-Za-z]{2,}", re.sub(r"\\[A-Za-z]+", "", text)):
        raise Unreadable(text)
    repeating = re.fullmatch(r"\s*(-?)(\d+)\.(\d*)\\overline\{(\d+)\}\s*", text)
    if repeating:
        sign, whole, once, again = repeating.groups()
        tail = mpmath.mpf(int(again)) / (10 ** len(again) - 1) / 10 ** len(once)
        return (-1 if sign else 1) * (int(whole) + (mpmath.mpf(int(once)) / 10 ** len(once) if once else 0) + tail)
    rest = _TOKEN.sub("", text).strip()
    if rest or not text.strip():
        raise Unreadable(text)
    reader = _Reader(_TOKEN.findall(text), names)
    found = reader.sum()
    if reader.tokens:
        raise Unreadable(text)
    return mpmath.mpmathify(found)


class _Reader:
    """A recursive descent over tokens, which evaluates as it reads."""

    def __init__(self, tokens: list[str], names: dict[str, mpmath.mpf]) -> None:
        self.tokens = tokens
        self.names = {"i": mpmath.mpc(0, 1), **names}

    def peek(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def take(self, expected: str = "") -> str:
        if not self.tokens or (expected and self.tokens[0] != expected):
            raise Unreadable(" ".join(self.tokens))
        return self.tokens.pop(0)

    def sum(self) -> mpmath.mpc:
        sign = -1 if self.peek() == "-" else 1
        if self.peek() in ("+", "-"):
            self.take()
        total = sign * self.product()
        while self.peek() in ("+", "-"):
            total += (1 if self.take() == "+" else -1) * self.product()
        return total

    def product(self) -> mpmath.mpc:
        total = self.power()
        while self.peek() and self.peek() not in ("+", "-", ")", "}", "="):
            if self.peek() in ("/", "\\div", "\\over"):
                self.take()
                total /= self.power()
            else:
                if self.peek() in ("*", "\\cdot", "\\times"):
                    self.take()
                total *= self.power()
        return total

    def power(self) -> mpmath.mpc:
        base = self.atom()
        if self.peek() == "^":
            self.take()
            base = base ** (self.group() if self.peek() == "{" else self.atom())
        return base

    def group(self) -> mpmath.mpc:
        self.take("{")
        inside = self.sum()
        self.take("}")
        return inside

    def atom(self) -> mpmath.mpc:
        token = self.take()
        if token == "-":
            return -self.power()
        if token == "+":
            return self.power()
        if token == "(":
            inside = self.sum()
            self.take(")")
            return inside
        if token == "{":
            self.tokens.insert(0, token)
            return self.group()
        if token in _COMMANDS:
            return _COMMANDS[token](self)
        if token in self.names:
            return mpmath.mpmathify(self.names[token])
        if token[0].isdigit() or token[0] == ".":
            return mpmath.mpf(token)
        raise Unreadable(token)

    def argument(self) -> mpmath.mpc:
        """A group, or one digit."""
        if self.peek() == "{":
            return self.group()
        token = self.take()
        if len(token) > 1 and token.isdigit():
            self.tokens.insert(0, token[1:])
        return mpmath.mpf(token[0])

    def logarithm(self) -> mpmath.mpc:
        base = mpmath.e
        if self.peek() == "_":
            self.take()
            if self.peek() == "e":
                self.take()
            else:
                base = self.argument()
        return mpmath.log(self.power()) / mpmath.log(base)


_COMMANDS: dict[str, Callable[[_Reader], mpmath.mpc]] = {
    "\\frac": lambda reader: reader.argument() / reader.argument(),
    "\\sqrt": lambda reader: mpmath.sqrt(reader.argument()),
    "\\pi": lambda reader: +mpmath.pi,
    "\\ln": _Reader.logarithm,
    "\\log": _Reader.logarithm,
}
