"""Multiple choice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import ClassVar, NamedTuple

from verifiers._settings import check_types
from verifiers.completion import words
from verifiers.completion.answers import DEFAULT_FORMS, Kind, find
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.denied import is_void_statement
from verifiers.completion.mark import EXPLICIT, Form
from verifiers.completion.marking import view_of
from verifiers.errors import InvalidArgumentError, UnreadableReferenceError
from verifiers.types import Outcome, Problem, Verdict


@dataclass(frozen=True)
class ChoiceVerifier:
    r"""Judges multiple choice: a completion is correct if it settles on the reference's letter and on no other letter.

    The reference is a letter such as `"C"`. `metadata["choices"]` may hold the choices: texts in the order of their
    letters, or a mapping of letters to texts. With choices, only their letters count, an answer may be a choice's text instead
    of its letter, and the text next to a letter must not be another choice's text.

    `docs/where-the-answer-stands.md` says where the answer stands. In addition to the phrases of all verifiers, "I choose C"
    and "C is correct" state an answer. A completion without a mark may begin its lines with `C`, `(C)`, `C. text` or `C) text`,
    or name a letter in its last sentence, in parentheses or in a sentence with little else ("So it must be C").

    A letter that is denied ("not C", "C is wrong", "I cannot say whether it is C"), asked about or supposed does not count.
    Several letters, as in "B and C", are `INCORRECT`. A completion without a letter where an answer may stand is `NO_ANSWER`,
    and so is a completion that declines to answer, whatever letters it quotes.

    Args:
        thoughts: Names of the tags that enclose thoughts, which are cut off; a sequence, or text with commas between the names.
        asked: Form of mark that the prompt asks for; answers in this form are preferred to all others.

    Raises:
        InvalidArgumentError: If `thoughts` are not names, or `asked` is not a form.
    """

    thoughts: str | Sequence[str] = words.THOUGHTS
    asked: Form | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "thoughts", thought_names(self.thoughts))
        check_types(self)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            InvalidArgumentError: If the choices are neither a list nor a mapping.
            UnreadableReferenceError: If the reference is not a letter, or not the letter of a choice.
        """
        choices = _choices(problem)
        reference = _reference(problem, choices)
        response = cut(completion, thoughts=self.thoughts)
        if response.missing:
            return Verdict.of(Outcome.NO_ANSWER, detail={"reason": response.missing})
        found = find(response.text, _Letters(choices), (*DEFAULT_FORMS, "number"), self.asked)
        if found.value is None:
            return Verdict.of(Outcome.NO_ANSWER, detail={"reason": found.form})
        settled = sorted({*found.value, *(found.other or ())})
        if all(letter.startswith(_NOT) for letter in settled):
            return Verdict.of(Outcome.NO_ANSWER, detail={"reason": f"it only says {' and '.join(settled)}"})
        if len(settled) == 1:
            return Verdict.of(Outcome.CORRECT if settled == [reference] else Outcome.INCORRECT, settled[0])
        return Verdict.of(
            Outcome.INCORRECT, ", ".join(settled), detail={"reason": f"it chooses {' and '.join(settled)}"}
        )

    def preferring(self, form: Form) -> ChoiceVerifier:
        """Return a verifier that prefers answers in the form that a prompt asks for, unless `asked` is already set."""
        return self if self.asked else replace(self, asked=form)

    def same_answer(self, first: str, second: str, problem: Problem) -> bool:
        """Whether two answers name the same letters."""
        return first == second


def _choices(problem: Problem) -> dict[str, str]:
    """The choices' texts by letter; empty if the problem has none."""
    choices = problem.metadata.get("choices") or {}
    if isinstance(choices, Mapping):
        return {_letter(letter): str(text) for letter, text in choices.items()}
    if isinstance(choices, Sequence) and not isinstance(choices, str) and len(choices) <= len(ascii_uppercase):
        return dict(zip(ascii_uppercase, map(str, choices), strict=False))
    raise InvalidArgumentError(
        f"metadata['choices'] must be a list of at most 26 texts or a mapping of letters to texts, got {choices!r} "
        f"of problem {problem.id!r}"
    )


def _reference(problem: Problem, choices: Mapping[str, str]) -> str:
    letter = _letter(problem.reference)
    if letter not in set(choices or ascii_uppercase):
        raise UnreadableReferenceError(
            f"the reference of multiple choice must be one letter of {', '.join(choices) or 'A to Z'}, "
            f"got {problem.reference!r} of problem {problem.id!r}"
        )
    return letter


