"""An MCP server for the tests: `python mcp_server.py [PORT]`, on stdio or as HTTP."""

from __future__ import annotations

import os
import sys
import time

from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("tests")


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


@server.tool()
def refuse(why: str) -> str:
    """Refuses."""
    raise ToolError(why)


@server.tool()
def die() -> str:
    """Ends the server."""
    os._exit(3)


@server.tool()
def sleep(seconds: float) -> str:
    """Takes its time."""
    time.sleep(seconds)
    return "slept"


@server.tool()
def picture() -> Image:
    """Shows a picture."""
    return Image(data=b"no picture", format="png")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
