"""Tool calls as models write them, right and wrong."""

from __future__ import annotations

import pytest

from rlvr_envs import ByteTokenizer, ToolCall
from rlvr_envs.dialogue import CALL_FORMATS, PlainDialogue

ADD = ToolCall("add", {"a": 1})


@pytest.mark.parametrize(
    ("name", "text", "calls"),
    [
        ("hermes", "no call", ()),
        ("hermes", 'I add.\n<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>', (ADD,)),
        ("hermes", '<tool_call>\n{"name": "add", "arguments": "{\\"a\\": 1}"}\n</tool_call>', (ADD,)),
        ("hermes", '<tool_call>{"name": "add", "arguments": {"a": 1}}', (ADD,)),
        ("hermes", '<tool_call>{"name":"add","arguments":{"a":1}}</tool_call>\n<tool_call>{"name":"now"}</tool_call>',
         (ADD, ToolCall("now", {}))),
        ("hermes", '<tool_call>{"name": "say", "arguments": {"t": "</tool_call>"}}</tool_call>',
         (ToolCall("say", {"t": "</tool_call>"}),)),
        ("hermes", '<think>maybe <tool_call>{"name": "add"}</tool_call></think>The answer is 2.', ()),
        ("hermes", "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>", (ADD,)),
        ("hermes", "<tool_call><function=say><parameter=t>\nx = 1\n\ny\n</parameter></function></tool_call>",
         (ToolCall("say", {"t": "x = 1\n\ny"}),)),
        ("llama", '{"name": "add", "parameters": {"a": 1}}<|eot_id|>', (ADD,)),
        ("llama", '<|python_tag|>{"name": "add", "parameters": {"a": 1}}; {"name": "add", "parameters": {"a": 1}}<|eom_id|>',
         (ADD, ADD)),
        ("llama", 'The call {"name": "add", "parameters": {"a": 1}} would do.', ()),
        ("llama", '{"answer": 42}', ()),
        ("mistral", '[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}, "id": "abcdefghi"}]</s>',
         (ToolCall("add", {"a": 1}, "abcdefghi"),)),
        ("mistral", '[TOOL_CALLS]add[ARGS]{"a": 1}[TOOL_CALLS]add[CALL_ID]x1[ARGS]{"a": 1}</s>',
         (ADD, ToolCall("add", {"a": 1}, "x1"))),
        ("harmony", '<|channel|>analysis<|message|>to=functions.no<|end|><|start|>assistant<|channel|>commentary '
         'to=functions.add <|constrain|>json<|message|>{"a": 1}<|call|>', (ADD,)),
        ("harmony", ' to=functions.add<|channel|>commentary json<|message|>{"a": 1}<|call|>', (ADD,)),
        ("harmony", "<|channel|>final<|message|>to=functions.add<|return|>", ()),
        ("deepseek", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜>'
         "<｜tool▁calls▁end｜>", (ADD,)),
        ("deepseek", '<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{"a": 1}\n```<｜tool▁call▁end｜>', (ADD,)),
    ],
)  # fmt: skip
def test_calls_are_read(name: str, text: str, calls: tuple[ToolCall, ...]) -> None:
    parsed = CALL_FORMATS[name].parse(text)
    assert (parsed.calls, parsed.errors) == (calls, ())


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("hermes", "<tool_call>{'name': 'add'}</tool_call>", "not valid JSON: .*Write it like"),
        ("hermes", '<tool_call>{"name": "add", "arguments": {"a": 1}</tool_call>', "not valid JSON"),
        ("hermes", '<tool_call>{"name": "add"} please</tool_call>', "after the JSON of the tool call comes 'please'"),
        ("hermes", '<tool_call>["add"]</tool_call>', "must be a JSON object, .*; got list"),
        ("hermes", '<tool_call>{"arguments": {}}</tool_call>', "needs the name of a tool, .*; got None"),
        ("hermes", '<tool_call>{"name": "add", "arguments": [1]}</tool_call>', "arguments of add must be a JSON"),
        ("hermes", "<tool_call>" + "[" * 100_000, "not valid JSON"),
        ("hermes", "<tool_call>" + "1" * 5000 + "</tool_call>", "not valid JSON"),
        ("hermes", "<tool_call><function=add>a=1</function></tool_call>", "expected <parameter=NAME>"),
        ("llama", '<|python_tag|>{"name": "add", ', "not valid JSON"),
        ("mistral", "[TOOL_CALLS]add(1)</s>", "not valid JSON"),
        ("harmony", "<|channel|>commentary to=functions.add<|message|>1 + 1<|call|>", "after the JSON"),
        ("deepseek", "<｜tool▁call▁begin｜>add<｜tool▁call▁end｜>", "not valid JSON"),
    ],
)
def test_what_is_wrong_with_a_call_is_said(name: str, text: str, error: str) -> None:
    parsed = CALL_FORMATS[name].parse(text)
    assert parsed.calls == ()
    assert len(parsed.errors) == 1
    with pytest.raises(AssertionError, match=error):
        raise AssertionError(parsed.errors[0])


def test_a_wrong_call_leaves_the_others_alone() -> None:
    parsed = CALL_FORMATS["hermes"].parse(
        '<tool_call>?</tool_call><tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    )
    assert (parsed.calls, len(parsed.errors)) == ((ADD,), 1)


def schema(name: str, **properties: str) -> dict[str, object]:
    parameters = {"type": "object", "properties": {key: {"type": value} for key, value in properties.items()}}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


def test_plain_calls_name_a_tool_or_are_the_only_argument_of_the_only_one() -> None:
    only = PlainDialogue(ByteTokenizer(), [schema("calculator", expression="string")])
    several = PlainDialogue(ByteTokenizer(), [schema("calculator", expression="string"), schema("now")])
    text = ByteTokenizer().encode("2 + 2 = <tool>2 + 2</tool>")
    assert only.parse(text).calls == (ToolCall("calculator", {"expression": "2 + 2"}),)
    assert (several.parse(text).calls, len(several.parse(text).errors)) == ((), 1)
    named = ByteTokenizer().encode('<tool>{"name": "now"}</tool>')
    assert only.parse(named).calls == several.parse(named).calls == (ToolCall("now", {}),)
