"""The places of a response where an answer stands: boxes, `####`, tags, JSON fields, and phrases.

Responses may be hostile. Patterns run over the text once, or over a piece of bounded length around a mark, and only the last
marks are looked at.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal
from unicodedata import category

from verifiers.completion import words
from verifiers.completion.marking import View

Form = Literal["box", "hashes", "tag", "json", "phrase", "value", "whole", "number", "second"]
EXPLICIT: tuple[Form, ...] = ("box", "hashes", "tag", "json")
"""The forms of rank 1."""
# `second` is no form of a mark: it asks for strictness, where a statement behind an answer may only be about it.
MOST_MARKS = 64
"""Number of marks of a kind that are looked at, from the end."""
_REACH = 1_500
"""Characters behind a phrase in which its statement must end."""
_BEFORE = 200
"""Characters before a mark in which it may be denied."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place where an answer may stand."""

    form: Form
    start: int
    end: int
    contents: tuple[str, ...]
    """What may be the answer, the likeliest first: of nested marks the innermost first. An empty mark holds one empty text."""
    is_item: bool = False
    """Whether it is a phrase that begins an item of a list."""
    is_second: bool = False
    """Whether it is a phrase that states a second answer."""
    parts: tuple[Mark, ...] = ()
    """The marks that it joins, if it is a list of marks."""


# Rank 1.

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])\s*")
_DELIMITER = re.compile(r"\\.|[{}$\s]", re.DOTALL)
_FORMULA_ENDS = frozenset(("$", r"\)", r"\]"))
_BETWEEN = re.compile(
    r"(?:\n\s*(?:[-*•]|\d{1,2}[.)])\s|[\s,;.$*_{}\"]|\\[,;! ]|\\q?quad\b|\\[()\[\]]"
    r"|\\(?:text|mbox|textrm)\s*\{\s*,?\s*(?:and|or)?\s*\}"
    r"|\b(?:and|or|as|well|versus|vs|also|either)\b|\b[A-Za-z]\s*=|&)*+"
)
_HASHES = re.compile(r"(?<![^\s*_>.])#{4,}+[ \t]*+")
# A line after `####` that starts with a word, possibly numbered, and has text below it: a Markdown heading of level four.
_HEADING = re.compile(r"#{3,}[ \t]*[*_]*(?:\(?[0-9]{1,2}[.):][ \t]+)?[*_]*[^\W\d_]{2,}[^\n]*\n\s*\S")
_TAG = re.compile(words.tags(words.TAGS, opening=True), re.IGNORECASE)
_TAG_END = re.compile(words.tags(words.TAGS, opening=False), re.IGNORECASE)
_KEY = re.compile(
    rf'(?<=[{{,])\s*"(?:{"|".join(words.KEYS)})"\s*:\s*'
    r'(?P<value>"(?:[^"\\\n]|\\.)*+"|[^\s,}"\[\]{][^,}\n]{0,200})',
    re.IGNORECASE,
)


def explicit_marks(text: str, forms: Collection[str]) -> list[Mark]:
    """The marks of rank 1 outside of code, in order; those side by side are one, and so are nested ones."""
    found: list[Mark] = []
    code = code_spans(text) if "```" in text or "~~~" in text else []
    for form, find in (("box", _boxed), ("hashes", _hashed), ("tag", _tagged), ("json", _fields)):
        if form in forms:
            found += find(text)
    if len(found) > 1:
        found.sort(key=lambda mark: (mark.start, -mark.end))
    outer: list[Mark] = []
    for mark in found[-4 * MOST_MARKS :]:
        if code and mark.form != "json" and _is_within(mark.start, code):
            continue
        if outer and mark.end <= outer[-1].end:
            last = outer[-1]
            outer[-1] = Mark(last.form, last.start, last.end, mark.contents + last.contents)
        else:
            outer.append(mark)
    return _listed(text, outer)


