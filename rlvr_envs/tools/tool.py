"""`Tool`: a tool that the policy may call, and `from_function`, which makes a tool from a plain function."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, get_type_hints, runtime_checkable

from verifiers import InvalidArgumentError, RLVRError, missing_dependency

Arguments = Mapping[str, object]


class ToolUseError(RLVRError):
    """Raised by a tool that can't perform a call. The error's message is the tool's answer to the policy.

    Any other exception means that the tool is broken, and excludes the episode from learning.
    """


@runtime_checkable
class Tool(Protocol):
    """A tool that the policy may call."""

    name: str
    description: str
    """The tool's purpose, in words for the policy."""
    parameters: Mapping[str, Any]
    """The JSON schema of the object that holds the arguments."""
    timeout_s: float
    """Time limit of a call, in seconds. A tool that exceeds the limit counts as broken."""
    max_characters: int
    """Maximum length of an answer. A longer answer is cut, and a mark shows the cut."""

    def __call__(self, arguments: Arguments, earlier: Sequence[Arguments]) -> str:
        """Perform a call, as a pure function.

        Args:
            arguments: The arguments, which fit `parameters`.
            earlier: The arguments of all earlier calls of this tool in the same episode, in order. With these, a tool with a
                memory, such as an interpreter, needs no state of its own.

        Raises:
            ToolUseError: If the call can't be performed with these arguments.
        """
        ...


@dataclass(frozen=True)
class FunctionTool:
    """A tool made from a function; see `from_function`."""

    function: Callable[..., object]
    name: str
    description: str
    parameters: Mapping[str, Any]
    timeout_s: float = 10.0
    max_characters: int = 4000

    def __call__(self, arguments: Arguments, earlier: Sequence[Arguments]) -> str:
        """Call the function; a result other than text is returned as JSON.

        Raises:
            TypeError: If the result, such as bytes, is neither text nor plain data.
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
    """Make a tool from a function. The function's type hints define the arguments, and its docstring describes the purpose.

    The function must be pure, like any tool. To report a wrong call to the policy, the function raises `ToolUseError`.

    Raises:
        InvalidArgumentError: If a parameter has no type hint, has a type without a JSON schema, or is positional only.
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
