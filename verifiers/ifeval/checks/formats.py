"""IFBench: lists, quotes, brackets and other forms of a response."""

from __future__ import annotations

import re
from itertools import pairwise

from verifiers.ifeval.catalogue import instruction, text
from verifiers.ifeval.text import bare, ends_in_emoji, lines, sentence_kind, sentences, tokens

_CLOSES = {")": "(", "]": "[", "}": "{"}
_BRACKET_DEPTH = 5
_QUOTE_DEPTH = 3
_KIND = {'"': '"', "“": '"', "”": '"', "'": "'", "‘": "'", "’": "'"}
_LETTERED = re.compile(r"\W*a\W+b\W+c\W*", re.IGNORECASE)
_PHRASE = re.compile(r'"[^"]*"|“[^”]*”')
_HEADING = re.compile(r"#{1,6}\s.*|<h[1-6]\b.*|\*\*[^*]+\*\*:?|__[^_]+__:?|Section\s+\w+\W*", re.IGNORECASE)
_THESIS = re.compile(r"\W*<(i|em)>(.*?)</\1>(.*)", re.DOTALL | re.IGNORECASE)
_LABELS = re.compile("(My Answer:|My Conclusion:|Future Outlook:)")


@instruction("format:parentheses")
def _deep_brackets(response: str) -> bool:
    """Whether brackets are nested deeply; a closing bracket that does not match discards all open brackets."""
    open_brackets: list[tuple[str, int]] = []  # each with the depth of the closed brackets inside it
    for sign in response:
        if sign in "([{":
            open_brackets.append((sign, 0))
        elif sign in _CLOSES:
            if not open_brackets or open_brackets[-1][0] != _CLOSES[sign]:
                open_brackets.clear()
            elif (depth := open_brackets.pop()[1] + 1) >= _BRACKET_DEPTH:
                return True
            elif open_brackets:
                outer, inside = open_brackets[-1]
                open_brackets[-1] = (outer, max(inside, depth))
    return False


@instruction("format:quotes")
def _deep_quotes(response: str) -> bool:
    """Whether quotes are nested deeply. A quotation mark not preceded by a letter opens a quote; the same mark closes it."""
    open_quotes: list[tuple[str, int]] = []
    for position, sign in enumerate(response):
        kind = _KIND.get(sign)
        after_word = position > 0 and response[position - 1].isalnum()
        before_word = response[position + 1 : position + 2].isalnum()
        if kind is None or (after_word and before_word):
            continue
        if open_quotes and open_quotes[-1][0] == kind and sign not in "“‘" and not (before_word and not after_word):
            depth = open_quotes.pop()[1] + 1
            if depth >= _QUOTE_DEPTH:
                return True
            if open_quotes:
                outer, inside = open_quotes[-1]
                open_quotes[-1] = (outer, max(inside, depth))
        elif not after_word and sign not in "”’" and (not open_quotes or open_quotes[-1][0] != kind):
            open_quotes.append((kind, 0))
    return False


@instruction("format:options", options=text)
def _one_option(response: str, *, options: str) -> bool:
    separator = "/" if "/" in options else r"\bor\b" if re.search(r"\bor\b", options) else ","
    known = [option.strip() for option in re.split(separator, options) if option.strip()]
    if _LETTERED.match(options):
        return response.strip() in known
    return _plain(response) in map(_plain, known)


def _plain(of: str) -> str:
    return " ".join(bare(of).casefold().replace("’", "'").split())


@instruction("format:emoji")
def _emoji_each(response: str) -> bool:
    found = sentences(response)
    return bool(found) and all(map(ends_in_emoji, found))


@instruction("format:line_indent")
def _stairs(response: str) -> bool:
    indents = [len(line) - len(line.lstrip()) for line in map(str.expandtabs, lines(response))]
    return len(indents) > 1 and all(earlier < later for earlier, later in pairwise(indents))


@instruction("format:quote_unquote")
def _explained_quotes(response: str) -> bool:
    between = _PHRASE.split(response)
    return all(tokens(part) for part in between[1:]) and not re.search('["“”]', " ".join(between))


@instruction("format:list", sep=text)
def _separated_items(response: str, *, sep: str) -> bool:
    mark = re.escape(sep.strip())
    return len(re.findall(rf"(?:^|(?<=\s)){mark}[ \t]*(?=\S)(?!{mark})", response, re.MULTILINE)) >= 2


@instruction("format:thesis")
def _italic_theses(response: str) -> bool:
    """Whether each section begins in italics and then continues; headings, if there are any, separate the sections."""
    parts: list[list[str]] = [[]]
    for line in lines(response):
        if _HEADING.fullmatch(line.strip()):
            parts.append([])
        else:
            parts[-1].append(line)
    sections = ["\n".join(part) for part in parts if part]
    return bool(sections) and all(map(_has_thesis, sections))


def _has_thesis(section: str) -> bool:
    match = _THESIS.match(section)
    return match is not None and bool(tokens(match[2])) and bool(tokens(match[3]))


@instruction("format:sub-bullets")
def _sub_bullets(response: str) -> bool:
    counts: list[int] = []
    for line in map(str.strip, lines(response)):
        if re.match(r"\*\s+\S", line):
            counts.append(0)
        elif counts and re.match(r"-\s+\S", line):
            counts[-1] += 1
    return bool(counts) and all(counts)


@instruction("format:no_bullets_bullets")
def _sentences_then_bullets(response: str) -> bool:
    found = lines(response)
    bullets = [bool(re.match(r"\s*\*\s+\S", line)) for line in found]
    first = bullets.index(True) if True in bullets else len(found)
    stops = [sentence for sentence in sentences("\n".join(found[:first])) if sentence_kind(sentence) == "."]
    return len(stops) >= 2 and sum(bullets) >= 2


@instruction("format:output_template")
def _template(response: str) -> bool:
    before, *parts = _LABELS.split(response)
    labelled = parts[::2] == ["My Answer:", "My Conclusion:", "Future Outlook:"]
    return labelled and not before.strip() and all(map(tokens, parts[1::2]))
