"""Sorting numbers: `sort 52 7 31:`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.procedural.base import DIGITS, GeneratedProblem, ProblemShape, ProceduralDataset, in_base
from verifiers import Between, Problem


@dataclass(frozen=True)
class Sort(ProceduralDataset[tuple[int, ...]]):
    """Sort whole numbers from small to large, with one space between them.

    All orders of the same numbers belong to the same split.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        length: Number of numbers, from 2 to 1000.
        max_number: Numbers are drawn uniformly from 0 to `max_number`, which is at most 10**9.
    """

    name: ClassVar[str] = "sort"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("exact", {})
    chat_verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("exact", {"marked": True, "separators": ",[]"})

    length: Annotated[int, Between(2, 1_000)] = 4
    max_number: Annotated[int, Between(1, 10**9)] = 99

    def _describe(self) -> ProblemShape:
        list_bytes = self.length * (len(str(self.max_number)) + 1) - 1
        return ProblemShape(
            difficulty=f"{self.length}-numbers-to-{self.max_number}",
            max_prompt_bytes=len("sort :") + list_bytes,
            max_answer_bytes=list_bytes,
            prompt_alphabet=DIGITS + "sort :",
            answer_alphabet=DIGITS + " ",
        )

    @property
    def _space(self) -> int:
        return int((self.max_number + 1) ** self.length)

    def _at(self, code: int) -> tuple[int, ...]:
        return tuple(in_base(code, self.max_number + 1, self.length)[1])

    def _key(self, content: tuple[int, ...]) -> object:
        return sorted(content)

    def in_words(self, problem: Problem) -> str:
        """The problem's question in words."""
        numbers = str(problem.prompt).removeprefix("sort ").removesuffix(":")
        return f"Sort the numbers {numbers} from small to large. Write all of them, with one space between two numbers."

    def _task(self, content: tuple[int, ...]) -> GeneratedProblem:
        answer = _listed(sorted(content))
        return GeneratedProblem(f"sort {_listed(content)}:", answer, answer)


def _listed(numbers: list[int] | tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))


class SortEnv(TaskEnv):
    """Sort numbers.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Write a list of numbers in ascending order. Problems are generated: nothing is downloaded, and the train and test
    splits are disjoint.

    ## Starting State
    The numbers.

    ## Reward
    1 if the completion is the sorted list, else 0. Under a chat prompt, only the answer within the completion counts.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `length` (4) and
    `max_number` (99). Defaults: `split="train"`, `max_new_tokens=32`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Sort, max_new_tokens=32)
