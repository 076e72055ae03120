"""What counts as the same answer: one frozen record with a field for each row of the policy that can be changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from verifiers._settings import check_types
from verifiers.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Rules:
    """How an answer is compared with the gold.

    Raises:
        InvalidArgumentError: If an option has a value that it cannot have.
        UnknownNameError: If an option has no such choice; the message lists those it has.
    """

    percent: Literal["either", "value", "require"] = "either"
    """`25` and `25\\%`: `either` accepts the number or its hundredth; `value` only what it is worth; `require` the sign too."""
    degrees: Literal["unit", "convert"] = "unit"
    """Whether degrees are a unit that may be left out, or are converted to radians as well."""
    units: Literal["ignore", "require", "convert"] = "ignore"
    """A missing or extra unit is ignored or is wrong; `convert` ignores too, and converts units of one dimension."""
    brackets: Literal["strict", "lenient"] = "strict"
    """Whether the brackets around a tuple or an interval matter."""
    vectors: Literal["lenient", "strict"] = "lenient"
    """Whether a vector may be written as a tuple."""
    base: Literal["optional", "require"] = "optional"
    """Whether the base of a numeral may be left out."""
    ordered: bool = False
    """Whether a list without brackets has an order."""
    reduced: bool = False
    """Whether a fraction of integers must be in lowest terms."""
    evaluated: bool = False
    """Whether arithmetic with a rational result must have been carried out."""
    rel_tol: float | None = None
    """Relative tolerance for constants, for data sets whose golds are rounded."""
    rounding_digits: int | None = 10
    """Significant digits from which a correct rounding of a non-terminating gold is accepted; None accepts none."""
    decimal_comma: bool = False
    """Whether a comma between digits is the decimal sign in answers."""

    def __post_init__(self) -> None:
        check_types(self)
        if self.rel_tol is not None and not (math.isfinite(self.rel_tol) and 0 < self.rel_tol < 1):
            raise InvalidArgumentError(f"rel_tol is a number between 0 and 1 or None, got {self.rel_tol!r}")
        if self.rounding_digits is not None and self.rounding_digits < 1:
            raise InvalidArgumentError(f"rounding_digits is a positive integer or None, got {self.rounding_digits!r}")
