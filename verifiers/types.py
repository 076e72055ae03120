"""The inputs and outputs of a verifier: it takes a completion and its problem, and returns a verdict."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from verifiers.errors import InvalidArgumentError


def _made(cls: Callable[..., object], fields: dict[str, object]) -> object:
    return cls(**fields)


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: str
    """`"system"`, `"user"`, `"assistant"` or `"tool"`."""
    content: str


@dataclass(frozen=True, slots=True)
class ToolMessage(Message):
    """The result of a tool, with the role `"tool"`."""

    name: str
    """The tool's name."""
    call_id: str = ""
    """The id of the tool call, if the model's format gives calls an id."""


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call of a tool as the policy wrote it, whether or not it can be read."""

    name: str
    arguments: str
    """The arguments as the model wrote them; they should be a JSON object."""
    id: str


@dataclass(frozen=True, slots=True)
class AssistantMessage(Message):
    """A turn of the policy, with the calls and thoughts that a server returns beside the text. Verifiers judge the text."""

    calls: tuple[MadeCall, ...] = ()
    """The tool calls that are not part of the text."""
    reasoning: str = ""
    """The thoughts that are not part of the text."""


class Completion(str):
    """The policy's last turn in an episode of several turns; it also holds the earlier turns.

    Args:
        text: The last turn.
        dialogue: All messages after the prompt, in order: the policy's turns, including this one, as messages of the assistant,
            and the replies to them. This turn has a reply only if the reply ended the episode.
    """

    dialogue: tuple[Message, ...]

    def __new__(cls, text: str, dialogue: tuple[Message, ...]) -> Completion:
        """Make a completion from its text and dialogue."""
        completion = super().__new__(cls, text)
        completion.dialogue = dialogue
        return completion

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the arguments."""
        return Completion, (str(self), self.dialogue)


def dialogue_of(completion: str) -> tuple[Message, ...]:
    """All messages after the prompt, for a verifier that needs more than the last turn.

    Returns:
        The policy's turns as messages of the assistant, and the replies to them; a single message for an episode of one turn.
    """
    return completion.dialogue if isinstance(completion, Completion) else (Message("assistant", completion),)


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem, and the data needed to verify an answer to it."""

    id: str
    """An id that is unique within the data set; reports show it, and it seeds a verifier that needs randomness."""
    prompt: str | tuple[Message, ...]
    """The question, before any prompt template is applied; a chat if it is a tuple of messages."""
    reference: object
    """The reference for the comparison, such as a gold answer or a list of tests; the verifier defines its type."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    """Anything else: source columns, level, choices, the gold solution."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the arguments, which is several times faster than the default for frozen dataclasses."""
        return _made, (type(self), {name: getattr(self, name) for name in self.__dataclass_fields__})


def prompt_text(prompt: str | Sequence[Message], between: str = "\n\n") -> str:
    """A prompt as one text; by default blank lines separate its messages."""
    return prompt if isinstance(prompt, str) else between.join(message.content for message in prompt)


def chat_messages(prompt: str | Sequence[Message]) -> list[dict[str, str]]:
    """A prompt as the messages of a chat template; a plain text becomes one message of the user."""
    messages = [Message("user", prompt)] if isinstance(prompt, str) else prompt
    return [{"role": message.role, "content": message.content} for message in messages]


