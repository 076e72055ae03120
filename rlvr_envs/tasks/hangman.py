"""Hangman: after a prompt such as `----- 8 misses:`, the answer to a guess is the letter's positions and the misses left."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.games import GameVerifier, Move, SecretWord, WordDataset, game_rules
from rlvr_envs.procedural.base import DIGITS, GeneratedProblem, ProblemShape
from verifiers import Between, Problem

_WORD = re.compile(r"[a-z]+")


def play(reference: SecretWord, moves: Sequence[str]) -> Move:
    """Answer the last guess: the last word in the turn, which is a letter or the whole word."""
    word, misses = reference
    known: set[str] = set()
    missed = 0
    for move in moves:
        guess = (_WORD.findall(move.lower()) or [""])[-1]
        if guess == word or (len(guess) == 1 and guess in word and guess not in known):
            known |= set(guess)
        else:
            missed += 1
    if known >= set(word):
        return Move("right", over=True, score=1.0)
    if missed >= misses:
        return Move("lost", over=True)
    return Move(_state("".join(letter if letter in known else "-" for letter in word), misses - missed))


def _state(shown: str, misses: int) -> str:
    return f"{shown} {misses} misses"


@dataclass(frozen=True)
class Hangman(WordDataset):
    """Find a word letter by letter.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        length: Number of letters of the word, from 4 to 7.
        misses: Number of misses that lose the game; a miss is a guess that reveals no new letter.
    """

    name: ClassVar[str] = "hangman"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("rlvr_envs.tasks.hangman:HangmanVerifier", {})

    misses: Annotated[int, Between(1, 1_000)] = 8

    def _describe(self) -> ProblemShape:
        return ProblemShape(
            difficulty=f"{self.length}-in-{self.misses}",
            max_prompt_bytes=len(self._prompt),
            max_answer_bytes=self.length,
            prompt_alphabet=self._prompt + DIGITS + "\n" + string.ascii_lowercase,
            answer_alphabet=string.ascii_lowercase,
        )

    @property
    def _prompt(self) -> str:
        return f"{_state('-' * self.length, self.misses)}:"

    def in_words(self, problem: Problem) -> str:
        """The rules of the game in words, and its start."""
        return (
            f"Find my secret English word of {self.length} letters. Each of your turns is one guess: write a letter, or the "
            "whole word, alone. I answer with the word, in which a - stands for each letter that is not yet found, and the "
            f"number of misses that are left. A guess that finds nothing is a miss, and {self.misses} misses lose the game. "
            f"The word is {'-' * self.length}. What is your first guess?"
        )

    def _task(self, content: str) -> GeneratedProblem:
        return GeneratedProblem(self._prompt, SecretWord(content, self.misses), content)


class HangmanVerifier(GameVerifier):
    """Correct if the word was found in time."""

    def __init__(self) -> None:
        super().__init__(play)


def _room(dataset: Hangman) -> tuple[int, int]:
    # In the longest game, each letter is guessed in a separate turn, and all misses are whole words.
    said = dataset.length * len("a.") + dataset.misses * (dataset.length + 1)
    turns = dataset.length + dataset.misses - 1
    return said, (turns - 1) * len(f"\n{_state('-' * dataset.length, dataset.misses)}\n")


class HangmanEnv(TaskEnv):
    """Find a word letter by letter.

    Spaces, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    The last word in each turn of the policy is its guess: a letter, or the whole word. The answer is the word, with `-` for
    letters not yet guessed, and the number of misses left. A guess that reveals nothing is a miss, even if its letter was
    guessed before. The secrets are common English words from the environment's own list (`rlvr_envs.games.WORDS`); the secrets
    of the train and test splits are disjoint. A player who knows the list can find every word with the default number of
    misses.

    ## Starting State
    The number of letters of the word, and the number of misses.

    ## Reward
    1 if the word is found in time, else 0.

    ## Episode End
    Terminates when the word is found or the misses are used up; truncates if `max_new_tokens` are used up first.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `length` (5) and `misses` (8).
    Defaults: `split="train"`, `max_new_tokens` and `max_inserted_tokens` as many as a game needs.
    """

    task: ClassVar[TaskSpec] = procedural_task(
        Hangman, sizes={"train": 369, "test": 54}, max_new_tokens=58, rules=game_rules(play, _room)
    )
