"""A verifier that compares texts for equality."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from verifiers import _integers
from verifiers._settings import check_types
from verifiers.completion import words
from verifiers.completion.answers import FORMS, Kind, find
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.mark import Form
from verifiers.completion.marking import view_of
from verifiers.completion.statements import last_line
from verifiers.completion.words import THOUGHTS
from verifiers.errors import InvalidArgumentError, UnreadableReferenceError
from verifiers.types import Outcome, Problem, Verdict

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class ExactVerifier:
    """A completion is correct when it equals the reference character for character, with or without thoughts and end tokens.

    An empty completion is `NO_ANSWER`, unless the reference is empty too. An integer reference is its decimal digits.

    Args:
        strip: Whether to ignore white space before and after both texts.
        casefold: Whether to ignore case, by Unicode case folding.
        collapse_spaces: Whether every run of white space is read as one space.
        marked: Whether to compare only the answer that the completion marks, with a box, a tag or a phrase; without a mark, the
            answer is the whole completion (see `docs/where-the-answer-stands.md`). White space is collapsed, and TeX around the
            answer is removed.
        separators: Characters that are read as white space, such as commas between numbers; only with `marked`.
        thoughts: Names of the tags that enclose thoughts, which are cut off; a sequence, or text with commas between the names.
        asked: Form of mark that the prompt asks for; answers in this form are preferred to all others.

    Raises:
        InvalidArgumentError: If an argument has the wrong type, `thoughts` are not names, or `separators` or `asked` is given
            without `marked`.
    """

    strip: bool = True
    casefold: bool = False
    collapse_spaces: bool = False
    marked: bool = False
    separators: str = ""
    thoughts: str | Sequence[str] = THOUGHTS
    asked: Form | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "thoughts", thought_names(self.thoughts))
        check_types(self)
        if not self.marked and (self.separators or self.asked):
            name = "separators" if self.separators else "asked"
            raise InvalidArgumentError(
                f"{name}={getattr(self, name)!r} has an effect on marked answers only: set marked=True"
            )

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            UnreadableReferenceError: If the reference is neither a string nor an integer.
        """
        gold = problem.reference
        if isinstance(gold, bool) or not isinstance(gold, str | int):
            raise UnreadableReferenceError(
                f"exact match compares with a string or an integer, got the reference {gold!r} "
                f"({type(gold).__name__}) of problem {problem.id!r}; convert it with str()"
            )
        reference = self._normalised(gold if isinstance(gold, str) else _integers.to_digits(gold))
        if self._normalised(completion) == reference:
            return Verdict.of(Outcome.CORRECT, reference)
        response = cut(completion, thoughts=self.thoughts).text
        if self.marked:
            return self._judge_marked(response, reference)
        answer = self._normalised(response)
        if answer == reference:
            return Verdict.of(Outcome.CORRECT, answer)
        return Verdict.of(Outcome.INCORRECT, answer) if answer else Verdict.of(Outcome.NO_ANSWER)

    def _judge_marked(self, response: str, reference: str) -> Verdict:
        found = find(response, _Texts(self._normalised, reference), FORMS, self.asked)
        if found.value is None:
            return Verdict.of(Outcome.NO_ANSWER, detail={"reason": found.form})
        if found.other is not None:
            detail = {"reason": f"two answers; the other is {found.other}"}
            return Verdict.of(Outcome.INCORRECT, found.value, detail=detail)
        return Verdict.of(Outcome.CORRECT if found.value == reference else Outcome.INCORRECT, found.value)

    def preferring(self, form: Form) -> ExactVerifier:
        """Return a verifier that prefers answers in the form that a prompt asks for, unless `asked` is already set."""
        return self if self.asked or not self.marked else replace(self, asked=form)

    def same_answer(self, first: str, second: str, problem: Problem) -> bool:
        """Whether two answers are equal by the rules for a completion and its reference."""
        return self._normalised(first) == self._normalised(second)

    def _normalised(self, text: str) -> str:
        text = text.translate(dict.fromkeys(map(ord, self.separators), " ")) if self.separators else text
        text = _SPACE.sub(" ", text) if self.collapse_spaces or self.marked else text
        text = text.strip() if self.strip else text
        return text.casefold() if self.casefold else text


class _Texts(Kind[str]):
    """Answers that are texts: any text at a mark; without a mark, a text with as many words as the reference."""

    cues = words.CueFinder(words.NAMING.pattern, words.NAMING)

    def __init__(self, normalised: Callable[[str], str], reference: str) -> None:
        self._normalised = normalised
        self._reference = reference

    def read(self, content: str, form: Form) -> str | None:
        """The text without its marking; a final full stop is dropped, too, if the rest equals the reference."""
        content = last_line(content) if form == "number" else content
        answer = self._normalised(view_of(content, inline=True).plain)
        bare = answer.rstrip(". ")
        answer = bare if bare == self._reference else answer
        if form in ("whole", "number") and not self.comparable(self._reference, answer):
            return None
        return answer or None

    def comparable(self, first: str, second: str) -> bool:
        """Whether the second text has as many words as the first; otherwise it is a remark about the answer."""
        return len(second.split()) == len(first.split())
