"""One episode in the terminal: what a person may type, what a model shows, and that nothing steers the terminal."""

from __future__ import annotations

import io
import math
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import PolicyConfig, evaluate, load_model, load_policy, save_model, tiny_model
from agents.commands.common import make_vec
from agents.commands.play import Play
from agents.commands.playing.person import TextPlayer, TokenPlayer, legal_tokens, token_label
from agents.console.terminal import TerminalConsole
from agents.rollouts.played_episode import play_episode
from rlvr_envs import ByteTokenizer, CharTokenizer, TokenEnv, environment_class
from tests import tiny_models
from tests.commands import Command
from tests.envs.helpers import EOS, says, streams
from verifiers import DataError, InvalidArgumentError

SHORT = ("max_new_tokens=4",)


def typed(monkeypatch: pytest.MonkeyPatch, text: str, env: str = "Sort", **options: Any) -> str:
    """What is printed while a text is standard input."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    output = io.StringIO()
    assert Play(env, **options).run(TerminalConsole(file=output)) == 0
    return output.getvalue()


def gold(env: str, index: int, **options: Any) -> str:
    problem = environment_class(env)(split="test", **options).streams.dataset[index]
    return str(problem.metadata["gold_completion"])


# A person


def failing(completion: str, problem: object) -> float:
    raise RuntimeError("no judge")


def test_a_completion_is_the_text_up_to_the_end_of_input(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = gold("Sort", 3)
    said = typed(monkeypatch, f"{answer}\n", problem=3, env_args=("verification=deferred",))
    assert "at most " in said
    assert re.search(rf"── completion, {len(answer) + 1} tokens ──\n{re.escape(answer)}\n", said)
    assert "correct, score 1\n" in said
    wrong = typed(monkeypatch, "7\n\n7\n", problem=3)
    assert "── completion, 5 tokens ──\n7\n\n7\n" in wrong
    assert "incorrect, score 0\n" in wrong
    assert f"reference: {answer}" in wrong.replace('"', "")
    cut = typed(monkeypatch, "123456789\n", env_args=SHORT, verifier=f"{__name__}:failing")
    assert "── completion, truncated after 4 tokens ──\n1234\n" in cut
    assert "verifier_error, no score\n" in cut
    assert "error:     RuntimeError: no judge" in cut


@pytest.mark.parametrize(
    ("content", "message"), [(b"x\n", "'x' of 'x' is not in the"), (b"\xff\n", "must be UTF-8 text")]
)
def test_input_without_text_or_tokens_is_an_error(
    content: bytes, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
    with pytest.raises((DataError, InvalidArgumentError), match=message):
        Play("Sort", env_args=("tokenizer=char",)).run(TerminalConsole(file=io.StringIO()))


def test_what_was_typed_before_an_answer_is_not_played_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("pulls=3", "arms=3")
    assert "not played, since they were typed before the environment's answer: 'b' 'c'\n" in typed(
        monkeypatch, "abc\n", "Bandit", env_args=options
    )
    said = typed(monkeypatch, "a\nb\nc\n", "Bandit", env_args=options)
    assert "not played" not in said
    assert "── last turn, 3 tokens in 3 turns ──\nc\n" in said


def test_an_empty_line_is_an_empty_completion_and_no_input_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no_answer, score 0\n" in typed(monkeypatch, "\n")
    assert typed(monkeypatch, "").endswith("you left after 0 tokens, before the end: there is no verdict\n")


def test_tokens_are_typed_as_text_by_number_or_as_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "12\n#51\n#257\n#27\n\nnever read\n"
    said = typed(monkeypatch, lines, tokens=True)
    assert "'1' '2'\n'3'\n#257 is outside the vocabulary of 257 tokens\n'\\x1b'\n" in said
    assert "── completion, 5 tokens ──\n123\\x1b\n" in said
    assert "never read" not in said
    assert typed(monkeypatch, "12\n", tokens=True).endswith(
        "you left after 2 tokens, before the end: there is no verdict\n"
    )


def test_in_a_world_the_legal_moves_and_the_map_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    path = gold("GridWorld", 0)
    said = typed(monkeypatch, "0?\n" + "\n".join(path) + "\n", "GridWorld", problem=0)
    assert "legal: 'L' 'D' 'R' 'U'\n" in said
    assert "'0' '?'" not in said  # the alphabet has no question mark
    assert "is not in the tokenizer's alphabet" in said
    maps = re.findall(r"(?:\+(?:.{3}\+){4}\n(?:\|.*\|\n)?){5}", said)
    assert len(maps) == 1 + len(path)
    starts = [np.argwhere(np.array([list(line) for line in drawing.splitlines()]) == "S")[0] for drawing in maps]
    offsets = {"L": (0, -4), "D": (2, 0), "R": (0, 4), "U": (-2, 0)}
    for move, before, after in zip(path, starts[1:], starts[2:], strict=False):
        assert tuple(after - before) == offsets[move]
    assert f"correct, score {1 - 0.01 * len(path):g}\n" in said
    said = typed(monkeypatch, f"0{path}\n\n{path}\n", "GridWorld", problem=0)
    assert "'0' is not legal here\n" in said  # and the rest of its line is not read
    assert "<end> is not legal here\n" in said
    assert f"── completion, {len(path)} token{'s' * (len(path) != 1)} ──\n{path}\n" in said


@pytest.mark.parametrize("player", [TextPlayer, TokenPlayer])
def test_the_environment_answers_between_turns(player: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was typed beyond a turn's end is not the next turn's."""
    env = TokenEnv(
        streams(
            interaction=lambda turns, problem: says(f"<{turns[0].text}>") if len(turns) == 1 else None,
            max_inserted_tokens=8,
            max_new_tokens=20,
            stop=["."],
        )
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("x.yy\nab.\n"))
    console, inserted = TerminalConsole(file=io.StringIO()), list[str]()
    playing = player(env, console)
    observation, info = env.reset(seed=0, options={"problem": 0})
    if player is TextPlayer:  # a terminal gives one text after the other, a pipe ends with the first
        texts = iter(["x.yy", "ab."])
        monkeypatch.setattr(playing, "_read", lambda: next(texts))
    played = play_episode(env, playing, observation, info, inserted.append)
    assert inserted == ["<x>"]
    assert (played.completion, played.tokens, played.left) == ("ab", 5, False)
    assert played.verdict is not None
    assert played.score == played.verdict.score == 1.0


