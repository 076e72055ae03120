"""Multiple choice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from verifiers.answers import after_thinking, marked, without_special_tokens
from verifiers.errors import InvalidArgumentError, UnreadableReferenceError
from verifiers.types import Outcome, Problem, Verdict


@dataclass(frozen=True)
class ChoiceVerifier:
    r"""A completion is correct when it settles on the reference's letter, and on no other.

    The reference is a letter such as `"C"`. `metadata["choices"]` may hold the choices: texts in the order of their
    letters, or a mapping of letters to texts. Then only their letters count, an answer may be a choice's text instead
    of its letter, and a text beside a letter must not be another choice's.

    Where the answer stands, after the last `</think>` and first match first:

    1. in the last `\boxed{}`, after the last `####`, or in the last `<answer>` tags;
    2. in the last sentence that states it: "the answer is C", "Answer: (C)", "I choose C", "C is correct";
    3. at the start of lines: `C`, `(C)`, `C. text`, `C) text`;
    4. in the last sentence with a letter in parentheses, or that says little more than a letter ("So it must be C").

    A letter that is denied there ("not C", "C is wrong", "I cannot say whether it is C") or asked about is not settled on.
    Several letters, as in "B and C", are `INCORRECT`, and so are letters that are all denied. A completion without a
    letter where an answer may stand is `NO_ANSWER`, and so is one that declines to answer, whatever letters it quotes.
    """

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            InvalidArgumentError: If the choices are neither a list nor a mapping.
            UnreadableReferenceError: If the reference is no letter, or none of the choices'.
        """
        choices = _choices(problem)
        reference = _reference(problem, choices)
        mentions = _LetterFinder(choices).read(completion)
        if not mentions:
            return Verdict.of(Outcome.NO_ANSWER)
        settled = sorted({mention.letter for mention in mentions if not mention.denied})
        if len(settled) == 1:
            return Verdict.of(Outcome.CORRECT if settled == [reference] else Outcome.INCORRECT, settled[0])
        reason = f"it chooses {' and '.join(settled)}" if settled else "it only rejects letters or asks about them"
        return Verdict.of(Outcome.INCORRECT, ", ".join(settled) or None, detail={"reason": reason})

    def same_answer(self, first: str, second: str, problem: Problem) -> bool:
        """Whether two answers are the same letters."""
        return first == second


def _choices(problem: Problem) -> dict[str, str]:
    """The choices' texts by letter; empty where the problem brings none."""
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


@dataclass(frozen=True)
class _Mention:
    letter: str
    denied: bool = False


_DECORATION = " \t\n*_`$\"'.,:;!"
_LETTER = re.compile(r"(?<![\w'’-])(?:\((?P<enclosed>[A-Za-z])\)|(?P<bare>[A-Z]))(?![\w'’-])")
# A bare letter before a word in small letters is an article, or part of a name, unless the word is one of these.
_PART_OF_WORDS = re.compile(
    r"\s+(?!(?:or|and|nor|is|isn|are|as|but|not|can|cannot|could|because|since|rather|instead|would|must|seems|was)\b)[a-z]"
)

_STATED = re.compile(r"\b(?:answer|option|choice)[\s*_]*(?:\b(?:is|would be|should be|must be)\b|[:=])", re.IGNORECASE)
_CHOSEN = re.compile(r"\b(?:choose|pick|select|go with|going with)\b", re.IGNORECASE)
_CONFIRMED = re.compile(r"\b(?:correct|right|best|the answer)\b", re.IGNORECASE)
_REASON = re.compile(r"\b(?:because|since)\b", re.IGNORECASE)
# A full stop after a single letter ends a sentence only before a word that begins one: "C. Paris" is one statement.
_SENTENCE_END = re.compile(
    r"\n|(?<=[!?;])\s|(?<=\w\w\.)\s|(?<=\.)\s+(?=(?:The|This|That|I|We|It|So|Then|Or|But|And|However|Actually|Wait|Hmm|"
    r"No|Sorry|Also|Let|Maybe|Perhaps|Possibly|Alternatively)\b)"
)
_ALTERNATIVE = re.compile(r"\W*(?:or|and|maybe|perhaps|possibly|alternatively)\b", re.IGNORECASE)
_LABEL = re.compile(r"[\s*_]*(?:\(([A-Za-z])\)|([A-Z])(?=[*_]*(?:[.):]|\s+[-–—]\s|\s*$)))[*_.):]*(.*)")