def boxes(text: str) -> list[tuple[int, int, str | None]]:
    r"""Return every outermost box: its start, its end, and its content, None if it is not closed.

    Without braces, as in `\boxed 5$` or `\boxed\frac12.`, the content is the text up to white space, the end of the
    formula or punctuation there. Escaped braces (`\{`, `\}`) are text, not delimiters.
    """
    spans: list[tuple[int, int, str | None]] = []
    position = 0
    while (match := _BOX.search(text, position)) is not None:
        read = _braced if text.startswith("{", match.end()) else _bare
        content, position = read(text, match.end())
        spans.append((match.start(), position, content))
    return spans


def boxed_answer(solution: str) -> str | None:
    r"""Return the answer that a worked solution gives in its last box, or in the last few.

    Returns:
        The contents, joined by commas, or by `or` if that separates any two of them; None if there is no box, an empty text if
        the last is empty or not closed.
    """
    marks = explicit_marks(solution, ("box",))
    return marks[-1].contents[-1] if marks else None


def _boxed(text: str) -> Iterator[Mark]:
    for start, end, content in boxes(text) if "box" in text else ():
        inner = boxes(content)[-1:] if content and "box" in content else []
        innermost = (inner[0][2] if inner else None) or content or ""
        plain = _contents_of(innermost)[0] if _MARKED_INSIDE.search(innermost) else innermost
        yield Mark("box", start, end, tuple(dict.fromkeys((plain, innermost, content or ""))))


_MARKED_INSIDE = re.compile(r"(?:\A|[\s{$(\[>*_`])[*_`\"'“‘<]")


def _braced(text: str, start: int) -> tuple[str | None, int]:
    """The group whose opening brace is at `start`, None if it is never closed, and the index after it."""
    depth = 0
    for match in _DELIMITER.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
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
    for match in list(_HASHES.finditer(text))[-MOST_MARKS:] if "####" in text else ():
        if _HEADING.match(text, match.start()):
            continue
        start = match.end()
        while start < len(text) and text[start].isspace():
            start += 1
        end = text.find("\n", start)
        end = min(len(text) if end < 0 else end, start + _REACH)
        yield Mark("hashes", match.start(), end, _contents_of(_TAG_END.split(text[start:end])[0]))


def _tagged(text: str) -> Iterator[Mark]:
    tags = list(_TAG.finditer(text)) if "nswer" in text or "NSWER" in text else []
    for tag, following in zip(tags, [*(tag.start() for tag in tags[1:]), len(text)][: len(tags)], strict=True):
        closing = _TAG_END.search(text, tag.end(), following)
        content = text[tag.end() : closing.start() if closing else following]
        end = closing.end() if closing else following
        yield Mark("tag", tag.start(), end, _contents_of(content, by_line=closing is None))


def _contents_of(content: str, *, by_line: bool = False) -> tuple[str, ...]:
    """A content without its marking, its first line if that may be all of it, and itself."""
    content = content.strip()
    if len(content) > _REACH:
        return (content,)
    view = View(content)
    plain = view.content(0, len(view.plain))
    first = plain.partition("\n")[0] if by_line else plain
    return tuple(dict.fromkeys((first, plain, content)))


def _fields(text: str) -> Iterator[Mark]:
    for match in _KEY.finditer(text) if '"' in text else ():
        value = match["value"].strip()
        if value.startswith('"'):
            try:
                value = str(json.loads(value))
            except ValueError:
                value = value.strip('"')  # TeX in JSON is often written without doubled backslashes
        yield Mark("json", match.start(), match.end(), _contents_of(value))


def _listed(text: str, marks: Sequence[Mark]) -> list[Mark]:
    """Marks with nothing between them but signs and joining words are one; its content joins theirs."""
    groups: list[list[Mark]] = []
    for mark in marks:
        last = groups[-1][-1] if groups else mark
        if last is not mark and "hashes" not in (last.form, mark.form) and _are_joined(text[last.end : mark.start]):
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return [_joined(text, group) if len(group) > 1 else group[0] for group in groups]


