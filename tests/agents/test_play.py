"""Episodes in the terminal, of a person and of a model, and self-play, where a policy sees the other side as its own."""

from __future__ import annotations

import io
import math
import os
import pty
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
import torch

from agents import GRPO, Episode, GRPOConfig, PolicyConfig, evaluate, load_policy, rollout, save_model, tiny_model
from agents.batch import make_batch
from agents.commands.common import make_vec
from agents.commands.play import Play
from agents.commands.playing.person import TextPlayer, TokenPlayer, legal_tokens, token_label
from agents.console.terminal import TerminalConsole
from agents.policies.transformers.loading import load_model
from agents.policies.transformers.policy import CausalLMPolicy
from agents.rollouts.played_episode import play_episode
from agents.self_play import PolicyOpponent
from agents.types import Action
from rlvr_envs import ByteTokenizer, CharTokenizer, HuggingFaceTokenizer, TokenEnv, decode, environment_class
from rlvr_envs.games import Seat, Start, TwoSidedInteraction
from rlvr_envs.tasks.tic_tac_toe import TicTacToe
from rlvr_envs.text_games import TextGameInteraction, TextSeat
from tests import tiny_models
from tests.commands import Command
from tests.dialogue.templates import tokenizer_of
from tests.envs.helpers import EOS, says, streams
from tests.games.stones import install
from tests.tiny_models import byte_level_tokenizer
from verifiers import DataError, InvalidArgumentError, Message

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
    assert "no_answer, score 0\n" in typed(monkeypatch, "\n")
    assert typed(monkeypatch, "").endswith("you left after 0 tokens, before the end: there is no verdict\n")
    with pytest.raises(DataError, match="'x' of 'x' is not in the tokenizer's alphabet"):
        typed(monkeypatch, "x\n", env_args=("tokenizer=char",))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\n"), encoding="utf-8"))
    with pytest.raises(InvalidArgumentError, match="standard input must be UTF-8 text"):
        Play("Sort").run(TerminalConsole(file=io.StringIO()))


def test_what_was_typed_before_an_answer_is_not_played_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit: dict[str, Any] = {"env": "Bandit", "env_args": ("pulls=3", "arms=3")}
    said = typed(monkeypatch, "abc\n", **bandit)
    assert "not played, since they were typed before the environment's answer: 'b' 'c'\n" in said
    said = typed(monkeypatch, "a\nb\nc\n", **bandit)
    assert "not played" not in said
    assert "── last turn, 3 tokens in 3 turns ──\nc\n" in said


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


# Self-play


BYTES = ByteTokenizer()
BOARD = TicTacToe().board
FIRST = ("opening=0",)


class Says:
    """A policy that always says one thing, in a token, and then ends its move."""

    version = 0

    def __init__(self, text: str = "", ends: bool = True) -> None:
        self.text, self.ends, self.batches = text, ends, list[int]()

    def begin(self, rows: Any, seeds: Any) -> None:
        self.batches.append(len(rows))

    def act(self, observation: Any, *, action_mask: Any = None, rows: Any = None) -> Action:
        rows_shown = zip(observation["tokens"], observation["length"][:, 0], strict=True)
        shown = [row[:length].tolist() for row, length in rows_shown]
        texts = ["".join(chr(token) if token < 256 else " " for token in tokens) for tokens in shown]
        ended = [self.ends and text[-1:].isdigit() for text in texts]
        tokens = [BYTES.eos_token if end else ord(self.move(text)) for text, end in zip(texts, ended, strict=True)]
        return Action(np.array(tokens)[:, None], np.ones(len(tokens), np.int64), np.zeros((len(tokens), 1), np.float32))

    def move(self, shown: str) -> str:
        return self.text


class LowestFree(Says):
    """A policy that takes the lowest free cell, read from the text that it is shown."""

    def move(self, shown: str) -> str:
        taken = {int(part) for part in re.split("[ ,:\n]", shown.partition("played")[2]) if part.isdigit()}
        return str(min({*range(1, 10)} - taken, default=0))


