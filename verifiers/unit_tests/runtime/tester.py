"""The tester: runs the tests, calls into the candidate, and writes the report; the candidate can reach neither.

Test code sees the candidate's functions as proxies. Arguments and results cross as plain data and are compared here, as
real builtins.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import importlib
import json
import os
import random
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from .candidate import BINARY_OPERATORS
from .channel import Channel, ChannelClosedError, InvalidMessageError, read_all
from .codec import Decoder, Encoder, NotPlainError, Wire

CHANNEL, TESTS, REPORT = 3, 4, 5
"""Descriptors."""

_TEXT = 1000


class Report:
    """The tester's findings, written line by line so that what was found before a kill is kept."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, **fields: object) -> None:
        """Add one line."""
        os.write(self._descriptor, (json.dumps(fields) + "\n").encode())

    def end(self, **fields: object) -> NoReturn:
        """Add the last line and end the process: nothing that runs later can add to it."""
        self.write(**fields)
        os._exit(0)


class Remote:
    """An object that lives in the candidate. Equal only to itself, or to another such object that says so."""

    __slots__ = ("_number", "_session", "_type_name")
    _session: Session
    _number: int | str
    _type_name: str

    def __init__(self, session: Session, number: int | str, type_name: str) -> None:
        """Make the proxy of an object by its handle, or of a global of the program by its name."""
        object.__setattr__(self, "_session", session)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_type_name", type_name)

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the object in the candidate."""
        return self._session.request("call", self, *args, **kwargs)

    def __getattr__(self, name: str) -> object:
        if name in _COMPARING_METHODS:
            raise AttributeError(f"{name} of a {self._type_name}: {_ONLY_PLAIN}")
        return self._session.request("getattr", self, name)

    def __setattr__(self, name: str, value: object) -> None:
        self._session.request("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._session.request("delattr", self, name)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Remote) and self._session.request("eq", self, other) is True

    def __hash__(self) -> int:
        return hash(self._number)

    def __next__(self) -> object:
        return self._session.request("next", self)

    def __iter__(self) -> Iterator[object]:
        iterator = self._session.request("iter", self)
        if not isinstance(iterator, Remote):
            raise TypeError(f"iter() of a {self._type_name} returned plain data")
        return iterator

    def __bool__(self) -> bool:
        return self._session.request("bool", self) is True

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, Remote) and self._session.request("isinstance", self, value) is True

    def __subclasscheck__(self, value: object) -> bool:
        return isinstance(value, Remote) and self._session.request("issubclass", self, value) is True

    def __deepcopy__(self, memo: object) -> object:
        return self._session.request("deepcopy", self)

    def __copy__(self) -> object:
        return self._session.request("copy", self)

    def __exit__(self, *error: object) -> None:
        self._session.request("exit", self)


_ONLY_PLAIN = (
    "the program would learn the expected value and be its own judge; only plain data is compared with plain data"
)
_COMPARING_METHODS = frozenset({"startswith", "endswith", "issubset", "issuperset", "isdisjoint", "equals"})


def _between_remotes(name: str) -> Callable[..., object]:
    def method(self: Remote, other: object) -> object:
        if not isinstance(other, Remote):
            raise TypeError(f"{name} of a {self._type_name} and a {type(other).__name__}: {_ONLY_PLAIN}")
        return self._session.request(name, self, other)

    return method


def _operation(name: str, kind: type | None) -> Callable[..., object]:
    def method(self: Remote, *args: object) -> object:
        value = self._session.request(name, self, *args)
        if kind is not None and type(value) is not kind:
            raise TypeError(f"{name} of a {self._type_name} is a {type(value).__name__}, not a {kind.__name__}")
        return value

    return method


def _add_operations() -> None:
    kinds: dict[str, type] = {"len": int, "str": str, "repr": str, "int": int, "float": float}
    for name in ("len", "str", "repr", "int", "float", "abs", "neg", "getitem", "setitem", "delitem", "enter"):
        setattr(Remote, f"__{name}__", _operation(name, kinds.get(name)))
    for name in BINARY_OPERATORS.split():
        plain = name.rstrip("_")
        if plain in ("eq", "ne"):
            continue
        setattr(Remote, f"__{plain}__", _between_remotes(name))


_add_operations()


class Session:
    """The tester's side of the conversation with the candidate."""

    def __init__(self, channel: Channel, report: Report) -> None:
        self._channel = channel
        self._report = report
        self._functions: list[Callable[..., object]] = []
        self._remotes: dict[int, Remote] = {}
        self._exceptions: dict[tuple[str, ...], type[BaseException]] = {}

    def load(self) -> None:
        """Wait until the candidate has loaded the program; end with a report where it can't."""
        message = self._receive()
        if message[0] == "loaded":
            return
        phase, error = str(message[1]), _tidy(message[2])
        failure = {"compile": "syntax_error", "memory": "memory"}.get(phase) or classify(error)
        self._report.end(failure=failure, exception=error)

    def named(self, name: str) -> Remote:
        """The proxy of a global function or class of the program, looked up at each call."""
        return Remote(self, name, "function")

    def resolve(self, names: list[str]) -> dict[str, Wire]:
        """Ask what global names of the program are."""
        if not names:
            return {}
        self._send(["resolve", None, names, []])
        answers = self._receive()
        if len(answers) != len(names):
            self.abandon("protocol")
        return dict(zip(names, answers, strict=True))

    def value_of(self, answer: Wire) -> object:
        """Turn an answer of `resolve` into a value."""
        if answer[0] == "exception":
            return self._exception_class(_tidy(answer[1] | {"message": ""}))
        return self._decode(answer[1])

    def request(self, operation: str, subject: object, *args: object, **kwargs: object) -> Any:
        """Have the candidate do something, and return or raise what came of it."""
        encoder = Encoder(self._encode_opaque)
        try:
            named = isinstance(subject, Remote) and isinstance(subject._number, str)
            target = subject._number if named else encoder.encode(subject)  # type: ignore[attr-defined]  # checked
            message = [operation, target, encoder.items(args), [[k, encoder.encode(v)] for k, v in kwargs.items()]]
        except (NotPlainError, RecursionError) as error:
            self._report.end(failure="unsupported", reason=f"an argument can't cross: {error}")
        self._send(message)
        while True:
            reply = self._receive()
            if reply[0] != "callback":
                return self._finish(reply, encoder.objects, operation)
            self._call_back(reply)

    def _finish(self, reply: Wire, known: list[object], operation: str) -> object:
        try:
            kind, body, updates = reply
            decoder = Decoder(self.decode_special, known)
            for number, wire in updates:
                decoder.refill(known[number], wire)
            if kind == "returned":
                return decoder.decode(body)
            error = _tidy(body)
        except Exception as problem:  # noqa: BLE001 - recorded in the report
            self.abandon("protocol", repr(problem)[:_TEXT])
        raise self._exception(error, operation)

    def _call_back(self, message: Wire) -> None:
        try:
            decoder = Decoder(self.decode_special)
            _, number, arguments, keywords = message
            function = self._functions[number]
            args = [decoder.decode(item) for item in arguments]
            kwargs = {str(name): decoder.decode(item) for name, item in keywords}
        except Exception as problem:  # noqa: BLE001 - recorded in the report
            self.abandon("protocol", repr(problem)[:_TEXT])
        try:
            self._send(["result", Encoder(self._encode_opaque).encode(function(*args, **kwargs))])
        except Exception as error:  # noqa: BLE001 - handed to the candidate, whose call it was
            self._send(["error", f"{type(error).__name__}: {error}"[:_TEXT]])

    def _decode(self, wire: Wire) -> object:
        try:
            return Decoder(self.decode_special).decode(wire)
        except Exception as problem:  # noqa: BLE001 - recorded in the report
            self.abandon("protocol", repr(problem)[:_TEXT])

    def decode_special(self, wire: Wire) -> object:
        """Decode what is no plain data: an object of the candidate, or a function of the tests."""
        if wire[0] == "h":
            number = wire[1]
            if type(number) is not int:
                raise TypeError("a handle is a number")
            return self._remotes.setdefault(number, Remote(self, number, str(wire[2])))
        if wire[0] == "cb":
            return self._functions[wire[1]]
        raise ValueError(f"no such tag: {wire[0]!r}")

    def _encode_opaque(self, value: object) -> Wire:
        if isinstance(value, Remote):
            if isinstance(value._number, str):
                return self._send_named(value._number)
            return ["h", value._number]
        if isinstance(value, type | types.BuiltinFunctionType) and _is_standard(value):
            return ["g", value.__module__, value.__qualname__]
        if callable(value):
            self._functions.append(value)
            return ["cb", len(self._functions) - 1]
        return None

    def _send_named(self, name: str) -> Wire:
        remote = self.value_of(self.resolve([name])[name])
        return ["h", remote._number] if isinstance(remote, Remote) else Encoder(self._encode_opaque).encode(remote)

    def _exception(self, error: dict[str, Any], operation: str) -> BaseException:
        stops = error["type"] == "StopIteration" and operation == "next"
        if not stops and error["type"] in ("StopIteration", "StopAsyncIteration", "GeneratorExit"):
            # Raised for real, it could end a loop of the test early and so pass it.
            raised: BaseException = RuntimeError(f"the program raised {error['type']}")
        else:
            kind = self._exception_class(error)
            raised = kind.__new__(kind)
            raised.args = (error["message"],)
        raised.__dict__["candidate_error"] = error
        return raised

    def _exception_class(self, error: dict[str, Any]) -> type[BaseException]:
        key = (error["type"], *error["bases"])
        if key not in self._exceptions:
            base = next((_EXCEPTIONS[name] for name in error["bases"] if name in _EXCEPTIONS), Exception)
            own = error["type"] == base.__name__
            self._exceptions[key] = base if own else type(error["type"], (base,), {})
        return self._exceptions[key]

    def _send(self, message: Wire) -> None:
        try:
            self._channel.send(message)
        except ChannelClosedError:
            self.abandon("exit")
        except InvalidMessageError as error:
            self._report.end(failure="unsupported", reason=f"an argument is too large: {error}")

    def _receive(self) -> Wire:
        try:
            message = self._channel.receive()
        except ChannelClosedError:
            self.abandon("exit")
        except InvalidMessageError as error:
            self.abandon("protocol", str(error)[:_TEXT])
        if type(message) is not list or not message:
            self.abandon("protocol", "not a list")
        return message

    def abandon(self, failure: str, reason: str = "") -> NoReturn:
        """End with a failing report: no test code runs after this."""
        self._report.end(failure=failure, reason=reason)


