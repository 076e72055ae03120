"""Reads the words of an answer: empty phrases around it, answers in words, numbers in words."""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.math.reading.normalize import unwrap
from verifiers.math.tree import Bracketed, Constant, NamedSet, Negate, Node, Number, Words
from verifiers.math.vocabulary import FRACTION_WORDS, NUMBER_WORDS, TENS

_PARTS = FRACTION_WORDS | {"quarter": 4, "quarters": 4}  # "quarters" after a number in digits are coins
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}


def value_of_words(words: list[str]) -> int | None:
    """The value of a number in words; None for words that are not a number."""
    total, group, last = 0, 0, 10**12
    for word in words:
        if word in _SCALES and word != "hundred":
            if not group or _SCALES[word] >= last:
                return None
            total, group, last = total + group * _SCALES[word], 0, _SCALES[word]
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


_WORD = "|".join((*NUMBER_WORDS, *TENS, *_SCALES))
_NUMERAL = re.compile(
    rf"(?<![\w(\\])(?:((?:{_WORD})(?:(?:[\s-]+|(?<=hundred) and |(?<=thousand) and )(?:{_WORD}))*)"
    rf"(?:[\s-]+({'|'.join(_PARTS)}))?(?![\w'-])|half(?=\s*(?:$|[,;)}}])))",
    re.IGNORECASE,
)
_AND_PART = re.compile(r"(?<=[\w}])\s+and\s+a\s+(half|third|quarter)\b")
_ANY_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3}")


def in_digits(text: str) -> str:
    """Write numbers in words as digits."""
    if _ANY_WORD.search(text) is None:
        return text
    return _NUMERAL.sub(_digits, _AND_PART.sub(lambda match: rf"+\frac{{1}}{{{_PARTS[match[1]]}}}", text))


def _digits(match: re.Match[str]) -> str:
    value = value_of_words(re.sub(r"-|\band\b", " ", match[1].lower()).split()) if match[1] else 1
    name = match[2] if match[1] else "half"
    return match[0] if value is None else rf"\frac{{{value}}}{{{_PARTS[name.lower()]}}}" if name else str(value)


_ZERO, _INFINITY = Number(Fraction(0)), Constant("inf")
_PHRASES: dict[Node, str] = {
    NamedSet("empty"): "no solution, no solutions, no solution exists, no solutions exist, there is no solution, "
    "there are no solutions, no real solution, no real solutions, empty set",
    NamedSet("R"): "real numbers, reals",
    NamedSet("Z"): "integers",
    NamedSet("Q"): "rational numbers",
    NamedSet("Z>0"): "positive integers",
    NamedSet("Z>=0"): "nonnegative integers, non-negative integers",
    Bracketed("(", (_ZERO, _INFINITY), ")"): "positive real numbers, positive reals",
    Bracketed("[", (_ZERO, _INFINITY), ")"): "nonnegative real numbers, non-negative real numbers",
    Bracketed("(", (Negate(_INFINITY), _ZERO), ")"): "negative real numbers",
    _INFINITY: "infinity",
    Words("does not exist"): "undefined, dne, does not exist",
    Words("infinitely many"): "infinite, infinite solutions, infinitely many, infinitely many solutions, "
    "infinite number of solutions",
}
WORD_ANSWERS = {phrase: node for node, phrases in _PHRASES.items() for phrase in phrases.split(", ")}
_SUBJECT = re.compile(
    r"(?!no|all|sometimes|often|usually|rarely|always|almost)\w+ (?:has (?=no )|is (?=undefined)|(?=does not))"
)


def answer_in_words(text: str) -> Node | None:
    """The set or other value that folded words denote, alone or as the predicate of a noun; else None."""
    return WORD_ANSWERS.get(text.removeprefix("all ")) or WORD_ANSWERS.get(_SUBJECT.sub("", text, count=1))


