"""Self-play: a policy sees the other side of a game as its own, and what it says there is never learned from."""

from __future__ import annotations

import io
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gymnasium
import numpy as np
import pytest

from agents import GRPO, Action, Episode, GRPOConfig, PolicyConfig, rollout, save_model, tiny_model
from agents.batch import make_batch
from agents.commands.play import Play
from agents.console.terminal import TerminalConsole
from agents.policies.transformers.policy import CausalLMPolicy
from agents.self_play import PolicyOpponent
from rlvr_envs import ByteTokenizer, HuggingFaceTokenizer, decode
from rlvr_envs.games import Seat, Start, TwoSidedInteraction
from rlvr_envs.tasks.tic_tac_toe import TicTacToe
from rlvr_envs.text_games import TextGameInteraction, TextSeat
from tests.dialogue.templates import tokenizer_of
from tests.games.stones import install
from tests.tiny_models import byte_level_tokenizer
from verifiers import InvalidArgumentError, Message

BYTES = ByteTokenizer()
BOARD = TicTacToe().board


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


def test_a_policy_that_breaks_breaks_the_move_of_each_who_asked() -> None:
    class Breaks(LowestFree):
        def act(self, observation: Any, *, action_mask: Any = None, rows: Any = None) -> Action:
            raise ConnectionError("no device")

    opponent = PolicyOpponent(Breaks(), BYTES)
    for _ in range(2):
        with pytest.raises(ConnectionError, match="no device"):
            opponent(Seat(Start(BOARD, (1,), 0)))


def test_a_policy_that_never_ends_its_move_is_cut() -> None:
    assert PolicyOpponent(Says("9", ends=False), BYTES, max_move_tokens=3)(Seat(Start(BOARD, (1,), 0))) == "999"
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


def test_a_policy_plays_a_game_in_words_against_itself_and_learns(monkeypatch: pytest.MonkeyPatch) -> None:
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
    GRPO(policy, GRPOConfig(problems_per_step=2, group_size=4)).learn(env, steps=1)
    assert policy.version == 1


# In the terminal


def typed(monkeypatch: pytest.MonkeyPatch, text: str, env: str, **options: Any) -> str:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    output = io.StringIO()
    arguments = {"env_args": ("opening=0",) if env == "TicTacToe" else (), **options}
    assert Play(env, **arguments).run(TerminalConsole(file=output)) == 0
    return output.getvalue()


def test_a_person_takes_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    said = typed(monkeypatch, "5\n\n1\n4\n\n2\n6\n\n", "TicTacToe", tokens=True, opponent="me")
    assert "your move as O, one of [1, 2, 3, 4, 6, 7, 8, 9]:" in said
    assert "O . .\nX X .\n. . .\n" in said
    assert "correct, score 1\n" in said
    lost = typed(monkeypatch, "5\n\n1\n4\n\n2\n8\n\n3\n", "TicTacToe", tokens=True, opponent="me")
    assert "incorrect, score 0\n" in lost


def test_a_person_answers_in_the_place_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    said = typed(monkeypatch, "50\n\nwarmer\n", "GuessNumber", tokens=True, opponent="me")
    assert "the policy says: 50\n" in said
    assert "── environment ──\n\nwarmer\n" in said
    with pytest.raises(InvalidArgumentError, match="for episodes of several turns, and this environment has none"):
        typed(monkeypatch, "", "Addition", opponent="me")


def test_a_model_takes_the_other_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    save_model(tmp_path / "m", tiny_model(BYTES.vocab_size), BYTES)
    said = typed(monkeypatch, "5\n\n", "TicTacToe", tokens=True, opponent=str(tmp_path / "m"))
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
