"""Episodes of several turns through a server, against the same episodes in tokens."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agents import EvaluationRecord, evaluate
from agents.runs.inspect_log import write_inspect_log
from agents.runs.judging import rejudge
from agents.runs.reading import RecordedRun
from rlvr_envs import ENVIRONMENTS, Reply as EnvReply, Tokenizer, TokenVectorEnv, Turn, environment_class
from rlvr_envs.dialogue import PlainDialogue, ToolSchema
from tests.agents.endpoint_server import Body, Reply, Server, chat, running
from tests.agents.twins import (
    Played,
    Script,
    by_server,
    calculates,
    call,
    computes,
    endpoint_at,
    guesses,
    in_tokens,
    serves,
    view_of,
)
from tests.commands import Command
from verifiers import EngineError, Message, Problem

pytest.importorskip("openai")

GAMES = ("GuessNumber", "Mastermind", "Wordle", "Hangman", "TwentyQuestions", "Blackjack", "TicTacToe", "ConnectFour")
PROBLEMS = 5


def world(name: str, **options: Any) -> TokenVectorEnv:
    return environment_class(name).make_vec(1, **{"split": "test", "prompt": "auto_chat", **options})


def questions_of(env: TokenVectorEnv, problems: int) -> list[str]:
    render: Any = env.streams.rules.render_prompt
    return [render.asked(env.streams.dataset[at]).prompt for at in range(problems)]


def played_alike(
    env: TokenVectorEnv, script: Script, problems: int = PROBLEMS, twin: TokenVectorEnv | None = None, **how: Any
) -> tuple[list[Played], list[Body]]:
    """What a script leads to, the same by messages as in tokens, and the requests."""
    questions = questions_of(env, problems)
    with running(serves(script, questions)) as server:
        by_messages = by_server(env, endpoint_at(server.url, **how), problems)
    assert by_messages == [in_tokens(twin or env, problem, script, questions) for problem in range(problems)]
    return by_messages, server.bodies


def test_every_game_has_a_twin() -> None:
    """Where legal tokens are limited there are no messages to play by; games of other packages need these."""
    tasks = {name: environment_class(name).task for name in ENVIRONMENTS}
    others = {"TextArena", "GEM", "GridWorld", "Maze", "Bandit", "ContextualBandit"}
    others |= {"CliffWalk", "FrozenLake", "BlackjackHand"}
    with_rules = {name.split("/")[1].removesuffix("-v0") for name, task in tasks.items() if task.rules is not None}
    assert with_rules == others | {*GAMES}


@pytest.mark.parametrize("route", ["chat", "completions"])
@pytest.mark.parametrize("name", GAMES)
def test_a_game_is_the_same_by_messages_and_by_tokens(name: str, route: str) -> None:
    by_messages, _ = played_alike(world(name), guesses, route=route)
    assert max(len(one.dialogue) for one in by_messages) > 2


class SeveralCalls(PlainDialogue):
    """Does not end a turn with its first call."""

    def __init__(self, tokenizer: Tokenizer, tools: Sequence[ToolSchema]) -> None:
        super().__init__(tokenizer, tools, describe=True)
        self.stop = ()


def several(script: Script) -> Script:
    """Calls twice where the script calls once."""

    def say(question: str, since: str) -> str:
        text, more = script(question, since), script(question, since + "again")
        return text + more if text.endswith("</tool>") and more.startswith("<tool>") else text

    return say


HOW: dict[str, dict[str, Any]] = {"protocol": {}, "text": {"tools": "text"}, "completions": {"route": "completions"}}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("script", [calculates, computes])
def test_tools_are_the_same_by_messages_and_by_tokens(script: Script, how: str) -> None:
    options = {"tools": "calculator" if script is calculates else "python", "max_new_tokens": 2000}
    options |= {"max_inserted_tokens": 5000}
    env = world("Addition", **options)
    twin = world("Addition", dialogue=SeveralCalls, **options) if how == "protocol" else env
    said = several(script) if how == "protocol" else script
    by_messages, bodies = played_alike(env, said, 12 if script is calculates else 3, twin, **HOW[how])
    tools = [body.get("tools") for body in bodies if body["max_tokens"] > 1]
    assert "correct" in {one.outcome for one in by_messages}
    assert max(len(one.dialogue) for one in by_messages) > 2
    assert tools == [list(env.streams.rules.tools) if how == "protocol" else None] * len(tools)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("limit", ["summarize_after", "drop_results_after"])
def test_long_dialogues_are_kept_short_alike(limit: str, how: str) -> None:
    options = {"tools": "python", "max_new_tokens": 2000, "max_inserted_tokens": 5000, limit: 750}
    env = world("Addition", **options)
    twin = world("Addition", describe_tools="none", **options) if how == "protocol" else env

    def say(question: str, since: str) -> str:
        if since.endswith("nothingelse"):
            return f"so far {len(since)}"
        if "sofar" in since or "removedtosavespace" in since:
            return f"\\boxed{{{sum(map(int, re.findall(r'[0-9]+', question)))}}}"
        return call("python", code="print('y' * 350)")

    _, bodies = played_alike(env, say, 3, twin, **HOW[how])
    mark = "Summary of the work so far:" if limit == "summarize_after" else "[removed to save space]"
    assert any(mark in view_of(body) for body in bodies)


@pytest.mark.parametrize("limits", [{"max_new_tokens": 11}, {"max_turns": 2}, {"max_inserted_tokens": 20}])
def test_limits_end_a_game_alike(limits: dict[str, Any]) -> None:
    def say(question: str, since: str) -> str:
        return "between " * (len(since) % 2) + guesses(question, since)

    by_messages, _ = played_alike(world("GuessNumber", **limits), say)
    assert any(one.truncated for one in by_messages)


def test_the_command_plays_and_records_a_game(tmp_path: Path, rlvr: Command) -> None:
    env, folder = world("GuessNumber"), tmp_path / "a"
    questions = questions_of(env, PROBLEMS)
    with running(serves(guesses, questions)) as server:
        words = f"eval --env GuessNumber --engine openai --base-url {server.url} --model m --problems {PROBLEMS}"
        words += " --price 2 8 --out"
        code, _, _ = rlvr(*words.split(), folder)
    assert code == 0
    rows = RecordedRun.read(folder).rows
    for problem, row in enumerate(rows):
        twin = in_tokens(env, problem, guesses, questions)
        said = tuple((message["role"], message["content"]) for message in row["dialogue"])
        played = (said, row["score"], row["outcome"], row["truncated"])
        assert played == (twin.dialogue, twin.score, twin.outcome, twin.truncated)
        turns = [content for role, content in said if role == "assistant"]
        assert row["tokens"] == sum(len(turn) + 1 for turn in turns)
        assert row["cost"] == (2 * row["prompt_tokens"] + 8 * row["tokens"]) / 1e6 > 0
    flips, _ = rejudge(RecordedRun.read(folder), env.streams.dataset, env.streams.rules.verifier)
    assert not flips
    _, shown, _ = rlvr("show", folder, "0")
    assert all(message["content"].strip() in shown for message in rows[0]["dialogue"])
    lines = [{name: row[name] for name in ("problem_id", "completion", "dialogue")} for row in rows]
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rlvr("grade", tmp_path / "lines.jsonl", "--env", "GuessNumber", "--out", tmp_path / "graded")
    graded = RecordedRun.read(tmp_path / "graded").rows
    assert [(row["outcome"], row["detail"]) for row in graded] == [(row["outcome"], row["detail"]) for row in rows]


def played(rlvr: Command, server: Server, *words: str) -> tuple[int, str]:
    """The exit code and output of `rlvr play` with a server's model."""
    code, output, errors = rlvr("play", "--engine", "openai", "--base-url", server.url, "--model", "m", *words)
    return code, output + errors


