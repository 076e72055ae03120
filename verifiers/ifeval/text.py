"""Words, sentences, paragraphs and emoji of a text, as the instructions of IFEval and IFBench define them."""

from __future__ import annotations

import re


def listed(text: str, separator: str | None = None) -> tuple[str, ...]:
    """The items of a list written as one text, in which white space or a separator divides them."""
    return tuple(text.split(separator))


_WORD = re.compile(r"\w+(?:['’]\w+)*")
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")

# Blocks that hold little but emoji, and the emoji of the older blocks, as in Unicode's `emoji-data.txt`.
_EMOJI = (
    "\U0001f300-\U0001f64f\U0001f680-\U0001f6ff\U0001f7e0-\U0001f7eb\U0001f7f0\U0001f900-\U0001f9ff\U0001fa70-\U0001faff"
    "\U0001f004\U0001f0cf\U0001f170\U0001f171\U0001f17e\U0001f17f\U0001f18e\U0001f191-\U0001f19a\U0001f1e6-\U0001f1ff"
    "\U0001f201\U0001f202\U0001f21a\U0001f22f\U0001f232-\U0001f23a\U0001f250\U0001f251"
    "\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u24c2\u25aa\u25ab"
    "\u25b6\u25c0\u25fb-\u25fe\u2600-\u2604\u260e\u2611\u2614\u2615\u2618\u261d\u2620\u2622\u2623\u2626\u262a\u262e\u262f"
    "\u2638-\u263a\u2640\u2642\u2648-\u2653\u265f\u2660\u2663\u2665\u2666\u2668\u267b\u267e\u267f\u2692-\u2697\u2699\u269b"
    "\u269c\u26a0\u26a1\u26a7\u26aa\u26ab\u26b0\u26b1\u26bd\u26be\u26c4\u26c5\u26c8\u26ce\u26cf\u26d1\u26d3\u26d4\u26e9"
    "\u26ea\u26f0-\u26f5\u26f7-\u26fa\u26fd\u2702\u2705\u2708-\u270d\u270f\u2712\u2714\u2716\u271d\u2721\u2728\u2733\u2734"
    "\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763\u2764\u2795-\u2797\u27a1\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b"
    "\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299"
)
_JOINERS = "\ufe0f\u200d\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"
_IS_EMOJI = re.compile(f"[{_EMOJI}]").match
_IS_JOINER = re.compile(f"[{_JOINERS}]").match

_CLOSING = "\"'”’»)\\]}*_"
_SENTENCE_END = re.compile(
    rf"(?<![.!?…‽。！？])(?P<mark>[.!?…‽。！？]+)(?P<closing>[{_CLOSING}]*)(?=\s|\Z|[{_EMOJI}])(?:\s*[{_EMOJI}{_JOINERS}])*"
)
_ABBREVIATIONS = frozenset(
    listed(
        "mr mrs ms mx dr prof rev hon st sr jr gen col sgt capt lt vs cf eg ie e.g i.e approx fig figs no nos vol pp al "
        "dept inc ltd co corp jan feb mar apr jun jul aug sep sept oct nov dec mt"
    )
)
_NUMBERED = re.compile(r"(?:^|\n)[ \t]*\d+\Z")
_NEXT_SIGN = re.compile(r"[\s*_#\"'“‘(\[]*(.?)")
_LONGEST_ABBREVIATION = 20
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_])*\Z")
_QUOTED = re.compile(r"[\"'”’»)]")


def words(text: str) -> list[str]:
    """The words: runs of letters and digits, with apostrophes inside; a hyphen separates words."""
    return _WORD.findall(text)


def tokens(text: str) -> list[str]:
    """The words between white space, reduced to letters and digits; words without either are left out."""
    return [plain for token in text.split() if (plain := "".join(filter(str.isalnum, token)))]


def sentences(text: str) -> list[str]:
    """The sentences, each with its final mark, closing quotes and the emoji after them.

    A sentence ends in `.`, `!`, `?` or `…` before white space, but not after an abbreviation, an initial or the number of a
    list item. A line break does not end a sentence, so a heading belongs to the sentence below it. Text after the last sentence
    end is a sentence, too.
    """
    found, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        if _ends_sentence(text, start, match):
            found.append(text[start : match.end()].strip())
            start = match.end()
    rest = text[start:].strip()
    return [sentence for sentence in [*found, rest] if any(sign.isalnum() or _IS_EMOJI(sign) for sign in sentence)]


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    upcoming = _NEXT_SIGN.match(text, match.end())
    following = upcoming[1] if upcoming else ""
    if not following:
        return True
    goes_on = following.islower()
    if match["mark"] != ".":
        # An ellipsis, or the end of something quoted, within a sentence: "Really?" he asked.
        return not (goes_on and (match["mark"][-1] in ".…" or _QUOTED.search(match["closing"])))
    if match["closing"]:
        return True
    before = text[max(start, match.start() - _LONGEST_ABBREVIATION) : match.start()]
    if _NUMBERED.search(before) or not before.strip():
        return False
    token = before.split()[-1].lstrip("([\"'“‘")
    return not (token.casefold() in _ABBREVIATIONS or _INITIALS.fullmatch(token))


def sentence_kind(sentence: str) -> str:
    """The final mark of a sentence, `.`, `?` or `!`, if only closing quotes and emoji follow the mark; else empty."""
    for sign in reversed(sentence):
        if sign in ".?!":
            return sign
        if sign not in "\"'”’»)]}*_" and not (sign.isspace() or _IS_EMOJI(sign) or _IS_JOINER(sign)):
            break
    return ""


def ends_in_emoji(text: str) -> bool:
    """Whether the last character other than punctuation and white space is an emoji."""
    last = next((sign for sign in reversed(text) if sign.isalnum() or _IS_EMOJI(sign)), "")
    return _IS_EMOJI(last) is not None


def bare(text: str) -> str:
    """The text from its first letter or digit to its last."""
    places = [place for place, sign in enumerate(text) if sign.isalnum()]
    return text[places[0] : places[-1] + 1] if places else ""


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs, which blank lines separate."""
    return [part.strip() for part in _BLANK_LINES.split(text) if part.strip()]


def lines(text: str) -> list[str]:
    """The lines that are not blank."""
    return [line for line in text.split("\n") if line.strip()]


def occurrences(phrase: str, text: str) -> int:
    """Count the occurrences of a word or phrase as whole words, ignoring case; its white space matches any white space."""
    parts = [re.escape(part) for part in phrase.split()]
    before = r"(?<!\w)" if phrase.strip()[:1].isalnum() else ""
    after = r"(?!\w)" if phrase.strip()[-1:].isalnum() else ""
    return len(re.findall(before + r"\s+".join(parts) + after, text, re.IGNORECASE))
