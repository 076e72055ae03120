"""Polynomials in x, to expand or to factor: `expand (x+2)(3x-1):`."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.procedural.base import DIGITS, GeneratedProblem, ProblemShape, ProceduralDataset, in_base
from rlvr_envs.procedural.polynomial import FORMS
from verifiers import Between, Problem


class Product(NamedTuple):
    """A product of linear factors `a x + b`, and the required form of the answer."""

    factors: tuple[tuple[int, int], ...]
    form: str


@dataclass(frozen=True)
class Polynomial(ProceduralDataset[Product]):
    """Expand a product of linear factors, or factor the expanded polynomial.

    An answer is right if it is algebraically equal to the polynomial and has the required form, with terms or factors in any
    order (see `PolynomialVerifier`). Both forms of one polynomial belong to the same split.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        degree: Number of factors, from 2 to 8.
        max_leading: Largest `a` of the factors `a x + b`, from 1 to 1000.
        max_constant: Largest absolute value of `b` in the factors, at most 1000. The number `b` is never 0.
        task: `"expand"`, `"factor"`, or `"mixed"` for both with equal probability.
    """

    name: ClassVar[str] = "polynomial"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("rlvr_envs.procedural.polynomial:PolynomialVerifier", {})

    degree: Annotated[int, Between(2, 8)] = 2
    max_leading: Annotated[int, Between(1, 1_000)] = 3
    max_constant: Annotated[int, Between(1, 1_000)] = 9
    task: Literal["expand", "factor", "mixed"] = "mixed"

    def _describe(self) -> ProblemShape:
        product_bytes = self.degree * len(f"({self.max_leading}x-{self.max_constant})")
        # The absolute value of a coefficient is at most the product of the sums of the factors' absolute coefficients.
        largest = (self.max_leading + self.max_constant) ** self.degree
        sum_bytes = (self.degree + 1) * len(f"+{largest}x^{self.degree}")
        return ProblemShape(
            difficulty=f"{self.task}-degree-{self.degree}-to-{self.max_leading}-{self.max_constant}",
            max_prompt_bytes=len("expand :") + max(product_bytes, sum_bytes),
            max_answer_bytes=max(product_bytes, sum_bytes),
            prompt_alphabet=DIGITS + "expand factor:()x^+-",
            answer_alphabet=DIGITS + "x^+-*()",
        )

    @property
    def _space(self) -> int:
        return int(len(self._forms) * (self.max_leading * 2 * self.max_constant) ** self.degree)

    @property
    def _forms(self) -> tuple[str, ...]:
        return {"expand": FORMS[:1], "factor": FORMS[1:]}.get(self.task, FORMS)

    def _at(self, code: int) -> Product:
        code, form = divmod(code, len(self._forms))
        code, leading = in_base(code, self.max_leading, self.degree)
        _, drawn = in_base(code, 2 * self.max_constant, self.degree)
        constants = [number - self.max_constant + (number >= self.max_constant) for number in drawn]  # 0 is left out
        return Product(tuple((a + 1, b) for a, b in zip(leading, constants, strict=True)), self._forms[form])

    def _question(self, content: Product) -> Hashable | None:
        if self.task == "expand":
            return None
        return content if content.form == "expanded" else tuple(_coefficients(content.factors))

    @property
    def _least_questions(self) -> int:
        """Number of questions.

        These are products to expand; for `"factor"`, only products of factors `x + b`, in any order, count.
        """
        if self.task == "factor":
            return int((2 * self.max_constant) ** self.degree // math.factorial(self.degree))
        return self._space // len(self._forms)

    def _key(self, content: Product) -> object:
        return _coefficients(content.factors)

    def in_words(self, problem: Problem) -> str:
        """The problem's question in words."""
        form, _, polynomial = str(problem.prompt).removesuffix(":").partition(" ")
        if form == "expand":
            return f"Expand {polynomial} into a sum of terms."
        return f"Factor {polynomial} into linear factors."

    def _task(self, content: Product) -> GeneratedProblem:
        product = "".join(f"({_sum_text([b, a])})" for a, b in content.factors)
        expanded = _sum_text(_coefficients(content.factors))
        if content.form == "expanded":
            return GeneratedProblem(f"expand {product}:", expanded, expanded, {"form": content.form})
        return GeneratedProblem(f"factor {expanded}:", expanded, product, {"form": content.form})


def _coefficients(factors: tuple[tuple[int, int], ...]) -> list[int]:
    """Coefficients of the product, starting with the constant."""
    product = [1]
    for a, b in factors:
        product = [b * low + a * high for low, high in zip([*product, 0], [0, *product], strict=True)]
    return product


def _sum_text(coefficients: list[int]) -> str:
    terms = [_term_text(number, power) for power, number in enumerate(coefficients) if number]
    return "".join(reversed(terms)).removeprefix("+")


def _term_text(coefficient: int, power: int) -> str:
    if power == 0:
        return f"{coefficient:+d}"
    number = {1: "+", -1: "-"}.get(coefficient, f"{coefficient:+d}")
    return f"{number}x" if power == 1 else f"{number}x^{power}"


class PolynomialEnv(TaskEnv):
    """Expand or factor polynomials.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Expand a product of linear factors, or factor the expanded polynomial. Problems are generated: nothing is downloaded, and
    the train and test splits are disjoint.

    ## Starting State
    The polynomial, and the task to expand or to factor it.

    ## Reward
    1 if the answer is algebraically equal to the polynomial and has the required form, else 0.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `degree` (2), `max_leading`
    (3), `max_constant` (9) and `task` (`"mixed"`, `"expand"` or `"factor"`). Defaults: `split="train"`,
    `max_new_tokens=64`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Polynomial, sizes={"train": 3_905, "test": 438}, max_new_tokens=64)