def _letter(label: object) -> str:
    return str(label).strip("(). ").upper()


class _Mention(NamedTuple):
    letter: str
    denied: bool = False


_NOT = "not "
"""Prefix of a letter that a mark denies."""
_DECORATION = " \t\n*_`$\"'.,:;!"
_LETTER = re.compile(r"(?<![\w'’-])(?:\((?P<enclosed>[A-Za-z])\)|(?P<bare>[A-Z]))(?![\w'’-])")
# A bare letter before a lower-case word is an article or part of a name, unless the word is one of these.
_PART_OF_WORDS = re.compile(
    r"\s+(?!(?:or|and|nor|is|isn|are|as|but|not|can|cannot|could|because|since|rather|instead|would|must|seems|was|the)\b)[a-z]"
)

_CUES = words.CueFinder(
    "(?<!people )(?<!students )(?<!others )(?<!they )(?<!may )(?<!might )(?<!who )"
    f"{words.CHOOSING.pattern}|(?P<sentence>{words.CONFIRMING.pattern})",
    words.CHOOSING,
    words.CONFIRMING,
)
_CONFIRMS = re.compile(rf"{words.CONFIRMING.pattern}(?:\s(?:one|answer|option|choice))?\W*\Z", re.IGNORECASE)
_REASON = re.compile(r"\b(?:because|since|while|whereas|over|rather than)\b|,\s+as\b", re.IGNORECASE)
# A full stop after a single letter ends a sentence only before a word that begins a sentence: "C. Paris" is one statement.
_SENTENCE_END = re.compile(
    r"\n|(?<=[!?;])\s|(?<=\w\w\.)\s|(?<=\.)\s+(?=(?:The|This|That|I|We|It|So|Then|Or|But|And|However|Actually|Wait|Hmm|"
    r"No|Sorry|Also|Let|Maybe|Perhaps|Possibly|Alternatively)\b)"
)
_ALTERNATIVE = re.compile(r"\W*(?:or|and|maybe|perhaps|possibly|alternatively)\b", re.IGNORECASE)
_LABEL = re.compile(r"[\s*_]*(?:\(([A-Za-z])\)|([A-Z])(?=[*_]*(?:[.):]|\s+[-–—]\s|\s*$)))[*_.):]*(.*)")

