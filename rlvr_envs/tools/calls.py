"""`ToolInteraction` performs the calls of a turn, and replies with the results."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from rlvr_envs.tools.tool import Arguments, Tool, ToolUseError
from rlvr_envs.types import Interaction, Reply, ToolCall, Turn, check_interaction
from verifiers import InvalidArgumentError, Message, Problem, ToolMessage, missing_dependency


class ToolTimeoutError(TimeoutError):
    """Raised if a tool exceeds its time limit."""


class ToolInteraction:
    """Performs tool calls.

    The answer to an invalid call by the policy (an unknown tool, or arguments that are not JSON or do not fit the schema) is an
    error message, and the episode goes on. If a tool fails or hangs, the episode ends and is excluded from learning.

    Args:
        tools: The tools.
        otherwise: Answers turns without calls; by default, such turns end the episode.

    Raises:
        InvalidArgumentError: If there is no tool, two tools have the same name, or a tool's schema is not valid.
        MissingDependencyError: If jsonschema is not installed.
    """

    def __init__(self, tools: Sequence[Tool], otherwise: Interaction | None = None) -> None:
        names = [tool.name for tool in tools]
        if not names or len(set(names)) < len(names):
            raise InvalidArgumentError(f"there must be a tool, and each must have a name of its own; got {names}")
        self._tools = {tool.name: tool for tool in tools}
        self._validators = {tool.name: _validator(tool) for tool in tools}
        self._otherwise = otherwise

    def __call__(self, turns: Sequence[Turn], problem: Problem) -> Reply | None:
        """Answer the calls of the last turn with one message each."""
        last = turns[-1]
        if not last.calls and not last.errors:
            return None if self._otherwise is None else self._otherwise(turns, problem)
        before = [call for turn in turns[:-1] for call in turn.calls if self._objection(call) is None]
        carried_out = {name: [call.arguments for call in before if call.name == name] for name in self._tools}
        messages: list[Message] = []
        for call in last.calls:
            text = self._objection(call)
            if text is None:
                earlier = carried_out[call.name]
                text = self._result(self._tools[call.name], call.arguments, tuple(earlier))
                earlier.append(call.arguments)
            messages.append(ToolMessage("tool", text, call.name, call.id))
        wrong = [ToolMessage("tool", f"Error: {error}", next(iter(self._tools))) for error in last.errors]
        return Reply((*messages, *wrong))

    def check_problem(self, problem: Problem) -> None:
        """Let the interaction for turns without calls check the problem."""
        check_interaction(self._otherwise, problem)

    def _objection(self, call: ToolCall) -> str | None:
        """The error message for a call; None if the call is valid."""
        if call.name not in self._tools:
            return f"Error: there is no tool {call.name!r}; there are {', '.join(map(repr, self._tools))}"
        try:  # Python accepts some values that JSON forbids and tools may refuse
            json.dumps(dict(call.arguments), ensure_ascii=False, allow_nan=False).encode()
        except ValueError:
            return f"Error: the arguments of {call.name} hold a number that is not finite, or half of a surrogate pair"
        errors = sorted(
            self._validators[call.name].iter_errors(dict(call.arguments)), key=lambda error: list(error.path)
        )
        if not errors:
            return None
        where = "".join(f"[{step!r}]" for step in errors[0].absolute_path)
        return (
            f"Error: the arguments of {call.name} do not fit its schema: {where and f'at {where}: '}{errors[0].message}"
        )

    def _result(self, tool: Tool, arguments: Arguments, earlier: Sequence[Arguments]) -> str:
        try:
            text = _within(tool.timeout_s, lambda: tool(arguments, earlier), tool.name)
        except ToolUseError as error:
            text = f"Error: {error}"
        if not isinstance(text, str):
            raise InvalidArgumentError(f"the tool {tool.name!r} must answer with text, got {type(text).__name__}")
        if len(text) <= tool.max_characters:
            return text
        return f"{text[: tool.max_characters]} [cut: {len(text) - tool.max_characters} of {len(text)} characters]"


def _validator(tool: Tool) -> Any:
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
    except ImportError as error:
        raise missing_dependency("jsonschema", "tools", "an environment with tools") from error
    try:
        Draft202012Validator.check_schema(dict(tool.parameters))
    except SchemaError as error:
        said = f"the parameters of the tool {tool.name!r} are not a valid JSON schema: {error.message}"
        raise InvalidArgumentError(said) from error
    return Draft202012Validator(dict(tool.parameters))


def _within(seconds: float, function: Callable[[], object], name: str) -> object:
    """Call a function in a separate thread. If the function does not return in time, the thread is abandoned.

    Raises:
        ToolTimeoutError: If the function takes longer.
    """
    results: list[object] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    thread = threading.Thread(target=run, name=f"tool-{name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise ToolTimeoutError(f"the tool {name!r} took more than {seconds:g} s")
    if errors:
        raise errors[0]
    return results[0]
