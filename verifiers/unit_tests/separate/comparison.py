"""Compares a result with the expected value, by `==` or by closeness of numbers."""

from __future__ import annotations

import cmath
import decimal
import numbers
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from . import packages
from .report import UnsupportedTestError


class approx:
    """A number, or a list, tuple, dict or array of numbers, that equals any value close to it.

    The tolerance is `abs` or `rel` times the expected number, whichever is larger; the defaults are 1e-12 and 1e-6. If only
    `abs` is given, `rel` does not apply.
    """

    __hash__ = None  # type: ignore[assignment]  # equality within a tolerance allows no hash
    __array_ufunc__ = None
    """Makes NumPy leave comparisons to this class."""

    def __init__(self, expected: Any, rel: Any = None, abs: Any = None, nan_ok: bool = False) -> None:
        if isinstance(expected, set | frozenset):
            raise TypeError("approx() takes numbers in an ordered collection, not a set")
        self.expected = expected
        self._tolerances = rel, abs
        self._nan_ok = nan_ok

    def __eq__(self, actual: Any) -> bool:
        if packages.is_array(actual) and not isinstance(self.expected, Collection):
            return all(self._close(item, self.expected) for item in actual.ravel())
        if packages.is_array(self.expected) and not (isinstance(actual, Sequence) or packages.is_array(actual)):
            return not isinstance(actual, Collection) and all(self._close(actual, one) for one in self.expected.ravel())
        return self._close(actual, self.expected)

    def __bool__(self) -> NoReturn:
        raise UnsupportedTestError("approx() has no truth value: write `assert result == approx(expected)`")

    def __repr__(self) -> str:
        return f"approx({self.expected!r})"

    def _close(self, actual: Any, expected: Any) -> bool:
        actual, expected = packages.plain(actual), packages.plain(expected)
        if isinstance(expected, Mapping):
            return isinstance(actual, Mapping) and self._close_items(dict(actual), dict(expected))
        if isinstance(expected, Sequence) and not isinstance(expected, str | bytes):
            return isinstance(actual, Collection) and self._close_all(list(actual), list(expected))
        if not isinstance(expected, bool) and _is_number(actual) and _is_number(expected):
            return self._close_number(actual, expected)
        return bool(actual == expected) and (isinstance(actual, bool) or not isinstance(expected, bool))

    # The next two receive copies: an object of the program may claim more items than it yields.

    def _close_items(self, actual: dict[Any, Any], expected: dict[Any, Any]) -> bool:
        return actual.keys() == expected.keys() and all(self._close(actual[key], expected[key]) for key in expected)

    def _close_all(self, actual: list[Any], expected: list[Any]) -> bool:
        return len(actual) == len(expected) and all(map(self._close, actual, expected))

    def _close_number(self, actual: Any, expected: Any) -> bool:
        if actual == expected:
            return True
        if cmath.isnan(expected):
            return self._nan_ok and cmath.isnan(actual)
        if cmath.isinf(expected) or cmath.isinf(actual):
            return False
        return bool(abs(actual - expected) <= self._tolerance(expected))

    def _tolerance(self, expected: Any) -> Any:
        number: Any = decimal.Decimal if isinstance(expected, decimal.Decimal) else _exact_or_float
        rel, absolute = (None if given is None else number(given) for given in self._tolerances)
        if rel is None and absolute is not None:
            return absolute
        return max(
            abs(expected) * (number("1e-6") if rel is None else rel), number("1e-12") if absolute is None else absolute
        )


def _exact_or_float(value: object) -> Any:
    """A tolerance as a float, or unchanged if it is exact, since fractions need an exact tolerance."""
    return value if isinstance(value, numbers.Rational) else float(value)  # type: ignore[arg-type] # what float refuses, raises


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Complex | decimal.Decimal)


class Equality:
    """Compares a result with the expected value."""

    def __init__(self, tolerance: float | None, *, tuples_as_lists: bool, wrapped_outputs: bool) -> None:
        self._tolerance = tolerance
        self._tuples_as_lists = tuples_as_lists
        self._wrapped_outputs = wrapped_outputs

    def __call__(self, result: object, expected: object) -> bool:
        """Whether the result equals the expected value, by `==` or as configured."""
        if self._tuples_as_lists:
            result, expected = _with_lists(result), _with_lists(expected)
        wrapped = self._wrapped_outputs and type(expected) is list and len(expected) == 1
        return self._equal(result, expected) or (wrapped and self._equal(result, expected[0]))  # type: ignore[index]  # a list

    def _equal(self, result: object, expected: object) -> bool:
        return packages.same(result, expected, self._plainly_equal)

    def _plainly_equal(self, result: object, expected: object) -> bool:
        if self._tolerance is None:
            return bool(result == expected) or (_holds_nan(expected) and _same_with_nan(result, expected))
        return bool(result == _CloseFloats(expected, rel=self._tolerance, abs=self._tolerance, nan_ok=True))


class _CloseFloats(approx):
    """Closeness of floats; two integers must be equal, and only a list can be close to a list."""

    def _close(self, actual: Any, expected: Any) -> bool:
        actual, expected = packages.plain(actual), packages.plain(expected)
        if isinstance(expected, list | tuple) and type(actual) is not type(expected):
            return False
        return super()._close(actual, expected)

    def _close_number(self, actual: Any, expected: Any) -> bool:
        if isinstance(actual, int) and isinstance(expected, int):
            return bool(actual == expected)
        try:
            return super()._close_number(actual, expected)
        except OverflowError:  # one is an integer that no float holds
            return False


def _is_nan(value: object) -> bool:
    return isinstance(value, float | complex | decimal.Decimal) and value != value


def _holds_nan(value: object) -> bool:
    """Whether plain data is or contains NaN."""
    pending, seen = [value], set()
    while pending:
        item: Any = packages.plain(pending.pop())
        if _is_nan(item):
            return True
        if type(item) in (list, tuple, dict) and id(item) not in seen:
            seen.add(id(item))
            pending += item.values() if type(item) is dict else item
    return False


def _same_with_nan(result: Any, expected: Any) -> bool:
    """Whether values are equal if NaN equals NaN; only looks inside exact lists, tuples and dicts, not subclasses of them."""
    result, expected = packages.plain(result), packages.plain(expected)
    cls = type(expected)
    if cls is not type(result):
        return bool(result == expected)
    if cls is complex:
        return _same_with_nan([result.real, result.imag], [expected.real, expected.imag])
    if cls in (list, tuple):
        return len(result) == len(expected) and all(map(_same_with_nan, result, expected))
    if cls is dict:
        return result.keys() == expected.keys() and all(_same_with_nan(result[key], expected[key]) for key in expected)
    return bool(result == expected) or (_is_nan(result) and _is_nan(expected))


def _with_lists(value: object) -> object:
    """A value with all tuples in it replaced by lists, as in JSON."""
    if isinstance(value, list | tuple):
        return [_with_lists(item) for item in value]
    return {key: _with_lists(item) for key, item in value.items()} if isinstance(value, dict) else value
