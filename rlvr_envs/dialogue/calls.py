"""Formats of tool calls, and functions that read calls from the text of a turn, in which special tokens are written out.

The function of a format finds the calls in the text. For each call it yields a function that returns the call's name and
arguments, or raises an error. Text within thoughts is never a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from rlvr_envs.types import ToolCall
from verifiers import MadeCall
from verifiers.completion import without_thoughts

_JSON = json.JSONDecoder()
_EXAMPLE = '{"name": "add", "arguments": {"a": 1, "b": 2}}'


@dataclass(frozen=True, slots=True)
class ParsedTurn:
    """The tool calls of a turn."""

    calls: tuple[ToolCall, ...] = ()
    errors: tuple[str, ...] = ()
    """For each unreadable call, an error message for the policy."""


class _UnreadableCallError(Exception):
    """Raised if a call can't be read; the error's text is for the policy."""


@dataclass(frozen=True, slots=True)
class CallFormat:
    """A way to write tool calls."""

    name: str
    find: Callable[[str], Iterator[Callable[[], ToolCall]]]
    """Finds the calls in a text. Each item of the result is a function that reads one call, and may raise an error."""
    frame: tuple[str, str] | None = None
    """The text before and after the JSON of a call, for a prompt that describes calls in words. None if the template's own
    marks enclose a call, or if nothing separates a call from other text."""
    marks: tuple[str, ...] = ()
    """Marks that enclose calls and results and are not special tokens. In text of users and tools, a mark is never encoded as
    one token."""

    def parse(self, text: str) -> ParsedTurn:
        """Read the calls of a turn from its text, in which special tokens are written out."""
        calls: list[ToolCall] = []
        errors: list[str] = []
        # The channels of gpt-oss already separate calls from thoughts.
        for read in self.find(text if self.find is _harmony else without_thoughts(text)):
            try:
                calls.append(read())
            except _UnreadableCallError as error:
                errors.append(str(error))
        return ParsedTurn(tuple(calls), tuple(errors))


def parse_made(calls: Iterable[MadeCall]) -> ParsedTurn:
    """Read calls whose names and arguments a server has already separated."""
    return CallFormat("made", lambda _: (partial(_call, call.name, call.arguments, call.id) for call in calls)).parse(
        ""
    )


def _call(name: object, arguments: object, id: object = "") -> ToolCall:
    if isinstance(arguments, str):  # JSON within JSON, which some models write
        arguments = _whole_json(arguments)
    if not isinstance(name, str) or not name:
        raise _UnreadableCallError(f"a tool call needs the name of a tool, such as {_EXAMPLE}; got {name!r}")
    if not isinstance(arguments, Mapping):
        raise _UnreadableCallError(
            f"the arguments of {name} must be a JSON object, such as {_EXAMPLE}; got {type(arguments).__name__}"
        )
    return ToolCall(name, arguments, id if isinstance(id, str) else "")


def _of_object(value: object) -> ToolCall:
    if not isinstance(value, Mapping):
        raise _UnreadableCallError(f"a tool call must be a JSON object, such as {_EXAMPLE}; got {type(value).__name__}")
    return _call(value.get("name"), value.get("arguments", value.get("parameters", {})), value.get("id"))


def call_of_json(text: str) -> ToolCall:
    """Read a call that is a JSON object with `name` and `arguments`."""
    return _of_object(_whole_json(text))


def _of_text(name: str, arguments: str) -> ToolCall:
    return _call(name, _whole_json(arguments))


def _json_at(text: str, start: int) -> tuple[object, int]:
    """Decode the JSON value that begins at a position; return the value and the position of its end."""
    start += len(text[start:]) - len(text[start:].lstrip())
    try:
        return _JSON.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        said = (
            f"{error.msg} at character {error.pos - start}" if isinstance(error, json.JSONDecodeError) else str(error)
        )
        raise _UnreadableCallError(f"the tool call is not valid JSON: {said}. Write it like {_EXAMPLE}") from None


def _whole_json(text: str) -> object:
    value, end = _json_at(text, 0)
    if text[end:].strip():
        raise _UnreadableCallError(
            f"after the JSON of the tool call comes {text[end:].strip()[:40]!r}; expected nothing"
        )
    return value


def between(text: str, opening: str, closing: str) -> Iterator[str]:
    """The texts between opening and closing marks. The last closing mark may be missing, as in a turn that stopped there."""
    for piece in text.split(opening)[1:]:
        inner, closed, _ = piece.rpartition(closing)
        yield inner if closed else piece


def _hermes(text: str) -> Iterator[Callable[[], ToolCall]]:
    for inner in between(text, "<tool_call>", "</tool_call>"):
        if inner.lstrip().startswith("<function="):
            yield partial(_of_xml, inner)
        else:
            yield partial(call_of_json, inner)


_FUNCTION = re.compile(r"\s*<function=([^>\n]+)>(.*?)(?:</function>)?\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


def _of_xml(inner: str) -> ToolCall:
    """Parse Qwen3-Coder's format. An argument that is valid JSON is decoded; any other argument is kept as text."""
    function = _FUNCTION.fullmatch(inner)
    if function is None:
        raise _UnreadableCallError(
            f"expected <function=NAME><parameter=NAME>value</parameter></function>, got {inner[:80]!r}"
        )
    name, body = function.groups()
    rest = _PARAMETER.sub("", body).strip()
    if rest:
        raise _UnreadableCallError(
            f"expected <parameter=NAME>value</parameter> in the call of {name}, got {rest[:80]!r}"
        )
    return _call(name.strip(), {key.strip(): _json_or_text(value) for key, value in _PARAMETER.findall(body)})


