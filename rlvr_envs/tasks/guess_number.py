"""Guessing a number: after a prompt such as `guess 1-100:`, the answer to a guess is `higher` or `lower`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, cast

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.games import GameVerifier, Move, game_rules
from rlvr_envs.procedural.base import DIGITS, GeneratedProblem, ProblemShape, ProceduralDataset
from verifiers import Between, Problem

_NUMBER = re.compile(r"\d+")
_ANSWERS = ("higher", "lower", "no number")


class SecretNumber(NamedTuple):
    """The number to guess, and the number of turns."""

    number: int
    guesses: int


def play(reference: SecretNumber, moves: Sequence[str]) -> Move:
    """Answer the last guess, which is the last number in the turn."""
    numbers = _NUMBER.findall(moves[-1])
    # A number with more digits than the secret is cut before it is converted.
    guess = int(numbers[-1][:20]) if numbers else None
    if guess == reference.number:
        return Move("right", over=True, score=1.0)
    if len(moves) >= reference.guesses:
        return Move("lost", over=True)
    return Move("no number" if guess is None else "higher" if guess < reference.number else "lower")


@dataclass(frozen=True)
class GuessNumber(ProceduralDataset[int]):
    """Guess a number from 1 to `high`. The answer to a guess is `higher` or `lower`.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        high: The greatest possible number, from 8 to 10**9.
        guesses: Number of guesses. The default is just enough for a player who halves the remaining range.
    """

    name: ClassVar[str] = "guess_number"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("rlvr_envs.tasks.guess_number:GuessNumberVerifier", {})

    hidden: ClassVar[bool] = True

    high: Annotated[int, Between(8, 10**9)] = 100
    guesses: Annotated[int | None, Between(1, 1_000)] = None

    @property
    def turns(self) -> int:
        """Number of guesses."""
        return math.ceil(math.log2(self.high + 1)) if self.guesses is None else self.guesses

    def gold_turns(self, problem: Problem) -> tuple[str, ...]:
        """The guesses of a player who halves the remaining range."""
        low, high, secret = 1, self.high, cast("SecretNumber", problem.reference).number
        turns: list[str] = []
        while len(turns) < self.turns:
            guess = (low + high) // 2
            turns.append(str(guess))
            if guess == secret:
                break
            low, high = (guess + 1, high) if guess < secret else (low, guess - 1)
        return tuple(turns)

    def _describe(self) -> ProblemShape:
        return ProblemShape(
            difficulty=f"to-{self.high}-in-{self.turns}",
            max_prompt_bytes=len(f"guess 1-{self.high}:"),
            max_answer_bytes=len(str(self.high)),
            prompt_alphabet=DIGITS + "guess -:\n" + "".join(_ANSWERS),
            answer_alphabet=DIGITS,
        )

    @property
    def _space(self) -> int:
        return self.high

    def _at(self, code: int) -> int:
        return code + 1

    def in_words(self, problem: Problem) -> str:
        """The rules of the game in words, and its start."""
        return (
            f"I think of a whole number from 1 to {self.high}. Guess it in at most {self.turns} turns. Each of your turns is "
            "one "
            'guess: write the number alone. I answer "higher" if my number is higher than your guess, and "lower" if it is '
            "lower. What is your first guess?"
        )

    def _task(self, content: int) -> GeneratedProblem:
        return GeneratedProblem(f"guess 1-{self.high}:", SecretNumber(content, self.turns), str(content))


class GuessNumberVerifier(GameVerifier):
    """Correct if the number was guessed in time."""

    def __init__(self) -> None:
        super().__init__(play)


def _room(dataset: GuessNumber) -> tuple[int, int]:
    longest = max(map(len, _ANSWERS)) + len("\n\n")
    return dataset.turns * (dataset.max_answer_bytes + 1), (dataset.turns - 1) * longest


class GuessNumberEnv(TaskEnv):
    """Guess a number, with `higher` or `lower` as the answer to each guess.

    Spaces, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    The last number in each turn of the policy is its guess. The answer is `higher`, `lower` or `no number`, until the number is
    guessed or no guesses are left. A player who halves the remaining range always wins; later turns need the answers to earlier
    turns. Problems are generated: nothing is downloaded, and the secrets of the train and test splits are disjoint.

    ## Starting State
    The range.

    ## Reward
    1 if the number is guessed in time, else 0.

    ## Episode End
    Terminates when the number is guessed or the guesses are used up; truncates if `max_new_tokens` are used up first.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `high` (100) and `guesses`
    (7 for 100). Defaults: `split="train"`, `max_new_tokens` and `max_inserted_tokens` as many as a game needs.
    """

    task: ClassVar[TaskSpec] = procedural_task(
        GuessNumber, sizes={"train": 90, "test": 10}, max_new_tokens=28, rules=game_rules(play, _room)
    )
