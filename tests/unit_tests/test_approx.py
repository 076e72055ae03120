"""`approx` of test files agrees with pytest's."""

from __future__ import annotations

import decimal
import fractions
import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from verifiers.unit_tests.separate import arrays, packages
from verifiers.unit_tests.separate.comparison import approx
from verifiers.unit_tests.separate.report import UnsupportedTestError

NUMBERS: Any = st.one_of(
    st.integers(-3, 3),
    st.sampled_from(
        [0.1, 0.1 + 0.2, 0.3, 1e-13, 1 + 5e-7, 1 + 2e-6, 1e10, 1e10 + 1, math.inf, -math.inf, math.nan, 2 + 1j]
    ),
    st.sampled_from([fractions.Fraction(1, 3), True, False]),
)
DECIMALS = st.sampled_from([decimal.Decimal(text) for text in ("0.3", "0.30000001", "1", "1.001", "-2", "NaN")])
TOLERANCES = [0, 0.5, 1, None, 2**-10]
"""These are exact as decimals too."""


def outcome(approximate: Any, actual: Any, expected: Any, tolerances: dict[str, Any]) -> bool:
    """Whether an assert that they are close passes."""
    try:
        return bool(actual == approximate(expected, **tolerances))
    except (TypeError, ValueError, decimal.InvalidOperation):
        return False


@pytest.mark.parametrize("numbers", [NUMBERS, DECIMALS], ids=["numbers", "decimals"])
@pytest.mark.parametrize(
    "build",
    [lambda numbers: numbers[0], list, tuple, lambda numbers: dict(enumerate(numbers))],
    ids=["one", "list", "tuple", "dict"],
)
@given(data=st.data())
def test_numbers_and_their_containers(numbers: Any, build: Any, data: st.DataObject) -> None:
    lists = st.lists(numbers, min_size=1, max_size=3)
    expected, actual = data.draw(lists), data.draw(lists | st.none())
    rel, absolute, nan_ok = (data.draw(st.sampled_from(some)) for some in (TOLERANCES, TOLERANCES, [True, False]))
    tolerances = {"rel": rel, "abs": absolute, "nan_ok": nan_ok}
    built = build(expected), build(actual or expected)
    assert outcome(approx, built[1], built[0], tolerances) == outcome(pytest.approx, built[1], built[0], tolerances)


@pytest.mark.parametrize("expected", [None, "text", b"text", [None, "text"], {"a": "text"}])
def test_what_is_no_number_is_equal_or_not(expected: Any) -> None:
    assert expected == approx(expected)
    assert "other" != approx(expected) != 0.0


def test_an_order_of_items_is_required() -> None:
    assert {"a": 0.1 + 0.2}.values() == approx([0.3])
    with pytest.raises(TypeError, match="ordered collection"):
        approx({0.3})


def test_it_has_no_truth_value() -> None:
    with pytest.raises(UnsupportedTestError, match="write `assert result == approx"):
        assert approx(1)


def test_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = pytest.importorskip("numpy")
    monkeypatch.setattr(packages, "_arrays", arrays)
    pairs: list[tuple[Any, Any]] = [
        (numpy.array([0.1 + 0.2, 1]), numpy.array([0.3, 1])),
        (numpy.array([0.1 + 0.2, 2]), numpy.array([0.3, 1])),
        (numpy.array([[0.1 + 0.2], [1]]), numpy.array([[0.3], [1]])),
        (numpy.array([[0.3], [1]]), numpy.array([0.3, 1])),
        ([0.1 + 0.2, 1], numpy.array([0.3, 1])),
        ({0.3}, numpy.array([0.3])),
        (numpy.array([0.1 + 0.2, 0.3]), 0.3),
        (0.3, numpy.array([0.1 + 0.2, 0.3])),
        (numpy.float32(0.1), 0.1),
        (numpy.int64(3), 3.0000001),
        (numpy.array([math.nan]), numpy.array([math.nan])),
    ]
    for actual, expected in pairs:
        for options in ({}, {"nan_ok": True}, {"abs": 0.2}):
            assert outcome(approx, actual, expected, options) == outcome(pytest.approx, actual, expected, options)
