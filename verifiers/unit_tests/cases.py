"""What a program is tested with: the kinds of `Problem.reference` that the unit-test verifier takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CheckTests:
    """A test function `check(candidate)`, as in HumanEval."""

    entry_point: str
    """The function under test."""
    test: str
    """Source that defines `check`; it may use what `prefix` defines."""
    prefix: str = ""
    """The prompt's code. A completion continues it, or is a whole program that may use its imports and helpers."""


@dataclass(frozen=True, slots=True)
class AssertTests:
    """Assert statements, as in MBPP."""

    asserts: tuple[str, ...]
    """Each is a case of its own."""
    setup: str = ""
    """Source that runs after the program and before the asserts, and may use what the program defines."""
    prefix: str = ""
    """As for `CheckTests`."""
    entry_points: tuple[str, ...] = ()
    """Names of functions under test that hide a builtin; found out where they are the only candidates."""


@dataclass(frozen=True, slots=True)
class CallCase:
    """One call and the value it must return."""

    args: tuple[object, ...]
    expected: object
    kwargs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallTests:
    """Calls of one function, compared with `==`; arguments and expected values are plain data."""

    entry_point: str
    """The function under test; `Class().method` and dotted names are not meant."""
    cases: tuple[CallCase, ...]
    prefix: str = ""
    """As for `CheckTests`."""


@dataclass(frozen=True, slots=True)
class StdioCase:
    """One run: what the program reads and what it must write."""

    stdin: str
    expected: str


@dataclass(frozen=True, slots=True)
class StdioTests:
    """Runs of a program that reads standard input and writes standard output."""

    cases: tuple[StdioCase, ...]
    tolerance: float | None = None
    """Where given, tokens that are numbers need only agree within this, absolutely or relatively."""
    comparison: str = "tokens"
    """`"tokens"`: white space does not count. `"lines"`: only white space at line ends and empty lines at the end don't."""


@dataclass(frozen=True, slots=True)
class FunctionTests:
    """A file of test functions in pytest's style; each `test_*` function without parameters is a case."""

    test: str
    """Source of the test file; it may use the standard library, and not pytest itself."""
    module: str = "solution"
    """The name under which the test file imports the program."""


Tests = FunctionTests | CheckTests | AssertTests | CallTests | StdioTests
