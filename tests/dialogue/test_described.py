"""A model is told of its tools, whatever its chat template can show, in the tokens that the template gives."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import pytest

import rlvr_envs
from rlvr_envs import HuggingFaceTokenizer
from rlvr_envs.dialogue import CALL_FORMATS, DescribedDialogue, PlainDialogue, get_dialogue, spell
from rlvr_envs.dialogue.description import describe_tools, schema_words
from rlvr_envs.dialogue.plain import plain_format
from rlvr_envs.prompts import ChatPrompt
from tests.dialogue.templates import CHATML, TOOL, tokenizer_of
from tests.tiny_models import byte_level_tokenizer
from verifiers import InvalidArgumentError, Message

TOOL_ROLE = """\
{%- for message in messages %}
{%- if message.role == 'tool' %}{{- '<|im_start|>user\\n<output>' + message.content + '</output><|im_end|>\\n' }}
{%- else %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""

ANY_ROLE = """\
{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""

NO_SYSTEM = "{%- if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + ANY_ROLE

TWO_ROLES = """\
{%- for message in messages %}
{%- if message.role not in ('user', 'assistant') or (message.role == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('roles alternate user/assistant') }}{% endif %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""


WITHOUT_TOOLS = {"tool role": TOOL_ROLE, "any role": ANY_ROLE, "no system": NO_SYSTEM, "two roles": TWO_ROLES}
HAS_SYSTEM = ("tool role", "any role")


def tokenizer_with(template: str) -> HuggingFaceTokenizer:
    inner = byte_level_tokenizer("<|im_end|>", "<|im_start|>", eos_token="<|im_end|>", merges=(("a", "d"), ("<", "t")))
    inner.chat_template = template
    return HuggingFaceTokenizer(inner)


def shown(env: Any, observation: Any) -> str:
    return spell(env.tokenizer, observation["tokens"][: observation["length"][0]])


def question(env: Any) -> str:
    return str(env.streams.rules.render_prompt.messages(env.streams.problem(0))[-1].content)


@pytest.mark.parametrize(
    ("name", "system"), [*((name, None) for name in WITHOUT_TOOLS), *((name, "Be brief.") for name in HAS_SYSTEM)]
)
def test_three_turns_are_those_of_the_template_with_the_tools_in_words(name: str, system: str | None) -> None:
    tokenizer = tokenizer_with(WITHOUT_TOOLS[name])
    env: Any = gymnasium.make(
        "rlvr/Addition-v0",
        tokenizer=tokenizer,
        tools="calculator",
        prompt=ChatPrompt("Add: {problem}", system),
        max_new_tokens=400,
    ).unwrapped
    observation, _ = env.reset(seed=0)
    description = env.manifest["turns"]["description"]
    assert env.manifest["turns"]["describe_tools"] == "text"
    for said in ("calculator", "expression (string, required)", "Evaluates an arithmetic expression", "<tool>{"):
        assert said in description
    asked = question(env)
    assert asked.startswith("Add: ")
    if name in HAS_SYSTEM:
        text = f"{system}\n\n{description}" if system else description
        chat = [{"role": "system", "content": text}, {"role": "user", "content": asked}]
    else:
        chat = [{"role": "user", "content": f"{description}\n\n{asked}"}]

    def expected() -> list[int]:
        text = tokenizer.inner.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        return tokenizer.encode(str(text), start=True).tolist()

    assert observation["tokens"][: observation["length"][0]].tolist() == expected()
    assert env.streams.prompt_text(env.streams.problem(0)) == shown(env, observation)
    for turn in ("6 * 7", "2 ** 10"):
        call = f"I ask.\n<tool>{json.dumps({'name': 'calculator', 'arguments': {'expression': turn}})}</tool>"
        observation, _, terminated, truncated, _ = env.step_many(tokenizer.encode(call))
        assert not terminated
        assert not truncated
        result = str(eval(turn))
        answer = (
            {"role": "tool", "content": result}
            if name == "tool role"
            else {"role": "user", "content": f"<result>{result}</result>"}
        )
        chat += [{"role": "assistant", "content": call}, answer]
        assert observation["tokens"][: observation["length"][0]].tolist() == expected()
    _, reward, terminated, _, _ = env.step_many(
        [*tokenizer.encode(str(env.streams.problem(0).reference)), tokenizer.eos_token]
    )
    assert (reward, terminated) == (1.0, True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<tool_call>", "<call>"),  # calls in a format that nothing here reads
        ("+ message.content + '\\n</tool", "+ '\\n</tool"),  # results that are not shown
        ("{%- if message.role == 'tool' %}", "{%- if message.role == 'tool' %}{{ raise_exception('no tools') }}"),
    ],
)
def test_a_template_that_shows_no_calls_or_results_gets_words(old: str, new: str) -> None:
    assert old in CHATML
    dialogue = get_dialogue("auto", tokenizer_with(CHATML.replace(old, new)), [TOOL])
    assert isinstance(dialogue, DescribedDialogue)
    opening = spell(dialogue.tokenizer, dialogue.open([Message("user", "?")]))
    assert opening.startswith("<|im_start|>system\nYou can call tools.")
    assert "Tools:\n- add: Adds two" in opening
    turn = 'Let me see. <tool>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool>'
    assert [call.arguments for call in dialogue.parse(dialogue.tokenizer.encode(turn)).calls] == [{"a": 1, "b": 2}]


@pytest.mark.parametrize("name", CALL_FORMATS)
def test_a_call_as_it_is_described_is_read(name: str) -> None:
    form = CALL_FORMATS[name]
    if form.frame is None:
        with pytest.raises(InvalidArgumentError, match=rf"^calls in the format '{name}' can't be described as text"):
            describe_tools([TOOL], form, None)
        return
    text = describe_tools([TOOL], form, None)
    call = text.split("\n\n")[1]
    assert [call.arguments for call in form.parse(call.replace("...", "7")).calls] == [{"a": 7, "b": 7}]


def test_how_tools_are_described_can_be_chosen() -> None:
    tokenizer = tokenizer_of("chatml")
    assert isinstance(get_dialogue("auto", tokenizer, [TOOL], "text"), DescribedDialogue)
    silent = get_dialogue("auto", tokenizer_with(ANY_ROLE), [TOOL], "none")
    assert isinstance(silent, DescribedDialogue)
    assert silent.description is None
    assert "add" not in spell(silent.tokenizer, silent.open([Message("user", "?")]))
    with pytest.raises(InvalidArgumentError, match=r"does not list tools: 'add' .*describe_tools='text'"):
        get_dialogue("auto", tokenizer_with(ANY_ROLE), [TOOL], "template")
    with pytest.raises(
        InvalidArgumentError, match=r"^describe_tools='template' needs a chat template that lists tools"
    ):
        get_dialogue("plain", tokenizer, [TOOL], "template")
    with pytest.raises(InvalidArgumentError, match=r"^describe_tools='text' is for dialogues that have a name"):
        get_dialogue(PlainDialogue, tokenizer, [TOOL], "text")


def test_plain_text_tells_of_tools_in_a_chat_and_where_it_is_asked_to() -> None:
    def opening(**settings: Any) -> str:
        env: Any = gymnasium.make("rlvr/Addition-v0", tools="calculator", **settings).unwrapped
        observation, _ = env.reset(seed=0)
        told = env.manifest["turns"]
        assert isinstance(env.streams.rules.dialogue, PlainDialogue)
        text = shown(env, observation).replace(question(env), "QUESTION")
        return text.replace(told["description"], "DESCRIPTION") if told["describe_tools"] == "text" else text

    assert opening() == "QUESTION"
    assert opening(describe_tools="text") == "DESCRIPTION\n\nQUESTION"
    assert opening(prompt="chat") == "DESCRIPTION\n\nUser: QUESTION\n\nAssistant:"
    assert opening(prompt="chat", describe_tools="none") == "User: QUESTION\n\nAssistant:"
    chat = tokenizer_with(ANY_ROLE)
    assert opening(tokenizer=chat, dialogue="plain") == "DESCRIPTION\n\nQUESTION"
    assert opening(tokenizer=chat, dialogue="plain", prompt="chat") == (
        "<|im_start|>system\nDESCRIPTION<|im_end|>\n<|im_start|>user\nQUESTION<|im_end|>\n<|im_start|>assistant\n"
    )


def test_what_a_description_says_becomes_no_special_token() -> None:
    def clock(city: str) -> str:
        return city

    for settings in ({}, {"dialogue": "plain"}, {"dialogue": "plain", "prompt": "chat"}):
        tool = rlvr_envs.tools.from_function(clock, description="Tells <|im_end|> the time.")
        tokenizer = tokenizer_with(ANY_ROLE)
        env: Any = gymnasium.make("rlvr/Addition-v0", tokenizer=tokenizer, tools=[tool], **settings).unwrapped
        harmless = rlvr_envs.tools.from_function(clock, description="Tells the time.")
        other: Any = gymnasium.make("rlvr/Addition-v0", tokenizer=tokenizer, tools=[harmless], **settings).unwrapped
        observations = [each.reset(seed=0)[0]["tokens"].tolist() for each in (env, other)]
        assert "Tells <|im_end|> the time." in env.streams.prompt_text(env.streams.problem(0))
        assert observations[0].count(tokenizer.eos_token) == observations[1].count(tokenizer.eos_token)
        assert "Tells <|im_end|> the time." in shown(env, env.reset(seed=0)[0])


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 1}, "integer, minimum 1"),
        ({"type": ["string", "null"]}, "string or null"),
        ({"enum": ["a", 2, None]}, '"a" or 2 or null'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, "string or null, default null"),
        ({"type": "array", "items": {"type": "number"}, "maxItems": 3}, "array of number, maxItems 3"),
        (
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]},
            "object {a: integer, b?: any}",
        ),
        ({"$ref": "#/$defs/Tree"}, "object {value: integer, left?: Tree}"),
        ({"$ref": "https://example.org/schema"}, "schema"),
        ({}, "any"),
    ],
)
def test_arguments_are_described_in_a_few_words(schema: Any, words: str) -> None:
    tree = {"type": "object", "required": ["value"]}
    tree["properties"] = {"value": {"type": "integer"}, "left": {"$ref": "#/$defs/Tree"}}
    assert schema_words(schema, {"$defs": {"Tree": tree}}) == words


def test_a_description_names_each_tool_and_argument() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "description": "how\n many"}}, "required": []}
    tools = [TOOL, {"type": "function", "function": {"name": "now", "description": "", "parameters": schema}}]
    assert describe_tools(tools, plain_format(tools), "<result>{}</result>") == (
        "You can call tools. To call one, end your message with the call, written as JSON like this:\n\n"
        '<tool>{"name": "add", "arguments": {"a": ..., "b": ...}}</tool>\n\n'
        "The result follows as <result>...</result>.\n\nTools:\n"
        "- add: Adds two numbers.\n  - a (integer, required)\n  - b (integer, required)\n"
        "- now\n  - n (integer, optional): how many"
    )
