"""The types that problems, streams and environments exchange."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from verifiers import InvalidArgumentError, MadeCall, Message, Problem, Verdict

Observation = dict[str, NDArray[np.int32]]
"""`tokens` i32[b l], right-padded with 0, and `length` i32[b 1]. A single environment's observation has no axis b."""

Info = dict[str, Any]


class Dataset(Protocol):
    """Any sequence of problems, such as a list."""

    def __len__(self) -> int:
        """Return the number of problems."""
        ...

    def __getitem__(self, index: int, /) -> Problem:
        """Return the problem with this index; the same index always returns the same problem."""
        ...


@dataclass(frozen=True, slots=True)
class TextCompletion:
    """A turn of the policy in text."""

    text: str
    """The text of the turn, without the stop string that ended it."""
    tokens: int = 0
    """Number of tokens of the turn, as counted by its sampler; 0 if unknown."""
    truncated: bool = False
    """Whether the token budget ran out."""
    prompt_tokens: int = 0
    """Number of tokens of the prompt; 0 if unknown."""
    calls: tuple[MadeCall, ...] = ()
    """Calls of tools that are not part of the text."""
    reasoning: str = ""
    """Thoughts that are not part of the text; they are recorded, but never judged."""
    stopped_by: str = ""
    """The stop string that ended the turn, if it is known."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, read from a turn of the policy."""

    name: str
    arguments: Mapping[str, object]
    id: str = ""
    """The call's own id, if the model's format has ids of calls."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A finished turn of the policy, and the answer to it."""

    tokens: NDArray[np.int32] = field(compare=False)
    """i32[t], the policy's own tokens, including the stop token or string."""
    text: str
    """The text of these tokens, without the stop string and special tokens."""
    calls: tuple[ToolCall, ...] = ()
    errors: tuple[str, ...] = ()
    """Errors of the tool calls that could not be read, in words for the policy."""
    reply: tuple[Message, ...] = ()
    """The environment's answer; empty for the latest turn."""
    shown: tuple[Message, ...] | None = None
    """The part of the answer that the policy saw, if there was no room for the whole answer; otherwise None."""
    context: tuple[Message | Turn, ...] | None = None
    """The context that replaced everything before the reply in the policy's view; None if the old context stayed."""
    context_tokens: int = 0
    """Number of tokens in the policy's view at the end of the turn, including the turn's own tokens."""

    @property
    def message(self) -> Message:
        """The turn as a message of a dialogue."""
        return Message("assistant", self.text)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a turn of the policy.

    Raises:
        InvalidArgumentError: If `messages` holds anything but messages, the reward is not a finite number, or the context is
            not one that a policy could answer.
    """

    messages: tuple[Message, ...] = ()
    """The messages to the policy, such as the results of tools."""
    reward: float = 0.0
    """The reward of the turn, given at its last token."""
    ends: bool = False
    """Whether the reply ends the episode. The messages are then not appended, but the verifier sees them in the dialogue."""
    context: tuple[Message | Turn, ...] | None = None
    """The context that replaces everything before the messages in the policy's view, such as the problem and a summary; None
    keeps the old context. Turns in the context keep their sampled tokens. The context begins with a message. Context and
    `messages` together end with a message."""

    def __post_init__(self) -> None:
        messages: object = self.messages
        if not isinstance(messages, tuple) or not all(isinstance(message, Message) for message in messages):
            raise InvalidArgumentError(
                f"a reply's messages must be a tuple of verifiers.Message(role, content), got {self.messages!r}"
            )
        reward: object = self.reward
        if not isinstance(reward, int | float) or not math.isfinite(reward):
            raise InvalidArgumentError(f"a reply's reward must be a finite number, got {self.reward!r}")
        if self.context is not None:
            self._check_context(self.context)

    def _check_context(self, context: object) -> None:
        if self.ends:
            raise InvalidArgumentError(
                "a reply that ends the episode has no context, since nothing follows that could see it: give one of the two"
            )
        items = (*context, *self.messages) if isinstance(context, tuple) else ()
        if (
            not items
            or not all(isinstance(item, Message | Turn) for item in items)
            or isinstance(items[0], Turn)
            or isinstance(items[-1], Turn)
        ):
            raise InvalidArgumentError(
                "a reply's context must be a tuple of verifiers.Message(role, content) and rlvr_envs.Turn that begins with a "
                f"message and, with the reply's messages, ends with one; got {context!r} before {self.messages!r}"
            )


class Interaction(Protocol):
    """Answers the policy's turns, as tools or a user would.

    An interaction is a pure function of the dialogue, so that forks, `set_state` and resuming need no state except the turns.
    Several rows are answered at the same time, in threads. If the interaction raises an exception, the episode ends as if the
    verifier had failed: it is excluded from learning, and counted in every report.
    """

    def __call__(self, turns: Sequence[Turn], problem: Problem) -> Reply | None:
        """Answer the last of the policy's turns, or return None to end the episode with this turn."""
        ...


