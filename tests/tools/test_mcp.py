"""Tools of an MCP server that the test starts: on stdio and over HTTP, and what becomes of one that breaks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from rlvr_envs.tools import ToolServerError, ToolUseError, mcp_tools
from verifiers import InvalidArgumentError, Outcome

pytest.importorskip("mcp", reason="tools of MCP servers need the extra mcp")

SERVER = Path(__file__).with_name("mcp_server.py")
ENV = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
START_S = 60.0


def on_stdio(**options: Any) -> dict[str, Any]:
    tools = mcp_tools([sys.executable, str(SERVER)], env=ENV, **({"timeout_s": START_S} | options))
    return {tool.name: tool for tool in tools}


@pytest.fixture(scope="module")
def stdio() -> dict[str, Any]:
    return on_stdio()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), str(port)], env=os.environ | ENV)
    try:
        while process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def test_tools_are_listed_with_their_schema(stdio: dict[str, Any]) -> None:
    assert stdio["add"].description == "Adds two numbers."
    assert stdio["add"].parameters["required"] == ["a", "b"]
    assert list(on_stdio(only=["add", "refuse"])) == ["add", "refuse"]


def test_tools_are_called_on_stdio_and_over_http(stdio: dict[str, Any], url: str) -> None:
    for tools in (stdio, {tool.name: tool for tool in mcp_tools(url, timeout_s=START_S)}):
        assert tools["add"]({"a": 2, "b": 3}, ()) == "5"
        assert tools["picture"]({}, ()) == "[image, which can't be shown]"
        with pytest.raises(ToolUseError, match="there is no such city"):
            tools["refuse"]({"why": "there is no such city"}, ())


def test_a_server_that_dies_breaks_the_call_and_is_started_again(stdio: dict[str, Any]) -> None:
    with pytest.raises(ToolServerError, match="did not answer"):
        stdio["die"]({}, ())
    assert stdio["add"]({"a": 2, "b": 3}, ()) == "5"


def test_a_call_that_takes_too_long_breaks_itself_alone() -> None:
    tools = on_stdio()
    tools["add"].connection._timeout_s = 0.5
    with pytest.raises(ToolServerError, match="did not answer"):
        tools["sleep"]({"seconds": 30}, ())
    tools["add"].connection._timeout_s = START_S
    assert tools["add"]({"a": 2, "b": 3}, ()) == "5"


def test_a_broken_server_masks_its_episode_and_no_other(stdio: dict[str, Any]) -> None:
    env: Any = gymnasium.make_vec(
        "rlvr/Addition-v0", num_envs=2, tools=[stdio["add"], stdio["die"]], max_new_tokens=90, verification_workers=2
    )
    env.reset(seed=0)
    tokenizer = env.streams.rules.tokenizer
    calls = [
        '<tool>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool>',
        '<tool>{"name": "die", "arguments": {}}</tool>',
    ]
    tokens = np.zeros((2, max(map(len, calls))), dtype=np.int64)
    # One after the other: calls share the server, so that one in flight would break with it.
    for row, call in enumerate(calls):
        tokens[row, : len(call)] = tokenizer.encode(call)
    _, reward, terminated, truncated, info = env.step_many(tokens, [len(calls[0]), 0])
    assert info["inserted"][0] == len("<result>5</result>")
    _, reward, terminated, truncated, info = env.step_many(tokens, [0, len(calls[1])])
    assert (terminated.tolist(), truncated.tolist()) == ([False, False], [False, True])
    assert np.isnan(reward[1])
    assert info["verdict"][1].outcome is Outcome.VERIFIER_ERROR
    assert not np.isnan(reward[0])


@pytest.mark.parametrize(
    ("server", "error", "message"),
    [
        (["/no/such/program"], ToolServerError, "can't be reached"),
        ([sys.executable, "-c", "pass"], ToolServerError, "can't be reached"),
        ("http://127.0.0.1:1/mcp", ToolServerError, "can't be reached"),
        ("", InvalidArgumentError, "an MCP server is a URL .* or the command that starts it; got ''"),
    ],
)
def test_what_is_no_server_is_refused(server: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        mcp_tools(server, timeout_s=START_S)
