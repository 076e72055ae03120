"""OpenAI's protocol: messages in its format, and completions read from its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents.runs.completions import message_text
from rlvr_envs import TextCompletion
from verifiers import AssistantMessage, DataError, MadeCall, Message, ToolMessage

_SHOWN = 300
"""Number of characters of a server's answer that an error quotes."""


def chat_message(message: Message) -> dict[str, Any]:
    """A message in OpenAI's format, with its tool calls, or with the id of the tool call that it answers."""
    said: dict[str, Any] = {"role": message.role, "content": message.content}
    if isinstance(message, ToolMessage):
        return said | {"tool_call_id": message.call_id}
    if isinstance(message, AssistantMessage) and message.calls:
        return said | {"tool_calls": list(map(_chat_call, message.calls))}
    return said


def _chat_call(call: MadeCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": _object_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _object_text(arguments: str) -> str:
    """The arguments of a call as a JSON object; servers refuse a conversation with any other arguments."""
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        is_object = False
    return arguments if is_object else json.dumps({"unreadable": arguments}, ensure_ascii=False)


def read_answer(said: str, stop: Sequence[str]) -> TextCompletion:
    """Read a completion from the text of a response of the route "chat" or "completions"."""
    try:
        content = json.loads(said)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the server's answer is not JSON: {said[:_SHOWN]!r}") from error
    choices = content.get("choices") if isinstance(content, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping):
        raise DataError(f"the server's answer has no choices: {said[:_SHOWN]!r}")
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        raise DataError("the server withheld the completion (content_filter)")
    message = choice.get("message")
    given: Mapping[str, Any] = message if isinstance(message, Mapping) else {}
    text, stopped_by = _cut(_text_of(choice), stop)
    if not stopped_by and choice.get("stop_reason") in stop:  # as vLLM reports
        stopped_by = str(choice["stop_reason"])
    return TextCompletion(
        text,
        tokens=_count(content, "completion_tokens"),
        truncated=finish == "length" and not stopped_by,
        prompt_tokens=_count(content, "prompt_tokens"),
        calls=tuple(map(_made_call, _calls_of(given))),
        reasoning=next((str(given[name]) for name in _REASONING if given.get(name)), ""),
        stopped_by=stopped_by,
    )


_REASONING = ("reasoning_content", "reasoning")
"""The names under which servers return a model's thoughts, which are not part of the completion."""


def _count(content: Mapping[str, Any], name: str) -> int:
    """A count of tokens; 0 if the server gives none."""
    usage = content.get("usage")
    count = usage.get(name) if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) and count > 0 else 0


def _text_of(choice: Mapping[str, Any]) -> str:
    """The text of a choice; if the model refused, its refusal; empty if the model ended without text."""
    if "message" not in choice:
        if not isinstance(choice.get("text"), str):
            raise DataError(f"the server's answer has neither a message nor a text: {str(choice)[:_SHOWN]!r}")
        return str(choice["text"])
    message = choice["message"]
    if isinstance(message, Mapping) and message.get("content") is None and ("content" in message or _calls_of(message)):
        return str(message.get("refusal") or "")
    return message_text(choice, "the server's answer")


def _calls_of(message: Mapping[str, Any]) -> list[Any]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise DataError(f"the tool_calls of the server's answer are not a list: {str(calls)[:_SHOWN]!r}")
    return calls


def _made_call(call: object) -> MadeCall:
    """A tool call as the model made it; its name and its arguments may be any text."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        raise DataError(f"a tool call of the server's answer has no function: {str(call)[:_SHOWN]!r}")
    name, arguments, id = function.get("name"), function.get("arguments"), call.get("id")
    return MadeCall(
        name if isinstance(name, str) else "",
        arguments if isinstance(arguments, str) and arguments else json.dumps(arguments or {}),
        id if isinstance(id, str) else "",
    )


def _cut(text: str, stop: Sequence[str]) -> tuple[str, str]:
    """A text up to the first stop string, and this stop string, which is empty if there is none."""
    ends = [(at, string) for string in stop if (at := text.find(string)) >= 0]
    at, string = min(ends, default=(len(text), ""))
    return text[:at], string
