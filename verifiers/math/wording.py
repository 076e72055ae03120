"""The words of an answer: those around it that say nothing, answers in words, numbers in words, names in lists."""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.math.text import unwrap
from verifiers.math.tree import Bracketed, Constant, NamedSet, Negate, Node, Number, Words
from verifiers.math.vocabulary import NUMBER_WORDS, TENS

QUARTERS = frozenset(("quarter", "quarters"))
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}


def value_of_words(words: list[str]) -> int | None:
    """The value of a number in words; None for words that do not make one."""
    total, group, last = 0, 0, 10**12
    for word in words:
        if word in SCALES and word != "hundred":
            if not group or SCALES[word] >= last:
                return None
            total, group, last = total + group * SCALES[word], 0, SCALES[word]
        elif word == "hundred":
            if not 0 < group < 100:
                return None
            group *= 100
        else:
            value = TENS.get(word, NUMBER_WORDS.get(word, 0))
            free = 100 if group % 100 == 0 else 10 if group % 100 >= 20 and group % 10 == 0 else 0
            if not value < free or (group and not value):
                return None
            group += value
    return total + group


REALS_EXCEPT = frozenset(
    f"{words} {preposition}"
    for words in (
        "all real numbers",
        "all reals",
        "all real x",
        "all real values",
        "real numbers",
        "all real values of x",
    )
    for preposition in ("except", "excluding")
)


_ZERO, _INFINITY = Number(Fraction(0)), Constant("inf")
WORD_ANSWERS: dict[str, Node] = {
    "no solution": NamedSet("empty"),
    "no solutions": NamedSet("empty"),
    "no solution exists": NamedSet("empty"),
    "no solutions exist": NamedSet("empty"),
    "there is no solution": NamedSet("empty"),
    "there are no solutions": NamedSet("empty"),
    "no real solution": NamedSet("empty"),
    "no real solutions": NamedSet("empty"),
    "empty set": NamedSet("empty"),
    "all real numbers": NamedSet("R"),
    "all reals": NamedSet("R"),
    "real numbers": NamedSet("R"),
    "all integers": NamedSet("Z"),
    **{
        f"{every}{words}": half
        for every in ("", "all ")
        for words, half in {
            "positive real numbers": Bracketed("(", (_ZERO, _INFINITY), ")"),
            "positive reals": Bracketed("(", (_ZERO, _INFINITY), ")"),
            "nonnegative real numbers": Bracketed("[", (_ZERO, _INFINITY), ")"),
            "non-negative real numbers": Bracketed("[", (_ZERO, _INFINITY), ")"),
            "negative real numbers": Bracketed("(", (Negate(_INFINITY), _ZERO), ")"),
            "positive integers": NamedSet("Z>0"),
            "nonnegative integers": NamedSet("Z>=0"),
        }.items()
    },
    "all rational numbers": NamedSet("Q"),
    "undefined": Words("does not exist"),
    "dne": Words("does not exist"),
    "does not exist": Words("does not exist"),
    "infinity": Constant("inf"),
    **dict.fromkeys(
        (
            "infinite",
            "infinite solutions",
            "infinitely many",
            "infinitely many solutions",
            "infinite number of solutions",
        ),
        Words("infinitely many"),
    ),
}


_LEADING = re.compile(
    r"(?:a\s+(?=half)|US\s?(?=\\?\$)|\\text\s?\{\s?(?:exactly|only|just|simply|there\s(?:are|is)|the\syear)\s?\}|there\s(?:are|is)\s(?=[0-9\\$])|"
    r"(?:approximately|about|roughly|exactly|just|only|simply|therefore|thus|hence|so|it is|it's|equals|=)[\s,]"
    r"|\\approx(?![A-Za-z])|≈|(?:\\text\s*\{)?\s*(?:the\s+)?(?:final\s+)?answer(?:\s+is\b|\s*:)\s*:?\s*\}?|(?:\\text\s*\{\s*)?(?:the\s+)?"
    r"(?:(?:a\s+)?total\s+of|point|(?:ordered\s+)?(?:pair|triple)|interval|set|number|value|vector|matrix|fraction|integer|polynomial)s?\s*\}?"
    r"(?=\s*[\\$(\[{0-9-]))\s*(?=\S)",
    re.IGNORECASE,
)


