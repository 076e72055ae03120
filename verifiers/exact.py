"""Text equality."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from verifiers._settings import check_types
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.words import THOUGHTS
from verifiers.errors import UnreadableReferenceError
from verifiers.types import Outcome, Problem, Verdict

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class ExactVerifier:
    """A completion is correct when it equals the reference, character for character, with or without thoughts and end tokens.

    An empty completion is `NO_ANSWER`, unless the reference is empty too.

    Args:
        strip: Ignore white space before and after both texts.
        casefold: Ignore case, by Unicode case folding.
        collapse_spaces: Read every run of white space as one space.
        thoughts: Names of the tags of thoughts, which are cut off; a sequence, or text with commas between them.

    Raises:
        InvalidArgumentError: If an argument is no bool, or `thoughts` are no names.
    """

    strip: bool = True
    casefold: bool = False
    collapse_spaces: bool = False
    thoughts: str | Sequence[str] = THOUGHTS

    def __post_init__(self) -> None:
        object.__setattr__(self, "thoughts", thought_names(self.thoughts))
        check_types(self)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            UnreadableReferenceError: If the reference is not a string.
        """
        if not isinstance(problem.reference, str):
            raise UnreadableReferenceError(
                f"exact match compares with a string, got the reference {problem.reference!r} "
                f"({type(problem.reference).__name__}) of problem {problem.id!r}; convert it with str()"
            )
        reference = self._normalised(problem.reference)
        if self._normalised(completion) == reference:
            return Verdict.of(Outcome.CORRECT, reference)
        answer = self._normalised(cut(completion, thoughts=self.thoughts).text)
        if answer == reference:
            return Verdict.of(Outcome.CORRECT, answer)
        return Verdict.of(Outcome.INCORRECT, answer) if answer else Verdict.of(Outcome.NO_ANSWER)

    def same_answer(self, first: str, second: str, problem: Problem) -> bool:
        """Whether two answers are equal as a completion and its reference are."""
        return self._normalised(first) == self._normalised(second)

    def _normalised(self, text: str) -> str:
        text = _SPACE.sub(" ", text) if self.collapse_spaces else text
        text = text.strip() if self.strip else text
        return text.casefold() if self.casefold else text
