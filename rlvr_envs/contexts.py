"""Shorten dialogues that outgrow a model's context: the policy writes a summary, or results of earlier calls are dropped.

`Summarize` and `DropResults` wrap the interaction that answers the policy. The interaction sees the whole dialogue, as if
nothing had been left out. Every environment builds these wrappers from its settings `summarize_after=` and
`drop_results_after=`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from rlvr_envs.types import Interaction, Reply, Turn, check_interaction
from verifiers import AtLeast, InvalidArgumentError, Message, Problem, check_types

REQUEST = (
    "\nThe conversation has become too long to go on with. Write a summary of it for yourself: what has been done and found so "
    "far, and what is to be done next. You will see the problem again and this summary, and nothing else.\n"
)
HEADING = "Summary of the work so far:"
NOTE = "[removed to save space]"

Opening = Callable[[Problem], tuple[Message, ...]]
"""Makes the messages that show a problem to the policy."""


def problem_messages(problem: Problem) -> tuple[Message, ...]:
    """Return the problem itself as messages, for an environment whose prompts add nothing to the problem."""
    return (Message("user", problem.prompt),) if isinstance(problem.prompt, str) else problem.prompt


def _as_it_is(problem: Problem) -> Problem:
    return problem


@dataclass(frozen=True, slots=True)
class SummaryRequest(Message):
    """Asks the policy for a summary, which is its next turn."""


def without_summaries(dialogue: Sequence[Message]) -> tuple[Message, ...]:
    """Drop summaries and requests for summaries from a dialogue, for a verifier that reads moves or calls."""
    kept: list[Message] = []
    asked = False
    for message in dialogue:
        if not asked or message.role != "assistant":
            asked = isinstance(message, SummaryRequest)
            kept += [] if asked else [message]
        else:
            asked = False
    return tuple(kept)


@dataclass(frozen=True)
class Summarize:
    """Asks the policy for a summary once a dialogue is long, and goes on with the problem and the summary alone.

    If more than `after_tokens` tokens are in view at the end of a turn, the request follows the answer to that turn. The
    summary is the policy's next turn, so there must be room for answer, request and summary. A summary is learned like any
    other turn, from the rewards that follow.

    Raises:
        InvalidArgumentError: If `after_tokens` is not positive, or the request is empty.
    """

    interaction: Interaction
    """Answers all turns except summaries; it sees neither summaries nor requests for summaries."""
    after_tokens: Annotated[int, AtLeast(1)]
    """Number of tokens in view above which a summary is requested."""
    request: str = REQUEST
    """The text that asks the policy for the summary."""
    heading: str = HEADING
    """Text between the problem and the summary."""
    opening: Opening = field(default=problem_messages, repr=False)
    """Makes the messages that show a problem to the policy; the problem's text ends with the summary."""
    asked: Callable[[Problem], Problem] = field(default=_as_it_is, repr=False)
    """Converts a problem to the form that the policy sees; the summary is appended to this form."""

    def __post_init__(self) -> None:
        check_types(self)
        if not self.request:
            raise InvalidArgumentError("a summary needs a request, which tells the policy to write it; got ''")

    def __call__(self, turns: Sequence[Turn], problem: Problem) -> Reply | None:
        """Answer the last turn, and request a summary if one is due; after a summary, begin a new context."""
        if len(turns) > 1 and self._asks(turns[-2]):
            text = f"{self.heading}\n{turns[-1].text.strip()}"
            asked = self.asked(problem)
            return Reply(context=self.opening(dataclasses.replace(asked, prompt=_extended(asked, text))))
        reply = self.interaction(tuple(self._other(turns)), problem)
        goes_on = reply is not None and not reply.ends and reply.context is None
        if reply is None or not goes_on or turns[-1].context_tokens <= self.after_tokens:
            return reply
        return dataclasses.replace(reply, messages=(*reply.messages, SummaryRequest("user", self.request)))

    def check_problem(self, problem: Problem) -> None:
        """Let the wrapped interaction check the problem."""
        check_interaction(self.interaction, problem)

    def _asks(self, turn: Turn) -> bool:
        return isinstance(turn.reply[-1] if turn.reply else None, SummaryRequest)

    def _other(self, turns: Sequence[Turn]) -> Iterator[Turn]:
        """The turns other than summaries, without the requests for summaries."""
        asked = False
        for turn in turns:
            if not asked:
                yield dataclasses.replace(turn, reply=turn.reply[:-1]) if self._asks(turn) else turn
            asked = self._asks(turn)


@dataclass(frozen=True)
class DropResults:
    """Replaces the results of tools in earlier turns with a note once a dialogue is long.

    The policy's turns stay in view as they were sampled.

    Raises:
        InvalidArgumentError: If `after_tokens` is not positive, or `keep` is negative.
    """

    interaction: Interaction
    """Answers turns with messages, some of which have the role `"tool"`."""
    after_tokens: Annotated[int, AtLeast(1)]
    """Number of tokens in view above which results are dropped."""
    keep: Annotated[int, AtLeast(0)] = 1
    """Number of turns before the last turn that keep their results."""
    note: str = NOTE
    """The note in place of a result."""
    opening: Opening = field(default=problem_messages, repr=False)
    """Makes the messages that show a problem to the policy."""

    def __post_init__(self) -> None:
        check_types(self)

    def __call__(self, turns: Sequence[Turn], problem: Problem) -> Reply | None:
        """Answer the last turn; if there are results to drop, the shortened dialogue becomes the context."""
        reply = self.interaction(turns, problem)
        if reply is None or reply.ends or reply.context is not None or not reply.messages:
            return reply
        dropped = max(len(turns) - 1 - self.keep, 0)
        before = max((index - self.keep for index, turn in enumerate(turns) if turn.context is not None), default=0)
        results = (message for turn in turns[max(before, 0) : dropped] for message in turn.reply)
        if turns[-1].context_tokens <= self.after_tokens or not any(map(_is_result, results)):
            return reply
        context: list[Message | Turn] = [*self.opening(problem)]
        for index, turn in enumerate(turns):
            shown = turn.reply if turn.shown is None else turn.shown
            said = shown if index >= dropped else map(self._shortened, shown)
            context += [turn, *said]
        return dataclasses.replace(reply, context=tuple(context))

    def check_problem(self, problem: Problem) -> None:
        """Let the wrapped interaction check the problem."""
        check_interaction(self.interaction, problem)

    def _shortened(self, message: Message) -> Message:
        return dataclasses.replace(message, content=self.note) if _is_result(message) else message


def _is_result(message: Message) -> bool:
    return message.role == "tool"


def _extended(problem: Problem, text: str) -> str | tuple[Message, ...]:
    """Append a text to a problem's prompt; in a chat, to the last user message, or as a new message if the chat has none."""
    if isinstance(problem.prompt, str):
        return f"{problem.prompt}\n\n{text}"
    users = [index for index, message in enumerate(problem.prompt) if message.role == "user"]
    if not users:
        return (*problem.prompt, Message("user", text))
    last = users[-1]
    asked = Message("user", f"{problem.prompt[last].content}\n\n{text}")
    return (*problem.prompt[:last], asked, *problem.prompt[last + 1 :])
