"""Runs a job's tests against the program, and reports each case: calls, a check, asserts, or a test file."""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import random
import sys
import types
import zlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from verifiers.sandbox.programs.source_files import SourceFiles, module_name

from . import imports, names, packages
from .channel import Channel
from .comparison import Equality
from .compilation import compile_prefix, compile_tests, tidied
from .conversation import Conversation
from .entry_points import SOLUTION_CLASS, entry_point_steps, reach
from .objects import classes_of
from .report import (
    MAX_TEXT,
    TEST_FILE,
    UNSUPPORTED,
    BrokenTestError,
    JobEndedError,
    Report,
    Skipped,
    UnsupportedTestError,
    finding,
    is_programs,
    missing,
)
from .values import from_wire

_RECURSION = 10_000
"""Recursion limit; it also bounds the depth of nested data, which is decoded recursively."""
_MODULE = "tests"


class Judge:
    """Runs tests; methods such as `_prepare_calls` and `_run_calls` run tests of a kind, such as `"calls"`."""

    def __init__(self, tests: dict[str, Any], channel: Channel, report: Report) -> None:
        self._tests = tests
        self.report = report
        self._own: dict[str, Any] = {"__name__": _MODULE, "__builtins__": builtins, "__file__": f"/{TEST_FILE}"}
        """The namespace of the test code; at first it holds the tests' own copy of the prefix's names."""
        self.program = Conversation(channel, report, self._own)
        self._classes: frozenset[str] = frozenset()
        self.files: tuple[str, ...] = tuple(tests["files"])
        """The paths of the problem's files."""
        self._continues: bool = tests["every_case"]

    def run(self) -> None:
        """Run the tests and write the report."""
        sys.setrecursionlimit(_RECURSION)
        prepared = getattr(self, f"_prepare_{self._tests['kind']}")()
        if self._tests["files"]:
            sys.meta_path.insert(0, SourceFiles(self._tests["files"]))
        # The values of call cases need nothing from the prefix, and the prefix may need the imports of the program.
        if self._tests["kind"] != "calls":
            exec(compile_prefix(self._tests["prefix"]), self._own)
        self._classes = classes_of(self._own, _MODULE)
        random.seed(self._tests["seed"])
        packages.seed(zlib.crc32(self._tests["seed"].encode("utf-8", "surrogatepass")))
        getattr(self, f"_run_{self._tests['kind']}")(prepared)
        self.report.end(done=True)

    def _compiled(self, sources: list[str], given: Collection[str] = ()) -> list[types.CodeType]:
        """Compile test code, and check its imports."""
        codes = [*map(compile_tests, sources)]
        imports.check(sources, ("pytest", *given, *map(module_name, self._tests["files"])))
        return codes

    def _check_defined(self, sources: list[str]) -> None:
        """Raise a BrokenTestError if the tests use a name that neither they nor the prefix define."""
        known = vars(builtins).keys() | self._own.keys() | {*compile_prefix(self._tests["prefix"]).co_names}
        for name in sorted(names.free_names(sources) - known - {"__doc__"}):
            raise BrokenTestError(f"name {name!r} is not defined, neither by the tests nor by the prompt's code")

    def _resolve(self, wanted: Collection[str], module: str | None = None) -> dict[str, Any]:
        """The values of global names that the program defines."""
        return self.program.resolve(sorted(wanted), self._classes, module)

    def _case(self, run: Callable[[], object], **fields: object) -> None:
        """Run one case and report it."""
        refusals, doubts = self.program.refusals, self.program.doubts
        try:
            run()
        except (JobEndedError, Skipped):
            raise
        except UnsupportedTestError as error:
            self.end_unsupported(error)
        except NameError as error:
            if self._tests["kind"] == "check" and not is_programs(error):
                # Here and not before, since looking for such names takes a millisecond.
                self._check_defined([self._tests["test"]])
            result = {"passed": False, **finding(error)}
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            result = {"passed": False, **finding(error)}
            in_doubt = result["failure"] == "wrong_answer" and self.program.doubts > doubts
            in_doubt |= self.program.refusals > refusals
            # Even a builtin class is a handle for the tests, if the program gives it a name of its own.
            in_doubt |= isinstance(error, TypeError) and "catching classes" in str(error)
            if _needs_files(error):
                self.end_unsupported(error)
            if in_doubt:
                result["failure"] = UNSUPPORTED
        else:
            result = {"passed": True}
            if self.program.refusals > refusals:
                # The test may have caught the refusal, which replaced the program's own answer.
                text = "the test uses an object of the program in an unsupported way"
                result = {"passed": False, **finding(UnsupportedTestError(text))}
        self.report.write(**result, **fields)
        if not (result["passed"] or self._continues):
            self.report.end(done=True)

    def end_unsupported(self, error: BaseException) -> NoReturn:
        """End the job because of something unsupported; the program fails if it could have led the tests there."""
        self.report.end(failure=UNSUPPORTED, reason=str(error), broken=not (self.program.has_resolved))

    def _absent(self, name: str) -> NoReturn:
        self.report.end(**finding(missing(NameError, f"name {name!r} is not defined")))

    def _prepare_calls(self) -> None:
        self.report.write(total=len(self._tests["cases"]))

    def _run_calls(self, _: None) -> None:
        find = self._callee()
        equal = Equality(**{name: self._tests[name] for name in ("tolerance", "tuples_as_lists", "wrapped_outputs")})
        for number, case in enumerate(self._tests["cases"]):
            args, kwargs, expected = map(from_wire, case)
            run = functools.partial(_call_and_compare, find, args, kwargs, expected, equal)
            self._case(run, name=f"case {number}")

    def _callee(self) -> Callable[[], Callable[..., object]]:
        """Make a getter of the function under test: a global function, or a method of a new instance for each case."""
        name, *steps = entry_point_steps(self._tests["entry_point"])
        found = self._resolve({name, SOLUTION_CLASS})
        if name in found:
            return lambda: reach(found[name], steps)
        if steps or SOLUTION_CLASS not in found:
            self._absent(name)
        return lambda: getattr(found[SOLUTION_CLASS](), name)

    def _prepare_check(self) -> types.CodeType:
        (code,) = self._compiled([self._tests["test"]])
        self.report.write(total=1)
        return code

    def _run_check(self, code: types.CodeType) -> None:
        name, *steps = entry_point_steps(self._tests["entry_point"])
        found = self._resolve([name])
        if name not in found:
            self._absent(name)
        function = self._own[name] = found[name]
        try:
            exec(code, self._own)
        except NameError:
            self._check_defined([self._tests["test"]])
            raise
        check: Callable[[object], object] | None = self._own.get("check")
        if not callable(check):
            raise BrokenTestError("the tests define no function `check`")
        if not runs_whole(check):
            raise BrokenTestError(
                "calling `check` would run none of its asserts, since it is a generator or a coroutine"
            )
        self._case(lambda: check(reach(function, steps)), name="check")

    def _prepare_asserts(self) -> list[types.CodeType]:
        sources = self._sources()
        codes = self._compiled(sources)
        self.report.write(total=len(sources) - 1)
        return codes

    def _sources(self) -> list[str]:
        return [*map(tidied, (self._tests["setup"], *self._tests["asserts"]))]

    def _run_asserts(self, codes: list[types.CodeType]) -> None:
        for name in self._tests["entry_points"]:
            self._own.pop(name, None)
        required = self._provide(self._sources())
        exec(codes[0], self._own)
        for statement, code in zip(self._tests["asserts"], codes[1:], strict=True):
            self._case(functools.partial(_run_assert, code, self._own, required), name=statement.strip()[:MAX_TEXT])

    def _provide(self, sources: list[str]) -> Collection[str]:
        """Define the names that asserts use but don't define; return the names that only the program can define."""
        free = names.free_names(sources)
        # The program may define a name that the prefix only imports, as it may define any other name.
        imported = {name for name in free & self._own.keys() if _is_imported(self._own[name])}
        wanted = imported | (free - self._own.keys())
        standard = names.standard_names(sources, wanted, imported) - set(self._tests["entry_points"])
        self._own |= self._resolve(wanted - standard)
        for name in standard - vars(builtins).keys() - imported:
            module = names.module_called(name)
            self._own[name] = importlib.import_module(module) if module else names.helper(name)
        return wanted - standard