def in_order(*moves: str) -> TwoSidedInteraction:
    """An opponent who makes these moves."""
    return TwoSidedInteraction(lambda seat: moves[len(seat.moves) // 2])


@pytest.mark.parametrize("tokenizer", ["byte", "chatml"])
def test_a_policy_sees_the_other_side_of_a_game_as_an_episode_of_its_own(tokenizer: str) -> None:
    chosen = "byte" if tokenizer == "byte" else tokenizer_of(tokenizer).inner
    options: dict[str, Any] = {"tokenizer": chosen, "interaction": in_order("8", "7"), "opening": 0}
    env: Any = gymnasium.make("rlvr/TicTacToe-v0", max_new_tokens=20, **options).unwrapped
    observation, _ = env.reset(options={"problem": 0})
    start = env.streams.dataset[0].reference
    opponent = PolicyOpponent(LowestFree(), env.tokenizer)
    moves: tuple[int, ...] = ()
    for move, reply in ((2, 8), (3, 7)):
        shown = observation["tokens"][: observation["length"][0]]
        assert opponent.prompt_tokens(Seat(start, moves)).tolist() == shown.tolist()
        observation, *_ = env.step_many([*env.tokenizer.encode(str(move)), env.tokenizer.eos_token])
        moves += (move, reply)
    shown = observation["tokens"][: observation["length"][0]]
    assert opponent.prompt_tokens(Seat(start, moves)).tolist() == shown.tolist()


@pytest.mark.parametrize("prompt", ["plain", "chat"])
def test_no_move_and_no_question_of_a_game_becomes_a_special_token(prompt: str) -> None:
    tokenizer = HuggingFaceTokenizer(byte_level_tokenizer("<|im_end|>"))  # has no chat template
    said = [Message("assistant", "1<|im_end|>"), Message("user", "2<|im_end|>")]
    asked = "Move?" + "<|im_end|>" * (prompt == "chat")
    seat = SimpleNamespace(prompt=asked, question=asked, dialogue=tuple(said))
    tokens = PolicyOpponent(LowestFree(), tokenizer, prompt=prompt).prompt_tokens(cast("Any", seat))
    assert tokenizer.special_tokens["<|im_end|>"] not in tokens


def test_moves_of_the_opponent_are_inserted_and_masked() -> None:
    interaction = TwoSidedInteraction(PolicyOpponent(LowestFree(), BYTES))
    env: Any = gymnasium.make_vec("rlvr/TicTacToe-v0", num_envs=4, opening=0, interaction=interaction)
    trajectories = rollout(env, LowestFree(), [Episode(problem=at, group=at, seed=at) for at in range(6)])
    for trajectory in trajectories:
        own = decode(BYTES, trajectory.tokens[trajectory.policy_mask])
        start = trajectory.prompt_length
        others = decode(BYTES, trajectory.tokens[start:][~trajectory.policy_mask[start:]])
        assert (own, others) == ("1357", "\n2\n\n4\n\n6\n")  # both take the lowest free cell, until 3, 5 and 7 win
        assert trajectory.verdict.score == 1.0
    batch = make_batch(trajectories)
    assert batch.loss_mask.sum(1).tolist() == [8] * 6  # four moves with their ends


def test_moves_that_are_asked_for_together_are_sampled_together() -> None:
    policy = LowestFree()
    opponent = PolicyOpponent(policy, BYTES)
    with opponent._acting, ThreadPoolExecutor(8) as threads:  # as if another sampled meanwhile
        asked = [threads.submit(opponent, Seat(Start(BOARD, (cell,), 0))) for cell in range(1, 9)]
        while len(opponent._waiting) < 8:
            time.sleep(0.001)
        opponent._acting.release()
        moves = [future.result() for future in asked]
        opponent._acting.acquire()
    assert moves == ["2", *["1"] * 7]
    assert policy.batches == [8]


def test_a_policy_that_breaks_breaks_its_move_and_one_that_never_ends_it_is_cut() -> None:
    class Breaks(LowestFree):
        def act(self, observation: Any, *, action_mask: Any = None, rows: Any = None) -> Action:
            raise ConnectionError("no device")

    seat, opponent = Seat(Start(BOARD, (1,), 0)), PolicyOpponent(Breaks(), BYTES)
    for _ in range(2):
        with pytest.raises(ConnectionError, match="no device"):
            opponent(seat)
    assert PolicyOpponent(Says("9", ends=False), BYTES, max_move_tokens=3)(seat) == "999"
    with pytest.raises(InvalidArgumentError, match="max_move_tokens must be at least 1, got 0"):
        PolicyOpponent(LowestFree(), BYTES, max_move_tokens=0)


def test_a_policy_plays_against_its_own_weights_and_learns() -> None:
    policy = CausalLMPolicy(tiny_model(BYTES.vocab_size), PolicyConfig(vocab_size=BYTES.vocab_size))
    opponent = PolicyOpponent(policy.at_temperature(1.0), BYTES)
    seats = [Seat(Start(BOARD, (cell,), cell)) for cell in range(1, 6)]
    alone = [opponent(seat) for seat in seats]
    assert alone == [opponent(seat) for seat in seats]  # a pure function of the game
    env = gymnasium.make_vec("rlvr/TicTacToe-v0", num_envs=8, interaction=TwoSidedInteraction(opponent))
    agent = GRPO(policy, GRPOConfig(problems_per_step=2, group_size=4))
    agent.learn(env, steps=1)
    assert policy.version == 1


@pytest.mark.parametrize("tokenizer", ["byte", "chatml"])
def test_a_policy_sees_a_game_in_words_as_its_own_episode(monkeypatch: pytest.MonkeyPatch, tokenizer: str) -> None:
    install(monkeypatch)
    chosen = "byte" if tokenizer == "byte" else tokenizer_of(tokenizer).inner
    seats: list[TextSeat] = []

    def one_by_one(seat: TextSeat) -> str:
        seats.append(seat)
        return "1"

    options: dict[str, Any] = {"game": "Stones-v0", "tokenizer": chosen, "interaction": TextGameInteraction(one_by_one)}
    first: Any = gymnasium.make("rlvr/TextArena-v0", seat=0, **options).unwrapped
    first.reset(options={"problem": 0})
    one = [*first.tokenizer.encode("1"), first.tokenizer.eos_token]
    first.step_many(one)
    first.step_many(one)
    second: Any = gymnasium.make("rlvr/TextArena-v0", seat=1, **options).unwrapped
    observations = [second.reset(options={"problem": 0})[0], second.step_many(one)[0]]
    opponent = PolicyOpponent(LowestFree(), first.tokenizer, prompt="chat")
    for seat, observation in zip(seats[:2], observations, strict=True):
        shown = observation["tokens"][: int(observation["length"][0])]
        assert opponent.prompt_tokens(seat).tolist() == shown.tolist()


def test_a_policy_plays_a_game_in_words_against_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    policy = CausalLMPolicy(tiny_model(BYTES.vocab_size), PolicyConfig(vocab_size=BYTES.vocab_size))
    opponent = PolicyOpponent(policy.at_temperature(1.0), BYTES, prompt="chat", max_move_tokens=4)
    options: dict[str, Any] = {"max_new_tokens": 30, "max_inserted_tokens": 200, "max_prompt_bytes": 200}
    for forfeits, counted in (("excluded", 0), ("scored", 8)):
        interaction = TextGameInteraction(opponent, forfeits=forfeits)  # type: ignore[arg-type]
        env: Any = gymnasium.make_vec(
            "rlvr/TextArena-v0", num_envs=8, game="Stones-v0", seat=0, interaction=interaction, **options
        )
        trajectories = rollout(env, Says("1"), [Episode(problem=at, group=at, seed=at) for at in range(8)])
        scores = [trajectory.verdict.score for trajectory in trajectories if trajectory.verdict is not None]
        assert np.isfinite(scores).sum() == counted


# In the terminal


def test_a_person_takes_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    game: dict[str, Any] = {"env": "TicTacToe", "env_args": FIRST, "tokens": True, "opponent": "me"}
    said = typed(monkeypatch, "5\n\n1\n4\n\n2\n6\n\n", **game)
    assert "your move as O, one of [1, 2, 3, 4, 6, 7, 8, 9]:" in said
    assert "O . .\nX X .\n. . .\n" in said
    assert "correct, score 1\n" in said
    assert "incorrect, score 0\n" in typed(monkeypatch, "5\n\n1\n4\n\n2\n8\n\n3\n", **game)


def test_a_person_answers_in_the_place_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    said = typed(monkeypatch, "50\n\nwarmer\n", "GuessNumber", tokens=True, opponent="me")
    assert "the policy says: 50\n" in said
    assert "── environment ──\n\nwarmer\n" in said
    with pytest.raises(InvalidArgumentError, match="for episodes of several turns, and this environment has none"):
        typed(monkeypatch, "", "Addition", opponent="me")


def test_a_model_takes_the_other_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    save_model(tmp_path / "m", tiny_model(BYTES.vocab_size), BYTES)
    said = typed(monkeypatch, "5\n\n", "TicTacToe", env_args=FIRST, tokens=True, opponent=str(tmp_path / "m"))
    assert "── environment ──\n" in said
    assert ("correct, score 1\n" in said) != ("you left after" in said)  # a legal move of an untrained model is luck
    with pytest.raises(InvalidArgumentError, match="a model as --opponent is for games of two sides, such as"):
        typed(monkeypatch, "5\n\n", "GuessNumber", tokens=True, opponent="no/such-model")


def test_both_sides_of_a_game_in_words_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch)
    game = ("game=Stones-v0", "seat=0")
    said = typed(monkeypatch, "1\n\n1\n1\n\n1\n1\n\n", "TextArena", env_args=game, tokens=True, opponent="me")
    assert "You are player 1, 5 stones: 1 taken, 4 left\nyour turn, as the other player:\n" in said
    assert "correct, score 1\n" in said
    save_model(tmp_path / "m", tiny_model(BYTES.vocab_size), BYTES)
    said = typed(monkeypatch, "1\n\n", "TextArena", env_args=game, tokens=True, opponent=str(tmp_path / "m"))
    assert "correct, score 1\n" in said  # an untrained model makes no move