@runtime_checkable
class CheckedInteraction(Interaction, Protocol):
    """An interaction that can check whether it supports a problem, such as a problem with unit tests."""

    def check_problem(self, problem: Problem) -> None:
        """Check the first problem of a data set before any episode.

        Raises:
            InvalidArgumentError: If turns of such a problem can't be answered.
        """
        ...


def check_interaction(interaction: Interaction | None, problem: Problem) -> None:
    """Let an interaction check a problem, if the interaction has a method for it.

    Raises:
        InvalidArgumentError: If the interaction does not support the problem.
    """
    if isinstance(interaction, CheckedInteraction):
        interaction.check_problem(problem)


class ProcessScorer(Protocol):
    """Rewards single tokens. A scorer is a pure function of the tokens so far."""

    def __call__(self, tokens: NDArray[np.int32], prompt_length: int, problem: Problem) -> float:
        """Score the last token of i32[l]; the tokens begin with the prompt of `prompt_length` tokens."""
        ...


class LegalActions(Protocol):
    """Determines which tokens may come next. The mask is a pure function of the tokens so far."""

    def __call__(self, tokens: NDArray[np.int32], prompt_length: int) -> NDArray[np.int8]:
        """Return the mask i8[vocab_size] of legal tokens (1) after tokens i32[l]; at least one token is legal."""
        ...


@dataclass(frozen=True, eq=False)
class FixedActions:
    """`LegalActions` with the same legal tokens at every step.

    Raises:
        InvalidArgumentError: If the mask is not i8[vocab_size] of zeros and ones with at least one 1.
    """

    mask: NDArray[np.int8]

    def __post_init__(self) -> None:
        mask = self.mask
        if mask.ndim != 1 or mask.dtype != np.int8 or not np.isin(mask, (0, 1)).all() or not mask.any():
            raise InvalidArgumentError(
                f"a mask of legal tokens must be int8 of shape (vocab_size,), 1 where legal, at least once; got {mask.dtype} "
                f"of shape {mask.shape}"
            )

    def __call__(self, tokens: NDArray[np.int32], prompt_length: int) -> NDArray[np.int8]:
        """Return the mask i8[vocab_size]."""
        return self.mask


class EndCondition(Protocol):
    """Ends an episode for a reason other than stop tokens and stop strings.

    The condition is a pure function of the tokens so far. The condition is evaluated after every token of the policy. If it
    holds, the episode terminates, even at the last token of the budget.
    """

    def __call__(self, tokens: NDArray[np.int32], prompt_length: int, problem: Problem) -> bool:
        """Return whether the episode is over after tokens i32[l], which begin with the prompt of `prompt_length` tokens."""
        ...


@dataclass(frozen=True, slots=True)
class Ended:
    """One episode that ended in a transition."""

    problem_id: str
    completion: str
    """The policy's own text of its last turn, without the stop string and special tokens."""
    verdict: Verdict | None
    """The verdict; None if the environment has no verifier."""
    token_scores: tuple[tuple[int, float], ...] = ()
    """Parts of the verdict's score that belong to earlier tokens: pairs (position in the row's buffer, amount)."""


@dataclass(slots=True)
class Transition:
    """The result of one `advance` of b streams by up to n tokens."""

    rewards: NDArray[np.float64]
    """f64[b n], the reward of each consumed token; the score of a deferred verdict is in column 0."""
    consumed: NDArray[np.int64]
    """i64[b], the number of given tokens that were appended."""
    inserted: NDArray[np.int64]
    """i64[b], the number of tokens that the environment appended after the consumed tokens. In a row with a new context, all
    tokens count."""
    new_context: NDArray[np.bool_]
    """bool[b], True for each row whose tokens start again with a new context (`Reply.context`)."""
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    ended: dict[int, Ended] = field(default_factory=dict)
    """The episodes that ended, by row."""

    @classmethod
    def nothing(cls, num_streams: int, width: int) -> Transition:
        """Build a transition without tokens, rewards or ended episodes."""
        return cls(
            np.zeros((num_streams, width)),
            np.zeros(num_streams, dtype=np.int64),
            np.zeros(num_streams, dtype=np.int64),
            np.zeros(num_streams, dtype=bool),
            np.zeros(num_streams, dtype=bool),
            np.zeros(num_streams, dtype=bool),
        )

    @property
    def reward(self) -> NDArray[np.float64]:
        """f64[b], the left-to-right sum of `rewards`."""
        if self.rewards.shape[1] == 1:
            return self.rewards[:, 0].copy()
        if self.rewards.shape[1] == 0:  # no tokens were taken
            return np.zeros(len(self.rewards))
        return np.cumsum(self.rewards, axis=1)[:, -1]
