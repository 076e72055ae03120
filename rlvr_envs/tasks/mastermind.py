"""Mastermind: after a prompt such as `break 4 of 1-6:`, the answer to a guess is the numbers of right and misplaced digits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, cast

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.games import GameVerifier, Move, game_rules
from rlvr_envs.procedural.base import DIGITS, GeneratedProblem, ProblemShape, ProceduralDataset, in_base
from verifiers import Between, InvalidArgumentError, Problem

MOST_CODES = 50_000
"""Maximum number of codes that `Mastermind.gold_turns` searches for a code that agrees with all answers."""
_DIGITS = re.compile(r"\d+")


class Code(NamedTuple):
    """The code to break, and the number of turns."""

    digits: str
    guesses: int


def feedback(code: str, guess: str) -> tuple[int, int]:
    """Count the right digits of a guess, and the digits that are elsewhere in the code."""
    right = sum(map(str.__eq__, code, guess))
    return right, (Counter(code) & Counter(guess)).total() - right


def play(reference: Code, moves: Sequence[str]) -> Move:
    """Answer the last guess, which is the last number in the turn."""
    guess = (_DIGITS.findall(moves[-1]) or [""])[-1]
    if guess == reference.digits:
        return Move("right", over=True, score=1.0)
    if len(moves) >= reference.guesses:
        return Move("lost", over=True)
    if len(guess) != len(reference.digits):
        return Move("no guess")
    right, misplaced = feedback(reference.digits, guess)
    return Move(f"{right} right {misplaced} near")


def _first_code(start: str, length: int, colours: int, answers: Mapping[str, tuple[int, int]]) -> str:
    """The first code with this start that agrees with the answers to all guesses so far; empty if no code agrees."""
    missing = length - len(start)
    for guess, (right, near) in answers.items():
        here, elsewhere = feedback(start, guess)
        if not (0 <= right - here <= missing and 0 <= right + near - here - elsewhere <= missing):
            return ""
    if not missing:
        return start
    nexts = (_first_code(start + str(digit), length, colours, answers) for digit in range(1, colours + 1))
    return next(filter(None, nexts), "")


@dataclass(frozen=True)
class Mastermind(ProceduralDataset[str]):
    """Break a code of digits.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        length: Number of digits of the code, from 1 to 9.
        colours: Digits are drawn uniformly from 1 to `colours`, which is from 2 to 9.
        guesses: Number of guesses.
    """

    name: ClassVar[str] = "mastermind"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("rlvr_envs.tasks.mastermind:MastermindVerifier", {})

    hidden: ClassVar[bool] = True

    length: Annotated[int, Between(1, 9)] = 4
    colours: Annotated[int, Between(2, 9)] = 6
    guesses: Annotated[int, Between(1, 1_000)] = 10

    def gold_turns(self, problem: Problem) -> tuple[str, ...]:
        """The guesses of a player who always guesses the smallest code that agrees with all answers so far.

        Raises:
            InvalidArgumentError: If there are more than `MOST_CODES` codes, since the search would take too long.
        """
        if (codes := self.colours**self.length) > MOST_CODES:
            raise InvalidArgumentError(
                f"the turns of a good player of Mastermind are found among at most {MOST_CODES} codes, got {codes} "
                f"(length={self.length}, colours={self.colours}): choose fewer"
            )
        code = cast("Code", problem.reference).digits
        answers: dict[str, tuple[int, int]] = {}
        while code not in answers and len(answers) < self.guesses:
            guess = _first_code("", self.length, self.colours, answers)
            answers[guess] = feedback(code, guess)
        return tuple(answers)

    def _describe(self) -> ProblemShape:
        return ProblemShape(
            difficulty=f"{self.length}-of-{self.colours}-in-{self.guesses}",
            max_prompt_bytes=len(f"break {self.length} of 1-{self.colours}:"),
            max_answer_bytes=self.length,
            prompt_alphabet=DIGITS + "break of-:\nright near no guess lost",
            answer_alphabet=DIGITS,
        )

    @property
    def _space(self) -> int:
        return int(self.colours**self.length)

    def _at(self, code: int) -> str:
        return "".join(str(digit + 1) for digit in in_base(code, self.colours, self.length)[1])

    def in_words(self, problem: Problem) -> str:
        """The rules of the game in words, and its start."""
        return (
            f"Find my secret code of {self.length} digits, each from 1 to {self.colours}; digits may repeat. You have "
            f"{self.guesses} turns. Each of your turns is one guess: write its {self.length} digits alone, without spaces. I "
            'answer with the number of digits that are right, and of digits that are in the code at another place: "1 right 2 '
            'near". What is your first guess?'
        )

    def _task(self, content: str) -> GeneratedProblem:
        return GeneratedProblem(f"break {self.length} of 1-{self.colours}:", Code(content, self.guesses), content)


class MastermindVerifier(GameVerifier):
    """Correct if the code was broken in time."""

    def __init__(self) -> None:
        super().__init__(play)


def _room(dataset: Mastermind) -> tuple[int, int]:
    return dataset.guesses * (dataset.length + 1), (dataset.guesses - 1) * len("\n9 right 9 near\n")


class MastermindEnv(TaskEnv):
    """Break a code of digits, with the numbers of right and misplaced digits as the answer to each guess.

    Spaces, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    The last number in each turn of the policy is its guess. The answer is the number of right digits and the number of digits
    that are elsewhere in the code (`1 right 2 near`), until the code is broken or no guesses are left. Problems are generated:
    nothing is downloaded, and the codes of the train and test splits are disjoint.

    ## Starting State
    The number of digits of the code, and the possible digits.

    ## Reward
    1 if the code is broken in time, else 0.

    ## Episode End
    Terminates when the code is broken or the guesses are used up; truncates if `max_new_tokens` are used up first.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `length` (4), `colours` (6) and
    `guesses` (10). Defaults: `split="train"`, `max_new_tokens` and `max_inserted_tokens` as many as a game needs.
    """

    task: ClassVar[TaskSpec] = procedural_task(
        Mastermind, sizes={"train": 1_163, "test": 133}, max_new_tokens=50, rules=game_rules(play, _room)
    )
