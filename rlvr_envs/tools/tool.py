"""`Tool`: a tool that the policy may call, and `from_function`, which makes one of a plain function."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, get_type_hints, runtime_checkable

from verifiers import InvalidArgumentError, RLVRError, missing_dependency

Arguments = Mapping[str, object]


class ToolUseError(RLVRError):
    """A call that the tool can't carry out; its message is the tool's answer to the policy.

    Any other exception of a tool means that the tool is broken: its episode is excluded from learning.
    """


@runtime_checkable
class Tool(Protocol):
    """A tool that the policy may call."""

    name: str
    description: str
    """Its purpose, in words for the policy."""
    parameters: Mapping[str, Any]
    """The JSON schema of its arguments: an object."""
    timeout_s: float
    """Time limit of a call in seconds; a call that takes longer means that the tool is broken."""
    max_characters: int
    """The longest answer; a longer one is cut, with a mark."""

    def __call__(self, arguments: Arguments, earlier: Sequence[Arguments]) -> str:
        """Carry out a call; a pure function.

        Args:
            arguments: The arguments, which fit `parameters`.
            earlier: The arguments of the calls of this tool before it in the same episode, in order, so that a tool that
                remembers, such as an interpreter, needs no state of its own.

        Raises:
            ToolUseError: If the call can't be carried out as it stands.
        """
        ...


@dataclass(frozen=True)
class FunctionTool:
    """A tool made of a function; see `from_function`."""

    function: Callable[..., object]
    name: str
    description: str
    parameters: Mapping[str, Any]
    timeout_s: float = 10.0
    max_characters: int = 4000

    def __call__(self, arguments: Arguments, earlier: Sequence[Arguments]) -> str:
        """Call the function; anything but text is written as JSON.

        Raises:
            TypeError: If the result is neither text nor plain data, such as bytes.
        """
        result = self.function(**arguments)
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def from_function(
    function: Callable[..., object],
    *,
    name: str | None = None,
    description: str | None = None,
    timeout_s: float = 10.0,
    max_characters: int = 4000,
) -> FunctionTool:
    """Make a tool of a function; its type hints define the arguments, and its docstring describes the purpose.

    The function must be pure, as tools are. It raises `ToolUseError` to report a wrong call to the policy.

    Raises:
        InvalidArgumentError: If a parameter has no type hint, or one without a JSON schema, or is positional only.
        MissingDependencyError: If pydantic is not installed.
    """
    try:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError
    except ImportError as error:
        raise missing_dependency("pydantic", "tools", "a tool made of a function") from error
    called = str(name or getattr(function, "__name__", type(function).__name__))
    hints = get_type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if (
            parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            or parameter.name not in hints
        ):
            raise InvalidArgumentError(
                f"the parameter {parameter.name!r} of the tool {called!r} must have a type hint and be named in calls, such as "
                f"`def {called}({parameter.name}: str)`"
            )
        try:
            properties[parameter.name] = TypeAdapter(hints[parameter.name]).json_schema()
        except PydanticUserError as error:
            raise InvalidArgumentError(
                f"no JSON schema can be made of the type {hints[parameter.name]!r} of the parameter {parameter.name!r} of the "
                f"tool {called!r}: use str, int, float, bool, lists and dictionaries of them, Literal or None"
            ) from error
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    said = description if description is not None else inspect.getdoc(function) or ""
    return FunctionTool(function, called, said, schema, timeout_s, max_characters)


def tool_schema(tool: Tool) -> dict[str, Any]:
    """Describe a tool in the form that chat templates and servers expect."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
    }
