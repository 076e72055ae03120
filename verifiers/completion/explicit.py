"""Marks of rank 1: boxes, `####`, tags and JSON fields.

Responses may be hostile. Patterns run over the text once, and only the last marks are looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise

from verifiers.completion import words
from verifiers.completion.code import code_spans, is_within, may_have_code
from verifiers.completion.mark import BEFORE, EXPLICIT, MOST_MARKS, REACH, Form, Mark
from verifiers.completion.marking import view_of
from verifiers.completion.places import matches

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])\s*")
_BRACE = re.compile(r"\\[\\{}]|[{}]")
_DELIMITER = re.compile(r"\\.|[{}$\s]", re.DOTALL)
_FORMULA_ENDS = frozenset(("$", r"\)", r"\]"))
_BETWEEN = re.compile(
    r"(?:(?:\n\s*(?:[-*•]|\d{1,2}[.)])|\b[a-h]\))\s|[\s,;.$*_{}()\"×]|\\[,;! ]|\\q?quad\b|\\[()\[\]]"
    r"|\\(?:text|mbox|textrm)\s*\{\s*,?\s*(?:and|or)?\s*\}"
    rf"|\b(?:and|or|as|well|versus|vs|also|either|by)\b|\\times\b|\b[A-Za-z]\s*=|&|{words.ALTERNATIVES.pattern})*+",
    re.IGNORECASE,
)
_HASHES = re.compile(r"(?<![^\s*_>.])#{4,}+[ \t]*+")
# Matches a Markdown heading of level four: a line after `####` that starts with a word, possibly numbered, and has text below
# it.
_HEADING = re.compile(r"#{3,}[ \t]*[*_]*(?:\(?[0-9]{1,2}[.):][ \t]+)?[*_]*[^\W\d_]{2}[^\n]*+\n\s*\S")
_TAG = re.compile(words.tags(words.TAGS, opening=True), re.IGNORECASE)
_TAG_END = re.compile(words.tags(words.TAGS, opening=False), re.IGNORECASE)
_KEY = re.compile(
    rf'"(?:{"|".join(words.KEYS)})"\s*:\s*'
    r'(?P<value>"(?:[^"\\\n]|\\.)*+"|[^\s,}"\[\]{][^,}\n]{0,200})',
    re.IGNORECASE,
)


def explicit_marks(text: str, forms: Collection[str]) -> list[Mark]:
    """The marks of rank 1 outside of code, in order; marks that are side by side or nested are joined into one mark."""
    found: list[Mark] = []
    for form, signs, find in _FINDERS:
        if (signs[0] in text or signs[-1] in text) and form in forms:
            found += find(text)
    code = code_spans(text) if found and may_have_code(text) else []
    if len(found) < 2 and not code:
        return found
    found.sort(key=lambda mark: (mark.start, -mark.end))
    outer: list[Mark] = []
    for mark in found[-4 * MOST_MARKS :]:
        if code and mark.form != "json" and is_within(mark.start, code):
            continue
        if outer and mark.end <= outer[-1].end:
            last = outer[-1]
            outer[-1] = Mark(last.form, last.start, last.end, mark.contents + last.contents)
        else:
            outer.append(mark)
    return _listed(text, outer)


def form_of(text: str) -> Form | None:
    """The form of the last mark of rank 1 in a text; None without such a mark."""
    marks = explicit_marks(text, EXPLICIT)
    return marks[-1].form if marks else None


def boxes(text: str) -> list[tuple[int, int, str | None]]:
    r"""Return every outermost box: its start, its end, and its content (None if the box is not closed).

    Without braces, as in `\boxed 5$` or `\boxed\frac12.`, the content is the text up to white space or the end of the
    formula, without final punctuation. Escaped braces (`\{`, `\}`) are text, not delimiters.
    """
    spans: list[tuple[int, int, str | None]] = []
    position = 0
    while (match := _BOX.search(text, position)) is not None:
        read = _braced if text.startswith("{", match.end()) else _bare
        content, position = read(text, match.end())
        spans.append((match.start(), position, content))
    return spans


def boxed_answer(solution: str) -> str | None:
    r"""Return the answer that a worked solution gives in its last box, or in its last few boxes.

    Returns:
        The contents, joined by commas, or by `or` if `or` stands between any two boxes. None if there is no box; an empty text
        if the last box is empty or not closed.
    """
    marks = explicit_marks(solution, ("box",))
    return marks[-1].contents[-1] if marks else None


def _boxed(text: str) -> Iterator[Mark]:
    for start, end, content in boxes(text)[-MOST_MARKS:] if "box" in text else ():
        contents: tuple[str, ...] = (content or "",)
        if content and "box" in content and (inner := boxes(content)) and inner[-1][2]:
            contents = (inner[-1][2], content)
        if _MARKED_INSIDE.search(contents[0]):
            contents = tuple(dict.fromkeys((_contents_of(contents[0])[0], *contents)))
        yield Mark("box", start, end, contents)


_MARKED_INSIDE = re.compile(r"(?:\A|[\s{$(\[>*_`])[*_`\"'“‘<]")


def _braced(text: str, start: int) -> tuple[str | None, int]:
    """The content of the group whose opening brace is at `start` (None if it is never closed), and the index after it."""
    end = text.find("}", start)
    content = text[start + 1 : end]
    if end >= 0 and "{" not in content and "\\" not in content:
        return content.strip(), end + 1
    depth = 0
    for match in _BRACE.finditer(text, start):
        depth += (match[0] == "{") - (match[0] == "}")
        if depth == 0:
            return text[start + 1 : match.start()].strip(), match.end()
    return None, len(text)


def _bare(text: str, start: int) -> tuple[str, int]:
    """The text from `start` to the end of the word or formula, and the index after it."""
    depth, end = 0, len(text)
    for match in _DELIMITER.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth < 0 or (depth == 0 and (match[0] in _FORMULA_ENDS or match[0].isspace())):
            end = match.start()
            break
    return text[start:end].rstrip(".,;"), end


def _hashed(text: str) -> Iterator[Mark]:
    for match in [*matches(_HASHES, ("####",), text)][-MOST_MARKS:]:
        if _HEADING.match(text, match.start()):
            continue
        start = match.end()
        while start < len(text) and text[start].isspace():
            start += 1
        end = text.find("\n", start)
        end = min(len(text) if end < 0 else end, start + REACH)
        yield Mark("hashes", match.start(), end, _contents_of(_TAG_END.split(text[start:end])[0]))


def _tagged(text: str) -> Iterator[Mark]:
    tags = [*matches(_TAG, ("<", "["), text)][-MOST_MARKS:]
    for tag, following in zip(tags, [*(tag.start() for tag in tags[1:]), len(text)][: len(tags)], strict=True):
        closing = _TAG_END.search(text, tag.end(), following)
        content = text[tag.end() : closing.start() if closing else following]
        end = closing.end() if closing else following
        yield Mark("tag", tag.start(), end, _contents_of(content, by_line=closing is None))


def _contents_of(content: str, *, by_line: bool = False) -> tuple[str, ...]:
    """The readings of a mark's content: without markup (if `by_line`, first its first line, then all lines), and unchanged."""
    content = content.strip()
    if len(content) > REACH:
        return (content,)
    view = view_of(content)
    plain = view.content(0, len(view.plain))
    first = plain.partition("\n")[0] if by_line else plain
    return tuple(dict.fromkeys((first, plain, content)))


