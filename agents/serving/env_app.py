"""The routes of an environment as a service: OpenEnv's protocol over a WebSocket, and the same fields over HTTP alone.

| | |
|---|---|
| `WS /ws` | OpenEnv: `{"type": "reset"}`, `"step"` or `"state"` with `"data"`, each answered; `"close"` ends it |
| `POST /reset` | begins an episode |
| `POST /step` | takes a turn: `{"episode_id", "action"}` |
| `GET /state` | progress of an episode: `?episode_id=ID` |
| `GET /health` | name of the environment, version, counts; needs no token |

`reset` takes `{"problem", "seed", "episode_id"}`, all optional: the index of a problem, or a seed by which it is drawn. An
action is `{"text", "calls": [{"name", "arguments"}], "tokens"}`: the model's text, its tool calls, and the number of its
tokens, for which the environment has a budget. Both answer `{"observation", "reward", "done"}`. The observation has `messages`,
the prompt's or the answer to the turn, with `new_context` if they replace everything before; `tools` at the beginning; and at
the end `outcome`, `answer` and `truncated`. The reward is the turn's own, and at the end also the verifier's score. An episode
that could not be judged has no reward: the answer is an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from fastapi import FastAPI, WebSocket
from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from starlette.responses import Response
from starlette.websockets import WebSocketDisconnect

import rlvr_envs
from agents.adapters.episodes import answered
from agents.runs.files.json_files import to_json
from agents.runs.verdicts import error_cause
from agents.serving.app import KnownKeys, first_fault, guarded
from agents.serving.batching import Batcher, OverloadedError
from agents.serving.guard import RequestLimits, answer, refusal
from verifiers import InvalidArgumentError, MadeCall, Message, Outcome, ToolMessage, __version__

IDLE_S = 600.0
"""Seconds after which an episode over HTTP that nobody plays gives way to a new one."""


class Reset(KnownKeys):
    """The body of `POST /reset`."""

    problem: int | None = Field(None, ge=0)
    seed: int | None = Field(None, ge=0)
    episode_id: str | None = Field(None, max_length=255)


class Call(KnownKeys):
    """A call of a tool."""

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)


class Action(KnownKeys):
    """A turn of the policy."""

    text: str = ""
    calls: list[Call] = Field(default_factory=list)
    tokens: int = Field(0, ge=0)
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_text(self) -> Self:
        try:
            json.dumps(self.model_dump(), ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise PydanticCustomError("half_character", "half a character (a surrogate) is no text") from error
        return self

    def completion(self) -> rlvr_envs.TextCompletion:
        """The turn as environments take it."""
        made = [
            MadeCall(call.name, call.arguments if isinstance(call.arguments, str) else to_json(call.arguments), "")
            for call in self.calls
        ]
        return rlvr_envs.TextCompletion(self.text, self.tokens, calls=tuple(made))


class Step(BaseModel):
    """The body of `POST /step`; OpenEnv's may have more."""

    action: Action
    episode_id: str


class RefusedError(Exception):
    """A request that is refused; its arguments are the status, the type and the message."""


