"""Fixtures that pytest itself provides: `capsys` and `monkeypatch`."""

from __future__ import annotations

import contextlib
import io
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, NamedTuple, NoReturn

from ..outcomes import UnsupportedTestError
from .pytest_api import Fixture


class CaptureResult(NamedTuple):
    """Captured output."""

    out: str
    err: str


class CaptureFixture:
    """The value of the fixture `capsys`."""

    def __init__(self) -> None:
        self._streams = io.StringIO(), io.StringIO()

    @contextlib.contextmanager
    def capturing(self) -> Iterator[None]:
        """Capture output in the block."""
        out, err = self._streams
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield

    @contextlib.contextmanager
    def disabled(self) -> Iterator[None]:
        """Suspend capturing in the block."""
        with contextlib.redirect_stdout(sys.__stdout__), contextlib.redirect_stderr(sys.__stderr__):
            yield

    def readouterr(self) -> CaptureResult:
        """Return what was written to standard output and error since the last call."""
        texts = [stream.getvalue() for stream in self._streams]
        for stream in self._streams:
            stream.seek(0)
            stream.truncate()
        return CaptureResult(*texts)


_ABSENT: Any = object()


class MonkeyPatch:
    """The value of `monkeypatch`: replaces attributes, items and environment variables, and restores them at the end."""

    def __init__(self) -> None:
        self._restore = contextlib.ExitStack()

    def setattr(self, target: Any, name: Any, value: Any = _ABSENT, raising: bool = True) -> None:
        """Set an attribute, of an object or by its full name; if `raising`, one that exists."""
        if isinstance(target, str):
            target, name, value = *_resolve(target), name
        self._keep(target, name, raising)
        setattr(target, name, value)

    def delattr(self, target: Any, name: str = "", raising: bool = True) -> None:
        """Delete an attribute, of an object or by its full name; if `raising`, one that exists."""
        if isinstance(target, str):
            target, name = _resolve(target)
        if self._keep(target, name, raising):
            delattr(target, name)

    def _keep(self, target: Any, name: str, raising: bool) -> bool:
        """Restore an attribute at the end; return whether it exists."""
        old = getattr(target, name, _ABSENT)
        if raising and old is _ABSENT:
            raise AttributeError(f"{target!r} has no attribute {name!r}")
        # The raw attribute of a class, since a method may be static.
        raw = vars(target).get(name, old) if issubclass(type(target), type) else old
        self._restore.callback(*((_drop, target, name) if raw is _ABSENT else (setattr, target, name, raw)))
        return old is not _ABSENT

    def setitem(self, mapping: MutableMapping[Any, Any], key: Any, value: Any) -> None:
        """Set an item."""
        if key in mapping:
            self._restore.callback(mapping.__setitem__, key, mapping[key])
        else:
            self._restore.callback(mapping.pop, key, None)
        mapping[key] = value

    def delitem(self, mapping: MutableMapping[Any, Any], key: Any, raising: bool = True) -> None:
        """Delete an item; if `raising`, one that exists."""
        if raising or key in mapping:
            self._restore.callback(mapping.__setitem__, key, mapping.pop(key))

    def setenv(self, name: str, value: object, prepend: str | None = None) -> None:
        """Set an environment variable; with `prepend` as separator, put the value in front of the present one."""
        rest = "" if prepend is None or name not in os.environ else prepend + os.environ[name]
        self.setitem(os.environ, name, f"{value}{rest}")

    def delenv(self, name: str, raising: bool = True) -> None:
        """Delete an environment variable; if `raising`, one that exists."""
        self.delitem(os.environ, name, raising)

    @contextlib.contextmanager
    def context(self) -> Iterator[MonkeyPatch]:
        """Return a second MonkeyPatch, which restores at the end of the block."""
        inner = MonkeyPatch()
        with contextlib.closing(inner):
            yield inner

    def undo(self) -> None:
        """Restore everything."""
        self._restore.close()

    close = undo

    def __getattr__(self, name: str) -> NoReturn:
        raise UnsupportedTestError(f"monkeypatch.{name} is not supported")


def _drop(target: object, name: str) -> None:
    with contextlib.suppress(AttributeError):
        delattr(target, name)


def _resolve(path: str) -> tuple[Any, str]:
    """The owner of an attribute given by its full name, and the attribute's own name."""
    owner, _, name = path.rpartition(".")
    return pkgutil.resolve_name(owner), name


def _own_fixture(make: Callable[[], Any], use: Callable[[Any], contextlib.AbstractContextManager[Any]]) -> Fixture:
    def fixture() -> Iterator[Any]:
        made = make()
        with use(made):
            yield made

    return Fixture(fixture)


OWN_FIXTURES = {
    "capsys": _own_fixture(CaptureFixture, CaptureFixture.capturing),
    "monkeypatch": _own_fixture(MonkeyPatch, contextlib.closing),
}