def _fields(text: str) -> Iterator[Mark]:
    for match in [*matches(_KEY, ('"',), text)][-MOST_MARKS:]:
        start = match.start()
        while start and text[start - 1].isspace():
            start -= 1
        if text[start - 1 : start] not in ("{", ","):
            continue
        value = match["value"].strip()
        if value.startswith('"'):
            try:
                value = str(json.loads(value))
            except ValueError:
                value = value.strip('"')  # TeX in JSON is often written without doubled backslashes
        yield Mark("json", start, match.end(), _contents_of(value))


def _listed(text: str, marks: Sequence[Mark]) -> list[Mark]:
    """Join marks that are separated only by punctuation and joining words into one mark with the joined contents."""
    groups: list[list[Mark]] = []
    for mark in marks:
        last = groups[-1][-1] if groups else mark
        if last is not mark and "hashes" not in (last.form, mark.form) and _are_joined(text[last.end : mark.start]):
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return [_joined(text, group) if len(group) > 1 else group[0] for group in groups]


def _are_joined(between: str) -> bool:
    return "\n\n" not in between and len(between) < BEFORE and _BETWEEN.fullmatch(between) is not None


def _joined(text: str, group: Sequence[Mark]) -> Mark:
    either = any(re.search(r"\bor\b", text[one.end : other.start]) for one, other in pairwise(group))
    joiner, contents = (" or " if either else ", "), []
    for which in (0, -1):
        parts = dict.fromkeys(content for mark in group if (content := mark.contents[which]))
        contents.append(joiner.join(parts) if group[-1].contents[which] else "")
    return Mark(group[-1].form, group[0].start, group[-1].end, tuple(dict.fromkeys(contents)), parts=tuple(group))


_FINDERS: tuple[tuple[Form, str, Callable[[str], Iterator[Mark]]], ...] = (
    ("box", "\\", _boxed),
    ("hashes", "#", _hashed),
    ("tag", "<[", _tagged),
    ("json", '"', _fields),
)
"""For each form: the one or two characters with which its marks begin, and the function that finds its marks."""
