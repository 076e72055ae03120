"""Turns a judge's reply into a verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from verifiers._settings import is_number
from verifiers.completion.cut import cut
from verifiers.errors import InvalidArgumentError
from verifiers.types import Outcome, Verdict

_OUTCOMES = (Outcome.CORRECT, Outcome.INCORRECT, Outcome.NO_ANSWER)
_SHOWN = 300
MIN_MASS = 0.5
"""Minimum probability that a judge's first token is a label."""


@dataclass(frozen=True)
class JudgeReply:
    """A server's reply to one question for the judge."""

    text: str = ""
    error: str | None = None
    """The reason why there is no reply; None if there is one."""
    is_cut_off: bool = False
    """Whether the reply reached the limit of tokens."""
    first_token: Mapping[str, float] | None = None
    """Log-probabilities of the likeliest first tokens, by their text; None if they were not requested or not sent."""
    tokens: int = 0
    """Number of tokens of question and reply, as counted by the server; 0 if the server sends no count."""


class ReplyReader:
    """Finds the label in replies.

    Args:
        labels: The labels that a judge may reply, each with its meaning: an outcome (correct, incorrect, no_answer) or a score.
        pattern: A regular expression; in its last match, the first group that matched is the label. None if the whole reply is
            the label.
        logprobs: Whether the score comes from the labels' probabilities as the first token; each label must then be one token.

    Raises:
        InvalidArgumentError: If the labels or their meanings are invalid, two labels are the same, or the pattern can't be
            compiled.
    """

    def __init__(self, labels: Mapping[str, str | float], pattern: str | None, *, logprobs: bool) -> None:
        given: object = labels  # the command line passes whatever it reads
        if not isinstance(given, Mapping) or not labels or not all(map(_is_meaning, labels.values())):
            raise InvalidArgumentError(
                f"labels must map what the judge says to {', '.join(_OUTCOMES)} or a finite score, got {labels!r}"
            )
        self._meanings = {_folded(label): meaning for label, meaning in labels.items()}
        if len(self._meanings) < len(labels) or "" in self._meanings:
            raise InvalidArgumentError(f"labels must differ in more than case and punctuation, got {list(labels)}")
        self._labels = list(labels)
        self._logprobs = logprobs
        self._pattern = None
        if pattern is not None:
            try:
                self._pattern = re.compile(pattern)
            except (re.error, TypeError) as error:
                raise InvalidArgumentError(f"the pattern {pattern!r} can't be compiled: {error}") from error

    def verdict(self, reply: JudgeReply, answer: str | None, cost: Mapping[str, float]) -> Verdict:
        """The verdict; a `VERIFIER_ERROR` with the cause if the reply is missing or can't be read."""
        detail: dict[str, object] = {"reply": reply.text[-_SHOWN:]}
        if reply.error is not None:
            return _unread(f"the judge did not answer: {reply.error}", answer, {}, cost)
        if self._logprobs:
            return self._probable(reply, answer, detail, cost)
        if reply.is_cut_off:
            return _unread("the judge's reply was cut off: raise max_tokens", answer, detail, cost)
        text = cut(reply.text).text.strip()
        label = self._label(text)
        if label not in self._meanings:
            return _unread(f"the judge's reply states none of {self._labels}", answer, detail, cost)
        meaning = self._meanings[label]
        detail["label"] = label
        if isinstance(meaning, str):
            return Verdict.of(Outcome(meaning), answer, detail=detail, cost=cost)
        return Verdict(float(meaning), Outcome.SCORED, answer, detail, cost=cost)

    def _label(self, text: str) -> str:
        if self._pattern is None:
            return _folded(text)
        matches = list(self._pattern.finditer(text))
        if not matches:
            return ""
        last = matches[-1]
        return _folded(next((group for group in last.groups() if group), last[0]))

    def _probable(
        self, reply: JudgeReply, answer: str | None, detail: dict[str, object], cost: Mapping[str, float]
    ) -> Verdict:
        """A `SCORED` verdict: the labels' mean score, weighted by their probabilities as the first token."""
        if reply.first_token is None:
            return _unread("the server sent no log-probabilities", answer, detail, cost)
        masses = dict.fromkeys(self._meanings, 0.0)
        for token, logprob in reply.first_token.items():
            if _folded(token) in masses:
                masses[_folded(token)] += math.exp(logprob)
        total = sum(masses.values())
        detail["probabilities"] = masses
        if not total >= MIN_MASS:
            reason = f"only {total:.2g} of the probability of the judge's first token is on {self._labels}"
            return _unread(reason, answer, detail, cost)
        score = sum(mass * _score(self._meanings[label]) for label, mass in masses.items()) / total
        return Verdict(score, Outcome.SCORED, answer, detail, cost=cost)


def _is_meaning(meaning: object) -> bool:
    if isinstance(meaning, str):
        return meaning in _OUTCOMES
    return is_number(meaning) and isinstance(meaning, int | float) and math.isfinite(meaning)


def _score(meaning: str | float) -> float:
    return float(meaning == Outcome.CORRECT) if isinstance(meaning, str) else float(meaning)


def _folded(label: object) -> str:
    return str(label).strip(" \t\n*_[]\"'`.:").casefold()


def _unread(reason: str, answer: str | None, detail: Mapping[str, object], cost: Mapping[str, float]) -> Verdict:
    return Verdict.of(Outcome.VERIFIER_ERROR, answer, detail={"error": reason, **detail}, cost=cost)
