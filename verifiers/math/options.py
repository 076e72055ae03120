"""Options for what counts as the same answer: a frozen record with a field for each rule that can be changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from verifiers._settings import check_types
from verifiers.bounds import Above, AtLeast, Between
from verifiers.errors import InvalidArgumentError

DEFAULT_ERROR = 1e-8
"""Absolute tolerance for problems without a tolerance of their own, if `abs_tol` is `problem`."""

DEFAULT_ROUNDING_DIGITS = 10


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """Options for comparing an answer with the gold.

    Raises:
        InvalidArgumentError: If the value of an option is invalid.
        UnknownNameError: If an option has no such choice; the message lists the valid choices.
    """

    percent: Literal["either", "value", "require", "factor"] = "either"
    """`25` and `25\\%`: `either` accepts the number or its hundredth; `value` accepts only the value; `require` also requires
    the sign; `factor` ignores the sign, and accepts the hundredth and the hundredfold of a number in digits, as some benchmarks
    do."""
    degrees: Literal["unit", "convert"] = "unit"
    """`unit`: degrees are a unit that may be left out; `convert`: they are also converted to radians."""
    units: Literal["ignore", "require", "convert"] = "ignore"
    """`ignore` ignores a missing or extra unit; `require` rejects it; `convert` ignores it, and converts units of one
    dimension."""
    brackets: Literal["strict", "lenient"] = "strict"
    """Whether the kind of brackets around a tuple or an interval must agree with the gold's."""
    vectors: Literal["lenient", "strict"] = "lenient"
    """Whether a vector may be written as a tuple."""
    base: Literal["optional", "require"] = "optional"
    """Whether the base of a numeral may be left out."""
    ordered: bool = False
    """Whether the order of a list without brackets matters."""
    reduced: bool = False
    """Whether a fraction of integers must be in lowest terms."""
    evaluated: bool = False
    """Whether arithmetic with a rational result must have been carried out."""
    literals_only: bool = False
    """Whether an answer that leaves any operation to carry out is rejected."""
    echo: Literal["reject", "allow"] = "reject"
    """Whether a compound answer is rejected or allowed if it only repeats an expression of the prompt."""
    rel_tol: Annotated[float | None, Between(0, 1, open_low=True, open_high=True)] = None
    """Relative tolerance for constants, for data sets with rounded golds. The wider of this and `abs_tol` applies."""
    abs_tol: Annotated[float | Literal["problem"] | None, Above(0)] = None
    """Absolute tolerance for constants. `problem` takes the tolerance from `metadata["error"]`, as in OlympiadBench: the
    smallest if there are several, 1e-8 if there is none."""
    rounding_digits: Annotated[int | None, AtLeast(1)] = DEFAULT_ROUNDING_DIGITS
    """Minimum number of significant digits of an accepted rounding of a non-terminating gold; None accepts no rounding."""
    decimal_comma: bool = False
    """Whether a comma between digits is the decimal sign in answers."""

    def __post_init__(self) -> None:
        check_types(self)

    @property
    def are_exact(self) -> bool:
        """Whether no number is accepted in place of a different number, as a tolerance or a rounding would allow."""
        return self.rel_tol is None and self.abs_tol is None and self.percent != "factor"

    def for_problem(self, metadata: Mapping[str, object]) -> ComparisonOptions:
        """The options with the problem's tolerance, if `abs_tol` is `problem`.

        Raises:
            InvalidArgumentError: If `error` is neither a number nor a comma-separated string of numbers.
        """
        return replace(self, abs_tol=_error(metadata.get("error"))) if self.abs_tol == "problem" else self


def _error(given: object) -> float:
    """The smallest of the errors that a problem specifies; the default error if it specifies none."""
    texts = [text.strip() for text in given.split(",")] if isinstance(given, str) else [given]
    try:
        errors = [float(text) if text else DEFAULT_ERROR for text in texts]  # type: ignore[arg-type]  # checked by float
    except (TypeError, ValueError):
        errors = [math.nan]
    if not all(math.isfinite(error) and error > 0 for error in errors):
        raise InvalidArgumentError(
            f"metadata['error'] must be a positive number, or several separated by commas, got {given!r}"
        )
    return min(errors)
