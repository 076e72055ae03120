"""The fixtures that a test can ask for: those of its file and class, set-up functions as such, and pytest's own `capsys`."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..outcomes import Skipped, UnsupportedTestError
from .pytest_api import CaptureFixture, Fixture, FixtureRequest

SCOPES = ("session", "package", "module", "class", "function")
"""From the widest on."""


@dataclass(frozen=True, slots=True)
class KnownFixture:
    """A fixture, and the class that defines it."""

    fixture: Fixture
    cls: type[Any] | None = None

    def function(self, instance: object = object) -> Callable[..., Any]:
        """Its function, for an instance of its class."""
        return bound_to(self.fixture.function, self.cls, instance)


def fixtures_of_file(namespace: Mapping[str, Any], conftest: Mapping[str, Any]) -> dict[str, KnownFixture]:
    """Fixtures visible to a test file's functions by name, in pytest's order: set-up before others, then by the alphabet."""
    fixtures = {name: KnownFixture(fixture) for name, fixture in OWN_FIXTURES.items()} | _named(conftest, None)
    module = sys.modules.get("tests")
    fixtures[" module"] = _set_up("module", namespace.get, module, "setup_module", "setUpModule")
    fixtures[_OF_FUNCTIONS] = _set_up("function", namespace.get, None, "setup_function")
    return fixtures | _named(namespace, None)


def fixtures_of_class(file: Mapping[str, KnownFixture], cls: type[Any]) -> dict[str, KnownFixture]:
    """Fixtures visible to the methods of a class: the file's, and its own."""
    fixtures = {name: known for name, known in file.items() if name != _OF_FUNCTIONS}
    unit = ["setUpClass"] if is_unit(cls) else []
    fixtures[" class"] = _set_up("class", lambda name: getattr(cls, name, None), cls, "setup_class", *unit)
    fixtures[" method"] = _set_up("function", None, None, "setup_method")
    return fixtures | _named(members_of(cls), cls)


_OF_FUNCTIONS = " function"
"""What names no fixture of a test."""


def closure(names: Sequence[str], fixtures: Mapping[str, KnownFixture], direct: Collection[str]) -> list[str]:
    """Names of these fixtures and of those that they use, the widest first; `direct` are arguments in place of fixtures."""
    found: list[str] = []

    def find(name: str) -> None:
        if name in found or name in direct or name == "request":
            return
        if name not in fixtures:
            raise UnsupportedTestError(f"the fixture {name!r} is neither defined in the test file nor supported")
        found.append(name)
        wanted = parameters_of(fixtures[name].function())
        if name in wanted:
            raise UnsupportedTestError(f"the fixture {name!r} requests the one of the same name that it overrides")
        for other in wanted:
            find(other)

    for name in names:
        find(name)
    return sorted(found, key=lambda name: SCOPES.index(fixtures[name].fixture.scope))


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """Names of the parameters of a test or fixture that need a value."""
    parameters = list(inspect.signature(function).parameters.values())
    return [
        parameter.name
        for parameter in parameters[_patched(function) :]
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]


def _patched(function: Callable[..., Any]) -> int:
    """The number of leading parameters that `mock.patch` decorators fill."""
    patches = getattr(function, "patchings", ())
    return sum(not patch.attribute_name and patch.new is sys.modules["unittest.mock"].DEFAULT for patch in patches)


def bound_to(function: Any, cls: type[Any] | None, instance: object = object) -> Callable[..., Any]:
    """A function of a class as its instance has it: what is written as a method takes the instance."""
    bound: Callable[..., Any] = function if cls is None else function.__get__(instance, cls)
    return bound


def members_of(cls: type[Any]) -> dict[str, Any]:
    """Attributes of a class in pytest's order: those of its bases first, then its own as they are defined."""
    members: dict[str, Any] = {}
    for base in cls.__mro__:
        members = {**{name: value for name, value in vars(base).items() if name not in members}, **members}
    return members


def is_unit(cls: type[Any]) -> bool:
    """Whether this is a class of `unittest`."""
    unittest = sys.modules.get("unittest")
    return unittest is not None and issubclass(cls, unittest.TestCase)


def _named(members: Mapping[str, Any], cls: type[Any] | None) -> dict[str, KnownFixture]:
    found: dict[str, KnownFixture] = {}
    for name in sorted(members):
        value = members[name].__func__ if type(members[name]) is staticmethod else members[name]
        if type(value) is Fixture:
            if value.scope not in SCOPES:
                raise UnsupportedTestError(f"the scope {value.scope!r} of fixture {name!r} is not supported")
            static = type(members[name]) is staticmethod
            found[value.name or name] = KnownFixture(value, None if static else cls)
    return found


def _set_up(
    scope: str, find: Callable[[str], Any] | None, owner: Any, name: str, unittest_name: str = ""
) -> KnownFixture:
    """The set-up function of a name, with what ends it, as a fixture that each test of the scope uses.

    Without `find`, it is a method of the test's instance; without an owner, it is called for the test function.
    """

    def set_up(request: FixtureRequest) -> Iterator[None]:
        found = find or (lambda known: getattr(request.instance, known, None))
        functions = [(found(known), found(_ending(known))) for known in (unittest_name, name) if known]
        start, end = (
            next((one for one in pair if one is not None and type(one) is not Fixture), None)
            for pair in zip(*functions, strict=True)
        )
        argument = request.function if owner is None else owner
        if unittest_name:
            if getattr(owner, "__unittest_skip__", False):
                raise Skipped("its class is skipped")
            request.addfinalizer(lambda: _clean_up(owner))
        if start is not None:
            _call_with(start, argument)
        yield
        if end is not None:
            _call_with(end, argument)

    return KnownFixture(Fixture(set_up, scope, autouse=True))


def _ending(name: str) -> str:
    return name.replace("setup", "teardown").replace("setUp", "tearDown")


def _clean_up(owner: Any) -> None:
    """Run the clean-up functions that a `TestCase` class, or the module, has added; raise their first error."""
    if isinstance(owner, type):
        owner.doClassCleanups()  # type: ignore[attr-defined]  # a class of unittest's
        for _, error, _ in owner.tearDown_exceptions:  # type: ignore[attr-defined]
            raise error
    elif "unittest" in sys.modules:
        importlib.import_module("unittest").case.doModuleCleanups()


def _call_with(function: Callable[..., object], argument: object) -> None:
    """Call a set-up function, with the argument if it takes one."""
    function(*([argument] if parameters_of(function) else []))


def _capsys() -> Iterator[CaptureFixture[str]]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        yield CaptureFixture(out, err)


OWN_FIXTURES = {"capsys": Fixture(_capsys)}
"""How a test asks for what pytest itself provides."""
