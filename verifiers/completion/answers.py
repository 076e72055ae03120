"""Decides which mark counts: the last of the best rank, unless the response retracts this mark or contradicts itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import ClassVar, Generic, NamedTuple, TypeVar

from verifiers.completion import words
from verifiers.completion.behind import (
    alternative_after,
    correction_after,
    last_number,
    last_result,
    next_line,
    value_alone,
)
from verifiers.completion.code import may_have_code, unfenced, without_code, without_deleted
from verifiers.completion.denied import is_hypothetical_here, is_void_here
from verifiers.completion.explicit import explicit_marks
from verifiers.completion.mark import EXPLICIT, NOTHING, Form, Mark
from verifiers.completion.marking import BOX_COMMANDS, TEXT_COMMANDS
from verifiers.completion.phrases import ANSWERS, continues_list, phrases
from verifiers.completion.unmarked import end_of, last_value, whole

FORMS: tuple[Form, ...] = ("box", "hashes", "tag", "json", "phrase", "value", "whole", "number")
"""Every form of an answer, by rank."""
_CALCULATION_AFTER = re.compile(
    r"(?<=[\w}$%])\s{1,3}\((?P<calculation>(?:[0-9\s.,$%+*/×÷−-]|\\(?:times|cdot|div)){3,100})(?:=[0-9\s.,$%]{1,20})?\)\Z"
)
DEFAULT_FORMS: tuple[Form, ...] = ("box", "hashes", "tag", "json", "phrase", "whole")
_REFUSAL = re.compile(
    rf"(?:[^\w\\]|\\(?:{TEXT_COMMANDS}|{BOX_COMMANDS})\b|\b(?:i|i['’]m|am|sorry|but|so|honestly|well|the|my|final|answer|is)\b)*{words.REFUSALS.pattern}",
    re.IGNORECASE,
)
_CONTINUED = re.compile(
    r"(?<=\S)\s*(?:\n[*# \t]{0,8}(?:Question|Problem|Human|User|Instruction|Q)\*{0,2}:"
    r"|\n#{2,4} (?:Question|Problem|Instruction):?[ \t]*\n"
    r"|<\|(?:endoftext|end_of_text|eot_id|eom_id|im_end|end|eos|return|im_start|start_header_id|user|human)\|>"
    r"|<[|｜](?:end▁of▁sentence|User)[|｜]>|</s>(?=\s*<(?:s>|\|))|<eos>|<end_of_turn>|<start_of_turn>)"
)
"""Matches the end of a text or turn, or the start of another question, after which some models go on writing."""
_REFUSAL_LENGTH = 500
_SAYS_SOMETHING = re.compile(r"[^\W_]")
_SHORTEST_PHRASE = len("answer: 5") - 1
Value = TypeVar("Value")


class Kind(Generic[Value]):
    """The answers that a verifier understands."""

    cues: ClassVar[words.CueFinder | None] = None
    """Further cues for answers of this kind; the answer follows the cue."""
    is_list: ClassVar[bool] = False
    """Whether several values may be one answer."""

    def read(self, content: str, form: Form) -> Value | None:
        """Read the content of a mark as an answer; None if the content can't be an answer."""
        raise NotImplementedError

    def same(self, first: Value, second: Value) -> bool:
        """Whether two answers are the same."""
        return first == second

    def comparable(self, first: Value, second: Value) -> bool:
        """Whether the second answer can contradict the first; otherwise it is a remark about the first."""
        return True


class Found(NamedTuple, Generic[Value]):
    """The answer that a response gives, or the reason why it gives none."""

    value: Value | None
    form: str
    """The form of the answer; if there is no answer, the reason."""
    other: Value | None = None
    """A second, different answer that the response gives."""


def find(
    response: str, kind: Kind[Value], forms: Collection[str] = DEFAULT_FORMS, asked: str | None = None
) -> Found[Value]:
    """Find the answer of a response.

    Args:
        response: The response that `cut` found in a completion.
        kind: Defines what can be an answer.
        forms: The forms to look for.
        asked: The form that the prompt asked for; it outranks every other form.
    """
    if may_have_code(response):
        response = without_deleted(unfenced(response))
    if (continued := _CONTINUED.search(response)) is not None:
        found = _Search(response[: continued.start()], kind, forms, asked).found()
        if found.value is not None and found.form in (*EXPLICIT, "phrase"):
            return found
    return _Search(response, kind, forms, asked).found()