_EXCEPTIONS = {
    name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
}


def _is_standard(value: type | types.BuiltinFunctionType) -> bool:
    module = value.__module__ or ""
    return module.partition(".")[0] in sys.stdlib_module_names and "<" not in value.__qualname__


def _tidy(error: Any) -> dict[str, Any]:
    """Keep what the candidate's description of an exception should hold, in the types it should have."""
    line, number = error.get("line"), error.get("errno")
    return {
        "type": str(error["type"])[:_TEXT],
        "bases": [str(name) for name in error["bases"]][:20],
        "message": str(error["message"])[:_TEXT],
        "line": line if type(line) is int else None,
        "errno": number if type(number) is int else None,
        "unsendable": error.get("unsendable") is True,
    }


def classify(error: Mapping[str, Any]) -> str:
    """Name the class of failure that an exception of the program is."""
    bases = error["bases"]
    if error["unsendable"]:
        return "output_limit" if error["type"] in ("InvalidMessageError", "MemoryError") else "exception"
    if "MemoryError" in bases:
        return "memory"
    if "PermissionError" in bases:
        return "forbidden"
    if error["errno"] == 27:  # EFBIG
        return "output_limit"
    if "SystemExit" in bases:
        return "exit"
    return "exception"


def finding(error: BaseException) -> dict[str, Any]:
    """Describe why a case failed."""
    theirs = error.__dict__.get("candidate_error")
    if theirs is not None:
        return {"failure": classify(theirs), "exception": {k: theirs[k] for k in ("type", "message", "line")}}
    described = {"type": type(error).__name__, "message": str(error)[:_TEXT]}
    return {"failure": "wrong_answer", "exception": described}


