"""Queries a Kimina Lean Server, and reads its answers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verifiers.http import JsonServer, ServerError, persistently

_TIMED_OUT = re.compile(r"Lean REPL command timed out")
_AXIOMS = re.compile(r"'([^\n]+)' (?:does not depend on any axioms|depends on axioms: \[([^\]]*)\])\s*")
_SLACK_S = 60.0
"""Seconds that a question may wait on the server before its own time limit begins."""


@dataclass(frozen=True)
class LeanAnswer:
    """Lean's answer about one file."""

    timed_out: bool = False
    errors: tuple[str, ...] = ()
    """The messages of severity `error`."""
    infos: tuple[str, ...] = ()
    """The messages of severity `info`."""
    uses_sorry: bool = False

    def axioms_of(self, name: str) -> list[frozenset[str]]:
        """The axioms that `#print axioms` lists for a theorem, whose name a namespace may qualify; one set for each listing."""
        matches = [match for info in self.infos if (match := _AXIOMS.fullmatch(info)) is not None]
        return [
            frozenset((match[2] or "").replace(",", " ").split())
            for match in matches
            if f".{match[1]}".endswith(f".{name}")
        ]


class LeanServer:
    """Sends files to `POST /api/check`, one in each request.

    Args:
        url: The server's address, such as `http://localhost:8000`.
        api_key: The server's key, if it requires one.
        timeout_s: Seconds that Lean may take for a file, rounded up to whole seconds for the server.
    """

    def __init__(self, url: str, api_key: str | None, timeout_s: float) -> None:
        self._timeout_s = math.ceil(timeout_s)
        # The header differs between versions of the server.
        headers = {"Authorization": f"Bearer {api_key}", "X-Auth-Token": api_key} if api_key else {}
        self._server = JsonServer(
            url.rstrip("/") + "/api/check", "Lean server", headers, api_key, self._timeout_s + _SLACK_S
        )

    def check(self, code: str) -> LeanAnswer:
        """Have Lean check a file.

        Raises:
            ServerError: If the server gives no answer even when it is asked again, or reports that Lean could not be run.
        """
        question = {
            "snippets": [{"id": "proof", "code": code}],
            "timeout": self._timeout_s,
            "debug": False,
            "reuse": True,
        }
        return self._read(persistently(lambda: self._server.ask(question)))

    def _read(self, answer: Any) -> LeanAnswer:
        match answer:
            case {"results": [{"error": str(error)}]} if error:
                if _TIMED_OUT.match(error):
                    return LeanAnswer(timed_out=True)
                raise ServerError(f"the Lean server could not run Lean: {self._server.clean(error)}", temporary=False)
            case {"results": [{"response": {"message": message}}]}:
                raise ServerError(f"Lean's REPL answers: {self._server.clean(message)}", temporary=False)
            case {"results": [{"response": Mapping() as response}]} if "env" in response:
                try:
                    return _of_response(response)
                except (TypeError, KeyError, AttributeError):
                    pass
        raise ServerError(
            f"the server does not answer like /api/check of a Kimina Lean Server: {self._server.clean(answer)}",
            temporary=False,
        )


def _of_response(response: Mapping[str, Any]) -> LeanAnswer:
    """Read the answer of Lean's REPL, which may omit empty lists."""
    messages = [(str(message["severity"]), str(message["data"])) for message in response.get("messages") or []]
    return LeanAnswer(
        errors=tuple(data for severity, data in messages if severity == "error"),
        infos=tuple(data for severity, data in messages if severity == "info"),
        uses_sorry=bool(response.get("sorries"))
        or any(severity == "warning" and "declaration uses" in data and "sorry" in data for severity, data in messages),
    )
