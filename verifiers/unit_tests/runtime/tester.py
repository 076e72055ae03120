"""The tester: runs the tests, calls into the candidate, and writes the report; the candidate can reach neither.

Test code sees the candidate's functions as proxies. Arguments and results cross as plain data and are compared here, as
real builtins.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import gc
import importlib
import json
import os
import random
import resource
import socket
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn

from . import pytest_subset
from .channel import Channel, read_all
from .codec import Decoder
from .functions import collect
from .names import free_names, helper, names_of_classes, standard_names
from .program import Loader, SourceFiles
from .pytest_subset import Skipped, UnsupportedTestError
from .remote import TEST_FILE
from .report import MAX_TEXT, JobEndedError, Report, finding
from .session import Session
from .testcode import PREFIX_FILE, compile_tests, leave_no_trace, tidied

REPLIES, REQUESTS, TESTS, REPORT = 3, 4, 5, 6
"""Descriptors of a tester with one job: the pipes from and to the candidate, and two files."""
CONTROL = 3
"""Descriptor of a tester with many jobs: the channel to the fork server."""
DONE, NEEDS_OWN_PROCESS = b".", b"+"
"""What it says of a job."""
_JOB_DESCRIPTORS = 4
_MAX_MEMORY_KIB = 128 << 10
"""A process that has grown beyond this serves no further job."""
_RECURSION = 10_000
"""Deep data is decoded by recursion."""


class Tester:
    """Runs one job's tests."""

    def __init__(self, tests: dict[str, Any], channel: Channel, report: Report) -> None:
        self._tests = tests
        self._report = report
        self._session = Session(channel, report)
        self._everything: bool = tests["every_case"]
        self.leaves_no_trace = True
        """False if the program had a say in what the tests did to this process."""

    def run(self) -> None:
        """Run the tests and write the report."""
        sys.setrecursionlimit(_RECURSION)
        self._session.load()
        random.seed(self._tests["seed"])
        sys.modules["pytest"] = pytest_subset
        if self._tests["files"]:
            sys.meta_path.append(SourceFiles(self._tests["files"]))
        getattr(self, f"_{self._tests['kind']}")()
        self._report.end(done=True)

    def _case(self, run: Callable[[], object], name: str = "") -> bool:
        """Run one case and report it; False if it was left out."""
        found = self._run_case(run)
        if found is None:
            return False
        self._report.write(**found, name=name)
        if not (found["passed"] or self._everything):
            self._report.end(done=True)
        return True

    def _run_case(self, run: Callable[[], object]) -> dict[str, Any] | None:
        """Run one case; return what the report says of it, None if it was left out."""
        try:
            run()
        except UnsupportedTestError as error:
            self._report.end(failure="unsupported", reason=str(error)[:MAX_TEXT])
        except Skipped:
            return None
        except JobEndedError:
            raise
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            return {"passed": False, **finding(error)}
        return {"passed": True}

    def _require(self, name: str) -> None:
        if self._session.resolve([name])[name][0] == "missing":
            self._missing(name)

    def _missing(self, name: str) -> NoReturn:
        error = {"type": "NameError", "message": f"{name} is not defined", "file": None, "line": None}
        self._report.end(failure="exception", exception=error)

    def _trusted_namespace(self, drop: Collection[str] = ()) -> dict[str, Any]:
        """A namespace for test code, with the tester's own copy of what the prompt defines.

        Args:
            drop: Names that the prompt only announces.
        """
        namespace: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins}
        # A prompt may end inside a statement: then it has no helper that can be had alone.
        with contextlib.suppress(SyntaxError):
            exec(compile_tests(self._tests["prefix"], PREFIX_FILE).code, namespace)
            self._take_classes(namespace)
        for name in drop:
            namespace.pop(name, None)
        return namespace

    def _take_classes(self, namespace: dict[str, Any]) -> None:
        """Use the program's copy of the prompt's classes: their instances have to live where the program can use them."""
        classes = [name for name, value in namespace.items() if isinstance(value, type) and value.__module__ == "tests"]
        for name, answer in self._session.resolve(classes).items():
            if answer[0] in ("value", "exception"):
                namespace[name] = self._session.value_of(answer, class_tested=True)

    def _run_test_code(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        """Run test code that is no case; where it fails because of the program, end with a report."""
        try:
            exec(code, namespace)
        except UnsupportedTestError as error:
            self._report.end(failure="unsupported", reason=str(error)[:MAX_TEXT])
        except ModuleNotFoundError as error:
            if "candidate_error" in error.__dict__:
                self._report.end(**finding(error))
            self._report.end(failure="unsupported", reason=f"{error}: {_TEST_MODULES}")
        except JobEndedError:
            raise
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            self._blame(error)

    def _blame(self, error: BaseException) -> NoReturn:
        """End because test code that is no case failed: by the program's fault if it raised or made what failed."""
        made_by_program = self._session.has_asked and not isinstance(error, _FAULTS_OF_TESTS)
        if made_by_program or "candidate_error" in error.__dict__:
            self._report.end(**finding(error))
        raise error

    def _calls(self) -> None:
        find = self._callee()
        self._report.write(total=len(self._tests["cases"]))
        equal = _Comparison(self._tests["tolerance"], tuples_as_lists=self._tests["tuples_as_lists"])
        for number, case in enumerate(self._tests["cases"]):
            args, kwargs, expected = (Decoder(self._session.decode_special).decode(wire) for wire in case)
            run = functools.partial(_call_and_compare, find, args, kwargs, expected, equal)
            self._case(run, f"case {number}")

    def _callee(self) -> Callable[[], Callable[..., object]]:
        """What gives the function under test: itself, or a method of a new `Solution` for each case."""
        name = self._tests["entry_point"]
        answers = self._session.resolve([name, _SOLUTION_CLASS])
        if answers[name][0] != "missing":
            function = self._session.named(name)
            return lambda: function
        if answers[_SOLUTION_CLASS][0] == "missing":
            self._missing(name)
        solution = self._session.named(_SOLUTION_CLASS)
        return lambda: getattr(solution(), name)

    def _check(self) -> None:
        name = self._tests["entry_point"]
        self._require(name)
        tests = compile_tests(self._tests["test"], TEST_FILE)
        namespace = self._trusted_namespace()
        function = namespace[name] = self._session.named(name, tests.classes)
        if self._everything:
            self._check_asserts(namespace, function)
        else:
            self._run_test_code(tests.code, namespace)
            self._case(lambda: namespace["check"](function), "check")

    def _check_asserts(self, namespace: dict[str, Any], function: object) -> None:
        """Run a check whose asserts are cases; what it raises between them fails the rest."""
        splitter = _SplitAsserts()
        tree = ast.fix_missing_locations(splitter.visit(ast.parse(self._tests["test"])))
        self._report.write(total=splitter.count)
        cases = namespace["__case__"] = _AssertCases(self._report, self._run_case)
        self._run_test_code(compile(tree, TEST_FILE, "exec", dont_inherit=True), namespace)
        found = self._run_case(lambda: namespace["check"](function))
        if found is not None and not found["passed"]:
            self._report.write(**found, name="check")
        else:
            cases.finish()

    def _functions(self) -> None:
        tests = compile_tests(self._tests["test"], TEST_FILE)
        modules = self._tests["modules"]
        sys.meta_path.append(_ProgramFinder(self._session, self._report, modules, tests.classes))
        namespace = self._trusted_namespace(drop=[self._tests["entry_point"]])
        sys.modules["tests"] = types.ModuleType("tests")
        self._run_test_code(tests.code, namespace)
        try:
            cases = collect(namespace)
        except UnsupportedTestError as error:
            self._report.end(failure="unsupported", reason=str(error)[:MAX_TEXT])
        except JobEndedError:
            raise
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            self._blame(error)
        total = len(cases)
        self._report.write(total=total)
        for case in cases:
            if not self._case(case.run, case.name):
                total -= 1
                self._report.write(total=total)

    def _asserts(self) -> None:
        setup, statements = self._tests["setup"], self._tests["asserts"]
        texts = [tidied(source) for source in (setup, *statements)]
        sources = [ast.parse(text) for text in texts]
        codes = [compile_tests(text, TEST_FILE).code for text in texts]
        self._report.write(total=len(statements))
        namespace = self._trusted_namespace(drop=self._tests["entry_points"])
        self._provide(namespace, sources)
        if setup.strip():
            self._run_test_code(codes[0], namespace)
        for statement, code in zip(statements, codes[1:], strict=True):
            self._case(functools.partial(exec, code, namespace), statement.strip()[:MAX_TEXT])

    def _provide(self, namespace: dict[str, Any], trees: list[ast.Module]) -> None:
        """Put what the tests name and don't define into their namespace, from the program or the standard library."""
        names = free_names(trees) - namespace.keys()
        standard = standard_names(trees, names) - set(self._tests["entry_points"])
        classes = names_of_classes(trees)
        for name, answer in self._session.resolve(sorted(names - standard)).items():
            if answer[0] == "module":
                # What the tests do with the name was judged without knowing which module the program gives to it.
                self.leaves_no_trace = False
                namespace[name] = self._session.module_of(answer)
            elif answer[0] != "missing":
                namespace[name] = self._session.value_of(answer, class_tested=name in classes)
        for name in standard:
            if not hasattr(builtins, name):
                namespace[name] = importlib.import_module(name) if name in sys.stdlib_module_names else helper(name)


_FAULTS_OF_TESTS = (NameError, ImportError, SyntaxError)
"""What goes wrong in test code whatever a program returns."""
_SOLUTION_CLASS = "Solution"
_TEST_MODULES = (
    "tests import from the standard library, this library's subset of pytest, the files that the problem gives, and the "
    "program's modules, whose names are given in FunctionTests.module and FunctionTests.modules"
)


class _ProgramFinder(Loader):
    """Lets tests import the program's modules, as proxies; nothing else of the program is found under any name."""

    def __init__(self, session: Session, report: Report, modules: Collection[str], classes: Collection[str]) -> None:
        self._session = session
        self._report = report
        session.program_modules = {name.partition(".")[0] for name in modules}
        self._classes = classes

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        """Find a module of the program by its name."""
        own = name.partition(".")[0] in self._session.program_modules
        return ModuleSpec(name, self, is_package=True) if own else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Make the proxy of a module."""
        return _ProgramModule(spec.name, self._session, self._report, self._classes)

    def exec_module(self, module: types.ModuleType) -> None:
        """Have the candidate import the module."""
        self._session.request("import", None, module.__name__)


class _ProgramModule(types.ModuleType):
    """A module of the program, as the tests see it: what they import from it is a proxy."""

    def __init__(self, name: str, session: Session, report: Report, classes: Collection[str]) -> None:
        super().__init__(name)
        # Underscores keep these apart from the program's names, which come through __getattr__.
        self.__dict__["__remote__"] = (session, report, classes)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        session, report, classes = self.__dict__["__remote__"]
        answer = session.resolve([name], self.__name__)[name]
        if answer[0] == "missing":
            return self._submodule(name, report)
        if answer[0] == "module":
            return session.module_of(answer)
        return session.value_of(answer, class_tested=name in classes)

    def _submodule(self, name: str, report: Report) -> types.ModuleType:
        try:
            return importlib.import_module(f"{self.__name__}.{name}")
        except ImportError:
            message = f"{self.__name__} has no name {name!r}"
            report.end(
                failure="exception", exception={"type": "ImportError", "message": message, "file": None, "line": None}
            )


class _Comparison:
    """Equality of a result with what was expected."""

    def __init__(self, tolerance: float | None, *, tuples_as_lists: bool) -> None:
        self._tolerance = tolerance
        self._tuples_as_lists = tuples_as_lists

    def __call__(self, result: object, expected: object) -> bool:
        """Whether they are equal, by `==` or by what was asked for."""
        if self._tuples_as_lists:
            result, expected = _with_lists(result), _with_lists(expected)
        if self._tolerance is None:
            return bool(result == expected)
        return bool(result == _CloseFloats(expected, rel=self._tolerance, abs=self._tolerance))


class _CloseFloats(pytest_subset.approx):
    """Closeness of floats; two integers are equal or not."""

    def _close_number(self, actual: Any, expected: Any) -> bool:
        both_whole = isinstance(actual, int) and isinstance(expected, int)
        return bool(actual == expected) if both_whole else super()._close_number(actual, expected)


def _with_lists(value: object) -> object:
    """The value with every tuple in it as a list, as JSON would have it."""
    if isinstance(value, list | tuple):
        return [_with_lists(item) for item in value]
    return {key: _with_lists(item) for key, item in value.items()} if isinstance(value, dict) else value


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


class _AssertCases:
    """The asserts of a check as cases: each passes if it holds whenever it is reached."""

    def __init__(self, report: Report, run_case: Callable[[Callable[[], object]], dict[str, Any] | None]) -> None:
        self._report = report
        self._run_case = run_case
        self._held: dict[int, bool] = {}
        self._undecided: dict[int, str] = {}

    def __call__(self, condition: Callable[[], object], number: int, name: str, repeats: bool) -> None:
        """Judge one assert, by its number; one that repeats may be reached again."""
        found = self._run_case(condition) or {"passed": True}
        before = self._held.get(number, True)
        self._held[number] = before and found["passed"]
        if self._held[number] and repeats:
            self._undecided[number] = name
        elif before:
            self._undecided.pop(number, None)
            self._report.write(**found, number=number, name=name)

    def finish(self) -> None:
        """Decide about the rest, after the check's own end. Asserts that were not reached are no cases."""
        for number, name in self._undecided.items():
            self._report.write(passed=True, number=number, name=name)
        if not self._held:
            self._report.write(passed=True, name="check")
        self._report.write(total=max(1, len(self._held)))


class _SplitAsserts(ast.NodeTransformer):
    """Makes each assert of a test a case of its own: `assert x` becomes a guarded statement that records and goes on."""

    def __init__(self) -> None:
        self.count = 0
        self._loops = 0

    def _visit_repeated(self, node: ast.AST) -> ast.AST:
        self._loops += 1
        self.generic_visit(node)
        self._loops -= 1
        return node

    visit_For = visit_AsyncFor = visit_While = visit_AsyncFunctionDef = _visit_repeated

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Any other function than the check itself may be called more than once."""
        outermost = node.name == "check" and not self._loops
        return self.generic_visit(node) if outermost else self._visit_repeated(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Wrap the statement's condition in a function and hand it to `__case__`."""
        test = ast.IfExp(
            test=node.test,
            body=ast.Constant(None),
            orelse=_raise_assertion(node.msg or ast.Constant("")),
        )
        thunk = ast.Lambda(args=ast.arguments([], [], None, [], [], None, []), body=test)
        content = (self.count, ast.unparse(node)[:MAX_TEXT], self._loops > 0)
        self.count += 1
        call = ast.Call(
            func=ast.Name("__case__", ast.Load()), args=[thunk, *(ast.Constant(each) for each in content)], keywords=[]
        )
        return ast.copy_location(ast.Expr(call), node)


def _raise_assertion(message: ast.expr) -> ast.expr:
    # A lambda has no raise statement; the generator's throw is an expression that raises.
    source = "(_ for _ in ()).throw(AssertionError(0))"
    expression = ast.parse(source, mode="eval").body
    assert isinstance(expression, ast.Call)
    raised = expression.args[0]
    assert isinstance(raised, ast.Call)
    raised.args = [message]
    return expression


def run_alone() -> NoReturn:
    """Be the tester of one job."""
    report = Report(REPORT, ends_process=True)
    _run(json.loads(read_all(TESTS)), Channel(REPLIES, REQUESTS), report)
    raise AssertionError("a report ends the process")


def serve() -> NoReturn:
    """Be the tester of job after job, of those whose tests leave no trace in this process.

    Each job comes as four descriptors, as `run_alone` has them, and is answered with a byte.
    """
    gc.enable()
    control = socket.socket(fileno=CONTROL)
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, _JOB_DESCRIPTORS)
        if len(descriptors) != _JOB_DESCRIPTORS:
            os._exit(0)
        answer = _serve_job(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(answer)


def _serve_job(replies: int, requests: int, tests: int, report: int) -> bytes:
    content = json.loads(read_all(tests))
    if not leave_no_trace(content):
        return NEEDS_OWN_PROCESS
    stays = _run(content, Channel(replies, requests), Report(report, ends_process=False))
    if not stays or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > _MAX_MEMORY_KIB:
        os._exit(0)
    return DONE


def _run(tests: dict[str, Any], channel: Channel, report: Report) -> bool:
    """Run tests and write the report; return whether the process is as before."""
    tester = Tester(tests, channel, report)
    with contextlib.suppress(JobEndedError):
        try:
            tester.run()
        except JobEndedError:
            raise
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            exception = {"type": type(error).__name__, "message": str(error)[:MAX_TEXT]}
            report.end(failure="broken_test", exception=exception)
    return tester.leaves_no_trace