_TEXT_AND_LETTER = re.compile(r"([^()]{1,200})\s(\([A-Za-z]\))")
_BEGINS_WITH_LETTER = re.compile(r"(?:[^\w\\]|_|\\[a-z]{1,12}\{|\\[(\[]|</?[a-z]{1,6}>){0,12}[A-Za-z](?![A-Za-z0-9])")
_DENIAL_WINDOW = 160
"""Number of characters before a letter that are searched for its denial."""
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor|without|except|refus\w+|unable|declin\w+|doubt\w*|whether|exclud\w+|reject\w*|"
    r"eliminat\w+|rul\w+ out|rather than|instead of)|n['’]t|\b(?:anything|everything|all) but)\b"
    r"(?:(?!\b(?:but|so)\b)[^.,;!?\n])*$",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(rf"\W*(?:{words.REJECTIONS.pattern}|cannot\b)", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:cannot|can['’]t|can not|could not|won['’]t|will not|unable to|refuse to|decline to|don['’]t|do not)\s+"
    r"(?:\w+\s+)?(?:answer|choose|pick|select|say|tell|decide|determine|help|respond|know)\b",
    re.IGNORECASE,
)
_CHATTER = re.compile(
    r"(?:\W|\b(?:so|thus|therefore|hence|it|is|isn|t|s|must|be|can|cannot|i|think|believe|guess|say|definitely|probably|correct|right|"
    r"wrong|incorrect|false|clearly|maybe|final|option|choice|letter|the|not|or|and|nor|neither|either|both|[A-Z])\b)*",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Letters(Kind[frozenset[str]]):
    """Candidates for the answer to a multiple-choice question: letters, and texts of choices."""

    choices: Mapping[str, str]
    cues: ClassVar[words.CueFinder | None] = _CUES

    def read(self, content: str, form: Form) -> frozenset[str] | None:
        """The letters that a mark's content settles on; None if there are none."""
        if form == "number":
            mentions = self._at_end(content)
        else:
            plain = view_of(content, inline=form != "whole").plain
            mentions = self._alone(plain) if form == "whole" else self._at_mark(plain, only=form == "second")
        affirmed = {mention.letter for mention in mentions if not mention.denied}
        # A mark that denies a letter is as final as one that states a letter: earlier marks are not considered.
        denied = {one.letter for one in mentions if one.denied and (not affirmed or one.letter in affirmed)}
        return frozenset(affirmed | {_NOT + letter for letter in denied if form in EXPLICIT}) or None

    def _at_end(self, completion: str) -> list[_Mention]:
        """The letter with which a line begins, or that the last sentence names; lines that list the options do not count."""
        options, labelled = set(), []
        lines = completion.splitlines()
        for line in filter(_BEGINS_WITH_LETTER.match, lines):
            plain = view_of(line).plain
            label = _LABEL.match(plain)
            if label and not is_void_statement(plain) and (mentions := self._labelled(label)):
                options.add(line)
                labelled.append(mentions)
        if len({mentions[0].letter for mentions in labelled}) == 1:
            return [mention for mentions in labelled for mention in mentions]
        rest = "\n".join(line for line in lines if line not in options)
        sentences = (view_of(line).plain for line in reversed(rest.split("\n")))
        return next(filter(None, map(self._loose, sentences)), [])

    def _labelled(self, label: re.Match[str]) -> list[_Mention]:
        letter, rest = (label[1] or label[2]).upper(), label[3]
        if letter not in self._allowed:
            return []
        if _ALTERNATIVE.match(rest):
            return self._letters(label[0])
        others = self._letters(_REASON.split(rest, maxsplit=1)[0], bare=False)
        return [
            _Mention(letter, _DENIED_AFTER.search(_REASON.split(rest, maxsplit=1)[0]) is not None),
            *self._texts(rest),
            *others,
        ]

    def _loose(self, completion: str) -> list[_Mention]:
        if _REFUSAL.search(completion):
            return []
        for sentence in reversed(_SENTENCE_END.split(completion)):
            if is_void_statement(sentence):
                continue
            mentions = self._letters(sentence, bare=_CHATTER.fullmatch(sentence) is not None)
            if mentions:
                return mentions
        return []

    @property
    def _allowed(self) -> set[str]:
        return set(self.choices or ascii_uppercase)

    def _at_mark(self, text: str, *, only: bool) -> list[_Mention]:
        """Read a text that holds an answer. With `only`, the text must hold little else to count."""
        label = _LABEL.match(text)
        named = _TEXT_AND_LETTER.fullmatch(text.strip(_DECORATION))
        if named and (texts := self._texts(named[1])):
            return [*texts, *self._letters(named[2])]
        mentions = self._alone(text) or (self._labelled(label) if label else [])
        if mentions or (only and not _CHATTER.fullmatch(text) and not _CONFIRMS.search(text)):
            return mentions
        first = self._letters(_REASON.split(text, maxsplit=1)[0])
        return first if any(not mention.denied for mention in first) else self._letters(text)

    def _alone(self, text: str) -> list[_Mention]:
        """The letter, if the whole text is a letter or a choice's text."""
        letter = text.strip(_DECORATION + "()").upper()
        return [_Mention(letter)] if letter in self._allowed else self._texts(text)

    def _texts(self, text: str) -> list[_Mention]:
        """The letters of the choices that have this text."""
        plain = text.strip(_DECORATION).casefold()
        return [_Mention(letter) for letter, choice in self.choices.items() if plain == choice.strip().casefold()]

    def _letters(self, text: str, bare: bool = True) -> list[_Mention]:
        mentions = []
        asked = text.rstrip().endswith("?")
        for match in _LETTER.finditer(text):
            letter = (match["enclosed"] or match["bare"]).upper()
            named = match["enclosed"] or (bare and letter != "I" and not _PART_OF_WORDS.match(text, match.end()))
            if named and letter in self._allowed:
                denied = (
                    asked or _denied_before(text, match.start()) or _DENIED_AFTER.match(text, match.end()) is not None
                )
                mentions.append(_Mention(letter, denied))
        return mentions


def _denied_before(text: str, position: int) -> bool:
    return _DENIED_BEFORE.search(text[max(0, position - _DENIAL_WINDOW) : position]) is not None
