"""`rlvr serve-verifier` as a process: it says where it is, answers, and stops when told to."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys

import pytest

from agents.loopback import is_loopback, listen
from tests.commands import Command

MAIN = "import sys; from rlvr_envs.console import main; main()"


def test_it_serves_until_it_is_stopped() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "serve-verifier", "--verifier", "exact", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        said = process.stdout.readline()
        match = re.fullmatch(r"serving exact at http://127\.0\.0\.1:(\d+)\n", said)
        assert match, process.stderr.read()
        connection = http.client.HTTPConnection("127.0.0.1", int(match[1]))
        body = json.dumps({"items": [{"completion": "4", "reference": "4"}]})
        connection.request("POST", "/verify", body, {"Content-Type": "application/json"})
        assert json.load(connection.getresponse())["verdicts"][0]["outcome"] == "correct"
        connection.close()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert process.returncode == 143, errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "needs a token"),
        (["--host", "example.org"], "needs a token"),
        (["--token", "sesame"], "names an environment variable"),
        (["--token", "env:RLVR_NO_SUCH_TOKEN"], "not set"),
        (["--token", "env:RLVR_EMPTY_TOKEN"], "is empty"),
        (["--port", "99999"], "--port must be from 0 to 65535, got 99999"),
        (["--verifier", "mth"], "math"),
        (["--max-items", "0"], "--max-items must be at least 1"),
    ],
)
def test_what_it_refuses(arguments: list[str], said: str, rlvr: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVR_EMPTY_TOKEN", "")
    code, _, errors = rlvr("serve-verifier", *arguments)
    assert code == 2
    assert said in errors


def test_a_port_that_is_taken_is_named(rlvr: Command) -> None:
    with listen("127.0.0.1", 0) as taken:
        code, _, errors = rlvr("serve-verifier", "--port", taken.getsockname()[1])
    assert code == 2
    assert "can't listen on 127.0.0.1, port" in errors


def test_loopback_is_what_no_other_machine_reaches() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "example.org", "localhost.example.org", "")))


def test_no_answer_waits_for_an_acknowledgement() -> None:
    """Nagle's algorithm would hold back the body of an answer until the client acknowledged its head, 40 ms later."""
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
