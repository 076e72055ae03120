"""Tools that a policy may call between its turns, and the interaction that carries the calls out.

`tools=` of every environment takes them: a name of `TOOLS`, a `Tool`, or a plain function with type hints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from rlvr_envs.tools.calculator import Calculator
from rlvr_envs.tools.calls import ToolInteraction
from rlvr_envs.tools.mcp import ToolServerError, mcp_tools
from rlvr_envs.tools.python import PythonTool
from rlvr_envs.tools.search import Search
from rlvr_envs.tools.tool import FunctionTool, Tool, ToolUseError, from_function, tool_schema
from verifiers import InvalidArgumentError, import_attribute, is_attribute_path, unknown_name

ToolArgument = str | Tool | Callable[..., object]

TOOLS: dict[str, Callable[[], Tool]] = {"calculator": Calculator, "python": PythonTool}
"""The tools that have a name."""


def get_tools(spec: str | Sequence[ToolArgument]) -> list[Tool]:
    """Find tools.

    Args:
        spec: Names of `TOOLS` or `module:attribute` (a tool, or several in a list), tools and plain functions; a text holds
            names with commas between them.

    Raises:
        UnknownNameError: If there is no tool of a name.
        InvalidArgumentError: If something is neither a tool nor a function.
    """
    return [tool for part in (spec.split(",") if isinstance(spec, str) else spec) for tool in _tools(part)]


def _tools(spec: ToolArgument) -> list[Tool]:
    if not isinstance(spec, str):
        return [_tool(spec)]
    name = spec.strip()
    if ":" in name or is_attribute_path(name):
        named: Any = import_attribute(name, "tool")
        return [_tool(part) for part in named] if isinstance(named, list | tuple) else [_tool(named)]
    if name not in TOOLS:
        raise unknown_name("tool", name, list(TOOLS))
    return [TOOLS[name]()]


def _tool(spec: Tool | type | Callable[..., object]) -> Tool:
    if isinstance(spec, type):
        spec = spec()
    if isinstance(spec, Tool):
        return spec
    if callable(spec):
        return cast("Tool", from_function(spec))
    raise InvalidArgumentError(
        f"a tool must be one of {', '.join(TOOLS)}, an object with the attributes of rlvr_envs.tools.Tool, or a function with "
        f"type hints; got {spec!r}"
    )


__all__ = [
    "TOOLS",
    "Calculator",
    "FunctionTool",
    "PythonTool",
    "Search",
    "Tool",
    "ToolInteraction",
    "ToolServerError",
    "ToolUseError",
    "from_function",
    "get_tools",
    "mcp_tools",
    "tool_schema",
]
