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
import re
import resource
import socket
import sys
import traceback
import types
import zlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from ..protocol import packages
from ..protocol.channel import Channel, read_all
from ..protocol.codec import Decoder
from ..protocol.entry_points import SOLUTION_CLASS, entry_point_steps, reach
from ..protocol.packages import root_of
from ..protocol.source_files import SourceFiles, module_name
from .analysis.compilation import compile_prefix, compile_tests, leave_no_trace, tidied
from .analysis.name_resolution import (
    depends_on,
    free_names,
    helper,
    imported_names,
    is_conditional,
    module_called,
    names_of_classes,
    standard_names,
    starred,
)
from .outcomes import Skipped, UnsupportedTestError
from .report import MAX_TEXT, TEST_FILE, UNSUPPORTED, JobEndedError, Report, finding, is_unsupported, lacking, text_of
from .rpc.session import Session
from .test_files import code_guard, pytest_api, unittest_api
from .test_files.collect import Case, collect
from .test_files.import_hook import ProgramFinder
from .test_files.patch_mirroring import Mirror, may_replace

REPLIES, REQUESTS, TESTS, REPORT = 3, 4, 5, 6
"""Descriptors of a tester with one job: the pipes from and to the candidate, and two files."""
CONTROL = 3
"""Descriptor of a tester with many jobs: the channel to the fork server."""
DONE, NEEDS_OWN_PROCESS = b".", b"+"
"""What it says of a job."""
_JOB_DESCRIPTORS = 4
_GROWTH_KIB = 112 << 10
"""A process that has grown by more than this serves no further job."""
_RECURSION = 10_000
"""Deep data is decoded by recursion."""