_DENIAL_WINDOW = 160
"""Characters before a letter in which a denial of it is looked for."""
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor|without|except|refus\w+|unable|declin\w+|doubt\w*|whether|exclud\w+|reject\w*|"
    r"eliminat\w+|rul\w+ out|rather than|instead of)|n['’]t|\b(?:anything|everything|all) but)\b"
    r"(?:(?!\b(?:but|so)\b)[^.,;!?\n])*$",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"\W*(?:(?:is|are|was|can|could)(?: not|n['’]t)\b|cannot\b|"
    r"(?:is|are|was|seems)(?: \w+)? (?:incorrect|wrong|false|out|impossible)\b)",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\b(?:cannot|can['’]t|can not|could not|won['’]t|will not|unable to|refuse to|decline to|don['’]t|do not)\s+"
    r"(?:\w+\s+)?(?:answer|choose|pick|select|say|tell|decide|determine|help|respond|know)\b",
    re.IGNORECASE,
)
_CHATTER = re.compile(
    r"(?:\W|\b(?:so|thus|therefore|hence|it|is|isn|t|s|must|be|can|cannot|i|think|believe|guess|say|definitely|probably|"
    r"wrong|incorrect|false|clearly|maybe|final|option|choice|letter|the|not|or|and|nor|neither|either|both|[A-Z])\b)*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _LetterFinder:
    """Finds the letters that a completion settles on or denies, in the first place that has any."""

    choices: Mapping[str, str]

    def read(self, completion: str) -> list[_Mention]:
        completion, problem = after_thinking(without_special_tokens(completion))
        if problem:
            return []
        explicit = marked(completion)
        if explicit is not None:
            return self._at_mark(explicit)
        readers = (self._alone, self._stated, self._leading, self._loose)
        return next(filter(None, (read(completion) for read in readers)), [])

    def _stated(self, completion: str) -> list[_Mention]:
        following = ""
        for sentence in reversed(_SENTENCE_END.split(completion)):
            mentions = self._statement(sentence)
            if mentions:
                return mentions + (self._letters(following) if _ALTERNATIVE.match(following) else [])
            following = sentence
        return []

    def _statement(self, sentence: str) -> list[_Mention]:
        claim = _REASON.split(sentence, maxsplit=1)[0]
        cues = list(_STATED.finditer(claim)) or list(_CHOSEN.finditer(claim))
        starts = [*(cue.start() for cue in cues), len(claim)]
        mentions = [
            mention for cue, end in zip(cues, starts[1:], strict=True) for mention in self._claimed(claim, cue, end)
        ]
        return mentions or (self._letters(claim) if _CONFIRMED.search(claim) else [])

    def _claimed(self, claim: str, cue: re.Match[str], end: int) -> list[_Mention]:
        mentions = self._at_mark(claim[cue.end() : end])
        if _denied_before(claim, cue.start()):
            return [_Mention(mention.letter, denied=True) for mention in mentions]
        return mentions

    def _leading(self, completion: str) -> list[_Mention]:
        labels = (_LABEL.match(line) for line in completion.splitlines())
        return [mention for label in labels if label for mention in self._labelled(label)]

    def _labelled(self, label: re.Match[str]) -> list[_Mention]:
        letter, rest = (label[1] or label[2]).upper(), label[3]
        if letter not in self._allowed:
            return []
        if _ALTERNATIVE.match(rest):
            return self._letters(label[0])
        others = self._letters(_REASON.split(rest, maxsplit=1)[0], bare=False)
        return [_Mention(letter, _DENIED_AFTER.match(rest) is not None), *self._texts(rest), *others]

    def _loose(self, completion: str) -> list[_Mention]:
        if _REFUSAL.search(completion):
            return []
        for sentence in reversed(_SENTENCE_END.split(completion)):
            mentions = self._letters(sentence, bare=_CHATTER.fullmatch(sentence) is not None)
            if mentions:
                return mentions
        return []

    @property
    def _allowed(self) -> set[str]:
        return set(self.choices or ascii_uppercase)

    def _at_mark(self, text: str) -> list[_Mention]:
        """Read a text that holds an answer and little else."""
        label = _LABEL.match(text)
        return self._alone(text) or (self._labelled(label) if label else []) or self._letters(text)

    def _alone(self, text: str) -> list[_Mention]:
        """The letter that is the whole text, or whose choice is."""
        letter = text.strip(_DECORATION + "()").upper()
        return [_Mention(letter)] if letter in self._allowed else self._texts(text)

    def _texts(self, text: str) -> list[_Mention]:
        """The letters of the choices whose text this is."""
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