def _are_joined(between: str) -> bool:
    return "\n\n" not in between and len(between) < _BEFORE and _BETWEEN.fullmatch(between) is not None


def continues_list(text: str, earlier: Mark, later: Mark) -> bool:
    """Whether a phrase is joined to the one before it in its sentence."""
    return _JOINED_TO_NEXT.fullmatch(text, earlier.start, later.start) is not None


def _joined(text: str, group: Sequence[Mark]) -> Mark:
    either = any(re.search(r"\bor\b", text[one.end : other.start]) for one, other in pairwise(group))
    joiner, contents = (" or " if either else ", "), []
    for which in (0, -1):
        parts = dict.fromkeys(content for mark in group if (content := mark.contents[which]))
        contents.append(joiner.join(parts) if group[-1].contents[which] else "")
    return Mark(group[-1].form, group[0].start, group[-1].end, tuple(dict.fromkeys(contents)), parts=tuple(group))


# Rank 2.

_ANSWERS = words.CueFinder(words.ANSWERS.pattern, words.ANSWERS)
_RESULTS = words.CueFinder(words.RESULTS.pattern, words.RESULTS)
_CLAIM = re.compile(
    rf"(?:[ \t]*\([^()\n]{{1,40}}\))?(?:\s+(?:of|to|for|in|from|as)\s[^.\n:=]{{0,80}}?)??(?:\s*(?:{words.VERBS.pattern})"
    rf"(?:(?:\s*,)?\s*(?:{words.FILLERS.pattern})\b,?)*(?:\s*:)?|(?P<heading>[ \t]*(?=\n)))",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(r"(?:\W|\b(?:the|my|our|so|thus|therefore|hence|final|correct|best|right)\b)*", re.IGNORECASE)
_HEADING_LINE = re.compile(rf"\W*(?:\d{{1,2}}[.)]\s*)?{words.HEADINGS.pattern}\W*", re.IGNORECASE)
_ITEM = re.compile(
    r"\s*(?:(?:step|part|option|case|attempt|try|question)\s*)?\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})\s*[.:)]\s*(?:the|my|so|final|correct|\s|,)*",
    re.IGNORECASE,
)
_BULLET = re.compile(r"[ \t]*[-*+•][ \t]+(?:[*_]*(?:the|my|so|final|correct)?\W*)?(?:answer|correct)", re.IGNORECASE)
_SENTENCE_START = re.compile(r"[.!?]\s+(?=(?:step|part|option|case|attempt|try|question)\b)", re.IGNORECASE)
_SENTENCE_END = re.compile(
    r"\n|\.(?=[\"'”’)]?(?:\s|$))(?<![ap]\.m\.)(?<!\bi\.e\.)(?<!\be\.g\.)(?<!\bapprox\.)|(?<=[!?])(?=[\"'”’)]?(?:\s|$))(?!\s*[-+*/=×÷^<>])|。",
    re.IGNORECASE,
)
_CLAUSE_START = re.compile(r"(?:[.!?;:,\n]|\b(?:but|so|then|thus|hence|therefore)\b)(?=[^.!?;:,\n]*+\Z)", re.IGNORECASE)
_EXPLANATION = re.compile(
    rf"{words.EXPLANATIONS.pattern}|;\s+(?:this|that|it|since|because|so|we|as)\b"
    r"|,?\s+but\s(?!not\b|.{0,30}?\b(?:could|might|may|maybe|perhaps|possibly)\b)"
    r"|\s{0,2}\((?!(?:sin|cos|tan|log|sqrt|mod)\b)(?:[A-Za-z]{3,}|i\.e\.|e\.g\.|(?:in|as|is|to|at|by|we|so|if|an?)\s)",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"(?<=[\w}$%])(?<!\bin)(?<!cup)\s{1,3}\((?=[^()]*[A-Za-z]{3,})[^()\\,]{1,100}\)\s*$|(?<=[a-z]{3})\s{1,3}\([-+]?[0-9][0-9.,]*\)\s*$"
)
_VERB = re.compile(r"\b(?:is|are|was|were|equals|be)\b:?\s*", re.IGNORECASE)
_WORDS = re.compile(r"[^0-9\\=]*?[A-Za-z]{2,}[^0-9\\=]*?\s[A-Za-z]{2,}[^0-9\\=]*\Z")
_EQUALS = re.compile(r"\s=\s")
_LONGEST_VALUE = 60
_LONGEST_WHOLE = 4_000
"""Characters of a response that may be nothing but its answer."""
_HOPS = 3
"""Number of statements in a row that may only announce the next."""


def phrases(text: str, start: int = 0, *, results: bool = False, more: words.CueFinder | None = None) -> Iterator[Mark]:
    """The phrases and headings of a text that state an answer and are neither denied, asked nor supposed, the last first.

    Args:
        text: The response.
        start: Where to begin.
        results: Whether to look for results in place of answers.
        more: Further cues, behind which an answer follows; with the group `sentence`, the answer is in the cue's sentence.
    """
    code = code_spans(text) if "```" in text or "~~~" in text else []
    finders = [_RESULTS] if results else [_ANSWERS] if more is None else [_ANSWERS, more]
    found = [islice(finder.backwards(text, start), MOST_MARKS) for finder in finders]
    cues = found[0] if len(found) == 1 else heapq.merge(*found, key=lambda cue: cue.start(), reverse=True)
    limit = len(text)
    for cue in cues:
        begin = cue.start()
        if begin < limit and not (code and _is_within(begin, code)):
            mark = _phrase(text, cue, limit, is_answer=more is None or cue.re is not more.pattern)
            if mark is not None:
                limit = begin
                yield mark


def _phrase(text: str, cue: re.Match[str], limit: int, *, is_answer: bool) -> Mark | None:
    begin, end = cue.span()
    line = max(text.rfind("\n", 0, begin) + 1, begin - _BEFORE)
    view = View(text[line : min(end + _REACH, limit)])
    plain = view.plain
    at, after = view.place(begin - line), view.place(end - 1 - line) + 1
    formulas = view.formulas()
    claim = _CLAIM.match(plain, after) if is_answer else None
    if claim is not None and claim["heading"] is not None and not _is_heading(plain, at):
        claim = None
    if claim is not None:
        after = claim.end()
    elif is_answer:
        return None
    elif cue["sentence"]:
        return _sentence(view, line, begin, at)
    is_conditional = "would" in plain[at:after]
    if not is_answer and _NEGATED_BEFORE.search(plain[:at]):
        return None
    statements = _statements(plain, after, formulas)
    if not statements or _is_void(plain[:at], plain[slice(*statements[-1])], is_conditional=is_conditional):
        return None
    last = statements[-1][1]
    if _LEAD_IN.fullmatch(plain, *statements[0]):  # a heading of another phrase
        return None
    found = (content for span in reversed(statements) for content in _contents(view, *span, formulas))
    contents = tuple(dict.fromkeys(filter(None, found)))
    is_item = (
        _BULLET.match(text, line) is not None or _ITEM.fullmatch(_SENTENCE_START.split(plain[:at])[-1]) is not None
    )
    if not contents or _WRONG_BEFORE.search(plain[:at]):
        return None
    is_second = _SECOND_BEFORE.search(plain[:at]) is not None
    return Mark("phrase", begin, line + view.origin(last), contents, is_item, is_second)


def _sentence(view: View, line: int, begin: int, at: int) -> Mark | None:
    """The sentence around a cue, as a mark whose content is all of it."""
    plain, formulas = view.plain, view.formulas()
    first = max(
        (end.end() for end in _SENTENCE_END.finditer(plain, 0, at) if len(plain[: end.start()].split(". ")[-1]) > 2),
        default=0,
    )
    last = _end_of_sentence(plain, at, formulas)
    sentence = plain[first:last].strip()
    if sentence.endswith("?") or _SUPPOSED.match(sentence) or _DENIED.search(plain[first:at]):
        return None
    is_second = _SECOND_BEFORE.search(plain[first:at]) is not None or _TOO.search(sentence) is not None
    return Mark("phrase", begin, line + view.origin(last), (sentence,), is_second=is_second)


def _is_heading(plain: str, at: int) -> bool:
    """Whether the line of a word is a heading: it holds nothing else."""
    end = plain.find("\n", at)
    return _HEADING_LINE.fullmatch(plain, plain.rfind("\n", 0, at) + 1, end if end >= 0 else len(plain)) is not None


def _statements(plain: str, start: int, formulas: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The span of the statement that begins at a place; if it only announces the next, by a colon at its end, of that too."""
    spans: list[tuple[int, int]] = []
    last = start
    for _ in range(_HOPS):
        first = last
        while first < len(plain) and (plain[first].isspace() or plain[first] in ":*_"):
            first += 1
        last = _end_of_sentence(plain, first, formulas)
        if first == last:
            break
        spans.append((first, last))
        if not plain[first:last].rstrip().endswith(":"):
            break
    return spans


def _end_of_sentence(plain: str, start: int, formulas: Sequence[tuple[int, int]]) -> int:
    for end in _SENTENCE_END.finditer(plain, start):
        if not (end[0] == "." and _is_label(plain, end.start())) and not any(
            first < end.start() < last for first, last in formulas
        ):
            return end.start()
    return len(plain)


_JOINED_TO_NEXT = re.compile(
    r"[^.!?\n]*(?:,|\band|\bor|&)\s*(?:(?:the|my|final|correct|either|also)\s+)*\Z", re.IGNORECASE
)
_LABEL = re.compile(r"(?:\A|[\s(])[A-Z]\Z")
_NEW_SENTENCE = re.compile(
    r"\.[\"'”’)]*\s+(?:The|This|That|I|We|It|So|Then|Thus|Or|But|And|However|Because|Since|As|If|In|There|Therefore|Hence|Actually|Wait"
    r"|Hmm|No|Yes|Sorry|Also|Let|Maybe|Perhaps|Possibly|Alternatively|Correction|Oops)\b|\.[\"'”’)]*\s*(?:\n|\Z)"
)


def _is_label(plain: str, stop: int) -> bool:
    """Whether a full stop belongs to a label before a text, as in "C. Paris", unless a word that begins sentences follows."""
    return _LABEL.search(plain, max(0, stop - 2), stop) is not None and not _NEW_SENTENCE.match(plain, stop)


_WRONG_BEFORE = re.compile(rf"{words.WRONG.pattern}\s*\Z", re.IGNORECASE)
_TOO = re.compile(r"\b(?:too|as well)\W*\Z", re.IGNORECASE)
_SECOND_BEFORE = re.compile(rf"{words.SECOND.pattern}\s*\Z", re.IGNORECASE)
_DENIED = re.compile(rf"{words.DENIALS.pattern}[^.,;:\n]{{0,30}}$", re.IGNORECASE)
_NEGATED = re.compile(rf"\W*{words.NEGATIONS.pattern}", re.IGNORECASE)
_REJECTED = re.compile(rf"[\s$*_)\\\]]*(?:{words.REJECTIONS.pattern})", re.IGNORECASE)
_NEGATED_BEFORE = re.compile(rf"{words.NEGATIONS.pattern}[\s$*_(\[\\]*$", re.IGNORECASE)
_SUPPOSED = re.compile(rf"\W*(?:(?:and|but|so|now|well|or)\W+)?{words.SUPPOSITIONS.pattern}", re.IGNORECASE)
_NEGATED_WITHIN = re.compile(rf"\b(?:is|are|was|equals)\s*{words.NEGATIONS.pattern}\W*[0-9]", re.IGNORECASE)
_HYPOTHESIS = re.compile(rf"{_SUPPOSED.pattern}|\W*(?:for|with|when|otherwise|similarly)\b", re.IGNORECASE)
_TAG_QUESTION = re.compile(rf"{words.TAG_QUESTIONS.pattern}\s*$", re.IGNORECASE)


def _is_void(before: str, statement: str, *, is_conditional: bool = False) -> bool:
    """Whether a statement, whose verb may be a conditional ("would be"), is denied, asked or supposed."""
    cut = _CLAUSE_START.search(before[-_BEFORE:])
    clause = before[-_BEFORE:][cut.end() :] if cut else before[-_BEFORE:]
    if _DENIED.search(before[-_BEFORE:]) or _SUPPOSED.match(clause):
        return True
    if is_conditional and _HYPOTHESIS.match(re.split(r"[.!?\n]\s*", before)[-1]):
        return True
    if statement.endswith("?") and not _TAG_QUESTION.search(statement[:-1]):
        return True
    return _NEGATED.match(statement) is not None


def _contents(view: View, first: int, last: int, formulas: Sequence[tuple[int, int]]) -> Iterator[str]:
    """What a statement says: all of it without an explanation, what follows its last verb, and its one marked value."""
    end = next(
        (
            match.start()
            for match in _EXPLANATION.finditer(view.plain, first, last)
            if match.start() > first and not any(start < match.start() < stop for start, stop in formulas)
        ),
        last,
    )
    end -= view.plain[end - 1] in "?:"
    end = last if _opened(view.plain[first:end]) > 0 else end
    if tag_question := _TAG_QUESTION.search(view.plain[first:end]):
        end = first + tag_question.start()
    while end > first and (view.plain[end - 1] in " \t\n,;:" or category(view.plain[end - 1]) in ("So", "Mn", "Cf")):
        end -= 1  # punctuation before an explanation, or an emoji
    whole = view.content(first, end)
    tails = []
    for sign in (_VERB, _EQUALS):
        verbs = [verb for verb in sign.finditer(view.plain, first, end) if not _is_within(verb.start(), formulas)]
        tails.append(_ASIDE.sub("", view.content(verbs[-1].end(), end)) if verbs else "")
        if verbs and sign is _VERB and _WORDS.match(view.plain, first, verbs[-1].start()):
            yield tails[0]
    yield _ASIDE.sub("", whole)
    yield whole
    yield from tails
    values = {view.content(start, stop) for start, stop in view.values if first <= start and stop <= end}
    if len(values) == 1:
        yield values.pop()


def after_verb(statement: str) -> str:
    """What follows the last verb of a statement in plain text that a number follows; all of it without one."""
    verbs = [verb for verb in _VERB.finditer(statement) if re.search("[0-9]", statement[verb.end() :])]
    return statement[verbs[-1].end() :] if verbs else statement


def last_line(text: str) -> str:
    """The last line that is not blank, stripped; empty if there is none."""
    return text.rstrip().rpartition("\n")[2].strip()


def _opened(text: str) -> int:
    """The excess of opening over closing round and square brackets; a half-open interval has one of each."""
    return sum(text.count(sign) for sign in "([") - sum(text.count(sign) for sign in ")]")


def is_void_here(text: str, mark: Mark) -> bool:
    """Whether a mark of rank 1 is denied, asked or supposed by the sentence around it."""
    line = text.rfind("\n", 0, mark.start) + 1
    before = text[max(line, mark.start - _BEFORE) : mark.start]
    after = text[mark.end : mark.end + _BEFORE].partition("\n")[0]
    end = _SENTENCE_END.search(after)
    said = after if end is None else after[: end.start()]
    asked = said.endswith("?") and not _TAG_QUESTION.search(said[:-1])
    if asked or _REJECTED.match(after):
        return True
    if not before.strip():
        return False
    sentence = re.split(r"[.!?;](?=\s)", before)[-1]
    clause = re.split(r",|\b(?:but|so|then|thus|hence|therefore)\b", sentence)[-1]
    return bool(_NEGATED_BEFORE.search(before) or _SUPPOSED.match(clause) or _DENIED.search(sentence))


def is_void_statement(plain: str) -> bool:
    """Whether the last sentence of a line is denied, asked or supposed."""
    stripped = plain.rstrip(" *_\"'”)")
    start = max((end.end() for end in _SENTENCE_END.finditer(stripped) if end.end() < len(stripped)), default=0)
    sentence = stripped[start:]
    asked = sentence.endswith("?") and not _TAG_QUESTION.search(sentence[:-1])
    clauses = re.split(r",\s|\bthen\b", sentence)
    clause = next((part for part in reversed(clauses) if re.search("[0-9A-Z]", part)), sentence)
    return asked or bool(_SUPPOSED.match(clause) or _DENIED.search(sentence) or _NEGATED_WITHIN.search(sentence))


# What stands behind a mark.

_CORRECTION = re.compile(
    rf"(?:^|[.!?:;,…)\]}}$*]|[—–-])[\s*_\"'“….]{{0,10}}+(?P<cue>{words.CORRECTIONS.pattern})",
    re.IGNORECASE | re.MULTILINE,
)
_CONFIRMED = re.compile(words.CONFIRMATIONS.pattern, re.IGNORECASE)
_BEHIND = r"(?:</?\w{1,10}+>|[\s.,;!?$*_`)\]}\\\"'”’])*+"
_ALTERNATIVE = re.compile(rf"{_BEHIND}(?P<cue>{words.ALTERNATIVES.pattern})[,:]?\s*", re.IGNORECASE)
_WITHIN = re.compile(r"\s(?:or\s+)?(?:maybe|perhaps|possibly|alternatively)\b[,:]?\s*", re.IGNORECASE)


def is_taken_back(text: str) -> bool:
    """Whether a text, which stands behind an answer, takes it back and does not confirm it after all."""
    correction = _CORRECTION.search(text)
    return correction is not None and not _CONFIRMED.search(text, correction.end())


def alternatives_after(text: str, mark: Mark) -> tuple[str, ...]:
    """What may be offered behind a mark, or within its statement, as a second answer, the likeliest first."""
    sentence = _SENTENCE_END.search(text, mark.end, mark.end + _BEFORE)
    match = _ALTERNATIVE.match(text, mark.end) or (sentence and _ALTERNATIVE.match(text, sentence.end()))
    match = match or (_WITHIN.search(text, mark.start, mark.end) if mark.form == "phrase" else None)
    if not match:
        return ()
    view = View(text[match.end() : match.end() + _BEFORE])
    formulas = view.formulas()
    statements = _statements(view.plain, 0, formulas)
    return tuple(_contents(view, *statements[-1], formulas)) if statements else ()


_VALUE_ALONE = re.compile(r"\A[^=]*[0-9][^=]*\Z|\A\W*[A-Z]\W*\Z")


def next_line(text: str, mark: Mark) -> str:
    """The line below a mark, if that ends its line and the line below is short; else an empty text."""
    rest, _, below = text[mark.end : mark.end + _BEFORE].partition("\n")
    line = below.lstrip().partition("\n")[0]
    if rest.strip(" .*_$`\\)]}") or len(line) > _LONGEST_VALUE or not _VALUE_ALONE.search(line):
        return ""
    view = View(line)
    return view.content(0, len(view.plain))


_DELETED = re.compile(r"(?<!~)~~(?=[^\s~])[^~\n]{1,400}(?<=[^\s~])~~(?!~)")


def without_deleted(text: str) -> str:
    """A text without what it strikes out."""
    return _DELETED.sub("", text) if "~~" in text else text


# Ranks 3 and 4.


def last_value(text: str) -> Mark | None:
    """The one marked value of the last sentence, or of the last line."""
    stripped = text.rstrip()
    start = max(stripped.rfind("\n\n") + 1, len(stripped) - _REACH, 0)
    view = View(stripped[start:])
    lines = view.plain.rstrip().rfind("\n") + 1
    formulas = view.formulas()
    while any(first < lines < last for first, last in formulas):
        lines = view.plain.rfind("\n", 0, lines - 1) + 1
    sentence = lines
    for end in _SENTENCE_END.finditer(view.plain, lines):
        if end.end() < len(view.plain.rstrip()) and not any(first < end.start() < last for first, last in formulas):
            sentence = end.end()
    for begin in dict.fromkeys((sentence, lines)):
        spans = [(first, last) for first, last in view.values if first >= begin]
        if len({view.plain[first:last] for first, last in spans}) == 1:
            first, last = spans[-1]
            before = view.plain[:first]
            if _is_void(before, view.plain[first:].rstrip()) or _negated_before(before):
                return None
            return Mark("value", start + view.origin(first), len(stripped), (view.content(first, last),))
    return None


def _negated_before(before: str) -> bool:
    return _NEGATED_BEFORE.search(before[-40:]) is not None


_ANNOUNCED = re.compile(
    rf"\b(?:{words.ANSWERS.pattern}|{words.RESULTS.pattern})(?:\s+(?:of|to|for|in)\s[^.\n:=]{{0,80}})?(?:\s*{words.VERBS.pattern})?\s*:?\s*\Z",
    re.IGNORECASE,
)
_ALONE = re.compile(rf"\n[ \t]*+[*_#>]{{0,6}}+[ \t]*+{words.EXPLAINED.pattern}", re.IGNORECASE)


def whole(text: str) -> Mark | None:
    """A response that is nothing but its answer, possibly with an explanation below; None if it only announces one."""
    alone = _ALONE.split(text, maxsplit=1)[0] if "\n" in text else text
    if len(alone) > _LONGEST_WHOLE:
        return None
    view = View(alone, inline="\n" not in alone.strip())  # "- 5" alone is a number, not a list
    if _ANNOUNCED.search(view.plain[-_BEFORE:]):
        return None
    content = view.content(0, len(view.plain))
    return Mark("whole", 0, len(text), tuple(dict.fromkeys((_ASIDE.sub("", content.rstrip(" .!")), content))))


def end_of(text: str) -> Mark:
    """The last lines of a response, in which a verifier may find its answer without any mark."""
    text = text.rstrip()
    start = max(text.rfind("\n", 0, max(len(text) - _LONGEST_WHOLE, 0)) + 1, len(text) - 2 * _LONGEST_WHOLE, 0)
    return Mark("number", start, len(text), (text[start:],))


# Code.

_FENCE = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)[ \t]*+([^\n`]*+)$", re.MULTILINE)


def code_spans(text: str) -> list[tuple[int, int]]:
    """The spans of fenced blocks; a fence with a label begins a block anew."""
    spans: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2]:
            spans.append((opened.start(), fence.end()))
            opened = None
        elif fence[2] and fence[1][0] == opened[1][0]:
            spans.append((opened.start(), fence.start()))
            opened = fence
    return [*spans, (opened.start(), len(text))] if opened else spans


def _is_within(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in spans)


def without_code(text: str) -> str:
    """A text without its fenced blocks."""
    kept, start = [], 0
    for begin, end in code_spans(text) if "```" in text or "~~~" in text else ():
        kept.append(text[start:begin])
        start = end
    return "".join([*kept, text[start:]])


def unfenced(text: str) -> str:
    """A text that is one fenced block without its fences; any other text as it is."""
    if not text.lstrip().startswith(("```", "~~~")):
        return text
    fences = list(_FENCE.finditer(text))
    if (
        len(fences) == 2
        and not text[: fences[0].start()].strip()
        and not text[fences[1].end() :].strip()
        and not fences[1][2]
    ):
        return text[fences[0].end() : fences[1].start()]
    return text