class Tester:
    """Runs one job's tests."""

    def __init__(self, tests: dict[str, Any], channel: Channel, report: Report) -> None:
        self._tests = tests
        self._report = report
        self._session = Session(channel, report)
        self._everything: bool = tests["every_case"]

    def run(self) -> None:
        """Run the tests and write the report."""
        self._session.load()
        random.seed(self._tests["seed"])
        getattr(self, f"_{self._tests['kind']}")()
        self._report.end(done=True)

    def _case(self, run: Callable[[], object], name: str = "") -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            self._report.write(passed=False, name=name, **finding(error))
            if not self._everything:
                self._report.end(done=True)
        else:
            self._report.write(passed=True, name=name)

    def _require(self, name: str) -> None:
        if self._session.resolve([name])[name][0] == "missing":
            self._report.end(failure="exception", exception={"type": "NameError", "message": f"{name} is not defined"})

    def _trusted_namespace(self) -> dict[str, Any]:
        """A namespace for test code, with the tester's own copy of what the prompt defines."""
        namespace: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins}
        prefix = self._tests["prefix"]
        if prefix:
            # A prompt may end inside a statement: then it has no helper that can be had alone.
            with contextlib.suppress(SyntaxError):
                exec(compile(prefix, "prefix.py", "exec", dont_inherit=True), namespace)
        return namespace

    def _calls(self) -> None:
        name = self._tests["entry_point"]
        self._require(name)
        function = self._session.named(name)
        self._report.write(total=len(self._tests["cases"]))
        for number, case in enumerate(self._tests["cases"]):
            args, kwargs, expected = (Decoder(self._session.decode_special).decode(wire) for wire in case)
            self._case(functools.partial(_call_and_compare, function, args, kwargs, expected), f"case {number}")

    def _check(self) -> None:
        name = self._tests["entry_point"]
        self._require(name)
        namespace = self._trusted_namespace()
        function = namespace[name] = self._session.named(name)
        tree: ast.Module | str = self._tests["test"]
        if self._everything:
            tree = ast.parse(tree)
            namespace["__case__"] = self._case
            total = sum(isinstance(node, ast.Assert) for node in ast.walk(tree))
            self._report.write(total=total)
            tree = ast.fix_missing_locations(_SplitAsserts().visit(tree))
        exec(compile(tree, "test.py", "exec", dont_inherit=True), namespace)
        if self._everything:
            self._outside_cases(namespace["check"], function)
        else:
            self._case(lambda: namespace["check"](function), "check")

    def _outside_cases(self, check: Callable[[object], object], function: object) -> None:
        """Run a check whose asserts are cases; what it raises between them fails the rest."""
        try:
            check(function)
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            self._report.write(passed=False, name="check", **finding(error))

    def _functions(self) -> None:
        sys.modules[self._tests["module"]] = _ProgramModule(self._tests["module"], self._session, self._report)
        namespace = self._trusted_namespace()
        try:
            exec(compile(self._tests["test"], "test.py", "exec", dont_inherit=True), namespace)
        except BaseException as error:
            if "candidate_error" in error.__dict__:
                self._report.end(**finding(error))
            raise
        cases = {name: value for name, value in namespace.items() if name.startswith("test_") and callable(value)}
        self._report.write(total=len(cases))
        for name, function in cases.items():
            self._case(function, name)

    def _asserts(self) -> None:
        namespace = self._trusted_namespace()
        setup, statements = self._tests["setup"], self._tests["asserts"]
        sources = [ast.parse(source.replace("\r\n", "\n").strip()) for source in (setup, *statements)]
        self._report.write(total=len(statements))
        self._provide(namespace, sources)
        if setup.strip():
            self._run_setup(sources[0], namespace)
        for statement, tree in zip(statements, sources[1:], strict=True):
            code = compile(tree, "test.py", "exec", dont_inherit=True)
            self._case(functools.partial(exec, code, namespace), statement.strip()[:_TEXT])

    def _run_setup(self, tree: ast.Module, namespace: dict[str, Any]) -> None:
        try:
            exec(compile(tree, "setup.py", "exec", dont_inherit=True), namespace)
        except Exception as error:  # noqa: BLE001 - recorded in the report
            self._report.end(**finding(error))

    def _provide(self, namespace: dict[str, Any], trees: list[ast.Module]) -> None:
        """Put what the tests name and don't define into their namespace, from the program."""
        names = _free_names(trees) - namespace.keys()
        entries = self._tests["entry_points"] or _shadowed_builtins(trees, names)
        wanted = sorted((names - vars(builtins).keys()) | set(entries))
        for name, answer in self._session.resolve(wanted).items():
            if answer[0] == "module":
                namespace[name] = _standard_module(str(answer[1]))
            elif answer[0] != "missing":
                namespace[name] = self._session.value_of(answer)


