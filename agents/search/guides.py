"""Guides, by which a search chooses. Only the oracle knows the reference answer of the problem.

| guide | score of an episode |
|---|---|
| `"oracle"` | the environment's reward, by the verifier that scores the result in the end |
| `"likelihood"` | the sum of the log-probabilities of the policy's tokens |
| `"majority"` | the number of episodes with the same answer, where the environment's verifier compares answers |
| a verifier | the verifier's score of the completion, such as the score of a reward model |
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from agents.rollouts.states import require_states
from agents.runs.at_k import answer_classes, answer_verifier
from agents.runs.verdicts import error_cause
from agents.types import Trajectory
from verifiers import (
    AnswerVerifier,
    InvalidArgumentError,
    Outcome,
    Problem,
    UnreadableReferenceError,
    Verifier,
    unknown_name,
    verify_batch,
)

GuideName = Literal["oracle", "likelihood", "majority"]
Guide = GuideName | Verifier
ORACLE = "oracle"
_BLIND = "A guide sees the problem without its reference answer; the one that knows it is the guide 'oracle'"
GUIDES: tuple[str, ...] = get_args(GuideName)


def manifest_of(method: str, search: Any) -> dict[str, Any]:
    """Make the manifest of a search that is a dataclass of settings."""
    settings = {field.name: getattr(search, field.name) for field in dataclasses.fields(search)}
    if "guide" in settings:
        settings["guide"] = guide_name(settings["guide"])
    return {"method": method, **settings, "oracle": settings.get("guide") == ORACLE}


def check_guide(guide: object, known: Sequence[str]) -> None:
    """Check that a guide is either a verifier or a name that the search knows.

    Raises:
        UnknownNameError: If the guide is an unknown name; the message suggests the nearest name.
        InvalidArgumentError: If the guide is neither a name nor a verifier.
    """
    if isinstance(guide, str) and guide not in known:
        raise unknown_name("guide", guide, [*known, "a verifier"])
    if not isinstance(guide, str) and not callable(guide):
        raise InvalidArgumentError(f"a guide is one of {', '.join(known)}, or a verifier; got {guide!r}")


def guide_name(guide: Guide) -> str:
    """A guide's name, or the class of a verifier."""
    return guide if isinstance(guide, str) else f"{type(guide).__module__}.{type(guide).__qualname__}"


def guide_scores(env: Any, guide: Guide, episodes: Sequence[Trajectory]) -> list[float]:
    """The guide's score of each episode. All episodes answer the same problem, and have the same start.

    Raises:
        InvalidArgumentError: If the guide is a verifier and broke on all episodes, for example because it needs the reference
            answer.
    """
    if guide == "oracle":
        return [-math.inf if episode.errored else episode.score for episode in episodes]
    if guide == "likelihood":
        return [float(np.sum(episode.logprobs[episode.policy_mask], dtype=np.float64)) for episode in episodes]
    streams = require_states(env).streams
    problem = streams.dataset[episodes[0].problem]
    if guide == "majority":
        return _votes(episodes, answer_verifier(streams.rules.verifier), problem)
    assert not isinstance(guide, str)
    return _verified(guide, episodes, problem)


def without_answer(problem: Problem) -> Problem:
    """The problem as the policy knows it, without the reference."""
    return dataclasses.replace(problem, reference=None, metadata={})


def _votes(episodes: Sequence[Trajectory], verifier: AnswerVerifier, problem: Problem) -> list[float]:
    """For each episode, the number of episodes with the same answer, right or wrong; 0 for an episode without an answer."""
    answers = [None if episode.verdict is None else episode.verdict.answer for episode in episodes]
    votes = answer_classes(answers, without_answer(problem), verifier)
    return [0.0 if vote is None else float(votes.count(vote)) for vote in votes]


def _verified(verifier: Verifier, episodes: Sequence[Trajectory], problem: Problem) -> list[float]:
    blind = without_answer(problem)
    completions = [episode.completion for episode in episodes]
    try:
        verdicts = verify_batch(verifier, completions, [blind] * len(episodes))
    except UnreadableReferenceError as error:
        raise InvalidArgumentError(f"{_broke(verifier, problem)} {error}. {_BLIND}") from error
    errored = [verdict.outcome is Outcome.VERIFIER_ERROR for verdict in verdicts]
    if all(errored):
        raise InvalidArgumentError(f"{_broke(verifier, problem)} {error_cause(verdicts[0].detail)}. {_BLIND}")
    return [-math.inf if broke else verdict.score for verdict, broke in zip(verdicts, errored, strict=True)]


def _broke(verifier: Verifier, problem: Problem) -> str:
    return f"the guide {guide_name(verifier)} broke on every completion of problem {problem.id!r}:"