def test_a_servers_model_plays_in_the_terminal(rlvr: Command) -> None:
    env = world("GuessNumber")
    questions = questions_of(env, PROBLEMS)
    twin = in_tokens(env, 1, guesses, questions)
    with running(serves(guesses, questions)) as server:
        code, output = played(rlvr, server, "--env", "GuessNumber", "--problem", "1")
        assert code == 0
        assert all(f"{role}: {content}" in output for role, content in twin.dialogue)
        assert all(message["content"] in output for message in server.bodies[0]["messages"])
        assert output.count("── turn ") == sum(role == "assistant" for role, _ in twin.dialogue) > 1
        assert f"{twin.outcome}, score {twin.score:g}" in output
        server.script = lambda body, attempt: (400, b"too long", {}) if turns_in(body) else "as usual"
        code, output = played(rlvr, server, "--env", "GuessNumber", "--problem", "1", "--engine-args", "retries=0")
        assert (code, "── turn 1" in output, "── turn 2" in output) == (1, True, False)
        assert "no score" in output
        assert "status 400: too long" in output
        limited = ("--env", "Addition", "--env-args", "restrict_actions=True", "prompt=chat")
        code, output = played(rlvr, server, *limited)
        assert (code, "legal_actions" in output) == (2, True)


def turns_in(body: Body) -> int:
    return sum(message["role"] == "assistant" for message in body["messages"])