class Session:
    """The episodes that a client plays, one after the other."""

    def __init__(self, world: rlvr_envs.MessageEnv, batcher: Batcher) -> None:
        self._world = world
        self._batcher = batcher
        self._turn = asyncio.Lock()
        self._episode: rlvr_envs.MessageEpisode | None = None
        self.id = ""
        self.used = time.monotonic()

    def check(self, asked: Reset) -> None:
        """Refuse a problem that does not exist."""
        count = len(self._world.streams.dataset)
        if asked.problem is not None and asked.problem >= count:
            raise RefusedError(422, "invalid_request", f"problem must be less than {count}, got {asked.problem}")

    async def reset(self, asked: Reset) -> dict[str, object]:
        """Begin an episode."""
        self.check(asked)
        count = len(self._world.streams.dataset)
        index = int(np.random.default_rng(asked.seed).integers(count)) if asked.problem is None else asked.problem
        self.id = asked.episode_id or uuid.uuid4().hex
        async with self._turn:
            self._episode = await asyncio.to_thread(lambda: self._world.start(self._world.streams.dataset[index]))
            told = {"episode_id": self.id, "problem": index, "problem_id": self._episode.problem.id}
            view = {"messages": list(map(_as_json, self._prompt)), "tools": list(self._world.tools), **told}
            return {"observation": view, "reward": None, "done": False}

    async def step(self, action: Action) -> dict[str, object]:
        """Take a turn."""
        async with self._turn:
            self.used = time.monotonic()
            if self._episode is None or self._episode.over:
                raise RefusedError(409, "no_episode", "no episode is under way: reset first")
            episode = self._episode
            earned = episode.reward
            try:
                await asyncio.to_thread(episode.take, action.completion())
            except InvalidArgumentError as error:
                self._episode = None
                raise RefusedError(503, "verifier_error", str(error)) from error
            reward = episode.reward - earned
            if not episode.over:
                fresh = episode.turns[-1].context is not None
                messages = self._prompt if fresh else answered(episode)
                view = {"messages": list(map(_as_json, messages)), "new_context": fresh}
                return {"observation": view, "reward": reward, "done": False}
            score, end = await self._judged(episode)
            view = {"messages": list(map(_as_json, answered(episode))), "new_context": False, **end}
            return {"observation": view, "reward": reward + score, "done": True}

    def state(self) -> dict[str, object]:
        """The progress of the episode."""
        episode = self._episode
        turns = 0 if episode is None else len(episode.turns) + episode.over
        return {"episode_id": self.id, "step_count": turns, "done": episode is not None and episode.over}

    @property
    def _prompt(self) -> tuple[Message, ...]:
        assert self._episode is not None
        prompt = self._episode.prompt
        assert not isinstance(prompt, str), "these episodes are of messages"
        return prompt

    async def _judged(self, episode: rlvr_envs.MessageEpisode) -> tuple[float, dict[str, object]]:
        """The score at the end of an episode, and further fields of the observation."""
        verdict = episode.error
        if verdict is None and self._world.rules.verifier is not None:
            try:
                (verdict,) = await self._batcher.verify([episode.completion], [episode.problem])
            except OverloadedError as error:
                raise RefusedError(429, "overloaded", str(error)) from error
        if verdict is None:
            return 0.0, {"truncated": episode.truncated}
        if verdict.outcome is Outcome.VERIFIER_ERROR:
            raise RefusedError(503, "verifier_error", f"the episode has no reward: {error_cause(verdict.detail)}")
        return verdict.score, {
            "outcome": verdict.outcome.value,
            "answer": verdict.answer,
            "truncated": episode.truncated,
        }


class EnvService:
    """An environment behind limits."""

    def __init__(self, streams: rlvr_envs.TokenStreams, name: str, limits: RequestLimits) -> None:
        self._world = rlvr_envs.MessageEnv(streams, "calls")
        self._name = name
        self._most = limits.max_waiting
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._connected = 0
        verifier = streams.rules.verifier or _no_verdict
        self.batcher = Batcher(verifier, batch_size=limits.batch_size, max_waiting=limits.max_waiting)

    async def reset(self, asked: Reset) -> Response:
        """Answer `POST /reset`."""
        return await self._answered(self._reset(asked))

    async def step(self, asked: Step) -> Response:
        """Answer `POST /step`."""
        return await self._answered(self._step(asked))

    async def state(self, episode_id: str) -> Response:
        """Answer `GET /state`."""
        session = self._sessions.get(episode_id)
        return _unknown(episode_id) if session is None else answer(session.state())

    async def health(self) -> Response:
        """Answer `GET /health`."""
        playing = len(self._sessions) + self._connected
        about = {"environment": self._name, "version": __version__, "problems": len(self._world.streams.dataset)}
        return answer({"status": "healthy", **about, "episodes": playing, "judged": self.batcher.judged})

    async def connect(self, socket: WebSocket) -> None:
        """Serve a client of OpenEnv until it leaves."""
        await socket.accept()
        if self._full():
            await socket.send_text(to_json(_error(RefusedError(429, "overloaded", "too many episodes are played"))))
            await socket.close()
            return
        self._connected += 1
        session = Session(self._world, self.batcher)
        try:
            with contextlib.suppress(WebSocketDisconnect):
                while (reply := await _reply(session, await _received(socket))) is not None:
                    await socket.send_text(to_json(reply))
                await socket.close()
        finally:
            self._connected -= 1

    async def _reset(self, asked: Reset) -> dict[str, object]:
        session = Session(self._world, self.batcher)
        session.check(asked)
        asked = asked.model_copy(update={"episode_id": asked.episode_id or uuid.uuid4().hex})
        assert asked.episode_id is not None
        self._sessions.pop(asked.episode_id, None)
        if self._full():
            raise RefusedError(429, "overloaded", f"{self._most} episodes are played: end one, or try again later")
        self._sessions[asked.episode_id] = session  # before anything is waited for, so that others count it
        try:
            return await session.reset(asked)
        except BaseException:
            self._forget(asked.episode_id, session)
            raise

    def _forget(self, episode_id: str, session: Session) -> None:
        """Drop an episode, but not one that was begun under its id meanwhile."""
        if self._sessions.get(episode_id) is session:
            del self._sessions[episode_id]

    async def _step(self, asked: Step) -> dict[str, object]:
        session = self._sessions.get(asked.episode_id)
        if session is None:
            raise RefusedError(404, "not_found", f"no episode {asked.episode_id!r} is under way")
        self._sessions.move_to_end(asked.episode_id)
        ended = True
        try:
            taken = await session.step(asked.action)
            ended = bool(taken["done"])
        finally:
            if ended:
                self._forget(asked.episode_id, session)
        return taken

    def _full(self) -> bool:
        """Whether no other episode may begin; one that nobody plays gives way."""
        if len(self._sessions) + self._connected < self._most:
            return False
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or time.monotonic() - oldest.used < IDLE_S:
            return True
        self._sessions.popitem(last=False)
        return False

    async def _answered(self, work: Any) -> Response:
        try:
            return answer(await work)
        except RefusedError as error:
            return refusal(*error.args)


