"""Sums of two numbers: `37+58=`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.procedural.base import DIGITS, GeneratedProblem, ProblemShape, ProceduralDataset
from verifiers import Between, Problem

Summands = tuple[int, int]


@dataclass(frozen=True)
class Addition(ProceduralDataset[Summands]):
    """Add two whole numbers, each drawn uniformly from 0 to `10**digits - 1`.

    `a+b` and `b+a` belong to the same split. The answer is the literal sum; an expression is never accepted.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        digits: Maximum number of digits of an operand, from 1 to 100.
    """

    name: ClassVar[str] = "addition"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("numeric", {"whole": True})
    chat_verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("numeric", {})

    digits: Annotated[int, Between(1, 100)] = 2

    def _describe(self) -> ProblemShape:
        return ProblemShape(
            difficulty=f"{self.digits}-digit",
            max_prompt_bytes=2 * self.digits + len("+="),
            max_answer_bytes=self.digits + 1,
            prompt_alphabet=DIGITS + "+=",
            answer_alphabet=DIGITS,
        )

    @property
    def _space(self) -> int:
        return int(10 ** (2 * self.digits))

    def _at(self, code: int) -> Summands:
        return divmod(code, int(10**self.digits))

    def _key(self, content: Summands) -> object:
        return sorted(content)

    def in_words(self, problem: Problem) -> str:
        """The problem's question in words."""
        return f"What is {str(problem.prompt).removesuffix('=')}?"

    def _task(self, content: Summands) -> GeneratedProblem:
        first, second = content
        answer = str(first + second)
        return GeneratedProblem(f"{first}+{second}=", answer, answer)


class AdditionEnv(TaskEnv):
    """Sums of two numbers.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Add two whole numbers of up to `digits` digits, such as `37+58=`. Problems are generated: nothing is downloaded, and
    the train and test splits are disjoint.

    ## Starting State
    The sum's expression, up to the equals sign.

    ## Reward
    1 if the completion is exactly the literal sum, else 0. Under a chat prompt, only the answer within the completion counts.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `digits` (2). Defaults:
    `split="train"`, `max_new_tokens=8`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Addition, sizes={"train": 8_999, "test": 1_000}, max_new_tokens=8)
