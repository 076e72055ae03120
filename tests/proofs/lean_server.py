"""A stand-in for a Kimina Lean Server, which knows no Lean: what it answers is decided by words in the proof."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.json_server import serving

Answer = Callable[[str], Any]


def lean(code: str) -> dict[str, Any]:
    """What Lean's REPL might answer: every proof holds, except where a word in it says otherwise."""
    asked = re.search(r'logInfo "(\S+) term"', code)
    if "bad statement" in code:
        return _response(("error", "unknown identifier 'bad'"))
    if asked is not None:
        proof = re.search(r'`term "((?:[^"\\]|\\.)*)" with', code)
        assert proof is not None
        is_term = not re.search(r"\b(?:theorem|axiom)\b|#eval", proof[1])
        said = (
            ("info", f"{asked[1]} term\n") if is_term else ("error", f"{asked[1]} <input>:1:9: expected end of input")
        )
        return _response(("warning", "declaration uses 'sorry'"), said)
    name = re.findall(r"#print axioms (\S+)", code)[-1]
    if "slow" in code:
        return {"id": "proof", "time": 60.0, "error": "Lean REPL command timed out in 60.0 seconds"}
    if "memory" in code:
        return {"id": "proof", "time": 1.0, "error": "Lean REPL process exceeded memory limit"}
    axioms = "does not depend on any axioms"
    if found := re.search(r"uses\(([^)]*)\)", code):
        axioms = f"depends on axioms: [{found[1]}]"
    messages = [("info", f"'Space.{name}' {axioms}")]
    if traced := re.search(r"trace (.*)", code):
        messages.insert(0, ("info", traced[1]))
    if "wrong" in code:
        messages.append(("error", "unsolved goals"))
    if re.search(r"\bsorry\b", code):
        messages.append(("warning", "declaration uses 'sorry'"))
    return _response(*messages)


def _response(*messages: tuple[str, str]) -> dict[str, Any]:
    place = {"line": 1, "column": 0}
    listed = [{"severity": severity, "pos": place, "endPos": place, "data": data} for severity, data in messages]
    return {"id": "proof", "time": 0.1, "response": {"env": 1, "messages": listed}}


@dataclass
class Server:
    """What a server was asked."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def served(answer: Answer = lean) -> Iterator[Server]:
    """Run a server that answers with `answer(code)`, which gives a result, or a status and a body, while a block runs."""
    server = Server()

    def reply(request: dict[str, Any], headers: Any) -> tuple[int, bytes]:
        server.asked.append(request)
        server.headers.append(dict(headers))
        result = answer(request["snippets"][0]["code"])
        return result if isinstance(result, tuple) else (200, json.dumps({"results": [result]}).encode())

    with serving(reply) as server.url:
        yield server
