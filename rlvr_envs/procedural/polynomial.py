"""Polynomials in x, to expand or to factor: `expand (x+2)(3x-1):`."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

import verifiers
from rlvr_envs.procedural.base import DIGITS, Format, ProceduralDataset, Task, require_whole
from verifiers import InvalidArgumentError, Outcome, Problem, Verdict

FORMS = ("expanded", "factored")


class Product(NamedTuple):
    """A product of linear factors `a x + b`, and the form that is asked for."""

    factors: tuple[tuple[int, int], ...]
    form: str


@dataclass(frozen=True)
class Polynomial(ProceduralDataset[Product]):
    """Expand a product of linear factors, or factor the polynomial that it makes.

    An answer is right when it equals the polynomial up to algebra and has the form that is asked for, in any order of
    terms and factors (see `PolynomialVerifier`). Both forms of one polynomial belong to the same split.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems; by default 100 000 for train and 1 000 for test.
        degree: Number of factors, 2 to 8.
        max_leading: Factors are `a x + b` with `a` from 1 to this number, at most 1000,
        max_constant: and `b` from minus to plus this number, at most 1000, but 0.
        task: `"expand"`, `"factor"`, or `"mixed"`: each with equal chance.
    """

    name: ClassVar[str] = "polynomial"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("rlvr_envs.procedural.polynomial:PolynomialVerifier", {})

    degree: int = 2
    max_leading: int = 3
    max_constant: int = 9
    task: str = "mixed"

    def _describe(self) -> Format:
        product_bytes = self.degree * len(f"({self.max_leading}x-{self.max_constant})")
        # No coefficient is larger than the product of the sums of the factors' coefficients, in size.
        largest = (self.max_leading + self.max_constant) ** self.degree
        sum_bytes = (self.degree + 1) * len(f"+{largest}x^{self.degree}")
        return Format(
            difficulty=f"{self.task}-degree-{self.degree}-to-{self.max_leading}-{self.max_constant}",
            max_prompt_bytes=len("expand :") + max(product_bytes, sum_bytes),
            max_answer_bytes=max(product_bytes, sum_bytes),
            prompt_alphabet=DIGITS + "expand factor:()x^+-",
            answer_alphabet=DIGITS + "x^+-*()",
        )

    def _check_difficulty(self) -> None:
        require_whole("degree", self.degree, 2, 8)
        require_whole("max_leading", self.max_leading, 1, 1_000)
        require_whole("max_constant", self.max_constant, 1, 1_000)
        if self.task not in ("expand", "factor", "mixed"):
            raise InvalidArgumentError(f"task is 'expand', 'factor' or 'mixed', got {self.task!r}")

    def _draw(self, rng: np.random.Generator) -> Product:
        leading = rng.integers(1, self.max_leading, size=self.degree, endpoint=True).tolist()
        drawn = rng.integers(0, 2 * self.max_constant, size=self.degree).tolist()
        constants = [number - self.max_constant + (number >= self.max_constant) for number in drawn]  # 0 left out
        form = {"expand": 0, "factor": 1}.get(self.task, int(rng.integers(2)))
        return Product(tuple(zip(leading, constants, strict=True)), FORMS[form])

    def _key(self, content: Product) -> object:
        return _coefficients(content.factors)

    def _task(self, content: Product) -> Task:
        product = "".join(f"({_sum_text([b, a])})" for a, b in content.factors)
        expanded = _sum_text(_coefficients(content.factors))
        if content.form == "expanded":
            return Task(f"expand {product}:", expanded, expanded, {"form": content.form})
        return Task(f"factor {expanded}:", expanded, product, {"form": content.form})


def _coefficients(factors: tuple[tuple[int, int], ...]) -> list[int]:
    """Coefficients of the product, the constant first."""
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


# Texts are normalised before they are matched: no white space, no TeX braces, `*` for every product sign.
_NORMALISED = [(r"\\left|\\right|[\s${}]", ""), (r"\\cdot|\\times|·|×", "*"), (r"\*\*", "^"), ("−", "-")]
_MONOMIAL = r"(?:[0-9]+(?:\*?x(?:\^[0-9]+)?)?|x(?:\^[0-9]+)?)"
_EXPANDED = re.compile(rf"[+-]?{_MONOMIAL}(?:[+-]{_MONOMIAL})*")
_X = r"(?:[0-9]+\*?)?x"
_LINEAR = rf"\([+-]?(?:{_X}(?:[+-][0-9]+)?|[0-9]+[+-]{_X})\)(?:\^[0-9]+)?"
_FACTORED = re.compile(rf"[+-]?(?:[0-9]+\*?)?{_LINEAR}(?:\*?{_LINEAR})*")


def has_form(text: str, form: str) -> bool:
    r"""Whether a polynomial's text is a sum of monomials (`"expanded"`) or a product of linear factors (`"factored"`).

    A whole number may stand before the factors. `x^2`, `x**2` and TeX's braces, `\left(` and product signs are read.
    """
    for pattern, replacement in _NORMALISED:
        text = re.sub(pattern, replacement, text)
    return (_EXPANDED if form == "expanded" else _FACTORED).fullmatch(text) is not None


class PolynomialVerifier:
    """The `"math"` verifier, which also asks for the form named by `metadata["form"]`: see `has_form`.

    Equality up to algebra alone would call it right to copy the prompt.
    """

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion."""
        return self.verify_batch([completion], [problem])[0]

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i.

        Raises:
            InvalidArgumentError: If a problem's `metadata["form"]` is neither `"expanded"` nor `"factored"`.
        """
        forms = [_form(problem) for problem in problems]
        verdicts = verifiers.verify_batch(self._math, completions, problems)
        return [_formed(*judged) for judged in zip(verdicts, forms, strict=True)]

    @functools.cached_property
    def _math(self) -> verifiers.Verifier:
        return verifiers.make("math")


def _form(problem: Problem) -> str:
    form = problem.metadata.get("form")
    if form not in FORMS:
        raise InvalidArgumentError(
            f"the polynomial verifier needs metadata['form'] of {FORMS}, got {form!r} of problem {problem.id!r}; "
            "for equality alone use the 'math' verifier"
        )
    return str(form)


def _formed(verdict: Verdict, form: str) -> Verdict:
    if verdict.outcome is not Outcome.CORRECT or has_form(verdict.answer or "", form):
        return verdict
    reason = f"equal to the polynomial, and not {form}"
    return replace(verdict, score=0.0, outcome=Outcome.INCORRECT, detail={**verdict.detail, "reason": reason})
