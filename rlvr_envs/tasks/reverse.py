"""Reversing words: `reverse hello:`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Annotated, ClassVar

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.procedural.base import GeneratedProblem, ProblemShape, ProceduralDataset, in_base
from verifiers import Between, Problem


@dataclass(frozen=True)
class Reverse(ProceduralDataset[str]):
    """Write a word backwards. The word's letters are drawn uniformly from a to z.

    A word and its reverse belong to the same split.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        length: Number of letters of the word, from 2 to 1000.
    """

    name: ClassVar[str] = "reverse"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("exact", {})
    chat_verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("exact", {"marked": True})

    length: Annotated[int, Between(2, 1_000)] = 5

    def _describe(self) -> ProblemShape:
        return ProblemShape(
            difficulty=f"{self.length}-letter",
            max_prompt_bytes=len("reverse :") + self.length,
            max_answer_bytes=self.length,
            prompt_alphabet=ascii_lowercase + " :",
            answer_alphabet=ascii_lowercase,
        )

    @property
    def _space(self) -> int:
        return int(len(ascii_lowercase) ** self.length)

    def _at(self, code: int) -> str:
        return "".join(ascii_lowercase[letter] for letter in in_base(code, len(ascii_lowercase), self.length)[1])

    def _key(self, content: str) -> object:
        return min(content, content[::-1])

    def in_words(self, problem: Problem) -> str:
        """The problem's question in words."""
        letters = str(problem.prompt).removeprefix("reverse ").removesuffix(":")
        return f"Write the letters {letters} in reverse order, with nothing between them."

    def _task(self, content: str) -> GeneratedProblem:
        answer = content[::-1]
        return GeneratedProblem(f"reverse {content}:", answer, answer)


class ReverseEnv(TaskEnv):
    """Reverse a word.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Write the letters of a word in the opposite order. Problems are generated: nothing is downloaded, and the train and
    test splits are disjoint.

    ## Starting State
    The word.

    ## Reward
    1 if the completion is the reversed word, else 0. Under a chat prompt, only the answer within the completion counts.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `length` (5). Defaults:
    `split="train"`, `max_new_tokens=16`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Reverse, max_new_tokens=16)
