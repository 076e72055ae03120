"""`PolynomialVerifier` judges whether a polynomial is right and in the required form.

The verifier is separate from the problems in `rlvr_envs.tasks.polynomial` because manifests of runs refer to it by this path.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace

import verifiers
from verifiers import InvalidArgumentError, Outcome, Problem, Verdict

FORMS = ("expanded", "factored")

# Before matching, texts are normalised: no white space, no TeX braces, `*` for every product sign.
_NORMALISED = [(r"\\left|\\right|[\s${}]", ""), (r"\\cdot|\\times|·|×", "*"), (r"\*\*", "^"), ("−", "-")]
_MONOMIAL = r"(?:[0-9]+(?:\*?x(?:\^[0-9]+)?)?|x(?:\^[0-9]+)?)"
_EXPANDED = re.compile(rf"[+-]?{_MONOMIAL}(?:[+-]{_MONOMIAL})*")
_X = r"(?:[0-9]+\*?)?x"
_LINEAR = rf"\([+-]?(?:{_X}(?:[+-][0-9]+)?|[0-9]+[+-]{_X})\)(?:\^[0-9]+)?"
_FACTORED = re.compile(rf"[+-]?(?:[0-9]+\*?)?{_LINEAR}(?:\*?{_LINEAR})*")


def has_form(text: str, form: str) -> bool:
    r"""Whether a polynomial's text is a sum of monomials (`"expanded"`) or a product of linear factors (`"factored"`).

    A whole number may precede the factors. `x^2`, `x**2`, and TeX's braces, `\left(` and product signs are understood.
    """
    for pattern, replacement in _NORMALISED:
        text = re.sub(pattern, replacement, text)
    return (_EXPANDED if form == "expanded" else _FACTORED).fullmatch(text) is not None


class PolynomialVerifier:
    """The `"math"` verifier with a further condition: the answer must have the form in `metadata["form"]`; see `has_form`.

    If only algebraic equality counted, a copy of the prompt would be correct.
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
