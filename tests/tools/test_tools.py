"""Tools: what the policy gets wrong it is told, what a tool gets wrong costs the episode, not the run."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import gymnasium
import pytest
from hypothesis import given, strategies as st

from rlvr_envs import Reply, ToolCall, Turn
from rlvr_envs.tools import (
    FunctionTool,
    Search,
    ToolInteraction,
    ToolUseError,
    from_function,
    get_tools,
    mcp_tools,
    tool_schema,
)
from rlvr_envs.tools.calculator import Calculator
from verifiers import InvalidArgumentError, Message, MissingDependencyError, Problem, ToolMessage, UnknownNameError

pytest.importorskip("jsonschema")

PROBLEM = Problem("p", "?", "!")


def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


def lookup(keys: list[str], how: Literal["any", "all"] = "any") -> dict[str, Any]:
    """Looks keys up."""
    return {"keys": keys, "how": how}


def turn(*calls: ToolCall, errors: tuple[str, ...] = ()) -> Turn:
    import numpy as np

    return Turn(np.zeros(1, dtype=np.int32), "", calls, errors)


def answers(tools: Sequence[Any], *turns: Turn) -> list[str]:
    reply = ToolInteraction(get_tools(tools))(turns, PROBLEM)
    assert reply is not None
    return [message.content for message in reply.messages]


def test_a_function_becomes_a_tool() -> None:
    assert tool_schema(from_function(add))["function"] == {
        "name": "add",
        "description": "Adds two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": False,
        },
    }
    schema = from_function(lookup).parameters["properties"]
    assert schema["keys"] == {"type": "array", "items": {"type": "string"}}
    assert schema["how"]["enum"] == ["any", "all"]


def test_calls_are_carried_out_in_order_with_their_ids_and_the_unreadable_answered() -> None:
    interaction = ToolInteraction(get_tools([add, lookup]))
    calls = (ToolCall("add", {"a": 2, "b": 3}, "id1"), ToolCall("add", {"a": 4}), ToolCall("lookup", {"keys": ["é"]}))
    reply = interaction([turn(*calls)], PROBLEM)
    assert reply == Reply(
        (
            ToolMessage("tool", "5", "add", "id1"),
            ToolMessage("tool", "5", "add"),
            ToolMessage("tool", '{"keys": ["é"], "how": "any"}', "lookup"),
        )
    )
    assert answers([add], turn(ToolCall("add", {"a": 1}), errors=("no JSON",))) == ["2", "Error: no JSON"]


def test_a_turn_without_calls_ends_the_episode_or_is_answered_otherwise() -> None:
    assert ToolInteraction(get_tools([add]))([turn()], PROBLEM) is None
    other = ToolInteraction(get_tools([add]), otherwise=lambda turns, problem: Reply(ends=True, reward=2.0))
    assert other([turn()], PROBLEM) == Reply(ends=True, reward=2.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (ToolCall("sub", {}), "Error: there is no tool 'sub'; there are 'add', 'lookup'"),
        (ToolCall("add", {}), "Error: the arguments of add do not fit its schema: 'a' is a required property"),
        (ToolCall("add", {"a": "2"}), "Error: the arguments of add do not fit its schema: at ['a']: '2' is not of type "
         "'integer'"),
        (ToolCall("add", {"a": 1, "c": 2}), "Error: the arguments of add do not fit its schema: Additional properties are not "
         "allowed ('c' was unexpected)"),
        (ToolCall("lookup", {"keys": ["a", 1]}), "Error: the arguments of lookup do not fit its schema: at ['keys'][1]: 1 is "
         "not of type 'string'"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_answered_with_what_is_wrong(call: ToolCall, said: str) -> None:
    assert answers([add, lookup], turn(call)) == [said]


@pytest.mark.parametrize("value", ["1e999", "NaN", "-Infinity", r'"\ud800"', r'{"\ud800": 1}', "[[1, [NaN]]]"])
def test_what_python_reads_as_json_and_others_do_not_is_refused(value: str) -> None:
    def echo(x: Any) -> str:
        raise AssertionError("called")

    call = ToolCall("echo", json.loads(f'{{"x": {value}}}'))
    said = "Error: the arguments of echo hold a number that is not finite, or half of a surrogate pair"
    assert answers([echo], turn(call)) == [said]


def refuses(n: int) -> str:
    raise ToolUseError(f"{n} is not there")


def spams(n: int) -> str:
    return "x" * n


@pytest.mark.parametrize(
    ("tool", "number", "said"),
    [
        (refuses, 3, "Error: 3 is not there"),
        (spams, 10_000_000, "x" * 4000 + " [cut: 9996000 of 10000000 characters]"),
    ],
)
def test_a_tool_may_refuse_a_call_in_words_and_a_long_answer_is_cut(tool: Any, number: int, said: str) -> None:
    assert answers([tool], turn(ToolCall(tool.__name__, {"n": number}))) == [said]


def breaks(n: int) -> str:
    raise ConnectionError("no server")


def bytes_only(n: int) -> bytes:
    return b"x"


def hangs(n: int) -> str:
    time.sleep(60)
    return ""


@pytest.mark.parametrize(
    ("tool", "error", "message"),
    [
        (breaks, ConnectionError, "no server"),
        (bytes_only, TypeError, "bytes"),
        (hangs, TimeoutError, r"the tool 'hangs' took more than 0\.05 s"),
    ],
)
def test_a_tool_that_breaks_or_hangs_raises_for_its_episode(tool: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        answers([from_function(tool, timeout_s=0.05)], turn(ToolCall(tool.__name__, {"n": 1})))


def test_a_tool_sees_its_own_earlier_calls_that_were_carried_out() -> None:
    class Remembers:
        name, description = "keep", ""
        parameters = from_function(add).parameters
        timeout_s, max_characters = 1.0, 100

        def __call__(self, arguments: Any, earlier: Sequence[Any]) -> str:
            return json.dumps([call["a"] for call in (*earlier, arguments)])

    first = turn(ToolCall("keep", {"a": 1}), ToolCall("add", {"a": 9}), ToolCall("keep", {"wrong": 1}))
    second = turn(ToolCall("keep", {"a": 2}), ToolCall("keep", {"a": 3}))
    assert answers([Remembers(), add], first, second) == ["[1, 2]", "[1, 2, 3]"]


def untyped(x) -> str:  # type: ignore[no-untyped-def] # what is refused
    return ""


def positional(x: int, /) -> str:
    return ""


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([untyped], "the parameter 'x' of the tool 'untyped' must have a type hint"),
        ([positional], "the parameter 'x' of the tool 'positional' must have a type hint and be named in calls"),
        ([add, add], r"each must have a name of its own; got \['add', 'add'\]"),
        ([3], "a tool must be one of calculator.*; got 3"),
        ([FunctionTool(add, "add", "", {"type": "integr"})], "the parameters of the tool 'add' are not a valid JSON"),
    ],
)
def test_what_is_no_tool_is_refused(tools: list[Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ToolInteraction(get_tools(tools))


@pytest.mark.parametrize(
    ("package", "make"), [("mcp", lambda: mcp_tools("http://127.0.0.1:1")), ("bm25s", lambda: Search(["a text"]))]
)
def test_what_a_tool_needs_is_named(package: str, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    extra = {"mcp": "mcp", "bm25s": "search"}[package]
    with pytest.raises(MissingDependencyError, match=re.escape(f"pip install 'rlvr-envs[{extra}]'")):
        make()


# The calculator


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 ** 10 - 1", "1023"),
        ("1/3", "1/3 = 0.333333333333"),
        ("-1/8", "-1/8 = -0.125"),
        ("7 // 2 + 7 % 2", "4"),
        ("1e-13", "1/10000000000000 = 0"),
    ],
)
def test_the_calculator_is_exact(expression: str, value: str) -> None:
    assert Calculator()({"expression": expression}, ()) == value


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("1/0", "division by zero"),
        ("9 ** 9 ** 9", "too large"),
        ("1e999999999", "too large"),
        ("1e-999999999", "too large"),
        ("2 ** 0.5", "the exponent 1/2 is no integer"),
        ("__import__('os')", "is no arithmetic expression"),
        ("(" * 400, "is no arithmetic expression"),
        ("1 +" * 400, "at most 500"),
    ],
)
def test_the_calculator_says_what_is_wrong(expression: str, said: str) -> None:
    with pytest.raises(ToolUseError, match=said):
        Calculator()({"expression": expression}, ())


@given(st.recursive(st.integers(0, 99).map(str), lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(
    lambda parts: f"({''.join(parts)})"), max_leaves=8))  # fmt: skip
def test_the_calculator_agrees_with_fractions(expression: str) -> None:
    try:
        expected = eval(re.sub(r"\d+", r"Fraction(\g<0>)", expression), {"Fraction": Fraction})
    except ZeroDivisionError:
        with pytest.raises(ToolUseError, match="division by zero"):
            Calculator()({"expression": expression}, ())
        return
    assert Fraction(Calculator()({"expression": expression}, ()).partition(" = ")[0]) == expected


# In an environment


def ask_once(turns: Sequence[Turn], problem: Problem) -> Reply | None:
    return Reply((Message("user", "sure?"),)) if len(turns) == 1 else None


both = [from_function(add), from_function(lookup)]


def test_tools_and_interactions_are_named_where_they_stand() -> None:
    assert [tool.name for tool in get_tools(f"{__name__}:both,calculator")] == ["add", "lookup", "calculator"]
    for unknown, said in ((f"{__name__}:no_such", "no_such"), ("calulator", "calculator")):
        with pytest.raises(UnknownNameError, match=said):
            get_tools(unknown)
    env: Any = gymnasium.make("rlvr/Addition-v0", interaction=f"{__name__}:ask_once").unwrapped
    env.reset(seed=0)
    *_, info = env.step(env.tokenizer.eos_token)
    assert info["inserted"] == len("sure?")


@pytest.mark.parametrize(
    ("env_id", "settings", "match"),
    [
        (
            "Addition",
            {"max_new_tokens": 13},
            r"^max_new_tokens=13 holds no call .* '<tool></tool>', alone takes 13 tokens",
        ),
        (
            "Addition",
            {"tools": "calculator,python", "max_new_tokens": 30},
            r"""^max_new_tokens=30 holds no call .* '<tool>\{"name":"python"\}</tool>', alone takes 30 tokens""",
        ),
        (
            "Addition",
            {"max_turns": 1},
            r"^max_turns must be at least 2 with tools, one turn to call and one to answer; got 1",
        ),
        ("Addition", {"restrict_actions": True}, r"^no tool can be called where the legal tokens can't spell '<tool>'"),
        ("CliffWalk", {"tokenizer": "byte"}, r"^a turn has 1 tokens here, and the shortest call"),
        ("Addition", {"tools": []}, r"^tools names no tool, got \[\]: leave it out, or give None, for no tools"),
    ],
)
def test_tools_that_can_not_be_called_are_refused(env_id: str, settings: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        gymnasium.make(f"rlvr/{env_id}-v0", **{"tools": "calculator", **settings})