def _unknown(episode_id: str) -> Response:
    return refusal(404, "not_found", f"no episode {episode_id!r} is under way")


def _no_verdict(completion: str, problem: object) -> Any:
    raise AssertionError("an environment without a verifier is not judged")


def _as_json(message: Message) -> dict[str, object]:
    said: dict[str, object] = {"role": message.role, "content": message.content}
    return said | {"name": message.name} if isinstance(message, ToolMessage) else said


async def _received(socket: WebSocket) -> str:
    """The next message; of one in bytes, nothing."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    return message.get("text") or ""


async def _reply(session: Session, text: str) -> dict[str, object] | None:
    """The answer to OpenEnv's client; None if it closes."""
    try:
        kind, data = _read(text)
        if kind == "close":
            return None
        if kind == "state":
            return {"type": "state", "data": session.state()}
        if isinstance(data, Reset):
            return {"type": "observation", "data": await session.reset(data)}
        assert isinstance(data, Action)
        return {"type": "observation", "data": await session.step(data)}
    except RefusedError as error:
        return _error(error)


def _read(text: str) -> tuple[str, Reset | Action | None]:
    """The type and the content of a message of OpenEnv's client."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "invalid_json", f"expected a message in JSON: {error}") from error
    kind = str(message.get("type")) if isinstance(message, dict) else "no object"
    if kind not in _KINDS:
        raise RefusedError(
            400, "unknown_type", f"expected a message with a type among {', '.join(_KINDS)}, got {kind!r}"
        )
    model = _KINDS[kind]
    try:
        return kind, None if model is None else model.model_validate(message.get("data") or {})
    except ValidationError as error:
        raise RefusedError(422, "invalid_request", first_fault(error.errors())[1]) from error


_KINDS: Mapping[str, type[Reset] | type[Action] | None] = {"reset": Reset, "step": Action, "state": None, "close": None}
_CODES = {
    "overloaded": "CAPACITY_REACHED",
    "invalid_request": "VALIDATION_ERROR",
    "invalid_json": "INVALID_JSON",
    "unknown_type": "UNKNOWN_TYPE",
}
"""OpenEnv's codes of errors; all others are `EXECUTION_ERROR`."""


def _error(error: RefusedError) -> dict[str, object]:
    _, kind, message = error.args
    return {"type": "error", "data": {"message": message, "code": _CODES.get(kind, "EXECUTION_ERROR")}}


def create_env_app(
    streams: rlvr_envs.TokenStreams, name: str, *, token: str | None = None, limits: RequestLimits | None = None
) -> FastAPI:
    """Build the service as an ASGI application.

    Args:
        streams: The environment.
        name: Its name in `/health`.
        token: The token that requests must carry; None lets everybody ask.
        limits: Limits on requests; `max_waiting` is the number of episodes that are played at once.

    Raises:
        InvalidArgumentError: If the environment has rules about tokens.
    """
    limits = limits or RequestLimits()
    service = EnvService(streams, name, limits)
    app = guarded("rlvr serve-env", service.batcher, token=token, max_bytes=limits.max_bytes)
    app.add_api_route("/reset", service.reset, methods=["POST"])
    app.add_api_route("/step", service.step, methods=["POST"])
    app.add_api_route("/state", service.state, methods=["GET"])
    app.add_api_route("/health", service.health, methods=["GET"])
    app.add_api_websocket_route("/ws", service.connect)
    return app
