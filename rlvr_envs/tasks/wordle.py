"""Wordle: after a prompt such as `find a word of 5 letters:`, the answer to a guess marks each letter."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.games import GameVerifier, Move, SecretWord, WordDataset, game_rules
from rlvr_envs.procedural.base import GeneratedProblem, ProblemShape
from verifiers import Between, Problem

_WORD = re.compile(r"[a-z]+")
_NO_WORD = "no word of {} letters"


def marks(secret: str, guess: str) -> str:
    """Mark each letter of a guess: `g` (green) if it is right, `y` (yellow) if it is elsewhere in the secret, otherwise `-`.

    A letter gets `g` or `y` at most as often as it occurs in the secret: first at its right places, and then from left to
    right.
    """
    left = Counter(secret) - Counter(letter for letter, other in zip(guess, secret, strict=True) if letter == other)
    written = []
    for letter, other in zip(guess, secret, strict=True):
        misplaced = letter != other and left[letter] > 0
        left[letter] -= misplaced
        written.append("g" if letter == other else "y" if misplaced else "-")
    return "".join(written)


def play(reference: SecretWord, moves: Sequence[str]) -> Move:
    """Answer the last guess, which is the last word in the turn."""
    guess = (_WORD.findall(moves[-1].lower()) or [""])[-1]
    if guess == reference.word:
        return Move("right", over=True, score=1.0)
    if len(moves) >= reference.tries:
        return Move("lost", over=True)
    length = len(reference.word)
    return Move(marks(reference.word, guess) if len(guess) == length else _NO_WORD.format(length))


@dataclass(frozen=True)
class Wordle(WordDataset):
    """Find a secret word by guessing words.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        length: Number of letters of the word, from 4 to 7.
        guesses: Number of guesses.
    """

    name: ClassVar[str] = "wordle"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("rlvr_envs.tasks.wordle:WordleVerifier", {})

    guesses: Annotated[int, Between(1, 1_000)] = 6

    def _describe(self) -> ProblemShape:
        prompt = _prompt(self.length)
        return ProblemShape(
            difficulty=f"{self.length}-in-{self.guesses}",
            max_prompt_bytes=len(prompt),
            max_answer_bytes=self.length,
            prompt_alphabet=prompt + "\n-" + string.ascii_lowercase,
            answer_alphabet=string.ascii_lowercase,
        )

    def in_words(self, problem: Problem) -> str:
        """The rules of the game in words, and its start."""
        return (
            f"Find my secret English word of {self.length} letters in at most {self.guesses} turns. Each of your turns is one "
            f"guess: write a word of {self.length} letters alone. I answer with one sign for each letter: g if the letter is "
            "right, y if it is in the word at another place, and - if it is not in the word. What is your first guess?"
        )

    def _task(self, content: str) -> GeneratedProblem:
        return GeneratedProblem(_prompt(self.length), SecretWord(content, self.guesses), content)


def _prompt(length: int) -> str:
    return f"find a word of {length} letters:"


class WordleVerifier(GameVerifier):
    """Correct if the word was found in time."""

    def __init__(self) -> None:
        super().__init__(play)


def _room(dataset: Wordle) -> tuple[int, int]:
    longest = len(_NO_WORD.format(dataset.length)) + len("\n\n")
    return dataset.guesses * (dataset.length + 1), (dataset.guesses - 1) * longest


class WordleEnv(TaskEnv):
    """Find a secret word, with marks for the letters as the answer to each guess.

    Spaces, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    The last word in each turn of the policy is its guess; any string of letters counts as a word. The answer has a mark for
    each letter of the guess: `g` (green) if it is in the right place, `y` (yellow) if it is elsewhere in the secret word, and
    `-` if the secret word does not contain the letter, or contains no more of this letter. The secret words are common English
    words from the environment's own list (`rlvr_envs.games.WORDS`); the secret words of the train and test splits are disjoint.
    A player who knows the list can find every word in the default number of guesses.

    ## Starting State
    The number of letters of the word.

    ## Reward
    1 if the word is found in time, else 0.

    ## Episode End
    Terminates when the word is found or the guesses are used up; truncates if `max_new_tokens` are used up first.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `length` (5) and `guesses` (6).
    Defaults: `split="train"`, `max_new_tokens` and `max_inserted_tokens` as many as a game needs.
    """

    task: ClassVar[TaskSpec] = procedural_task(
        Wordle, sizes={"train": 375, "test": 48}, max_new_tokens=36, rules=game_rules(play, _room)
    )