_REMARK = re.compile(
    r"\\forall(?![A-Za-z])|(?:\\text\s{0,3}\{\s{0,3})?\b(?:for\s(?:all|any|every|each|(?:an\s)?integers?)\b|where\b(?=.{0,60}\binteger))"
)


_ONLY_TEXT = re.compile(r"\\text(?:bf|rm)?\s{0,3}\{([^{}]*)\}")


_GROUP = re.compile(r"[\[(][^\[\]()]*[\])]")
_MORE_VALUES = re.compile(
    r"(?:,|\bor\b|\band\b)[\s}]*\$?[-+]?[0-9]|\b(?:or|and)\b[^=]{0,20}=|\+\s*[0-9]"
)  # that no remark would hold
_CONDITION = re.compile(r"[\s}$]*([A-Za-z]\s?(?:[<>]=?|\\[lg]eq?(?:slant)?(?![A-Za-z])|≤|≥)[^,;]{1,40})")
_INTEGRALITY = re.compile(r"\binteger|\\mathbb\s?\{?\s?Z|ℤ")
_LETTER = re.compile(r"(?<![A-Za-z\\{])(?!a\s)([a-zA-YΑ-ω])(?![A-Za-z])")
_SPACES_BEFORE_REMARK = (",", "\\", "\\quad", "\\qquad", "(")


def _without_remark(text: str) -> str:
    """An answer without what is said behind it of the values its symbols may take."""
    found = _REMARK.search(text) if "for" in text or "where" in text else None
    if found is None or not found.start() or _MORE_VALUES.search(_GROUP.sub("", text[found.end() :])):
        return text
    condition = _CONDITION.fullmatch(text[found.end() :])
    integers = set(_LETTER.findall(text[found.start() :])) if _INTEGRALITY.search(text, found.start()) else set()
    text = text[: found.start()].rstrip()
    while text.endswith(_SPACES_BEFORE_REMARK):
        text = text.removesuffix("quad").removesuffix("q").rstrip("\\,( ")
    if len(integers) == 1:
        return rf"{text}, {integers.pop()}\in\mathbb{{Z}}"
    return f"{text}, {condition[1]}" if condition is not None else text


_IN_TOTAL = re.compile(r"\s(?:in\s(?:total|all)|altogether|overall)\Z")
_NEGATIVE = re.compile(r"(?:negative|minus)\s+(?=[0-9.\\$])", re.IGNORECASE)


def essence(text: str) -> str:
    """An answer without the words around it that say nothing, such as "the answer is" and "for all x"."""
    text = _NEGATIVE.sub("-", text, count=1) if _NEGATIVE.match(text) else text
    text = _IN_TOTAL.sub("", text) if text.endswith(("l", "r")) else text
    text = _without_remark(text)
    if text.startswith("\\text") and (only := _ONLY_TEXT.fullmatch(text)) is not None and _LEADING.match(only[1]):
        text = only[1]
    shorter = _LEADING.sub("", text, count=1) if _LEADING.match(text) else text
    return text if shorter == text else unwrap(shorter)


_FRENCH_PIECE = re.compile(r"([\[\]])\s*([^\[\],;]+[,;][^\[\],;]+?)\s*([\[\]])")


def with_round_brackets(text: str) -> str:
    """Intervals with open ends written as `]0,1[` in round brackets, where the first or last bracket shows the style."""
    if "]" not in text and "[" not in text:
        return text
    brackets = [sign for sign in text if sign in "[]()"]
    if not brackets or (brackets[0] != "]" and brackets[-1] != "["):
        return text
    return _FRENCH_PIECE.sub(lambda piece: f"{piece[1].replace(']', '(')}{piece[2]}{piece[3].replace('[', ')')}", text)
