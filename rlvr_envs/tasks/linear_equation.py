"""Linear equations in one unknown: `3x+5=20, x=`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, NamedTuple

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.procedural.base import DIGITS, GeneratedProblem, ProblemShape, ProceduralDataset, in_base
from verifiers import Between, Problem


class Coefficients(NamedTuple):
    """The equation `a x + b = c`."""

    a: int
    b: int
    c: int


@dataclass(frozen=True)
class LinearEquation(ProceduralDataset[Coefficients]):
    """Solve `a x + b = c`, with `a` and `b` not 0.

    Multiples of one equation belong to the same split. The answer is a literal such as `-7` or `3/2`. An equal fraction or
    decimal is right as well. An expression such as `(20-5)/3` is wrong.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        max_coefficient: Largest absolute value of `a` and `b`, and of the solution (if `solution="integer"`) or `c`
            (otherwise); at most 10**6.
        solution: `"integer"` if the solution is a whole number; `"rational"` if it may be a fraction.
    """

    name: ClassVar[str] = "linear_equation"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("numeric", {})

    max_coefficient: Annotated[int, Between(1, 10**6)] = 9
    solution: Literal["integer", "rational"] = "integer"

    def _describe(self) -> ProblemShape:
        largest = self.max_coefficient
        fraction = "" if self.solution == "integer" else f"/{largest}"
        constant = largest * (largest + 1) if self.solution == "integer" else largest
        return ProblemShape(
            difficulty=f"{self.solution}-to-{largest}",
            max_prompt_bytes=len(f"-{largest}x+{largest}=-{constant}, x="),
            max_answer_bytes=len(f"-{largest if self.solution == 'integer' else 2 * largest}{fraction}"),
            prompt_alphabet=DIGITS + "-+x=, ",
            answer_alphabet=DIGITS + "-/",
        )

    @property
    def _space(self) -> int:
        return (2 * self.max_coefficient) ** 2 * (2 * self.max_coefficient + 1)

    def _at(self, code: int) -> Coefficients:
        code, (first, second) = in_base(code, 2 * self.max_coefficient, 2)
        a, b, free = self._nonzero(first), self._nonzero(second), code - self.max_coefficient
        return Coefficients(a, b, a * free + b if self.solution == "integer" else free)

    def _nonzero(self, drawn: int) -> int:
        number = drawn - self.max_coefficient
        return number if number < 0 else number + 1

    def _key(self, content: Coefficients) -> object:
        divisor = math.gcd(*content) * (1 if content.a > 0 else -1)
        return tuple(number // divisor for number in content)

    def in_words(self, problem: Problem) -> str:
        """The problem's question in words."""
        equation = str(problem.prompt).removesuffix(", x=")
        return f"Solve {equation} for x. Write the value of x as a whole number or a fraction."

    def _task(self, content: Coefficients) -> GeneratedProblem:
        a, b, c = content
        answer = str(Fraction(c - b, a))
        coefficient = {1: "", -1: "-"}.get(a, str(a))
        return GeneratedProblem(f"{coefficient}x{b:+d}={c}, x=", answer, answer)


class LinearEquationEnv(TaskEnv):
    """Linear equations in one unknown.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Solve `a x + b = c` for x. Problems are generated: nothing is downloaded, and the train and test splits are
    disjoint.

    ## Starting State
    The equation.

    ## Reward
    1 if the completion gives the exact solution, else 0.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `max_coefficient` (9) and
    `solution` (`"integer"` or `"rational"`). Defaults: `split="train"`, `max_new_tokens=16`.
    """

    task: ClassVar[TaskSpec] = procedural_task(LinearEquation, sizes={"train": 5_454, "test": 702}, max_new_tokens=16)
