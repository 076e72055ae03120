"""A verifier of a completion's form, whatever its content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from verifiers._settings import checked
from verifiers.completion.cut import without_end_tokens
from verifiers.errors import InvalidArgumentError
from verifiers.types import Outcome, Problem, Verdict

Structure = Literal["think", "think_answer"]
_TAG = re.compile(r"</?(?:think|answer)>")
_TAGS: Mapping[str, tuple[str, ...]] = {
    "think": ("<think>", "</think>"),
    "think_answer": ("<think>", "</think>", "<answer>", "</answer>"),
}


class Format:
    """Judges whether a completion has a certain form; the verdict is `CORRECT` or `INCORRECT`, with a `reason` in `detail`.

    `Format` does not judge the answer, so combine it with a verifier that does: in a `gate`, or in a `weighted_sum` with a
    small weight.

    The structure `"think_answer"` is `<think>...</think>` followed by `<answer>...</answer>`, each once, neither empty, and
    nothing outside of them but white space; `"think"` is `<think>...</think>` and then an answer without those tags.

    Args:
        structure: The structure that a completion must have.
        pattern: A regular expression, instead of a structure, that has to match the whole completion; a dot matches line
            breaks, too. A pattern that backtracks can take very long on a hostile completion: wrap the verifier in
            `with_timeout`.
        opened: Whether the prompt already ends with `<think>`, as in some chat templates, so that the completion lacks this
            tag.

    Raises:
        InvalidArgumentError: If neither or both of structure and pattern are given, the pattern can't be compiled, or `opened`
            is not a bool or is given with a pattern.
        UnknownNameError: If there is no such structure.
    """

    @checked
    def __init__(self, structure: Structure | None = None, *, pattern: str | None = None, opened: bool = False) -> None:
        if (structure is None) == (pattern is None):
            raise InvalidArgumentError(
                f"a format needs a structure ({', '.join(_TAGS)}) or a pattern, and not both; got {structure!r} and {pattern!r}"
            )
        if opened and structure is None:
            raise InvalidArgumentError("opened=True refers to <think>: it needs a structure, not a pattern")
        self._structure = structure
        self._opened = opened
        self._pattern = None if pattern is None else _compiled(pattern)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion."""
        text = without_end_tokens(completion).strip()
        reason = self._objection(text)
        outcome = Outcome.CORRECT if reason is None else Outcome.INCORRECT
        return Verdict.of(outcome, detail={} if reason is None else {"reason": reason})

    def _objection(self, text: str) -> str | None:
        if self._pattern is not None:
            return None if self._pattern.fullmatch(text) else "the pattern does not match"
        assert self._structure is not None
        text = f"<think>{text}" if self._opened else text
        expected = _TAGS[self._structure]
        tags = list(_TAG.finditer(text))
        if tuple(tag[0] for tag in tags) != expected:
            return f"the tags are {' '.join(tag[0] for tag in tags) or 'missing'}, expected {' '.join(expected)}"
        before, thought, *rest = _between(text, tags)
        outside, answer, after = rest if len(rest) == 3 else ("", rest[0], "")
        if before or outside or after:
            return "there is text outside the tags"
        return None if thought and answer else "there is nothing inside the tags"


def _between(text: str, tags: list[re.Match[str]]) -> list[str]:
    starts = [0, *(tag.end() for tag in tags)]
    ends = [*(tag.start() for tag in tags), len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise InvalidArgumentError(f"the pattern {pattern!r} can't be compiled: {error}") from error
