"""The registered worlds: episodes by hand, every gold answer, and what any user of the ids relies on."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium
import numpy as np
import pytest

from rlvr_envs import ByteTokenizer, CharTokenizer, TokenEnv
from rlvr_envs.tasks import GridWorld, Maze
from rlvr_envs.worlds import MOVES, WalkVerifier, move_tokens, world_of
from verifiers import IllegalTokenError, InvalidArgumentError, Outcome, Problem, UnknownNameError

IDS = ("rlvr/GridWorld-v0", "rlvr/Maze-v0")


def play(env: TokenEnv, moves: str, problem: int = 0) -> tuple[list[float], bool, bool, dict[str, Any]]:
    env.reset(options={"problem": problem})
    _, _, terminated, truncated, info = env.step_many(env.tokenizer.encode(moves))
    return info["rewards"].tolist(), terminated, truncated, info


def gridworld(**options: Any) -> Any:
    return gymnasium.make("rlvr/GridWorld-v0", **options)


def maze(**options: Any) -> Any:
    return gymnasium.make("rlvr/Maze-v0", **options)


@pytest.mark.parametrize(
    ("moves", "rewards", "outcome"),
    [
        ("RUR", [0, 0, 10], Outcome.CORRECT),
        ("ULURDRURL", [0, 0, 0, 0, 0, 0, 0, 10], Outcome.CORRECT),  # the wall holds; the last move is not consumed
        ("RR", [0, -10], Outcome.INCORRECT),
        ("LD" * 6, [0] * 12, Outcome.INCORRECT),
    ],
)
def test_the_maze_pays_its_ends(moves: str, rewards: list[float], outcome: Outcome) -> None:
    paid, terminated, truncated, info = play(maze(), moves)
    assert paid == rewards
    assert info["verdict"].outcome is outcome
    assert (terminated, truncated) == (sum(rewards) != 0, sum(rewards) == 0)


def test_step_rewards_and_layouts_are_options() -> None:
    layout = "+---+---+\n| S   G |\n+---+---+"
    assert play(maze(layout=layout, step_reward=-0.5), "LR")[0] == [-0.5, 9.5]
    assert maze(layout=layout).streams.rules.max_new_tokens == 4
    free = gridworld(step_reward=0.0)
    gold = free.streams.dataset[0].metadata["gold_completion"]
    assert play(free, gold)[0] == [0.0] * (len(gold) - 1) + [1.0]
    assert gridworld(n=10).streams.rules.max_new_tokens == 100
    assert gridworld(n=10, max_new_tokens=7).streams.rules.max_new_tokens == 7


@pytest.mark.parametrize("n", [2, 3, 4, 7, 10])
def test_every_pair_is_one_problem_in_one_split(n: int) -> None:
    train, test = GridWorld("train", n), GridWorld("test", n)
    prompts = [problem.prompt for split in (train, test) for problem in map(split.__getitem__, range(len(split)))]
    cells = [f"{row}{column}" for row in range(n) for column in range(n)]
    assert sorted(prompts) == sorted(f"{start}>{goal}:" for start, goal in itertools.permutations(cells, 2))
    assert len(test) == -(-len(prompts) // 5)


def test_the_problems_are_the_same_in_every_release() -> None:
    """A change here changes what every recorded problem id means."""
    assert [GridWorld("train")[at].prompt for at in range(4)] == PINNED["train"]
    assert [GridWorld("test")[at].prompt for at in range(4)] == PINNED["test"]
    assert GridWorld("test")[0].id == f"gridworld/4x4/{PINNED['test'][0][:-1]}"


PINNED = {"train": ["11>10:", "20>32:", "32>22:", "23>02:"], "test": ["01>11:", "33>00:", "00>12:", "01>20:"]}


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_every_gold_answer_passes_in_the_environment_by_a_shortest_walk(env_id: str, split: str) -> None:
    env = gymnasium.make(env_id, split=split)
    for at in range(env.num_problems):
        problem = env.streams.dataset[at]
        gold, world = str(problem.metadata["gold_completion"]), world_of(problem)
        rewards, terminated, _, info = play(env, gold, at)
        assert terminated
        assert info["verdict"].outcome is Outcome.CORRECT
        assert info["completion"] == gold
        assert len(gold) == len(world.shortest_path())
        assert sum(rewards) == pytest.approx(world.goal_reward + world.step_reward * len(gold))


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match="n must be from 2 to 10, got 11"):
        gridworld(n=11)
    with pytest.raises(InvalidArgumentError, match="step_reward must be a number, got 'low'"):
        gridworld(step_reward="low")
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'size'"):
        gridworld(size=3)
    with pytest.raises(UnknownNameError, match=r"unknown split 'tset'\. Did you mean 'test'"):
        Maze("tset")
    with pytest.raises(IndexError, match=r"gridworld \(test\) has problems 0 to 47, got index 48"):
        GridWorld("test")[48]


def test_a_completion_is_judged_by_where_its_walk_ends() -> None:
    judge, problem = WalkVerifier(), Maze()[0]
    for text, score, outcome, answer in (
        ("", 0, Outcome.NO_ANSWER, None),
        ("R", 0, Outcome.INCORRECT, "R"),
        ("RUR", 10, Outcome.CORRECT, "RUR"),
        ("RURDD", 10, Outcome.CORRECT, "RUR"),
        ("RR", -10, Outcome.INCORRECT, "RR"),
        ("R U R!", 10, Outcome.CORRECT, "RUR"),
        ("?", 0, Outcome.NO_ANSWER, None),
    ):
        verdict = judge(text, problem)
        assert (verdict.score, verdict.outcome, verdict.answer) == (score, outcome, answer)


def test_a_problem_of_another_kind_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match="the reference of problem 'p' is str; expected a World"):
        WalkVerifier()("RUR", Problem("p", "10:", "RUR"))


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("tokenizer", ["char", "byte"])
def test_the_four_moves_and_nothing_else_are_legal_in_any_tokenizer(env_id: str, tokenizer: str) -> None:
    env = gymnasium.make(env_id, tokenizer=tokenizer)
    _, info = env.reset(seed=0)
    legal = np.flatnonzero(info["action_mask"]).tolist()
    assert sorted(env.tokenizer.token_bytes(token).decode() for token in legal) == sorted(MOVES)
    assert sorted(move_tokens(env.tokenizer)) == legal
    for token in set(range(env.streams.vocab_size)) - set(legal):
        with pytest.raises(IllegalTokenError, match="is not legal here"):
            env.step(token)
    env.action_space.seed(1)
    ended = False
    while not ended:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        ended = terminated or truncated


def test_a_tokenizer_without_the_moves_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"has none for \['U'\]: use tokenizer='char' or 'byte'"):
        gridworld(tokenizer=CharTokenizer("LDR0123>:"))


class Pairs(ByteTokenizer):
    """Bytes, and one token more that spells two moves."""

    vocab_size = 258

    def token_bytes(self, token: int) -> bytes:
        return b"RR" if token == 257 else super().token_bytes(token)


def test_a_token_of_two_moves_is_walked_where_it_is_allowed() -> None:
    env = maze(tokenizer=Pairs(), legal_actions=lambda tokens, prompt_length: np.ones(258, dtype=np.int8))
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(257)
    assert (reward, terminated, info["verdict"].answer) == (-10.0, True, "RR")
