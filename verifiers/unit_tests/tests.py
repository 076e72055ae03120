"""The kinds of tests that the unit-test verifier accepts as `Problem.reference`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CheckTests:
    """A test function `check(candidate)`, as in HumanEval."""

    entry_point: str
    """The function under test, or how to come by it: `"Solution().solve"`."""
    test: str
    """Source that defines `check`; it may use what `prefix` defines."""
    prefix: str = ""
    """The prompt's code. A completion continues it, or is a whole program that may use its imports and helpers."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Source by path, such as `{"data/primes.py": ...}`, which program and tests may import, each a copy of its own."""


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
    """Names of functions under test that hide a builtin; found out where they are the only candidates. The last one is what
    `prefix` announces, by default its last function."""
    files: Mapping[str, str] = field(default_factory=dict)
    """As for `CheckTests`."""


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
    """The function under test, or where there is none a method of class `Solution`, of which each case makes an instance;
    or how to come by it: `"Solution().solve"`."""
    cases: tuple[CallCase, ...]
    prefix: str = ""
    """As for `CheckTests`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """As for `CheckTests`."""
    tolerance: float | None = None
    """Where given, floats need only agree within this, absolutely or relatively, also inside lists, tuples and dicts; two
    integers are still equal or not."""
    tuples_as_lists: bool = False
    """Whether tuples equal lists of the same items, as where the expected values were written in JSON."""
    wrapped_outputs: bool = False
    """Whether an expected list of one item also stands for that item, as where each output is a list of outputs."""
    prelude: str = ""
    """Source, such as imports, that runs before the program and gives it names that it may use. The tests don't see it."""


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
    """Where given, tokens that are numbers need only agree within this, absolutely or relatively; two integers are still
    equal or not."""
    comparison: str = "tokens"
    """`"tokens"`: white space does not count. `"lines"`: only white space at line ends and empty lines at the end don't."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Source by path, which the program may import."""
    prelude: str = ""
    """As for `CallTests`."""


@dataclass(frozen=True, slots=True)
class FunctionTests:
    """A test file in pytest's or unittest's style; each test, with each set of its parameters, is a case.

    Functions `test*`, methods `test*` of classes `Test*` and of `unittest.TestCase` classes. Of pytest there are `raises`,
    `approx`, `fixture`, `fail`, `skip`, `xfail`, `param` and the marks; what else a test asks for makes the verdict a
    `VERIFIER_ERROR` that names it.
    """

    test: str
    """Source of the test file; it may use the standard library."""
    module: str = "solution"
    """The name under which the test file imports the program, or the program's main file."""
    prefix: str = ""
    """As for `CheckTests`."""
    entry_point: str = ""
    """What `prefix` announces, by default its last function."""
    files: Mapping[str, str] = field(default_factory=dict)
    """As for `CheckTests`."""
    modules: tuple[str, ...] = ()
    """Other modules of a program of several files that the test file imports."""


Tests = FunctionTests | CheckTests | AssertTests | CallTests | StdioTests