class _ProgramModule(types.ModuleType):
    """The program as a module of the tests: what they import from it is a proxy."""

    def __init__(self, name: str, session: Session, report: Report) -> None:
        super().__init__(name)
        self._session = session
        self._report = report

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        answer = self._session.resolve([name])[name]
        if answer[0] == "missing":
            self._report.end(failure="exception", exception={"type": "ImportError", "message": f"no name {name!r}"})
        if answer[0] == "module":
            return _standard_module(str(answer[1]))
        return self._session.value_of(answer)


def _call_and_compare(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object], expected: object
) -> None:
    result = function(*args, **kwargs)
    if not result == expected:
        raise AssertionError(f"got {_short(result)}, expected {_short(expected)}")


def _short(value: object) -> str:
    try:
        return repr(value)[:200]
    except ValueError:  # an int of more digits than Python will print
        return f"a {type(value).__name__} too long to print"


def _standard_module(name: str) -> types.ModuleType:
    """Import the tester's own copy of a module that the program imported; only of the standard library."""
    if name.partition(".")[0] not in sys.stdlib_module_names:
        raise ImportError(f"the tests use the module {name!r}, which the tester does not have")
    return importlib.import_module(name)


def _free_names(trees: list[ast.Module]) -> set[str]:
    """Names that the trees load and nowhere bind."""
    loaded: set[str] = set()
    bound: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
    return loaded - bound


