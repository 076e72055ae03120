"""Verifiable instructions: whether a response follows each instruction in its prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from verifiers._settings import checked
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.words import THOUGHTS
from verifiers.errors import InvalidArgumentError, UnreadableReferenceError, unknown_name
from verifiers.ifeval.published import as_published
from verifiers.ifeval.reference import read_instructions
from verifiers.types import Outcome, Problem, Verdict

Mode = Literal["strict", "loose"]
PRESETS = ("published",)
"""The presets of `IFEvalVerifier`."""


class IFEvalVerifier:
    """A completion is correct when it follows every instruction of its problem, whatever else it says.

    The instructions are the 25 of IFEval (Zhou et al. 2023, arXiv:2311.07911) and the 58 of IFBench (Pyatkin et al. 2025,
    arXiv:2507.02833), each judged by its literal meaning; `docs/ifeval.md` lists where the published checkers decide otherwise.
    The reference is anything that `verifiers.ifeval.read_instructions` takes. Text that `verifiers.completion.cut` removes is
    not part of the response; a completion without any other text is `NO_ANSWER`.

    Strict accuracy judges the response as it is. Loose accuracy (section 2.2 of the IFEval paper) also judges the response
    without its first line, without its last line and without both, and these four texts without asterisks: an instruction is
    followed if one of the eight texts follows it. The mean score over problems is the paper's prompt-level accuracy.
    `detail["instructions"]` has both results for each instruction.

    Args:
        mode: Whether strict or loose accuracy decides the verdict.
        partial_credit: If some but not all instructions are followed, score their share as a `SCORED` verdict.
        preset: `"published"` to judge as the checkers published with IFEval do, so that scores can be compared with published
            scores; an instruction of IFBench is then an error. By default each instruction is judged by its literal meaning.
        thoughts: Names of the tags of thoughts, which are cut off; a sequence, or text with commas between them.

    Raises:
        UnknownNameError: If there is no such mode or preset.
    """

    @checked
    def __init__(
        self,
        mode: Mode = "strict",
        *,
        partial_credit: bool = False,
        preset: str | None = None,
        thoughts: str | Sequence[str] = THOUGHTS,
    ) -> None:
        self._thoughts = thought_names(thoughts)
        if preset is not None and preset not in PRESETS:
            raise unknown_name("preset of the ifeval verifier", preset, PRESETS)
        self._mode = mode
        self._preset = preset
        self._partial_credit = partial_credit

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            UnreadableReferenceError: If the reference is not a list of instructions, or an instruction is unknown, has a
                missing parameter, or does not belong to the preset.
            MissingDependencyError: If a package that an instruction needs is not installed.
        """
        try:
            instructions = read_instructions(problem.reference)
            rules = [as_published(item) if self._preset else item.followed_by for item in instructions]
        except InvalidArgumentError as error:
            raise UnreadableReferenceError(f"problem {problem.id!r}: {error}") from error
        response = cut(completion, thoughts=self._thoughts)
        text = _without_blank_ends(response.text)
        if not text:
            return Verdict.of(Outcome.NO_ANSWER, detail={"reason": response.missing or "an empty response"})
        reports = [_report(item.id, rule, text) for item, rule in zip(instructions, rules, strict=True)]
        followed = sum(report[self._mode] is True for report in reports)
        detail = {"followed": followed, "total": len(reports), "instructions": reports}
        if followed == len(reports):
            return Verdict.of(Outcome.CORRECT, text, detail=detail)
        if self._partial_credit and followed:
            return Verdict(followed / len(reports), Outcome.SCORED, text, detail)
        return Verdict.of(Outcome.INCORRECT, text, detail=detail)

    def __repr__(self) -> str:
        preset = f", preset={self._preset!r}" if self._preset else ""
        return f"{type(self).__name__}({self._mode!r}, partial_credit={self._partial_credit}{preset})"


def _without_blank_ends(response: str) -> str:
    """The response without blank lines before it and white space after it; the indent of its first line stays."""
    text = response.rstrip()
    first = text[: len(text) - len(text.lstrip())].rfind("\n")
    return text[first + 1 :]


def _report(identifier: str, follows: Callable[[str], bool], response: str) -> dict[str, object]:
    strict = follows(response)
    return {"id": identifier, "strict": strict, "loose": strict or any(map(follows, _loose_texts(response)))}


def _loose_texts(response: str) -> list[str]:
    """The seven variants of a response that loose accuracy judges besides the response; `IFEvalVerifier` defines them."""
    lines = response.split("\n")
    shorter = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
    return [*shorter, *(text.replace("*", "") for text in (response, *shorter))]