PROGRAM = """
import sys
from rlvr_envs.console import main
try:
    main()
finally:
    print("torch" in sys.modules)
"""


@pytest.mark.parametrize("terminal", [False, True])
def test_a_person_needs_no_torch_and_may_be_a_pipe_or_a_terminal(terminal: bool) -> None:
    command = [sys.executable, "-c", PROGRAM, "play", "--env", "Sort", "--problem", "2"]
    text, (ours, theirs), pipe = f"{gold('Sort', 2)}\n", pty.openpty(), subprocess.PIPE
    with subprocess.Popen(command, stdin=theirs if terminal else pipe, stdout=pipe, stderr=pipe, text=True) as process:
        if terminal:
            os.write(ours, f"{text}\x04".encode())
        output, errors = process.communicate(None if terminal else text, timeout=600)
    os.close(ours)
    os.close(theirs)
    assert ("then Ctrl-D" in output) == terminal
    assert "correct, score 1\n" in output
    assert output.endswith("False\n")
    assert errors == ""


# A model


def small_model(vocab_size: int) -> Any:
    made = tiny_model(vocab_size, layers=1, hidden_size=16, heads=2, intermediate_size=32)
    with torch.no_grad():
        made.get_output_embeddings().weight.mul_(40)  # so that probabilities differ
    return made


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    tokenizer = ByteTokenizer()
    save_model(folder, small_model(tokenizer.vocab_size), tokenizer)
    return str(folder)


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("chat")
    tokenizer = tiny_models.byte_level_tokenizer("<|im_start|>", "<|im_end|>")
    tokenizer.chat_template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    save_model(folder, small_model(len(tokenizer)), None)
    tokenizer.save_pretrained(folder)
    return str(folder)


def shown(model: str, **options: Any) -> str:
    output = io.StringIO()
    assert Play("Sort", model=model, **options).run(TerminalConsole(file=output)) == 0
    return output.getvalue()


ROW = re.compile(r"^ +(\d+)  (\S+|' ') +(\d\.\d{3})   (.*)$", re.MULTILINE)