class Tester:
    """Runs one job's tests."""

    def __init__(self, tests: dict[str, Any], channel: Channel, report: Report) -> None:
        self._tests = tests
        self._report = report
        self._source = _own_source(tests)
        self._session = Session(channel, report)
        self._mirror: Mirror | None = None
        self._programs: set[str] = set()
        """Names in the test code that are the program's."""
        self._lacking: Collection[str] = ()
        """Names in the test code that only the program could have defined, and did not."""
        self._everything: bool = tests["every_case"]
        self.leaves_no_trace = True
        """False if the program had a say in what the tests did to this process."""

    def _watch(self) -> None:
        if self._mirror is not None:
            self._mirror.watch()

    def run(self) -> None:
        """Run the tests and write the report."""
        sys.setrecursionlimit(_RECURSION)
        self._session.load()
        if self._report.ends_process:
            self._prepare()
        random.seed(self._tests["seed"])
        packages.seed(zlib.crc32(self._tests["seed"].encode("utf-8", "surrogatepass")))
        sys.modules["pytest"] = pytest_api
        if self._tests["files"]:
            sys.meta_path.append(SourceFiles(self._tests["files"]))
        self._watch()
        getattr(self, f"_{self._tests['kind']}")()
        self._report.end(done=True)

    def _prepare(self) -> None:
        """Make ready a process of its own, for test code that may do anything."""
        sources = [self._tests["prefix"], *_sources(self._tests)]
        # The program has a say in the text, so no verdict may be left out because of it.
        watch = code_guard.Watch(
            sources, lambda reason: self._report.end(failure=UNSUPPORTED, reason=reason, chosen=True)
        )
        code_guard.begin(watch)
        self._session.note = watch.received
        if may_replace("\n".join(sources)):
            self._mirror = Mirror(self._session, "\n".join(sources))
            self._session.mirrored = self._mirror.held
        if any("unittest" in source for source in sources):
            unittest_api.prepare()
        if any("catch_warnings" in source for source in sources):
            unittest_api.refuse_recorded_warnings()

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
        unasked = self._session.unasked
        try:
            run()
        except UnsupportedTestError as error:
            self._end_unsupported(error, chosen=False)
        except Skipped:
            return None
        except JobEndedError:
            raise
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            found = self._finding(error)
            if found["failure"] == "wrong_answer" and self._session.unasked > unasked:
                found["failure"] = UNSUPPORTED
            return {"passed": False, **found}
        return {"passed": True}

    def _finding(self, error: BaseException) -> dict[str, Any]:
        return finding(lacking(type(error), text_of(error)) if self._is_lack(error) else error)

    def _is_lack(self, error: BaseException) -> bool:
        """Whether an exception of the test code says that the program does not define what it should."""
        if isinstance(error, NameError):
            return error.name in self._lacking
        return isinstance(error, ImportError) and root_of(error.name or "") in self._session.program_modules

    def _require(self, name: str) -> None:
        if self._session.resolve([name])[name][0] == "missing":
            self._missing(name)

    def _missing(self, name: str) -> NoReturn:
        self._report.end(**finding(lacking(NameError, f"name {name!r} is not defined")))

    def _trusted_namespace(self, drop: Collection[str] = ()) -> dict[str, Any]:
        """A namespace for test code, with the tester's own copy of what the prompt defines.

        Args:
            drop: Names that the prompt only announces.
        """
        namespace: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins, "__file__": f"/{TEST_FILE}"}
        exec(compile_prefix(self._tests["prefix"]).code, namespace)
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
                self._programs.add(name)

    def _run_test_code(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        """Run test code that is no case; where it fails because of the program, end with a report."""
        try:
            exec(code, namespace)
        except JobEndedError:
            raise
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            self._blame(error, _line_of(error))

    def _blame(self, error: BaseException, line: int) -> NoReturn:
        """End because test code that is no case failed: by the program's fault if it raised or made what failed.

        Args:
            error: What the code raised.
            line: The line of the test file at whose left margin it failed; 0 if that was in collecting the tests.
        """
        if self._is_lack(error) or "candidate_error" in error.__dict__:
            self._report.end(**self._finding(error))
        depends = self._depends_on_program(line)
        # A program that has the tests go where they are broken is not excused by that.
        chosen = depends and (_calls_itself(error) or is_conditional(ast.parse(self._source), line))
        if isinstance(error, ModuleNotFoundError | UnsupportedTestError):
            self._end_unsupported(error, chosen=chosen)
        if chosen or (depends and not isinstance(error, _FAULTS_OF_TESTS)):
            self._report.end(**finding(error))
        raise error

    def _end_unsupported(self, error: BaseException, *, chosen: bool) -> NoReturn:
        """End because of what the sandbox does not do: the program's failure if it has a say in whether it is asked for."""
        hint = f": {_TEST_MODULES}" if isinstance(error, ModuleNotFoundError) else ""
        mark = {"chosen": True} if chosen or is_unsupported(error) else {}
        self._report.end(failure=UNSUPPORTED, reason=text_of(error) + hint, **mark)

    def _depends_on_program(self, line: int) -> bool:
        """Whether what the tests do at the left margin in a line may depend on the program."""
        tree = ast.parse(self._source)
        modules = {*self._session.program_modules, *self._files_with_program()}
        return depends_on(tree, self._programs | imported_names(tree, modules) | modules, line)

    def _calls(self) -> None:
        find = self._callee()
        self._report.write(total=len(self._tests["cases"]))
        names = ("tuples_as_lists", "wrapped_outputs")
        equal = _Comparison(self._tests["tolerance"], **{name: self._tests[name] for name in names})
        for number, case in enumerate(self._tests["cases"]):
            args, kwargs, expected = (Decoder(self._session.decode_special).decode(wire) for wire in case)
            run = functools.partial(_call_and_compare, find, args, kwargs, expected, equal)
            self._case(run, f"case {number}")

    def _callee(self) -> Callable[[], Callable[..., object]]:
        """What gives the function under test: itself, or a method of a new instance for each case."""
        name, *steps = entry_point_steps(self._tests["entry_point"])
        answers = self._session.resolve([name, SOLUTION_CLASS])
        if answers[name][0] != "missing":
            function = self._session.named(name)
            return lambda: reach(function, steps)
        if steps or answers[SOLUTION_CLASS][0] == "missing":
            self._missing(name)
        solution = self._session.named(SOLUTION_CLASS)
        return lambda: getattr(solution(), name)

    def _check(self) -> None:
        name, *steps = entry_point_steps(self._tests["entry_point"])
        self._require(name)
        tests = compile_tests(self._tests["test"], TEST_FILE)
        namespace = self._trusted_namespace()
        function = namespace[name] = self._session.named(name, tests.classes)
        self._programs.add(name)
        if self._everything:
            self._check_asserts(namespace, lambda: reach(function, steps))
        else:
            self._run_test_code(tests.code, namespace)
            check = _check_in(namespace)
            self._case(lambda: check(reach(function, steps)), "check")

    def _check_asserts(self, namespace: dict[str, Any], find: Callable[[], object]) -> None:
        """Run a check whose asserts are cases; what it raises between them fails the rest."""
        splitter = _SplitAsserts()
        tree = ast.fix_missing_locations(splitter.visit(ast.parse(self._tests["test"])))
        self._report.write(total=splitter.count)
        cases = namespace["__case__"] = _AssertCases(self._report, self._run_case)
        self._run_test_code(compile(tree, TEST_FILE, "exec", dont_inherit=True), namespace)
        check = _check_in(namespace)
        found = self._run_case(lambda: check(find()))
        if found is not None and not found["passed"]:
            self._report.write(**found, name="check")
        else:
            cases.finish()

    def _functions(self) -> None:
        tests = compile_tests(self._tests["test"], TEST_FILE)
        self._session.program_modules = {root_of(name) for name in self._tests["modules"]}
        namespace = self._trusted_namespace(drop=[self._tests["entry_point"]])
        if _STAR.search(self._source):
            self._provide_for_star(namespace, tests.code)
        finder = ProgramFinder(self._session, classes=tests.classes, starred=self._lacking)
        sys.meta_path.append(finder)
        sys.modules["tests"] = types.ModuleType("tests")
        self._run_test_code(tests.code, namespace)
        self._watch()
        depends = not self._run_collected(self._collect(namespace)) and (
            finder.lacked or self._session.has_asked or self._depends_on_program(0)
        )
        if depends:
            # Else a program could have its tests left out, and not be judged.
            message = "every test was left out, by what the program is or does"
            self._report.end(failure="wrong_answer", exception={"type": "Skipped", "message": message})

    def _provide_for_star(self, namespace: dict[str, Any], code: types.CodeType) -> None:
        """Find out what the tests mean by `from solution import *`, and put in their namespace what they don't."""
        tree = ast.parse(self._source)
        found = starred(tree, code, self._session.program_modules)
        if found is not None:
            self._lacking = found.program
            self._programs |= found.program
            _provide_standard(namespace, found.standard - namespace.keys())

    def _files_with_program(self) -> set[str]:
        """Top-level names of the given files in which the program's modules are spoken of."""
        modules = self._session.program_modules
        files = self._tests["files"].items()
        return {root_of(module_name(path)) for path, text in files if any(name in text for name in modules)}

    def _collect(self, namespace: dict[str, Any]) -> list[Case]:
        try:
            return collect(namespace)
        except JobEndedError:
            raise
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            self._blame(error, 0)

    def _run_collected(self, cases: list[Case]) -> int:
        """Run the tests and return how many were not left out."""
        total = len(cases)
        self._report.write(total=total)
        for case in cases:
            if not self._case(case.run, case.name):
                total -= 1
                self._report.write(total=total)
        return total

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
        self._lacking = names - standard
        self._programs |= names - standard
        for name, answer in self._session.resolve(sorted(names - standard)).items():
            if answer[0] == "module":
                # What the tests do with the name was judged without knowing which module the program gives to it.
                self.leaves_no_trace = False
                namespace[name] = self._session.module_of(answer, name)
            elif answer[0] != "missing":
                namespace[name] = self._session.value_of(answer, class_tested=name in classes)
        _provide_standard(namespace, standard)


def _provide_standard(namespace: dict[str, Any], names: Collection[str]) -> None:
    for name in names:
        if not hasattr(builtins, name):
            module = module_called(name)
            namespace[name] = importlib.import_module(module) if module else helper(name)


def _own_source(tests: Mapping[str, Any]) -> str:
    """The test code that runs outside of cases."""
    return "" if tests["kind"] == "calls" else tidied(tests["setup"]) if tests["kind"] == "asserts" else tests["test"]


def _sources(tests: Mapping[str, Any]) -> list[str]:
    """All test code."""
    return [_own_source(tests), *tests.get("asserts", ()), *(tests["files"].values() if "test" in tests else ())]


def _lines_of(error: BaseException) -> list[int]:
    """The lines of the test file in which its code raised an exception, the outermost first."""
    frames = traceback.walk_tb(error.__traceback__)
    return [line for frame, line in frames if frame.f_code.co_filename == TEST_FILE]


def _line_of(error: BaseException) -> int:
    return next(iter(_lines_of(error)), 0)


def _calls_itself(error: BaseException) -> bool:
    """Whether a function of the test file that it calls itself raised an exception."""
    return len(_lines_of(error)) > 1


def _check_in(namespace: Mapping[str, Any]) -> Callable[[object], object]:
    check: Callable[[object], object] | None = namespace.get("check")
    if not callable(check):
        raise NameError("the tests define no function `check`")
    return check


_STAR = re.compile(r"import\s*\*")
_FAULTS_OF_TESTS = (NameError, ImportError)
"""What goes wrong in test code whatever a program returns."""
_TEST_MODULES = (
    "tests import from the standard library, this library's subset of pytest, the files that the problem gives, and the "
    "program's modules, whose names are given in FunctionTests.module and FunctionTests.modules"
)


class _Comparison:
    """Equality of a result with what was expected."""

    def __init__(self, tolerance: float | None, *, tuples_as_lists: bool, wrapped_outputs: bool) -> None:
        self._tolerance = tolerance
        self._tuples_as_lists = tuples_as_lists
        self._wrapped_outputs = wrapped_outputs

    def __call__(self, result: object, expected: object) -> bool:
        """Whether they are equal, by `==` or by what was asked for."""
        if self._tuples_as_lists:
            result, expected = _with_lists(result), _with_lists(expected)
        wrapped = self._wrapped_outputs and type(expected) is list and len(expected) == 1
        return self._equal(result, expected) or (wrapped and self._equal(result, expected[0]))  # type: ignore[index]  # a list

    def _equal(self, result: object, expected: object) -> bool:
        return packages.same(result, expected, self._plainly_equal)

    def _plainly_equal(self, result: object, expected: object) -> bool:
        if self._tolerance is None:
            return bool(result == expected)
        return bool(result == _CloseFloats(expected, rel=self._tolerance, abs=self._tolerance))


class _CloseFloats(pytest_api.approx):
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
    # What packages take is there from the beginning.
    most_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + _GROWTH_KIB
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, _JOB_DESCRIPTORS)
        if len(descriptors) != _JOB_DESCRIPTORS:
            os._exit(0)
        answer = _serve_job(*descriptors, most_kib=most_kib)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(answer)


def _serve_job(replies: int, requests: int, tests: int, report: int, *, most_kib: int) -> bytes:
    content = json.loads(read_all(tests))
    if not leave_no_trace(content):
        return NEEDS_OWN_PROCESS
    stays = _run(content, Channel(replies, requests), Report(report, ends_process=False))
    if not stays or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > most_kib:
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
        except MemoryError:
            # Of what the tests hold themselves, as much is the program's doing as it likes.
            report.end(failure="memory")
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            exception = {"type": type(error).__name__, "message": text_of(error)}
            report.end(failure="broken_test", exception=exception)
    return tester.leaves_no_trace
