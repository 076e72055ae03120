"""Prints a recorded completion as titled sections, in text that is safe to print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from agents.console.printable import printable
from agents.runs.files.json_files import as_text, to_json


def print_section(console: Console, title: str, content: Text | str) -> None:
    """Print a bold title and its content."""
    console.print(Text(f"── {printable(title)} ──", style="bold"))
    console.print(content if isinstance(content, Text) else Text(printable(content)))


def messages_text(prompt: Any) -> str:
    """A recorded prompt or dialogue as text, with the thoughts and calls of each message; a text is returned unchanged."""
    if not isinstance(prompt, list):
        return as_text(prompt)
    lines = []
    for message in prompt:
        said = message if isinstance(message, dict) else {"role": "", "content": message}
        lines += [f"{said.get('role')}, thinking: {as_text(said['reasoning'])}"] if said.get("reasoning") else []
        lines.append(f"{said.get('role')}: {as_text(said.get('content'))}")
        calls = said.get("calls") or []
        lines += [f"  calls {call['name']}: {as_text(call['arguments'])}" for call in calls if isinstance(call, dict)]
    return "\n".join(lines)


def verdict_text(row: Mapping[str, Any]) -> str:
    """Outcome, score, answer, reference and reason of a row; `agents.runs.evaluation_record` describes rows."""
    score = "no score" if row["score"] is None else f"score {row['score']:g}"
    detail = row.get("detail")
    detail = dict(detail) if isinstance(detail, dict) else {}
    fields = {
        "answer": "none" if row["answer"] is None else row["answer"],
        "reference": as_text(row.get("reference")),
        "reason": detail.pop("reason", None),
        "error": row["error"],
        "detail": to_json(detail) if detail else None,
    }
    lines = [f"{name + ':':11}{as_text(value)}" for name, value in fields.items() if value is not None]
    unjudged = "the request failed" if row["error"] else "no verifier"
    return "\n".join([f"{row['outcome'] or unjudged}, {score}", *lines])