def _json_or_text(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def _llama(text: str) -> Iterator[Callable[[], ToolCall]]:
    """Find Llama's calls: the whole turn is one call, or several separated by semicolons."""
    tagged = "<|python_tag|>" in text
    said = text.partition("<|python_tag|>")[2] if tagged else text
    said = re.sub(r"<\|(?:eot|eom|end_of_text)(?:_id)?\|>\s*$", "", said).strip()
    if not tagged and not re.match(r'\{\s*"(?:name|type)"\s*:', said):
        return
    while said:
        try:
            value, end = _json_at(said, 0)
        except _UnreadableCallError as error:
            yield partial(_refuse, error)
            return
        yield partial(_of_object, value)
        said = said[end:].lstrip("; \n")


def _refuse(error: _UnreadableCallError) -> ToolCall:
    raise error


_MISTRAL_NAMED = re.compile(r"\s*([\w.-]+)(?:\[CALL_ID\]([\w-]+))?\[ARGS\](.*)", re.DOTALL)


def _mistral(text: str) -> Iterator[Callable[[], ToolCall]]:
    for piece in text.split("[TOOL_CALLS]")[1:]:
        said = piece.removesuffix("</s>")
        named = _MISTRAL_NAMED.fullmatch(said)
        if named:
            yield partial(_call, *named.group(1, 3, 2))
            continue
        try:
            values = _whole_json(said)
        except _UnreadableCallError as error:
            yield partial(_refuse, error)
            continue
        for value in values if isinstance(values, list) else [values]:
            yield partial(_of_object, value)


_HARMONY_MESSAGE = re.compile(
    r"(?P<header>(?:(?!<\|message\|>).)*)<\|message\|>(?P<body>.*?)(?:<\|(?:end|call|return)\|>|(?=<\|start\|>)|\Z)",
    re.DOTALL,
)
_HARMONY_RECIPIENT = re.compile(r"\bto=functions\.([\w.-]+)")


def _harmony(text: str) -> Iterator[Callable[[], ToolCall]]:
    for message in _HARMONY_MESSAGE.finditer(text):
        recipient = _HARMONY_RECIPIENT.search(message["header"])
        if recipient:
            yield partial(_of_text, recipient[1], message["body"])


def _deepseek(text: str) -> Iterator[Callable[[], ToolCall]]:
    for inner in between(text, "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"):
        name, _, said = inner.partition("<｜tool▁sep｜>")
        if name.strip() == "function":  # V3 and R1 write the name and then a fenced block
            name, _, said = said.partition("\n")
            said = said.strip().removeprefix("```json").removesuffix("```")
        yield partial(_of_text, name.strip(), said)


CALL_FORMATS = {
    form.name: form
    for form in (
        CallFormat(
            "hermes",
            _hermes,
            ("<tool_call>", "</tool_call>"),
            ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
        ),
        CallFormat("llama", _llama),
        CallFormat(
            "mistral",
            _mistral,
            ("[TOOL_CALLS]", ""),
            ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
        ),
        CallFormat("harmony", _harmony),
        CallFormat("deepseek", _deepseek),
    )
}
"""The call formats by name: `hermes` (Qwen, Hermes, and Qwen3-Coder's XML), `llama` (Llama 3), `mistral`, `harmony` (GPT-OSS)
and `deepseek` (V3, R1, V3.1)."""

NO_CALLS = CallFormat("none", lambda text: iter(()))
"""The format for conversations without tools."""