def _is_imported(value: object) -> bool:
    """Whether a value of the prefix is an imported function or class."""
    return callable(value) and getattr(value, "__module__", None) != _MODULE


def _run_assert(code: types.CodeType, namespace: dict[str, Any], required: Collection[str]) -> None:
    try:
        exec(code, namespace)
    except NameError as error:
        if error.name not in required or is_programs(error):
            raise
        raise missing(NameError, str(error)) from None


def _needs_files(error: BaseException) -> bool:
    """Whether test code has tried to use a file, a folder or a process, which tests don't have."""
    is_refused = isinstance(error, PermissionError | FileNotFoundError) and error.errno is not None
    return is_refused and not is_programs(error)


def runs_whole(function: object) -> bool:
    """Whether a call of a function runs its body; a call of a generator or coroutine function only creates an object."""
    made = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    return not getattr(getattr(function, "__code__", None), "co_flags", 0) & made


def _call_and_compare(
    find: Callable[[], Callable[..., object]],
    args: tuple[object, ...],
    kwargs: Mapping[str, Any],
    expected: object,
    equal: Callable[[object, object], bool],
) -> None:
    result = find()(*args, **kwargs)
    if not equal(result, expected):
        raise AssertionError(f"got {_short(result)}, expected {_short(expected)}")


def _short(value: object) -> str:
    try:
        return repr(value)[:200]
    except ValueError:  # an int of more digits than Python will print
        return f"a {type(value).__name__} too long to print"
