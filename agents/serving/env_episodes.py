"""The episodes that clients of `rlvr serve-env` play, in text or in tokens, with the fields of requests and answers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Self

import numpy as np
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

import rlvr_envs
from agents.adapters.episodes import answered
from agents.runs.files.json_files import to_json
from agents.serving.app import KnownKeys
from verifiers import IllegalTokenError, InvalidArgumentError, MadeCall, Message, Problem, ToolMessage, Verdict

Form = Literal["text", "tokens"]
View = dict[str, object]
"""Fields of an observation."""


class RefusedError(Exception):
    """Raised if a request is refused. The error's arguments are the status, the type and the message."""


class Call(KnownKeys):
    """A call of a tool."""

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)


class Action(KnownKeys):
    """A turn of the policy, or some tokens of a turn."""

    text: str = ""
    calls: list[Call] = Field(default_factory=list)
    tokens: int = Field(0, ge=0)
    token_ids: list[Annotated[int, Field(ge=0, lt=2**31)]] | None = Field(None, min_length=1)
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_text(self) -> Self:
        try:
            json.dumps(self.model_dump(), ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise PydanticCustomError("half_character", "half a character (a surrogate) is no text") from error
        return self

    def completion(self) -> rlvr_envs.TextCompletion:
        """Return the turn in the form that environments take."""
        made = [
            MadeCall(call.name, call.arguments if isinstance(call.arguments, str) else to_json(call.arguments), "")
            for call in self.calls
        ]
        return rlvr_envs.TextCompletion(self.text, self.tokens, calls=tuple(made))


class End(NamedTuple):
    """The end of an episode that has not been judged."""

    completion: str
    """The last turn with the dialogue before it."""
    truncated: bool
    """Whether a limit ended the episode."""
    error: Verdict | None
    """A `VERIFIER_ERROR` if the environment broke."""


class ServedEpisode(Protocol):
    """An episode that a client plays."""

    problem: Problem

    @property
    def turns(self) -> int:
        """Number of the policy's turns so far."""

    @property
    def end(self) -> End | None:
        """The end of the episode; None while it goes on."""

    def opening(self) -> View:
        """Return the first observation of the episode."""

    def take(self, action: Action) -> tuple[float, View]:
        """Take an action. Return its reward, without the verdict, and the next observation.

        Raises:
            RefusedError: If the action does not fit the episode, which is then unchanged.
            InvalidArgumentError: If the environment breaks.
        """


class TextEpisode:
    """An episode that is played in messages and calls, one turn at a time."""

    def __init__(self, world: rlvr_envs.MessageEnv, index: int) -> None:
        self._episode = world.start(world.streams.dataset[index])
        self.problem = self._episode.problem

    @property
    def turns(self) -> int:
        """Number of turns so far."""
        return len(self._episode.turns) + self._episode.over

    @property
    def end(self) -> End | None:
        """The end of the episode; None while it goes on."""
        played = self._episode
        return End(played.completion, played.truncated, played.error) if played.over else None

    def opening(self) -> View:
        """The messages of the prompt, and the tools."""
        return {"messages": self._prompt(), "tools": list(self._episode.env.tools)}

    def take(self, action: Action) -> tuple[float, View]:
        """Take a turn."""
        if action.token_ids is not None:
            raise RefusedError(422, "invalid_request", 'this episode is played in text: reset with "form": "tokens"')
        earned = self._episode.reward
        self._episode.take(action.completion())
        fresh = not self._episode.over and self._episode.turns[-1].context is not None
        messages = self._prompt() if fresh else _as_json(answered(self._episode))
        return self._episode.reward - earned, {"messages": messages, "new_context": fresh}

    def _prompt(self) -> list[View]:
        prompt = self._episode.prompt
        assert not isinstance(prompt, str), "these episodes are of messages"
        return _as_json(prompt)


class TokenEpisode:
    """An episode that is played in tokens, any number of tokens at a time."""

    def __init__(self, streams: rlvr_envs.TokenStreams, index: int) -> None:
        self._streams = streams.again(1, judged=False)
        self._streams.reset([0], [None], [index])
        self.problem = self._streams.dataset[index]
        self.end: End | None = None

    @property
    def turns(self) -> int:
        """Number of turns so far."""
        return len(self._streams.get_state(0).turns) + (self.end is not None)

    def opening(self) -> View:
        """The tokens of the prompt."""
        return {"token_ids": self._seen(), **self._legal()}

    def take(self, action: Action) -> tuple[float, View]:
        """Take tokens, up to the end of the turn."""
        if action.token_ids is None or action.text or action.calls:
            raise RefusedError(
                422, "invalid_request", "this episode is played in tokens: an action has token_ids alone"
            )
        try:
            moved = self._streams.advance(np.array([action.token_ids]))
        except IllegalTokenError as error:
            raise RefusedError(422, "invalid_request", str(error)) from error
        consumed, inserted = int(moved.consumed[0]), int(moved.inserted[0])
        if 0 in moved.ended:
            ended = moved.ended[0]
            self.end = End(ended.completion, bool(moved.truncated[0]), ended.verdict)
        seen = self._seen()
        view = {"token_ids": seen[len(seen) - inserted :], "new_context": bool(moved.new_context[0])}
        rewards = moved.rewards[0, :consumed].tolist()
        return float(sum(rewards)), {**view, "consumed": consumed, "rewards": rewards, **self._legal()}

    def _seen(self) -> list[int]:
        seen: list[int] = self._streams.tokens[0, : self._streams.length[0]].tolist()
        return seen

    def _legal(self) -> View:
        masks = None if self.end is not None else self._streams.legal_masks()
        return {} if masks is None else {"legal_ids": np.flatnonzero(masks[0]).tolist()}


class EnvEpisodes:
    """An environment whose episodes can be played in text or in tokens."""

    def __init__(self, streams: rlvr_envs.TokenStreams) -> None:
        self.streams = streams
        try:
            self._world: rlvr_envs.MessageEnv | InvalidArgumentError = rlvr_envs.MessageEnv(streams, "calls")
        except InvalidArgumentError as error:  # this environment can be played only in tokens
            self._world = error

    def check(self, form: Form, problem: int | None) -> None:
        """Check that the environment has this form, and that the problem exists."""
        count = len(self.streams.dataset)
        if problem is not None and problem >= count:
            raise RefusedError(422, "invalid_request", f"problem must be less than {count}, got {problem}")
        if form == "text" and isinstance(self._world, InvalidArgumentError):
            raise RefusedError(422, "invalid_request", f'{self._world}, or reset with "form": "tokens"')

    def start(self, form: Form, index: int) -> ServedEpisode:
        """Start an episode of problem `index`."""
        if form == "tokens":
            return TokenEpisode(self.streams, index)
        assert isinstance(self._world, rlvr_envs.MessageEnv)
        return TextEpisode(self._world, index)


def _as_json(messages: Iterable[Message]) -> list[View]:
    return [
        {
            "role": message.role,
            "content": message.content,
            **({"name": message.name} if isinstance(message, ToolMessage) else {}),
        }
        for message in messages
    ]
