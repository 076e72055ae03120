"""The kinds of tests that the unit-test verifier accepts as `Problem.reference`."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, runtime_checkable

from verifiers._settings import check_types
from verifiers.bounds import Above, AtLeast
from verifiers.errors import InvalidArgumentError
from verifiers.unit_tests.extraction.extraction import PYTHON, announced


class _Checked:
    """A dataclass whose fields are checked against their types.

    Raises:
        InvalidArgumentError: If the value of a field has another type.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        check_types(self)


@dataclass(frozen=True, slots=True)
class CheckTests(_Checked):
    """A test function `check(candidate)`, as in HumanEval."""

    entry_point: str
    """The function under test, or an expression for it, such as `"Solution().solve"`."""
    test: str
    """Source that defines `check`; it may use what `prefix` defines."""
    prefix: str = ""
    """The prompt's code. A completion continues this code, or is a whole program that may use the code's imports and
    helpers."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Source by path, such as `{"data/primes.py": ...}`; program and tests each import their own copy."""


@dataclass(frozen=True, slots=True)
class AssertTests(_Checked):
    """Assert statements, as in MBPP."""

    asserts: tuple[str, ...]
    """Assert statements, each a separate case."""
    setup: str = ""
    """Source that runs after the program and before the asserts, and may use what the program defines."""
    prefix: str = ""
    """The prompt's code, as for `CheckTests`."""
    entry_points: tuple[str, ...] = ()
    """Names of functions under test that hide a builtin; without them, such a function is found only if nothing else is under
    test. The last name is the function that `prefix` declares, by default the last function in `prefix`.
    """
    files: Mapping[str, str] = field(default_factory=dict)
    """Source by path, as for `CheckTests`."""


@dataclass(frozen=True, slots=True)
class CallCase(_Checked):
    """One call and the value it must return."""

    args: tuple[object, ...]
    expected: object
    kwargs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallTests(_Checked):
    """Calls of one function, compared with `==`; arguments and expected values are plain data.

    An expected NaN equals NaN, also inside lists, tuples and dicts.
    """

    entry_point: str
    """The function under test, or an expression for it: `"Solution().solve"`. If there is no function of that name, each case
    calls the method of that name on a new instance of the class `Solution`."""
    cases: tuple[CallCase, ...]
    prefix: str = ""
    """The prompt's code, as for `CheckTests`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Source by path, as for `CheckTests`."""
    tolerance: Annotated[float | None, AtLeast(0)] = None
    """If given, the tolerance for floats, absolute or relative to the expected number, also inside lists, tuples and dicts; two
    integers must still be equal."""
    tuples_as_lists: bool = False
    """Whether tuples equal lists of the same items, for expected values written in JSON."""
    wrapped_outputs: bool = False
    """Whether an expected list of one item also means that item, for data in which each output is a list of outputs."""
    prelude: str = ""
    """Source, such as imports, that runs before the program and defines names for it. The tests don't see these names."""


@dataclass(frozen=True, slots=True)
class StdioCase(_Checked):
    """One run: the input of the program and the output that it must write."""

    stdin: str
    expected: str
    alternatives: tuple[str, ...] = ()
    """Other right outputs, for problems with several right answers."""


@dataclass(frozen=True, slots=True)
class StdioTests(_Checked):
    """Runs of a program that reads standard input and writes standard output."""

    cases: tuple[StdioCase, ...]
    tolerance: Annotated[float | None, AtLeast(0)] = None
    """If given, the tolerance for tokens that are numbers, absolute or relative to the expected number; two integers must still
    be equal."""
    comparison: Literal["tokens", "lines"] = "tokens"
    """`"tokens"` ignores the kind and amount of white space; `"lines"` ignores white space at line ends, and final empty
    lines."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Source by path, which the program may import."""
    prelude: str = ""
    """Source that runs before the program, as for `CallTests`."""
    timeout_s: Annotated[float | None, Above(0)] = None
    """CPU seconds for each case, if the problem sets its own limit; None uses the verifier's limit."""
    languages: tuple[str, ...] = (PYTHON,)
    """Languages in which the program may be: `"python"`, `"c"`, `"cpp"`, `"java"`, `"javascript"`, `"go"`, `"rust"`, `"bash"`.
    The label of the program's block determines the language; without a label, the first language is used. `prelude` is only for
    Python.
    """


@dataclass(frozen=True, slots=True)
class FunctionTests(_Checked):
    """A test file; each test is a case.

    Unless the tests run together with the program, they are functions `test*`, methods `test*` of classes `Test*` with
    `setup_method` and `teardown_method`, and methods of `unittest.TestCase` classes. Supported from pytest are `raises`,
    `approx`, `skip` and `fail`. If a test needs anything else, such as a fixture, a mark or a mock, the verdict is a
    `VERIFIER_ERROR` that names it.
    """

    test: str
    """Source of the test file; it may use the standard library."""
    module: str = "solution"
    """The name under which the test file imports the program, or the program's main file."""
    prefix: str = ""
    """The prompt's code, as for `CheckTests`."""
    entry_point: str = ""
    """The function that `prefix` declares, by default the last function in `prefix`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Source by path, as for `CheckTests`."""
    modules: tuple[str, ...] = ()
    """Other modules of a program of several files that the test file imports."""
    together: bool = False
    """Whether pytest itself runs the file, in one process with the program: then any test works, and a program can forge the
    verdict. A verifier refuses such tests unless it has `allow_together=True`."""

    def __post_init__(self) -> None:
        """Refuse names under which the test file would import something other than the program."""
        # Without arguments, `super` fails in a dataclass with slots.
        super(FunctionTests, self).__post_init__()
        for name in (self.module, *self.modules):
            if name.partition(".")[0] in _TAKEN:
                raise InvalidArgumentError(
                    f"a module of the program can't be called {name!r}: the test file would import another one of that name. "
                    "Choose another name for FunctionTests.module or FunctionTests.modules, also in the test file"
                )


_CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)(?=\s*\()")


def needed_names(tests: Tests) -> frozenset[str]:
    """The names that tests need from a program: the function under test, or what asserts call; none for standard output."""
    if isinstance(tests, StdioTests):
        return frozenset()
    if isinstance(tests, AssertTests):
        called = tests.entry_points or {name for text in tests.asserts for name in _CALLED.findall(text)}
        return frozenset(called) - frozenset(() if tests.entry_points else dir(builtins))
    entry_point = tests.entry_point or announced(tests.prefix)
    names = {entry_point.partition(".")[0].partition("(")[0], "Solution" if isinstance(tests, CallTests) else ""}
    return frozenset(filter(str.isidentifier, names))


_TAKEN = sys.stdlib_module_names | {"pytest", "tests"}
"""Modules that the tests' process has itself, so that a program's module can't have these names."""


Tests = FunctionTests | CheckTests | AssertTests | CallTests | StdioTests


@runtime_checkable
class DeferredTests(Protocol):
    """Tests that are decoded only when a program is judged, since the tests of some problems take megabytes."""

    def load(self) -> Tests:
        """Make the tests; the verifier drops them after the verdict.

        Raises:
            RLVRError: If the tests can't be made. The verdict is then a `VERIFIER_ERROR` with that cause.
        """
        ...