def goes_on(turns: Sequence[Turn], problem: Problem) -> EnvReply | None:
    """Three turns, of which the first two earn."""
    return EnvReply((Message("user", "go on"),), reward=0.25) if len(turns) < 3 else None


FAULTS: dict[str, Reply | str] = {
    "500": (500, b"out of memory", {}),
    "busy": (429, b"later", {"Retry-After": "0.01"}),
    "refused": (400, b"the context is too long", {}),
    "half a JSON": chat("5")[:40],
    "cut off": (200, chat("5"), {"Content-Length": "9999"}),
    "closed": None,
    "no choices": b'{"object": "chat.completion"}',
    "withheld": chat("", "content_filter"),
    "no list of calls": chat("", tool_calls="5"),
    "half a call": chat("", tool_calls=[{"id": "a", "type": "function"}]),
    "hang": "hang",
}


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("fault", FAULTS)
def test_a_turn_that_fails_costs_no_score_and_no_turn_before_it(fault: str, turn: int, tmp_path: Path) -> None:
    """Failing once changes nothing; failing for good leaves an errored sample with the turns so far, which can be resumed."""
    env, timeout_s = world("Addition", interaction=goes_on), 0.3 if fault == "hang" else 30.0
    questions = questions_of(env, 2)

    def play(server: Server, folder: str, **how: Any) -> tuple[Any, tuple[Any, ...]]:
        with EvaluationRecord(tmp_path / folder, **how) as record:
            result = evaluate(env, endpoint_at(server.url, timeout_s=timeout_s), problems=2, record=record)
        return result, RecordedRun.read(tmp_path / folder).rows

    with running(serves(lambda question, since: f"turn {len(since)}", questions)) as server:
        whole, rows = play(server, "whole")
        server.script = lambda body, attempt: FAULTS[fault] if (turns_in(body), attempt) == (turn, 1) else "as usual"
        server.attempts.clear()
        if fault != "refused":
            assert play(server, "once") == (whole, rows)

        def fails(body: Body, _: int) -> Reply | str:
            is_first = any(questions[0] in message["content"] for message in body["messages"])
            return FAULTS[fault] if is_first and turns_in(body) == turn else "as usual"

        server.script = fails
        incomplete, torn = play(server, "torn")
        assert (incomplete.failed_requests, incomplete.score) == (1, 0.5)
        assert torn[1] == rows[1]
        assert (torn[0]["score"], torn[0]["outcome"], torn[0]["completion"]) == (None, None, "")
        assert (torn[0]["dialogue"] or []) == rows[0]["dialogue"][: 2 * turn]
        server.script = lambda *_: "as usual"
        mended, rows_again = play(server, "torn", resume=True)
    assert rows_again == rows
    assert mended.rows == whole.rows


RIGHT = "right"
"""Stands for the right answer in what a server says."""


@dataclass(frozen=True)
class Case:
    """What a server says first, and what becomes of it; after that it says the right answer."""

    first: dict[str, Any]
    score: float | None = 0.0
    truncated: bool = False
    turns: int = 1
    reply: str = ""
    """Part of what the first turn is answered."""
    echo: Any = None
    """The calls of the first turn as the server sees them with the second request."""


