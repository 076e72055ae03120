"""Tools that a policy may call between its turns, and the interaction that performs the calls.

Every environment takes tools in the setting `tools=`: a name of `TOOLS`, a `Tool`, or a plain function with type hints.
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
"""The named tools."""


def get_tools(spec: str | Sequence[ToolArgument]) -> list[Tool]:
    """Find tools.

    Args:
        spec: The tools: names of `TOOLS`, `module:attribute` (for a tool or a list of tools), `Tool` objects and plain
            functions; or one text with names separated by commas.

    Raises:
        UnknownNameError: If there is no tool with one of the names.
        InvalidArgumentError: If an item is neither a tool nor a function.
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
