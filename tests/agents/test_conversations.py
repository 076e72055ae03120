"""Episodes of several turns through a server, against the same episodes in tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.commands.main import main
from agents.runs.judging import rejudge
from agents.runs.reading import RecordedRun
from rlvr_envs import ENVIRONMENTS, TokenVectorEnv, environment_class
from tests.agents.endpoint_server import running
from tests.agents.twins import by_server, endpoint_at, guesses, in_tokens, serves

pytest.importorskip("openai")

GAMES = ("GuessNumber", "Mastermind", "Wordle", "Hangman", "TwentyQuestions", "Blackjack", "TicTacToe", "ConnectFour")
PROBLEMS = 5


def world(name: str, **options: Any) -> TokenVectorEnv:
    return environment_class(name).make_vec(1, **{"split": "test", "prompt": "auto_chat", **options})


def questions_of(env: TokenVectorEnv, problems: int) -> list[str]:
    render: Any = env.streams.rules.render_prompt
    return [render.messages(env.streams.dataset[at])[-1].content for at in range(problems)]


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