def _declines(text: str) -> bool:
    """Whether a text is, or begins with, a refusal to answer."""
    return not text.isdecimal() and _REFUSAL.match(text[:_REFUSAL_LENGTH]) is not None


class _Search(Generic[Value]):
    def __init__(self, text: str, kind: Kind[Value], forms: Collection[str], asked: str | None) -> None:
        self._text = text
        self._kind = kind
        self._forms = forms
        self._asked = asked
        self._explicit = explicit_marks(text, forms)

    def found(self) -> Found[Value]:
        for mark in self._candidates():
            if not any(mark.contents):
                if _SAYS_SOMETHING.search(self._text, mark.end) and len(self._explicit) > 1:
                    continue  # the response only mentions the mark: "in \\boxed{} as requested"
                return Found(None, f"an empty {mark.form}")
            value = self._value(mark)
            if value is not None:
                if mark.is_conditional and self._depends(value):
                    return Found(None, "different answers under different conditions")
                other = None if self._kind.is_list else self._other_part(mark, value)
                return self._settled(mark, value) if other is None else Found(value, mark.form, other)
        return self._unmarked()

    def _depends(self, value: Value) -> bool:
        """Whether another conditional mark states another answer."""
        others = (self._value(mark) for mark in (*self._stated(), *self._phrases()) if mark.is_conditional)
        return any(other is not None and not self._kind.same(other, value) for other in others)

    def _other_part(self, mark: Mark, value: Value) -> Value | None:
        """A different answer in one of several marks that stand side by side."""
        others = (self._value(part) for part in mark.parts)
        return next((other for other in others if other is not None and not self._kind.same(other, value)), None)

    def _candidates(self) -> Iterator[Mark]:
        """The marks of ranks 0 to 2, the best rank first; within a rank, the last mark first."""
        conditional = []
        for mark in chain(self._stated(), self._phrases()):
            if mark.is_conditional:
                conditional.append(mark)
            elif not mark.is_second:
                yield mark
        yield from conditional
        if "phrase" in self._forms:
            yield from (mark for mark in phrases(self._text, results=True) if not mark.is_second)

    def _stated(self) -> Iterator[Mark]:
        """The marks of ranks 0 and 1 that are not void, the best rank first; within a rank, the last mark first."""
        explicit = self._explicit[::-1]
        if self._asked:
            explicit.sort(key=lambda mark: mark.form != self._asked)
        for mark in explicit:
            if not is_void_here(self._text, mark):
                yield mark._replace(is_conditional=is_hypothetical_here(self._text, mark))

    def _phrases(self, start: int = 0) -> Iterator[Mark]:
        return phrases(self._text, start, more=self._kind.cues) if "phrase" in self._forms else iter(())

    def _value(self, mark: Mark) -> Value | None:
        if mark.parts and not self._kind.is_list:
            return next((value for part in reversed(mark.parts) if (value := self._value(part)) is not None), None)
        for content in mark.contents:
            if (value := self._explained(content, mark.form)) is not None:
                return value
            if (value := self._inner(content, mark.form)) is not None:
                return value
        return None

    def _explained(self, content: str, form: Form) -> Value | None:
        """The value before a calculation that yields it, as in `7 (3 + 4)`; None without such a calculation."""
        match = _CALCULATION_AFTER.search(content) if content.endswith(")") else None
        value = self._inner(content[: match.start()], form) if match else None
        return value if match and value is not None and self._same_as(match["calculation"], value) else None

    def _inner(self, content: str, form: Form) -> Value | None:
        """The answer that the content of a mark states, either as a whole or in a phrase."""
        if form in EXPLICIT and len(content) > _SHORTEST_PHRASE and "phrase" in self._forms:
            for mark in phrases(content) if ANSWERS.may_find(content) else ():
                for inner in mark.contents:
                    if (value := self._kind.read(inner, form)) is not None:
                        return value
        return None if _declines(content) else self._kind.read(content, form)

    def _settled(self, mark: Mark, value: Value) -> Found[Value]:
        if (
            mark.form == "phrase"
            and (earlier := self._before(mark)) is not None
            and not self._kind.same(earlier, value)
        ):
            return Found(None, "different answers in a list") if mark.is_item else Found(value, mark.form, earlier)
        end = mark.end
        if mark.form != "phrase" and not _SAYS_SOMETHING.search(self._text, end):
            return Found(value, mark.form)
        for later in self._later(mark):
            stated = self._value(later)
            if stated is not None and self._kind.same(value, stated):
                end = later.end  # an answer that was taken back is stated again
                continue
            other = self._different(later.contents, value) if later.form == "phrase" else stated
            if other is None:
                continue
            if correction_after(self._text[end : later.start]) is None:
                return Found(value, mark.form, other)
            mark, value, end = later, other, later.end
        if correction := correction_after(self._text[end:], mark.rest if end == mark.end else ""):
            alone, result = value_alone(correction.text), last_result(correction.text)
            corrected = self._different((alone,), value)
            if corrected is not None:
                return Found(corrected, mark.form)
            stands = any(self._same_as(text, value) for text in (alone, result, last_number(correction.text)))
            if not stands and (correction.retracts or self._different((result,), value) is not None):
                return Found(None, "an answer that is taken back")
        offered = [alternative_after(self._text, mark)]
        if mark.form == "phrase":
            offered.append(next_line(self._text, mark))
        others = (self._different((text,), value) for text in offered)
        return Found(value, mark.form, next((other for other in others if other is not None), None))

    def _different(self, contents: Iterable[str], value: Value) -> Value | None:
        """A second answer among some contents; None if one states the first answer, or if all are remarks about the first."""
        others = [self._kind.read(content, "second") for content in contents if content and not _declines(content)]
        found = [other for other in others if other is not None and self._kind.comparable(value, other)]
        return None if not found or any(self._kind.same(value, other) for other in found) else found[0]

    def _same_as(self, text: str, value: Value) -> bool:
        """Whether a text states this value."""
        stated = self._kind.read(text, "second") if text else None
        return stated is not None and self._kind.same(value, stated)

    def _later(self, mark: Mark) -> list[Mark]:
        """The marks of rank 1 or 2 that follow a mark and have a worse rank, in order."""
        later = []
        if mark.form == self._asked:
            later = [one for one in self._stated() if one.start >= mark.end and not one.is_conditional]
        behind = self._phrases(mark.end)
        later += [one for one in behind if one.is_second or (mark.form != "phrase" and not one.is_conditional)]
        return sorted(later, key=lambda one: one.start)

    def _before(self, mark: Mark) -> Value | None:
        """The answer of an earlier phrase if this phrase continues that phrase's list, else None."""
        for earlier in phrases(self._text[: mark.start]):
            values = (self._kind.read(content, "second") for content in earlier.contents)
            value = next((value for value in values if value is not None), None)
            if value is not None and ((mark.is_item and earlier.is_item) or continues_list(self._text, earlier, mark)):
                return value
            if not mark.is_item:
                break
        return None

    def _unmarked(self) -> Found[Value]:
        text = without_code(self._text)
        if _declines(text):
            return Found(None, "it declines to answer")
        if "number" in self._forms and (correction := correction_after(text)):
            corrected = self._kind.read(value_alone(correction.text), "second")
            if corrected is not None:
                return Found(corrected, "number")
        unmarked: tuple[tuple[Form, Callable[[str], Mark | None]], ...] = (
            ("value", last_value), ("whole", whole), ("number", end_of)
        )  # fmt: skip
        for form, make in unmarked:
            mark = make(text) if form in self._forms else None
            for content in mark.contents if mark else ():
                value = self._kind.read(content, form)
                if value is not None:
                    return Found(value, form)
        return Found(None, NOTHING)