def function_call(arguments: str, name: str = "calculator", id: str = "a") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def called(*calls: dict[str, Any], reply: str, echo: Any = None) -> Case:
    """The model calls tools first."""
    return Case({"text": None, "tool_calls": [*calls]}, 1.0, turns=2, reply=reply, echo=echo or [*calls])


ONE, HALF = '{"expression": "1"}', '{"expr'
UNREADABLE = '{"unreadable": "{\\"expr"}'
CASES = {
    "nothing": Case({"text": ""}),
    "a refusal": Case({"text": None, "refusal": "I won't."}),
    "out of tokens": Case({"text": "so", "finish": "length"}, truncated=True),
    "half a call": Case({"text": "", "finish": "length", "tool_calls": [function_call(HALF)]}, truncated=True),
    "right, and thoughts of another answer": Case({"text": RIGHT, "reasoning_content": "\\boxed{0}"}, score=1.0),
    "wrong, and thoughts of the right answer": Case({"text": "\\boxed{0}", "reasoning_content": RIGHT}),
    "a call": called(function_call(ONE), reply="1"),
    "calls with one id": called(
        *[function_call(ONE)] * 2, reply="1", echo=[function_call(ONE), function_call(ONE, id="call_0_1")]
    ),
    "an unknown tool": called(function_call(ONE, "calc"), reply="Error: there is no tool 'calc'"),
    "no JSON": called(
        function_call(HALF), reply="Error: the tool call is not valid JSON", echo=[function_call(UNREADABLE)]
    ),
    "no arguments": called(function_call(""), reply="'expression' is a required property", echo=[function_call("{}")]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_models_do_is_what_it_is_in_tokens(case: Case, tmp_path: Path, rlvr: Command) -> None:
    env = world("Addition", tools="calculator")
    problem = env.streams.dataset[0]
    right = f"\\boxed{{{problem.reference}}}"

    def said(body: Body, _: str) -> bytes:
        usage = {"prompt_tokens": 7 if "tools" in body else 2, "completion_tokens": 5}
        message = case.first if turns_in(body) == 0 else {"text": RIGHT}
        given = {name: right if value == RIGHT else value for name, value in message.items()}
        return chat(given.pop("text"), given.pop("finish", "stop"), usage=usage, **given)

    with running(said) as server, EvaluationRecord(tmp_path / "a") as record:
        result = evaluate(env, endpoint_at(server.url, price=(2.0, 8.0)), problems=1, record=record)
    (row,) = RecordedRun.read(tmp_path / "a").rows
    conversation = [body for body in server.bodies if "tools" in body]
    assert (row["score"], row["truncated"], len(conversation)) == (case.score, case.truncated, case.turns)
    asked = not case.first.get("tool_calls")  # it asks once whether tools lengthen a prompt
    assert len(server.bodies) == case.turns + asked
    assert (row["prompt_tokens"], row["tokens"]) == (7 * case.turns, 5 * case.turns)
    assert row["cost"] == result.cost == pytest.approx(case.turns * (7 * 2.0 + 5 * 8.0) / 1e6)
    assert result.summary()["prompt_tokens"] == 7 * case.turns
    thoughts = case.first.get("reasoning_content", "").replace(RIGHT, right)
    if thoughts:
        assert [message["reasoning"] for message in row["dialogue"]] == [thoughts]
    if case.turns == 2:
        first, *results, last = row["dialogue"]
        assert [call["name"] for call in first["calls"]] == [call["function"]["name"] for call in case.echo]
        assert all(case.reply in message["content"] for message in results)
        _, turn, *told = conversation[1]["messages"]
        assert turn["tool_calls"] == case.echo
        assert [message["tool_call_id"] for message in told] == [call["id"] for call in case.echo]
        assert [message["content"] for message in told] == [message["content"] for message in results]
        assert last["content"] == right
    if row["dialogue"] is not None:  # both ways to look at it show what is beside the text
        _, shown, _ = rlvr("show", tmp_path / "a", "0")
        write_inspect_log(RecordedRun.read(tmp_path / "a"), tmp_path / "a.eval")
        with zipfile.ZipFile(tmp_path / "a.eval") as log:
            (name,) = [name for name in log.namelist() if name.startswith("samples/")]
            (turn, *_) = [said for said in json.loads(log.read(name))["messages"] if said["role"] == "assistant"]
        calls, functions = turn.get("tool_calls", []), [call["function"] for call in case.first.get("tool_calls", ())]
        assert all(f"calls {function['name']}: {function['arguments']}" in shown for function in functions)
        assert [call["function"] for call in calls] == [function["name"] for function in functions]
        assert ("parse_error" in json.dumps(calls)) == ("not valid JSON" in case.reply or case.truncated)
        if thoughts:
            assert f"assistant, thinking: {thoughts}" in shown
            assert turn["content"][0] == {"type": "reasoning", "reasoning": thoughts}


def only_row(server: Server, env: TokenVectorEnv) -> Any:
    """What is recorded of the first problem."""
    (row,) = evaluate(env, endpoint_at(server.url), problems=1).rows
    return row


def test_a_server_that_does_not_show_the_tools_to_the_model_is_refused() -> None:
    env = world("Addition", tools="calculator")
    with running(lambda *_: chat("5", usage={"prompt_tokens": 7, "completion_tokens": 5})) as server:
        with pytest.raises(EngineError, match=r"7 tokens with and 7 without .* tools=text in --engine-args"):
            only_row(server, env)
        server.script = lambda body, attempt: "as usual" if "tools" in body else (400, b"tool_choice without tools", {})
        assert only_row(server, env).outcome == "incorrect"


def test_turns_are_budgeted_by_the_servers_counts(tmp_path: Path) -> None:
    """A turn may have what others have left. A server that counts nothing is refused, and one that forgets is asked again."""
    env = world("Addition", interaction=goes_on, max_new_tokens=20)

    def said(body: Body, _: str) -> bytes:
        return chat("x", usage={"prompt_tokens": 9, "completion_tokens": 8})

    with running(said) as server:
        row = only_row(server, env)
        assert [body["max_tokens"] for body in server.bodies] == [20, 12, 4]
        assert (row.tokens, row.truncated) == (24, False)  # a server may overdo it in the turn that ends the episode
    env = world("Addition", interaction=goes_on, max_new_tokens=16)
    with running(said) as server:
        row = only_row(server, env)
        assert (len(server.bodies), row.truncated, row.score) == (2, True, 0.5)
    full = world("Addition", interaction=goes_on, max_context_tokens=4000)
    with running(lambda body, _: chat("x", usage={"prompt_tokens": 4000, "completion_tokens": 1})) as server:
        row = only_row(server, full)
        assert (len(server.bodies), row.truncated, row.score) == (1, True, 0.0)
    with running(lambda *_: chat("x", usage={"prompt_tokens": 3})) as server:
        with pytest.raises(EngineError, match=r"counts no tokens .* use a server that reports usage"):
            only_row(server, env)
        server.script = lambda body, attempt: "as usual" if turns_in(body) else said(body, "")
        row = only_row(server, env)
        assert row.unanswered
        assert "counts no tokens" in str(row.error)


def breaks(turns: Sequence[Turn], problem: Problem) -> EnvReply:
    """At the second turn."""
    if len(turns) == 2:
        raise OSError("no such host")
    return EnvReply((Message("user", "go on"),))


def test_an_interaction_that_breaks_is_an_error_of_the_verifier() -> None:
    with running(lambda *_: chat("x", usage={"prompt_tokens": 3, "completion_tokens": 1})) as server:
        row = only_row(server, world("Addition", interaction=breaks))
    assert (row.score, row.outcome, row.truncated) == (None, "verifier_error", True)
    assert "no such host" in str(row.error)


def test_an_end_condition_ends_a_turn_where_it_holds() -> None:
    env = world("Addition", end_condition=lambda tokens, prompt_length, problem: ord("b") in tokens[prompt_length:])
    questions = questions_of(env, 3)
    with running(serves(lambda question, _: f"{len(question)}ab and more", questions)) as server:
        by_messages = by_server(env, endpoint_at(server.url), 3)
    assert [one.dialogue[-1][1] for one in by_messages] == [f"{len(question)}ab" for question in questions]
    assert not any(one.truncated for one in by_messages)
