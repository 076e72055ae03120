"""Repeats in the candidate what tests replace in the standard library, and returns what the program writes meanwhile.

`patch("builtins.input")`, `patch("time.time")`, `redirect_stdout`, `capsys`, `random.seed` and assignments such as
`sys.stdout = StringIO()` affect only the tests' process, but are meant for the program. The mirror watches the standard
streams, the environment, and those names in modules that the tests write behind the module's name.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..outcomes import UnsupportedTestError
from ..report import text_of, unsupported
from ..rpc.proxy import Proxy
from ..rpc.session import Session

_PATCHED = re.compile(r"\b(?:patch(?:\.dict)?|setattr)\(\s*[\"']([\w.]+)[\"']")
_NAMED = re.compile(r"\b(?=([A-Za-z_]\w*)[\"']?(?:\.|,\s*[\"']?)([A-Za-z]\w*))")
"""A module and a name in it, as in `time.sleep`, `patch("solution.time.sleep")` and `setattr(time, "sleep", ...)`."""
_STREAMS = [("sys", name) for name in ("stdin", "stdout", "stderr")]
_UNWATCHED = frozenset({("sys", "modules"), ("sys", "path"), ("warnings", "filters"), ("warnings", "showwarning")})
"""Names that modules change in passing, or only for the tests."""
_ABSENT = object()
_Target = tuple[str, str]
"""A module's name, and a name in it."""


@dataclass(slots=True)
class _Captured:
    """A stream of the tests in place of a standard one."""

    stream: io.StringIO
    sent: io.StringIO = field(default_factory=io.StringIO)
    """Shared with the program, which writes to it."""
    count: int = 0
    """Characters of it that the stream has."""


class Mirror:
    """Repeats the tests' replacements in the candidate before each of their requests."""

    def __init__(self, session: Session, source: str) -> None:
        """Start with nothing replaced; the tests' source names the modules in which they may replace something."""
        self._session = session
        self._source = source
        self._mirrored: dict[_Target, tuple[dict[str, Any], Any]] = {}
        """The module's namespace, and the value last mirrored, initially the original one."""
        self._environment = dict(os.environ) if "env" in source else None
        """The environment last mirrored; None if no test mentions it, since reading it takes as long as half a request."""
        self._originals: dict[_Target, tuple[Any, Any]] = {}
        """The original values, here and in the candidate."""
        self._written: dict[str, _Captured] = {}
        self._busy = False

    def watch(self) -> None:
        """Record the values before the tests replace any of them; called again when they may have imported more modules."""
        for path in _PATCHED.findall(self._source):
            _import_standard(path.rpartition(".")[0])
        named: dict[str, set[str]] = {}
        for module, name in _NAMED.findall(self._source):
            named.setdefault(module.strip("_"), set()).add(name)
        # A copy at once: a finalizer, such as of a coroutine that was never awaited, may import a module during a loop.
        for name, module in sys.modules.copy().items():
            if name.partition(".")[0] in sys.stdlib_module_names:
                for key in named.get(name.rpartition(".")[2], set()) & vars(module).keys():
                    if not (key.startswith("_") or isinstance(vars(module)[key], types.ModuleType)):
                        self._mirrored.setdefault((name, key), (vars(module), vars(module)[key]))
        for target in _STREAMS:
            self._mirrored.setdefault(target, (vars(sys), vars(sys).get(target[1], _ABSENT)))
        for target in _UNWATCHED:
            self._mirrored.pop(target, None)
        names, seed = self._mirrored.get(("random", "seed"), ({}, None))
        if seed is not None and not isinstance(seed, functools.partial):
            names["seed"] = functools.partial(self._seed, seed)
            self._mirrored["random", "seed"] = names, names["seed"]

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Apply the tests' replacements to what the candidate does in the block."""
        if self._busy:
            yield
            return
        self._apart(self._push)
        try:
            yield
        finally:
            self._apart(self._pull)

    def take_output(self) -> None:
        """Have the tests' streams hold what the program has written so far."""
        if self._written and not self._busy:
            self._apart(self._pull)

    def _apart(self, action: Callable[[], object]) -> None:
        """Make requests that no test made, and that fail only if the program misbehaves.

        They are no answers to the tests unless the action returns true.
        """
        self._busy, answered = True, self._session.has_answered
        try:
            answered |= action() is True
        except UnsupportedTestError:
            raise
        except Exception as error:
            if "candidate_error" not in error.__dict__:
                self._session.abandon("protocol", text_of(error))
            raise
        finally:
            self._busy, self._session.has_answered = False, answered or self._session.has_called_back

    def _module(self, name: str) -> Proxy:
        module = self._session.request("import", None, name)
        if not isinstance(module, Proxy):
            self._session.abandon("protocol", f"{name} is not a module")
        return module

    def _seed(self, seed: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        """Seed both generators: tests seed to make the program's numbers predictable."""
        seed(*args, **kwargs)
        with self._session.turns:
            self._apart(lambda: self._module("random").seed(*args, **kwargs))  # type: ignore[operator]  # a function there

    def _push(self) -> None:
        for target, (names, before) in self._mirrored.items():
            now = names.get(target[1], _ABSENT)
            if now is not before:
                self._replace(target, before, now)
                self._mirrored[target] = names, now
        if self._environment is not None and os.environ != self._environment:
            self._environment = self._push_environment(self._environment, dict(os.environ))

    def _replace(self, target: _Target, old: object, value: object) -> None:
        module, name = target
        remote = self._module(module)
        if target not in self._originals:
            self._originals[target] = old, getattr(remote, name, _ABSENT)
        mine, theirs = self._originals[target]
        self._written.pop(name, None)
        if value is mine:
            value = theirs
        elif target in _STREAMS[1:]:
            value = self._captured(name, value)
        if value is _ABSENT:
            delattr(remote, name)
        else:
            setattr(remote, name, value)

    def _captured(self, name: str, stream: object) -> object:
        """The stream for the program to write to, from which its output can be read."""
        if isinstance(stream, io.StringIO):
            known = (captured for captured in self._written.values() if captured.stream is stream)
            captured = self._written[name] = next(known, None) or _Captured(stream)
            return captured.sent
        if isinstance(stream, io.IOBase):
            error = UnsupportedTestError(f"a test replaces sys.{name} with a {type(stream).__name__}; use a StringIO")
            raise unsupported(error) if self._session.is_from_program(stream) else error
        return stream

    def _pull(self) -> bool:
        """Write what the program has written to the tests' streams; return whether it has written anything."""
        has_written = False
        for captured in self._written.values():
            self._session.request("getattr", captured.sent, "closed")
            if not (captured.sent.closed or captured.stream.closed):
                text = captured.sent.getvalue()[captured.count :]
                captured.stream.write(text)
                captured.count += len(text)
                has_written |= bool(text)
        return has_written

    def _push_environment(self, before: dict[str, str], now: dict[str, str]) -> dict[str, str]:
        theirs: Any = self._module("os").environ
        for key in before.keys() - now.keys():
            del theirs[key]
        for key, value in now.items():
            if before.get(key) != value:
                theirs[key] = value
        return now


def _import_standard(name: str) -> None:
    """Import a module of the standard library, or as many leading parts of its name as name one."""
    if name.partition(".")[0] in sys.stdlib_module_names:
        with contextlib.suppress(ImportError):
            for end in [*(at for at, letter in enumerate(name) if letter == "."), len(name)]:
                importlib.import_module(name[:end])