def test_probabilities_are_those_of_the_models_logits(model: str) -> None:
    said = shown(model, problem=1, top=3, temperature=0.5, env_args=SHORT)
    rows = ROW.findall(said)
    assert [int(number) for number, *_ in rows] == list(range(len(rows)))
    env = environment_class("Sort")(split="test")
    observation, _ = env.reset(options={"problem": 1})
    labels = {token_label(env.tokenizer, token): token for token in range(257)}
    context = observation["tokens"][: observation["length"][0]].tolist()
    for _, label, share, others in rows:
        logits = load_model(model)(torch.tensor([context])).logits[0, -1].double()
        expected = torch.softmax(logits / 0.5, dim=-1)
        best = expected.topk(3)
        pairs = zip(*best, strict=True)
        assert others == ", ".join(f"{token_label(env.tokenizer, int(token))} {value:.3f}" for value, token in pairs)
        assert share == f"{expected[labels[label]]:.3f}"
        context.append(labels[label])


@pytest.mark.parametrize("kind", ["model", "chat_model"])
def test_a_recorded_sample_is_played_again_by_its_seed(kind: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(kind)
    policy, tokenizer = load_policy(model, PolicyConfig(temperature=1.0))
    vector = make_vec("Sort", 4, {"split": "test", "tokenizer": tokenizer, "max_new_tokens": 6})
    result = evaluate(vector, policy, problems=3, samples=2, seed=5)
    played = {}
    for row, trajectory in zip(result.rows, result.trajectories, strict=True):
        said = shown(model, problem=row.problem, seed=row.seed, top=1, env_args=("max_new_tokens=6",))
        own = trajectory.tokens[trajectory.policy_mask]
        labels = [label for _, label, *_ in ROW.findall(said)]
        assert labels == [token_label(tokenizer, int(token)) for token in own]
        played[row.seed] = labels
    assert len(played) == 6


def test_illegal_tokens_are_no_alternatives(tmp_path: Path) -> None:
    env = environment_class("GridWorld")(n=2)
    tokenizer: Any = env.tokenizer
    save_model(tmp_path, tiny_model(tokenizer.vocab_size, layers=1, hidden_size=8, heads=1), tokenizer)
    output = io.StringIO()
    Play("GridWorld", model=str(tmp_path), top=9, env_args=("n=2",)).run(TerminalConsole(file=output))
    rows = ROW.findall(output.getvalue())
    assert rows
    for *_, others in rows:
        pairs = [pair.split() for pair in others.split(", ")]
        assert {label for label, _ in pairs} == {"'L'", "'D'", "'R'", "'U'"}
        assert math.isclose(sum(float(share) for _, share in pairs), 1, abs_tol=0.003)


def test_nothing_that_a_model_or_a_person_says_steers_the_terminal(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = shown(model, env_args=("max_new_tokens=60",), top=2)
    everything += typed(monkeypatch, "\x1b[2J\x07\u202e\n#27\n#155\n\n", tokens=True)
    assert all(character.isprintable() or character == "\n" for character in everything)


# Labels


def test_labels_of_tokens() -> None:
    tokenizer = ByteTokenizer()
    assert [token_label(tokenizer, token) for token in (65, 10, 0xC3, EOS)] == ["'A'", "'\\n'", "b'\\xc3'", "<end>"]
    mask = np.zeros(257, dtype=np.int8)
    mask[65:85] = 1
    assert legal_tokens(tokenizer, mask).split() == [f"'{chr(code)}'" for code in range(65, 85)]
    mask[EOS] = 1
    assert legal_tokens(tokenizer, mask) == "21 of 257 tokens"
    assert token_label(CharTokenizer("é"), 1) == "'é'"


# The command


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "m", "--tokens"], "--tokens is for a person who types"),
        (["--model", "tiny"], '"tiny" model of rlvr train and rlvr sft is untrained'),
        (["--problem", "10000000"], "problem 10000000 does not exist"),
        (["--seed", str(2**64)], "--seed must be less than"),
        (["--engine", "openai"], "--base-url and --engine openai come together"),
        (["--env-args", "split=train"], "has an option of its own: use --split"),
    ],
)
def test_options_that_can_not_be_are_refused(options: list[str], message: str, rlvr: Command) -> None:
    code, _, errors = rlvr("play", "--env", "Sort", *options)
    assert code == 2
    assert message in errors
