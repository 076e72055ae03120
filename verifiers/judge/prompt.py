"""Fills in a judge's prompt.

The policy being judged writes the completion and may learn to address the judge. There are three defences. All values are
inserted in one replacement, so a placeholder in a completion is left unchanged. `{fence}` is a checksum of the completion; the
completion cannot contain it, and so cannot end the passage that the prompt reserves for it. Text that looks like the special
tokens of a chat (`<|im_end|>`) is broken up, since a server may read it as tokens. None of these defences keeps a judge from
believing what it reads.
"""

from __future__ import annotations

import hashlib
import re
from fractions import Fraction

from verifiers.completion.cut import cut
from verifiers.completion.explicit import explicit_marks
from verifiers.completion.mark import EXPLICIT
from verifiers.completion.words import THOUGHTS
from verifiers.errors import InvalidArgumentError, UnreadableReferenceError
from verifiers.types import Problem, prompt_text

_NAMES = ("prompt", "reference", "completion", "answer", "fence")
_PLACEHOLDER = re.compile(rf"\{{({'|'.join(_NAMES)})\}}")
_SPECIAL_TOKEN = re.compile(r"<(?=[|｜])")


class JudgePrompt:
    """A prompt with placeholders; every other brace in it is plain text.

    Args:
        template: The prompt, which must contain `{completion}` or `{answer}`.
        thoughts: Names of the tags that enclose thoughts.

    Raises:
        InvalidArgumentError: If the template contains neither placeholder, or is not text.
    """

    def __init__(self, template: str, thoughts: tuple[str, ...] = THOUGHTS) -> None:
        if not isinstance(template, str):
            raise InvalidArgumentError(f"a judge's prompt must be text, got {template!r}")
        self._names = frozenset(_PLACEHOLDER.findall(template))
        if not self._names & {"completion", "answer"}:
            raise InvalidArgumentError(
                f"a judge's prompt must contain {{completion}} or {{answer}}, got {template[:200]!r}; also known are "
                "{prompt}, {reference} and {fence}"
            )
        self._template = template
        self._thoughts = thoughts

    def filled(self, completion: str, problem: Problem) -> tuple[str | None, str | None]:
        """Fill in the prompt, and find the answer that the completion marks (in a box, after `####`, in `<answer>`).

        Returns:
            The text and the answer. The text is None if there is nothing to judge: no text after the thoughts, or no marked
            answer although the prompt contains only `{answer}`.

        Raises:
            UnreadableReferenceError: If the prompt contains `{reference}`, and the reference is neither text nor a number.
        """
        said = cut(completion, thoughts=self._thoughts).text.strip()
        marks = explicit_marks(said, EXPLICIT)
        answer = (marks[-1].contents[-1] or None) if marks else None
        nothing = not said or (answer is None and "completion" not in self._names)
        values = {
            "prompt": prompt_text(problem.prompt),
            "reference": _reference_text(problem) if "reference" in self._names else "",
            "completion": _SPECIAL_TOKEN.sub("< ", said),
            "answer": _SPECIAL_TOKEN.sub("< ", answer or ""),
            "fence": hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()[:12],
        }
        return None if nothing else _PLACEHOLDER.sub(lambda name: values[name[1]], self._template), answer


def _reference_text(problem: Problem) -> str:
    reference = problem.reference
    if isinstance(reference, bool) or not isinstance(reference, str | int | float | Fraction):
        raise UnreadableReferenceError(
            f"a judge needs text or a number as the reference, got {reference!r} ({type(reference).__name__}) of problem "
            f"{problem.id!r}"
        )
    return str(reference)