_LEADING = re.compile(
    r"(?:a\s+(?=half)|US\s?(?=\\?\$)|\\text\s?\{\s?(?:exactly|only|just|simply|there\s(?:are|is)|the\syear)\s?\}|there\s(?:are|is)\s(?=[0-9\\$])|"
    r"(?:approximately|about|roughly|exactly|just|only|simply|therefore|thus|hence|so|it is|it's|equals|=)[\s,]"
    r"|\\approx(?![A-Za-z])|≈|(?:\\text\s*\{)?\s*(?:the\s+)?(?:final\s+)?answer(?:\s+is\b|\s*:)\s*:?\s*\}?|(?:\\text\s*\{\s*)?(?:the\s+)?"
    r"(?:(?:a\s+)?total\s+of|point|(?:ordered\s+)?(?:pair|triple)|interval|set|number|value|vector|matrix|fraction|integer|polynomial)s?\s*\}?"
    r"(?=\s*[\\$(\[{0-9-]))\s*(?=\S)",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"\\forall(?![A-Za-z])|(?:\\text\s{0,3}\{[\s,(]{0,3})?\b(?:for\s(?:all|any|some|every|each|(?:an\s)?integers?)\b|where\b(?=.{0,60}\binteger)"
    r"|(?:for|where|with)\b(?=[\s}$]{0,5}(?![nmkjlpqNMK][^,;]*[Rℝ])[A-Za-z]\s{0,3}(?:\\in(?![a-z])|∈)[^,;]{1,40}$))"
)

_GROUP = re.compile(r"[\[(][^\[\]()]*[\])]")
_MORE_VALUES = re.compile(
    r"(?:,|\bor\b|\band\b)[\s}]*\$?[-+]?[0-9]|\b(?:or|and)\b[^=]{0,20}=|\+\s*[0-9]"
)  # signs of further values, which do not occur in a remark
_CONDITION = re.compile(
    r"[\s}$]*([A-Za-z]\s?(?:[<>]=?|\\(?:[lg]eq?(?:slant)?|neq?|in)(?![A-Za-z])|[≤≥≠∈])"
    r"(?!\s?(?:\\mathbb\s?\{?\s?[RC]|[ℝℂ])[\s}$]*$)[^,;]{1,40})"
)
_RESTRICTS = re.compile(r"[<>≤≥≠^+]|\\(?:[lg][et](?!f)|ne)")
_WORD_OF_REMARK = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{2,}")
_SAYS_NOTHING = re.compile(
    r"for|all|any|some|every|each|where|and|is|are|an|the|of|in|possible|(?:integer|real|complex|number|value)s?"
)
_INTEGRALITY = re.compile(r"\binteger|\\mathbb\s?\{?\s?Z|ℤ")
_LETTER = re.compile(r"(?<![A-Za-z\\{])(?!a\s)([a-zA-YΑ-ω])(?![A-Za-z])")
_SPACES_BEFORE_REMARK = (",", "\\", "\\quad", "\\qquad", "(")


def _without_remark(text: str) -> str:
    """An answer without a final remark on the values of its symbols."""
    match = _REMARK.search(text) if "for" in text or "where" in text or "with" in text else None
    if match is None or not match.start() or _MORE_VALUES.search(_GROUP.sub("", text[match.end() :])):
        return text
    if not set(_LETTER.findall(text[match.end() :])) <= set(text[: match.start()]):
        return text  # the remark is about something else
    condition = _CONDITION.fullmatch(text[match.end() :])
    said = all(map(_SAYS_NOTHING.fullmatch, _WORD_OF_REMARK.findall(remark := text[match.start() :])))
    if condition is None and (not said or _RESTRICTS.search(remark)):
        return text
    names = set(_LETTER.findall(remark))
    domain = "Z" if _INTEGRALITY.search(remark) else "R" if "real" in remark else None
    text = text[: match.start()].rstrip()
    while text.endswith(_SPACES_BEFORE_REMARK):
        text = text.removesuffix("quad").removesuffix("q").rstrip("\\,( ")
    if condition is not None:
        return f"{text}, {condition[1]}"
    return rf"{text}, {names.pop()}\in\mathbb{{{domain}}}" if domain is not None and len(names) == 1 else text


_IN_TOTAL = re.compile(r"\s(?:in\s(?:total|all)|altogether|overall)\Z")
_QUALIFIER = re.compile(
    r"\A\\text(?:bf|it|rm)?\s{0,3}\{\s{0,3}(negative|minus|about|approximately|roughly)\s{0,3}\}\s{0,3}", re.IGNORECASE
)
_NEGATIVE = re.compile(r"(?:negative|minus)\s+(?=[0-9.\\$])", re.IGNORECASE)


def essence(text: str) -> str:
    """An answer without empty phrases around it, such as "the answer is" and "for all x"."""
    text = _QUALIFIER.sub(r"\1 ", text, count=1) if text.startswith("\\text") else text
    text = _NEGATIVE.sub("-", text, count=1) if _NEGATIVE.match(text) else text
    text = _IN_TOTAL.sub("", text) if text.endswith(("l", "r")) else text
    text = _without_remark(text)
    shorter = _LEADING.sub("", text, count=1) if _LEADING.match(text) else text
    return text if shorter == text else unwrap(shorter)
