"""Episodes of several turns through a server, against the same episodes in tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agents import EvaluationRecord, evaluate
from agents.commands.main import main
from agents.runs.judging import rejudge
from agents.runs.reading import RecordedRun
from rlvr_envs import ENVIRONMENTS, Reply as EnvReply, Tokenizer, TokenVectorEnv, Turn, environment_class
from rlvr_envs.dialogue import PlainDialogue, ToolSchema
from tests.agents.endpoint_server import Body, Reply, Server, chat, running
from tests.agents.twins import (
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
from verifiers import Message, Problem

pytest.importorskip("openai")

GAMES = ("GuessNumber", "Mastermind", "Wordle", "Hangman", "TwentyQuestions", "Blackjack", "TicTacToe", "ConnectFour")
PROBLEMS = 5


def world(name: str, **options: Any) -> TokenVectorEnv:
    return environment_class(name).make_vec(1, **{"split": "test", "prompt": "auto_chat", **options})


def questions_of(env: TokenVectorEnv, problems: int) -> list[str]:
    render: Any = env.streams.rules.render_prompt
    return [render.asked(env.streams.dataset[at]).prompt for at in range(problems)]


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
    env = world(name)
    questions = questions_of(env, PROBLEMS)
    with running(serves(guesses, questions)) as server:
        by_messages = by_server(env, endpoint_at(server.url, route=route), PROBLEMS)
    assert by_messages == [in_tokens(env, problem, guesses, questions) for problem in range(PROBLEMS)]
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


HOW = {
    "protocol": {},
    "text": {"tools": "text"},
    "completions": {"route": "completions"},
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("script", [calculates, computes])
def test_tools_are_the_same_by_messages_and_by_tokens(script: Script, how: str) -> None:
    options = {"tools": "calculator" if script is calculates else "python", "max_new_tokens": 2000}
    options |= {"max_inserted_tokens": 5000}
    env = world("Addition", **options)
    problems = 12 if script is calculates else 3
    questions = questions_of(env, problems)
    twin = world("Addition", dialogue=SeveralCalls, **options) if how == "protocol" else env
    said = several(script) if how == "protocol" else script
    with running(serves(said, questions)) as server:
        by_messages = by_server(env, endpoint_at(server.url, **HOW[how]), problems)
        tools = [body.get("tools") for body in server.bodies]
    assert by_messages == [in_tokens(twin, problem, said, questions) for problem in range(problems)]
    assert "correct" in {one.outcome for one in by_messages}
    assert max(len(one.dialogue) for one in by_messages) > 2
    assert tools == [list(env.streams.rules.tools) if how == "protocol" else None] * len(tools)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("limit", ["summarize_after", "drop_results_after"])
def test_long_dialogues_are_kept_short_alike(limit: str, how: str) -> None:
    options = {"tools": "python", "max_new_tokens": 2000, "max_inserted_tokens": 5000, limit: 750}
    env = world("Addition", **options)
    twin = world("Addition", describe_tools="none", **options) if how == "protocol" else env
    questions = questions_of(env, 3)

    def say(question: str, since: str) -> str:
        if since.endswith("nothingelse"):
            return f"so far {len(since)}"
        if "sofar" in since or "removedtosavespace" in since:
            return f"\\boxed{{{sum(map(int, re.findall(r'[0-9]+', question)))}}}"
        return call("python", code="print('y' * 350)")

    with running(serves(say, questions)) as server:
        by_messages = by_server(env, endpoint_at(server.url, **HOW[how]), 3)
        views = list(map(view_of, server.bodies))
    assert by_messages == [in_tokens(twin, problem, say, questions) for problem in range(3)]
    assert any(
        ("Summary of the work so far:" if limit == "summarize_after" else "[removed to save space]") in view
        for view in views
    )


def test_the_command_plays_and_records_a_game(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env, folder = world("GuessNumber"), tmp_path / "a"
    questions = questions_of(env, PROBLEMS)
    with running(serves(guesses, questions)) as server:
        words = f"eval --env GuessNumber --engine openai --base-url {server.url} --model m --problems {PROBLEMS} --out"
        with pytest.raises(SystemExit) as ended:
            main([*words.split(), str(folder)])
    assert ended.value.code == 0
    rows = RecordedRun.read(folder).rows
    for problem, row in enumerate(rows):
        twin = in_tokens(env, problem, guesses, questions)
        said = tuple((message["role"], message["content"]) for message in row["dialogue"])
        assert (said, row["score"], row["outcome"], row["truncated"]) == (
            twin.dialogue,
            twin.score,
            twin.outcome,
            twin.truncated,
        )
        turns = [content for role, content in said if role == "assistant"]
        assert row["tokens"] == sum(len(turn) + 1 for turn in turns)
    flips, _ = rejudge(RecordedRun.read(folder), env.streams.dataset, env.streams.rules.verifier)
    assert not flips
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["show", str(folder), "0"])
    shown = capsys.readouterr().out
    assert all(message["content"].strip() in shown for message in rows[0]["dialogue"])


# What goes wrong


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
    env = world("Addition", interaction=goes_on)
    questions = questions_of(env, 2)

    def say(question: str, since: str) -> str:
        return f"turn {len(since)}"

    policy: dict[str, Any] = {"timeout_s": 0.3 if fault == "hang" else 30.0}

    def play(server: Server, folder: str, **how: Any) -> tuple[Any, tuple[Any, ...]]:
        with EvaluationRecord(tmp_path / folder, **how) as record:
            result = evaluate(env, endpoint_at(server.url, **policy), problems=2, record=record)
        return result, RecordedRun.read(tmp_path / folder).rows

    with running(serves(say, questions)) as server:
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
