"""The countdown game: `make 99 from 3 7 25 50:`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.procedural.base import DIGITS, GeneratedProblem, ProblemShape, ProceduralDataset, in_base, require_whole
from verifiers import Between, Problem
from verifiers.countdown import CountdownReference

_SIGNS = 12
"""Number of codes of an operation. From one to four operations are legal, and this number is divisible by 1, 2, 3 and 4."""


class SolvedGame(NamedTuple):
    """A game, with the solution from which it was made."""

    numbers: tuple[int, ...]
    target: int
    solution: str


@dataclass(frozen=True)
class Countdown(ProceduralDataset[SolvedGame]):
    """Write an expression with the given numbers, each exactly once, that has the target's value.

    A game is made by repeatedly joining two numbers with a random operation, whose result is whole, greater than 0 and at most
    `max_target`. So every game has a solution. Any other expression with the target's value is correct as well. Games with the
    same numbers, in any order, and the same target belong to the same split.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        count: Number of given numbers, 2 to 12.
        max_number: Numbers are drawn uniformly from 1 to `max_number`, which is at most 10**6.
        max_target: Upper limit of the target; at least `max_number`.
    """

    name: ClassVar[str] = "countdown"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("countdown", {})

    count: Annotated[int, Between(2, 12)] = 4
    max_number: Annotated[int, Between(1, 10**6)] = 25
    max_target: int = 100

    def _describe(self) -> ProblemShape:
        width = len(str(self.max_number))
        return ProblemShape(
            difficulty=f"{self.count}-numbers-to-{self.max_number}-target-to-{self.max_target}",
            max_prompt_bytes=len(f"make {self.max_target} from:") + self.count * (width + 1),
            # There may be parentheses around every operation except the last.
            max_answer_bytes=self.count * width + (self.count - 1) + 2 * (self.count - 2),
            prompt_alphabet=DIGITS + "make from:",
            answer_alphabet=DIGITS + "+-*/()",
        )

    def _check_difficulty(self) -> None:
        require_whole("max_target", self.max_target, self.max_number, 10**9)

    @property
    def _space(self) -> int:
        pairs = math.prod(left * (left - 1) for left in range(2, self.count + 1))
        return int(self.max_number**self.count * pairs * _SIGNS ** (self.count - 1))

    def _at(self, code: int) -> SolvedGame:
        code, numbers = in_base(code, self.max_number, self.count)
        operands = [_Operand(number + 1, str(number + 1), 3) for number in numbers]
        while len(operands) > 1:
            code, first = divmod(code, len(operands))
            code, second = divmod(code, len(operands) - 1)
            code, third = divmod(code, _SIGNS)
            low, high = sorted((operands.pop(first), operands.pop(second)), key=lambda operand: operand.value)
            signs = _legal_signs(high.value, low.value, self.max_target)
            operands.append(_join(signs[third % len(signs)], high, low))
        return SolvedGame(tuple(number + 1 for number in numbers), operands[0].value, operands[0].text)

    def _question(self, content: SolvedGame) -> tuple[tuple[int, ...], int]:
        return content.numbers, content.target

    @property
    def _least_questions(self) -> int:
        return int(self.max_number**self.count)

    def _key(self, content: SolvedGame) -> object:
        return sorted(content.numbers), content.target

    def in_words(self, problem: Problem) -> str:
        """The problem's question in words."""
        target, _, numbers = str(problem.prompt).removeprefix("make ").removesuffix(":").partition(" from ")
        return (
            f"Write an expression of the value {target}. It has to use each of the numbers {numbers} exactly once, and nothing "
            "else but +, -, *, / and parentheses."
        )

    def _task(self, content: SolvedGame) -> GeneratedProblem:
        numbers = " ".join(map(str, content.numbers))
        reference = CountdownReference(content.numbers, content.target)
        columns = {"nums": list(content.numbers)}  # the column's name in public data sets
        return GeneratedProblem(f"make {content.target} from {numbers}:", reference, content.solution, columns)


class _Operand(NamedTuple):
    value: int
    text: str
    binding: int
    """Precedence of the text's outermost operation: 1 for a sum, 2 for a product, 3 for a number."""


def _legal_signs(high: int, low: int, limit: int) -> str:
    """The operations on `high >= low` with a whole result from 1 to `limit`. There is always at least one such operation."""
    signs = "-" if high > low else ""
    signs += "+" if high + low <= limit else ""
    signs += "*" if high * low <= limit else ""
    return signs + ("/" if high % low == 0 else "")


def _join(sign: str, high: _Operand, low: _Operand) -> _Operand:
    if sign == "+":
        return _Operand(high.value + low.value, f"{_operand(high, 1)}+{_operand(low, 1)}", 1)
    if sign == "-":
        return _Operand(high.value - low.value, f"{_operand(high, 1)}-{_operand(low, 2)}", 1)
    if sign == "*":
        return _Operand(high.value * low.value, f"{_operand(high, 2)}*{_operand(low, 2)}", 2)
    return _Operand(high.value // low.value, f"{_operand(high, 2)}/{_operand(low, 3)}", 2)


def _operand(operand: _Operand, binding: int) -> str:
    return operand.text if operand.binding >= binding else f"({operand.text})"


class CountdownEnv(TaskEnv):
    """Reach a target by combining given numbers.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Combine the given numbers, each used once, with `+`, `-`, `*`, `/` and parentheses so that the result is the target.
    Problems are generated: nothing is downloaded, and the train and test splits are disjoint.

    ## Starting State
    The numbers and the target.

    ## Reward
    1 if the expression is well formed, uses each number exactly once and equals the target, else 0.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `count` (4) of the numbers,
    `max_number` (25) and `max_target` (100). Defaults: `split="train"`, `max_new_tokens=48`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Countdown, sizes={"train": 10_000, "test": 1_000}, max_new_tokens=48)
