"""Arithmetic expressions: `(3+4)*2-5=`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.procedural.base import DIGITS, GeneratedProblem, ProblemShape, ProceduralDataset
from verifiers import Between, Problem

ExpressionTree = int | tuple[str, "ExpressionTree", "ExpressionTree"]
"""A number, or an operator with its two operands."""

_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_PRECEDENCE = {"+": 1, "-": 1, "*": 2}


@dataclass(frozen=True)
class Arithmetic(ProceduralDataset[ExpressionTree]):
    """Evaluate an expression with `+`, `-`, `*` and only the necessary parentheses.

    Expressions that differ only in the order of terms and factors belong to the same split. The answer is the literal value,
    with a `-` before a negative value; an expression is never accepted.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        depth: Number of operations on the longest path from the outermost operation to a number, from 1 to 6.
        digits: Maximum number of digits of a number, from 1 to 9; numbers are drawn uniformly from 0 to `10**digits - 1`.
    """

    name: ClassVar[str] = "arithmetic"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("numeric", {"whole": True})
    chat_verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("numeric", {})

    depth: Annotated[int, Between(1, 6)] = 2
    digits: Annotated[int, Between(1, 9)] = 1

    def _describe(self) -> ProblemShape:
        numbers = 2**self.depth
        parentheses = 2 * max(numbers - 2, 0)  # a pair for each operation except the outermost
        # The absolute value is largest if every operation is a product.
        largest = (10**self.digits - 1) ** numbers
        return ProblemShape(
            difficulty=f"depth-{self.depth}-{self.digits}-digit",
            max_prompt_bytes=numbers * self.digits + (numbers - 1) + parentheses + len("="),
            max_answer_bytes=len(f"-{largest}"),
            prompt_alphabet=DIGITS + "+-*()=",
            answer_alphabet=DIGITS + "-",
        )

    @property
    def _space(self) -> int:
        return self._spaces[self.depth]

    @functools.cached_property
    def _spaces(self) -> list[int]:
        """The number of codes by depth. A code combines an operator, a side, the other operand's depth, and both operands.

        The side says which operand is deeper. The other operand, whatever its depth, gets the same number of codes. This keeps
        expressions uniform, since the number of codes of the other operand's depth divides this number.
        """
        spaces = [10**self.digits]
        for depth in range(1, self.depth + 1):
            spaces.append(len("+-*") * 2 * depth * spaces[-1] ** 2)
        return spaces

    def _at(self, code: int) -> ExpressionTree:
        return self._at_depth(code, self.depth)

    def _at_depth(self, code: int, depth: int) -> ExpressionTree:
        if depth == 0:
            return code
        code, sign = divmod(code, len("+-*"))
        code, deep_side = divmod(code, 2)
        code, other_depth = divmod(code, depth)
        deep_code, other_code = divmod(code, self._spaces[depth - 1])
        deep = self._at_depth(deep_code, depth - 1)
        other = self._at_depth(other_code % self._spaces[other_depth], other_depth)
        return ("+-*"[sign], other, deep) if deep_side else ("+-*"[sign], deep, other)

    def _question(self, content: ExpressionTree) -> str:
        return _text(content)

    @property
    def _least_questions(self) -> int:
        """Number of expressions that are full trees. The texts of any two full trees differ in a number or an operator."""
        numbers = 2**self.depth
        return int(len("+-*") ** (numbers - 1) * 10 ** (self.digits * numbers))

    def _key(self, content: ExpressionTree) -> object:
        return _sum_key(content)

    def in_words(self, problem: Problem) -> str:
        """The problem's question in words."""
        return f"What is the value of {str(problem.prompt).removesuffix('=')}?"

    def _task(self, content: ExpressionTree) -> GeneratedProblem:
        answer = str(_value(content))
        return GeneratedProblem(f"{_text(content)}=", answer, answer)


def _value(expression: ExpressionTree) -> int:
    if isinstance(expression, int):
        return expression
    sign, left, right = expression
    return _OPERATIONS[sign](_value(left), _value(right))


def _sum_key(expression: ExpressionTree) -> object:
    """The sorted signed terms of a sum, so that the order of terms does not change the key."""
    return sorted(((sign, _product_key(term)) for sign, term in _terms(expression, 1)), key=repr)


def _product_key(expression: ExpressionTree) -> object:
    return sorted(map(_sum_key, _factors(expression)), key=repr) if isinstance(expression, tuple) else expression


def _terms(expression: ExpressionTree, sign: int) -> Iterator[tuple[int, ExpressionTree]]:
    if isinstance(expression, int) or expression[0] == "*":
        yield sign, expression
    else:
        yield from _terms(expression[1], sign)
        yield from _terms(expression[2], sign if expression[0] == "+" else -sign)


def _factors(expression: ExpressionTree) -> Iterator[ExpressionTree]:
    if isinstance(expression, int) or expression[0] != "*":
        yield expression
    else:
        yield from _factors(expression[1])
        yield from _factors(expression[2])


def _text(expression: ExpressionTree) -> str:
    if isinstance(expression, int):
        return str(expression)
    sign, left, right = expression
    binding = _PRECEDENCE[sign]
    # Only `-` is not associative, so right operands of the same precedence need parentheses.
    return _operand(left, binding) + sign + _operand(right, binding + (sign == "-"))


def _operand(expression: ExpressionTree, binding: int) -> str:
    text = _text(expression)
    loose = not isinstance(expression, int) and _PRECEDENCE[expression[0]] < binding
    return f"({text})" if loose else text


class ArithmeticEnv(TaskEnv):
    """Arithmetic expressions.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Evaluate a nested expression of whole numbers with `+`, `-` and `*`. Problems are generated: nothing is downloaded,
    and the train and test splits are disjoint.

    ## Starting State
    The expression, up to the equals sign.

    ## Reward
    1 if the completion is exactly the literal value, else 0. Under a chat prompt, only the answer within the
    completion counts.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and, for the difficulty, `depth` (2; of the nesting) and
    `digits` (1; of the numbers). Defaults: `split="train"`, `max_new_tokens=16`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Arithmetic, sizes={"train": 10_000, "test": 1_000}, max_new_tokens=16)