def _shadowed_builtins(trees: list[ast.Module], names: set[str]) -> set[str]:
    """The function under test where it has the name of a builtin.

    Tests may use builtins around the call (`set(f(x)) == ...`), and a program must not replace those. So a builtin's
    name is the program's only where no other name can be the function under test.
    """
    if names - vars(builtins).keys() - sys.stdlib_module_names:
        return set()
    called = [_innermost_calls(tree) for tree in trees if tree.body]
    return set.intersection(*called) if called else set()


def _innermost_calls(tree: ast.Module) -> set[str]:
    """Names of functions that are called with no call of another named function among their arguments."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return {call.func.id for call in calls if isinstance(call.func, ast.Name) and not _has_inner_call(call)}


def _has_inner_call(call: ast.Call) -> bool:
    inner = (node for argument in call.args for node in ast.walk(argument))
    return any(isinstance(node, ast.Call) and isinstance(node.func, ast.Name) for node in inner)


class _SplitAsserts(ast.NodeTransformer):
    """Makes each assert of a test a case of its own: `assert x` becomes a guarded statement that records and goes on."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Wrap the statement's condition in a function and hand it to `__case__`."""
        test = ast.IfExp(
            test=node.test,
            body=ast.Constant(None),
            orelse=_raise_assertion(node.msg or ast.Constant("")),
        )
        thunk = ast.Lambda(args=ast.arguments([], [], None, [], [], None, []), body=test)
        name = ast.Constant(ast.unparse(node)[:_TEXT])
        call = ast.Call(func=ast.Name("__case__", ast.Load()), args=[thunk, name], keywords=[])
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


def run_tests() -> None:
    """Be the tester of one job."""
    report = Report(REPORT)
    try:
        Tester(json.loads(read_all(TESTS)), Channel(CHANNEL), report).run()
    except BaseException as error:  # noqa: BLE001 - recorded in the report
        report.end(failure="broken_test", exception={"type": type(error).__name__, "message": str(error)[:_TEXT]})
