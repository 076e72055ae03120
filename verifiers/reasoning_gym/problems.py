"""Asks the program in the sandbox for problems of reasoning-gym, and for the scores of answers."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from verifiers.errors import InvalidArgumentError, VerifierFailureError, missing_dependency, unknown_name
from verifiers.reasoning_gym.reference import ReasoningGymReference
from verifiers.sandbox import ProgramOutput, ProgramRunner

VERSION = "0.1.25"
"""The supported release of reasoning-gym: other releases make different problems from the same seed, and score differently."""
_MAKE_S = 120.0
"""Processor time, in seconds, that making one problem may take."""


@dataclass(frozen=True)
class MadeProblem:
    """A problem made by reasoning-gym."""

    question: str
    answer: str | None
    """The right answer, or one of several; None if the data set gives no answer."""
    index: int
    """The problem's index in the data set of its seed."""


def require_reasoning_gym(purpose: str) -> None:
    """Check that the supported release is installed.

    Raises:
        MissingDependencyError: If reasoning-gym is not installed.
        InvalidArgumentError: If another release is installed.
    """
    if importlib.util.find_spec("reasoning_gym") is None:
        raise missing_dependency("reasoning_gym", "reasoning-gym", purpose)
    found = importlib.metadata.version("reasoning-gym")
    if found != VERSION:
        raise InvalidArgumentError(
            f"{purpose} needs reasoning-gym {VERSION}, found {found}, which makes other problems and scores answers "
            f"differently. Install it with: pip install reasoning-gym=={VERSION}"
        )


@functools.lru_cache(maxsize=4)
def runner(isolation: str, memory_mib: int) -> ProgramRunner:
    """The sandbox with reasoning-gym loaded, shared by all callers with the same settings."""
    return ProgramRunner(packages=("reasoning_gym",), isolation=isolation, memory_mib=memory_mib)


@functools.cache
def _program() -> str:
    return files(__package__).joinpath("jailed.py").read_text(encoding="utf-8")


def ask(sandbox: ProgramRunner, request: Mapping[str, Any], *, timeout_s: float) -> tuple[list[Any], ProgramOutput]:
    """Run the program on a request; return its replies, and how it ended.

    Raises:
        SandboxUnavailableError: If the system provides less isolation than requested.
        VerifierFailureError: If the sandbox itself fails.
    """
    output = sandbox(_program(), json.dumps(request), timeout_s=timeout_s)
    return [json.loads(line) for line in output.stdout.splitlines() if line.endswith("}")], output


def request_of(reference: ReasoningGymReference) -> dict[str, Any]:
    """Return the description of a problem that is sent to the program."""
    return {
        "task": reference.task,
        "seed": reference.seed,
        "index": reference.index,
        "level": reference.level,
        "config": repr(dict(reference.config)),
    }


def make_problem(
    reference: ReasoningGymReference, *, split: str, max_prompt_bytes: int, isolation: str = "auto"
) -> MadeProblem:
    """Make the first problem of a data set that belongs to a split, is short enough, and whose answers can be judged.

    Args:
        reference: The data set; the index is ignored.
        split: `"train"` or `"test"`; a stable hash assigns each question to a split, so that the splits are disjoint.
        max_prompt_bytes: Maximum length of a question; longer questions are skipped.
        isolation: As for `UnitTestVerifier`: some data sets run programs.

    Raises:
        UnknownNameError: If there is no such data set, or its config has no such field.
        InvalidArgumentError: If the config is refused, or there is no such problem.
        SandboxUnavailableError: If the system provides less isolation than requested.
        VerifierFailureError: If no problem was made within the limits of time and memory.
    """
    request = request_of(reference) | {"split": split, "max_prompt_bytes": max_prompt_bytes}
    replies, output = ask(runner(isolation, 1024), request, timeout_s=_MAKE_S)
    if not replies:
        raise VerifierFailureError(
            f"reasoning-gym made no problem of {reference.task!r} ({output.failure}): {output.stderr[-300:]}".rstrip(
                ": "
            )
        )
    if "refused" in replies[0]:
        raise refusal(reference, *replies[0]["refused"])
    return MadeProblem(**replies[0])


def refusal(reference: ReasoningGymReference, kind: str, reason: str, known: list[str]) -> Exception:
    """The error for a request that the program refused."""
    if kind == "task":
        return unknown_name("data set of reasoning-gym", reason, known)
    if kind == "field":
        return unknown_name(f"config field of {reference.task!r}", reason, known)
    if kind == "config":
        return InvalidArgumentError(f"reasoning-gym refuses the config of {reference.task!r}: {reason}")
    return InvalidArgumentError(
        f"no problem of {reference.task!r} can be used with this config, split and length: {reason}"
    )
