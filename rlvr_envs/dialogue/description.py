"""Describe tools in words, for models whose chat template does not list tools.

`describe_tools` writes the text, and `ToolDescription` puts it into a conversation.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_envs.dialogue.calls import CallFormat
from rlvr_envs.dialogue.dialogue import ToolSchema
from rlvr_envs.tokenizers import ChatTemplate
from verifiers import InvalidArgumentError, Message

_SAID = "Zq7said7qZ"
_ROLE = "Zq7role7qZ"


@dataclass(frozen=True)
class ToolDescription:
    """The description of tools, and its place in a conversation."""

    text: str
    as_system: bool
    """Whether the text may become a system message if the conversation has none."""

    def put_into(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Put the description into the system message, into a new system message, or before the user's first message."""
        first = messages[0]
        if first.role == "system":
            return (dataclasses.replace(first, content=f"{first.content}\n\n{self.text}"), *messages[1:])
        if self.as_system:
            return (Message("system", self.text), *messages)
        at = next((index for index, message in enumerate(messages) if message.role == "user"), None)
        if at is None:
            return (Message("user", self.text), *messages)
        asked = dataclasses.replace(messages[at], content=f"{self.text}\n\n{messages[at].content}")
        return (*messages[:at], asked, *messages[at + 1 :])


def takes_system(template: ChatTemplate | None) -> bool:
    """Whether a chat template shows a system message before a user's message; True without a template."""
    if template is None:
        return True
    text = _attempt(template, Message("system", _SAID), Message("user", _ROLE))
    return _SAID in text and _ROLE in text


def knows_tool_role(template: ChatTemplate) -> bool:
    """Whether a chat template has its own way to show messages of the role `tool`.

    A template that writes the name of any role unchanged does not count, since the model has not learned such a role.
    """
    chat = (Message("user", "x"), Message("assistant", "y"))
    shown = _attempt(template, *chat, Message("tool", _SAID))
    return _SAID in shown and shown != _attempt(template, *chat, Message(_ROLE, _SAID)).replace(_ROLE, "tool")


def _attempt(template: ChatTemplate, *messages: Message) -> str:
    """The text that a template renders; empty if the template raises any exception."""
    try:
        return template(messages)
    except Exception:  # noqa: BLE001 - a refusal is the answer
        return ""


def describe_tools(tools: Sequence[ToolSchema], form: CallFormat, frame: str | None) -> str:
    """Describe tools: the form of a call, and the name, purpose and arguments of each tool.

    Args:
        tools: The tools, at least one.
        form: The format in which the model is to write calls.
        frame: The text around a result, with `{}` in place of the result; None if the template has its own way to show results.

    Raises:
        InvalidArgumentError: If a template's own marks enclose calls in this format, or nothing separates such calls from other
            text.
    """
    if form.frame is None:
        raise InvalidArgumentError(
            f"calls in the format {form.name!r} can't be described as text, only shown by a chat template that writes them: "
            "use dialogue='auto', or 'hermes', which can be"
        )
    function = tools[0]["function"]
    names = function.get("parameters", {}).get("properties", {})
    arguments = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: ..." for name in names)
    call = f'{{"name": {json.dumps(function["name"], ensure_ascii=False)}, "arguments": {{{arguments}}}}}'
    opening, closing = form.frame
    results = "is the next message" if frame is None else f"follows as {frame.replace('{}', '...')}"
    listed = "\n".join(line for tool in tools for line in _tool_lines(tool["function"]))
    return (
        "You can call tools. To call one, end your message with the call, written as JSON like this:\n\n"
        f"{opening}{call}{closing}\n\nThe result {results}.\n\nTools:\n{listed}"
    )


def _tool_lines(function: Mapping[str, Any]) -> Iterator[str]:
    schema = function.get("parameters", {})
    described = " ".join(str(function.get("description", "")).split())
    yield f"- {function['name']}: {described}" if described else f"- {function['name']}"
    for name, argument in schema.get("properties", {}).items():
        needed = "required" if name in schema.get("required", ()) else "optional"
        said = " ".join(str(argument.get("description", "")).split()) if isinstance(argument, Mapping) else ""
        yield f"  - {name} ({schema_words(argument, schema)}, {needed}){said and f': {said}'}"


_COMBINED = ("anyOf", "oneOf")
_SHOWN = (
    "type",
    "title",
    "description",
    "enum",
    "const",
    "items",
    "properties",
    "required",
    "$ref",
    "$defs",
    *_COMBINED,
)


def schema_words(schema: Any, root: Mapping[str, Any], within: tuple[str, ...] = ()) -> str:
    """Describe a JSON schema in a few words, such as `array of integer, minItems 2`.

    Args:
        schema: The schema of a value.
        root: The whole schema, in which references are looked up.
        within: The references whose targets are being described, so that a recursive schema is not described for ever.
    """
    if not isinstance(schema, Mapping) or not schema:
        return "any"
    rules = [f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in schema.items() if key not in _SHOWN]
    return ", ".join([_type_words(schema, root, within), *rules])


def _type_words(schema: Mapping[str, Any], root: Mapping[str, Any], within: tuple[str, ...]) -> str:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = _referred(reference, root)
        known = target is None or reference in within
        return reference.rpartition("/")[2] if known else schema_words(target, root, (*within, reference))
    if "enum" in schema or "const" in schema:
        return " or ".join(json.dumps(value, ensure_ascii=False) for value in schema.get("enum", [schema.get("const")]))
    for key in _COMBINED:
        if key in schema:
            return " or ".join(schema_words(option, root, within) for option in schema[key])
    kind = schema.get("type", "any")
    if kind == "array" and "items" in schema:
        return f"array of {schema_words(schema['items'], root, within)}"
    if kind == "object" and schema.get("properties"):
        fields = (
            f"{name}{'' if name in schema.get('required', ()) else '?'}: {schema_words(value, root, within)}"
            for name, value in schema["properties"].items()
        )
        return f"object {{{', '.join(fields)}}}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    """The target of a reference within a schema; None if the reference points elsewhere."""
    target: Any = root
    for step in reference.removeprefix("#/").split("/"):
        if not isinstance(target, Mapping) or step not in target:
            return None
        target = target[step]
    return target
