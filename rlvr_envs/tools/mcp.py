"""Tools of MCP servers (Model Context Protocol, modelcontextprotocol.io), through the official client."""

from __future__ import annotations

import importlib.util
import os
import shlex
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlvr_envs.tools.tool import Arguments, ToolUseError
from verifiers import InvalidArgumentError, RLVRError, missing_dependency

if TYPE_CHECKING:
    from rlvr_envs.tools.mcp_session import Session


class ToolServerError(RLVRError, ConnectionError):
    """Raised if an MCP server can't be reached or answers incorrectly; the episode is excluded from learning."""


def mcp_tools(
    server: str | Sequence[str],
    *,
    only: Sequence[str] | None = None,
    timeout_s: float = 30.0,
    max_characters: int = 4000,
    env: Mapping[str, str] | None = None,
) -> list[MCPTool]:
    """List the tools of an MCP server.

    All episodes share one session, which is reopened after a failure. So the server must not keep any state between calls.

    Args:
        server: The URL of a server (streamable HTTP), or the command that starts a server (stdio), as one text or as a list of
            words.
        only: Names of the tools to use; by default, all tools.
        timeout_s: Time limit, in seconds, of a call and of the server's start.
        max_characters: Maximum length of an answer. A longer answer is cut, and a mark shows the cut.
        env: Environment variables of a started server, in addition to a few harmless variables.

    Raises:
        ToolServerError: If the server can't be reached or started.
        InvalidArgumentError: If the server has no tools or no tool of a name in `only`, or the command is empty.
        MissingDependencyError: If mcp is not installed.
    """
    if importlib.util.find_spec("mcp") is None:
        raise missing_dependency("mcp", "mcp", "tools of an MCP server")
    connection = _Connection(server, timeout_s, dict(env or {}))
    listed = connection.tools()
    missing = set(only or ()) - {tool.name for tool in listed}
    if missing or not listed:
        raise InvalidArgumentError(
            f"the MCP server {connection.name} has the tools {[tool.name for tool in listed]}"
            + (f", but not {sorted(missing)}" if missing else ": there is none to use")
        )
    return [
        MCPTool(connection, tool.name, tool.description or "", tool.input_schema, timeout_s + _GRACE_S, max_characters)
        for tool in listed
        if only is None or tool.name in only
    ]


@dataclass(frozen=True)
class MCPTool:
    """A tool of an MCP server."""

    connection: _Connection
    name: str
    description: str
    parameters: Mapping[str, Any]
    timeout_s: float
    max_characters: int

    def __call__(self, arguments: Arguments, earlier: Sequence[Arguments]) -> str:
        """Call the tool.

        Raises:
            ToolUseError: If the tool reports that the call failed.
            ToolServerError: If the server does not answer.
        """
        result = self.connection.call(self.name, dict(arguments))
        text = "\n".join(_text(block) for block in result.content)
        if result.is_error:
            raise ToolUseError(text or "the call failed")
        return text


_GRACE_S = 5.0
"""Extra seconds in which a connection can notice by itself that a call takes too long. The connection can then be kept."""


def _text(block: Any) -> str:
    return str(block.text) if block.type == "text" else f"[{block.type}, which can't be shown]"


class _Connection:
    """One session with a server, in a thread with its own event loop.

    The first call opens the session. A call after a failure, or in another process, opens the session again. The session closes
    with the process.
    """

    def __init__(self, server: str | Sequence[str], timeout_s: float, env: dict[str, str]) -> None:
        self._url = server if isinstance(server, str) and server.startswith(("http://", "https://")) else None
        self._command = [] if self._url else shlex.split(server) if isinstance(server, str) else list(server)
        if not self._url and not self._command:
            raise InvalidArgumentError(
                f"an MCP server is a URL that begins with http:// or https://, or the command that starts it; got {server!r}"
            )
        self.name = repr(self._url.partition("?")[0].rpartition("@")[2] if self._url else self._command[0])
        self._timeout_s = timeout_s
        self._env = env
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_session")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def tools(self) -> list[Any]:
        """All tools of the server."""

        async def listed(client: Any) -> list[Any]:
            found: list[Any] = []
            page = await client.list_tools()
            found += page.tools
            while page.next_cursor:
                page = await client.list_tools(cursor=page.next_cursor)
                found += page.tools
            return found

        found: list[Any] = self._ask(listed)
        return found

    def call(self, name: str, arguments: dict[str, object]) -> Any:
        """Call a tool, and return its result."""

        async def called(client: Any) -> Any:
            return await client.call_tool(name, arguments, read_timeout_seconds=self._timeout_s)

        return self._ask(called)

    def _ask(self, question: Any) -> Any:
        session = self._open_session()
        try:
            return session.run(question(session.client), self._timeout_s + _GRACE_S)
        except Exception as error:  # after any error there is no answer from the server
            if not session.is_alive() or not _is_answer(error):
                self._drop(session)
            raise ToolServerError(f"the MCP server {self.name} did not answer: {_said(error)}") from error

    def _open_session(self) -> Session:
        from rlvr_envs.tools.mcp_session import Session

        if self._process != os.getpid():  # a forked process has no threads
            self._forget()
        with self._lock:
            if self._session is None or not self._session.is_alive():
                try:
                    self._session = Session(self._server(), self._timeout_s)
                except Exception as error:
                    raise ToolServerError(f"the MCP server {self.name} can't be reached: {_said(error)}") from error
            return self._session

    def _drop(self, session: Session) -> None:
        session.close()
        with self._lock:
            if self._session is session:
                self._session = None

    def _server(self) -> Any:
        if self._url:
            return self._url
        from mcp import StdioServerParameters

        return StdioServerParameters(command=self._command[0], args=self._command[1:], env=self._env)


def _is_answer(error: Exception) -> bool:
    """Whether the server itself reports the error, so that the session can continue."""
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    return isinstance(error, MCPError) and error.code != CONNECTION_CLOSED


def _said(error: BaseException) -> str:
    """The message of an error, or of the first error of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