class Outcome(enum.StrEnum):
    """The result of verification. Every outcome except `VERIFIER_ERROR` is evidence about the policy."""

    CORRECT = "correct"
    """The answer is right (score 1, unless the verifier sets another score)."""
    INCORRECT = "incorrect"
    """There is an answer and it is wrong (score 0, unless the verifier sets another score)."""
    NO_ANSWER = "no_answer"
    """No answer was found in the completion (score 0)."""
    TIMEOUT = "timeout"
    """The completion's own work, such as its program, exceeded its limits (score 0)."""
    SCORED = "scored"
    """The score says more than right or wrong, as with learned scorers, partial credit and sums."""
    VERIFIER_ERROR = "verifier_error"
    """The verifier broke: score NaN, excluded from learning, counted in every report."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verifier's finding about one completion.

    Raises:
        InvalidArgumentError: If the score is not finite although the outcome is not `VERIFIER_ERROR`, or is not NaN although it
            is, or `token_scores` are not valid pairs.
    """

    score: float
    """The reward; NaN exactly when the outcome is `VERIFIER_ERROR`."""
    outcome: Outcome
    answer: str | None = None
    """The answer that was extracted from the completion; None if there is none."""
    detail: Mapping[str, object] = field(default_factory=dict)
    """The reasons for the verdict: deterministic plain data, so that equal questions have equal details."""
    token_scores: tuple[tuple[int, float], ...] | None = None
    """The part of `score` paid before the end: pairs (end, amount), such as the steps of a process reward model. An amount is
    paid at the policy's token that completes the first `end` characters of the completion, from 1 to its length, and concerns
    these characters alone. The rest of `score`, the sum of all payments, is paid at the end."""
    cost: Mapping[str, float] = field(default_factory=dict, compare=False)
    """The cost of the verdict (`seconds`, `bytes`): it is measured, so equality ignores it, and an environment's info never
    contains it."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the arguments, as for `Problem`."""
        return _made, (type(self), {name: getattr(self, name) for name in self.__dataclass_fields__})

    def __post_init__(self) -> None:
        outcome: object = self.outcome
        if not isinstance(outcome, Outcome):
            raise InvalidArgumentError(
                "a verdict must have a number and an Outcome, such as Verdict(0.5, Outcome.SCORED); "
                f"got score={self.score!r}, outcome={outcome!r}"
            )
        if self.outcome is Outcome.VERIFIER_ERROR:
            if not math.isnan(self.score):
                raise InvalidArgumentError(f"a VERIFIER_ERROR has no score: expected NaN, got {self.score!r}")
        elif not math.isfinite(self.score):
            raise InvalidArgumentError(
                f"a {self.outcome.name} verdict needs a finite score, got {self.score!r}; "
                "a verifier that could not judge returns Outcome.VERIFIER_ERROR with score NaN"
            )
        if self.token_scores is not None:
            self._check_token_scores(self.token_scores)

    def _check_token_scores(self, pairs: object) -> None:
        if self.outcome is Outcome.VERIFIER_ERROR:
            raise InvalidArgumentError("a VERIFIER_ERROR has no token scores: leave its token_scores out")
        if not isinstance(pairs, tuple) or not all(map(_is_payment, pairs)):
            raise InvalidArgumentError(
                "token_scores must be a tuple of pairs (end, amount): how many characters of the completion are scored, at "
                f"least 1, and a finite number; got {pairs!r}. A verifier does not know the policy's tokens"
            )

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        answer: str | None = None,
        *,
        detail: Mapping[str, object] | None = None,
        cost: Mapping[str, float] | None = None,
    ) -> Verdict:
        """Build a verdict whose score follows from its outcome: 1 if correct, NaN if the verifier broke, else 0.

        Raises:
            InvalidArgumentError: If the outcome is `SCORED`, which does not determine a score.
        """
        if outcome is Outcome.SCORED:
            raise InvalidArgumentError("a SCORED verdict needs its score: build it with Verdict(score, Outcome.SCORED)")
        return cls(_SCORES.get(outcome, 0.0), outcome, answer, detail or {}, cost=cost or {})


def _is_payment(pair: object) -> bool:
    if not isinstance(pair, tuple) or len(pair) != 2:
        return False
    end, amount = pair
    counts = isinstance(end, int) and not isinstance(end, bool) and end >= 1
    try:
        return counts and isinstance(amount, int | float) and math.isfinite(amount)
    except OverflowError:  # an integer that is too large for a float
        return False


_SCORES = {Outcome.CORRECT: 1.0, Outcome.VERIFIER_ERROR: math.nan}


@runtime_checkable
class Verifier(Protocol):
    """Judges a completion against a problem."""

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion."""
        ...


@runtime_checkable
class BatchVerifier(Verifier, Protocol):
    """A verifier that judges many completions at once, faster than one by one, with process pools or GPUs."""

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i; verdicts come in the same order and do not depend on the batch."""
        ...


@runtime_checkable
class AnswerVerifier(Verifier, Protocol):
    """A verifier that compares answers, so that it can tell which completions agree, as a majority vote requires.

    It may also have a method `answer_key(answer)`. Two keys are equal exactly if the answers are the same; the key None means
    that the method can't tell. With keys, many answers can be grouped without comparing all pairs.
    """

    def same_answer(self, first: str, second: str, problem: Problem) -> bool:
        """Whether two answers, both as in `Verdict.answer`, are the same, regardless of the problem's reference."""
        ...
