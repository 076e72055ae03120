"""What tests replace in the standard library is replaced in the candidate too, and what it writes meanwhile comes back.

`patch("builtins.input")`, `patch("time.time")`, `redirect_stdout`, `capsys`, `random.seed` and assignments such as
`sys.stdout = StringIO()` have an effect on the test's process alone, but are meant for the program. It watches the standard
streams, the environment, and those names in modules for which both the module and the name occur in the tests.
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
from typing import Any

from ..outcomes import UnsupportedTestError
from ..report import text_of, unsupported
from ..rpc.proxy import Proxy
from ..rpc.session import Session

_SIGN = re.compile(
    r"patch|redirect_std|capsys|environ\b|\bseed\b|setattr"
    r"|\b(?!(?:self|cls)\.)(?:[a-z]\w*|__builtins__)\.\w+ *(?::[^=\n]*)?=(?!=)"
)
"""What a test that replaces something has in its text; others have it too, and lose nothing but time."""
_PATCHED = re.compile(r"\b(?:patch(?:\.dict)?|setattr)\(\s*[\"']([\w.]+)[\"']")
_STREAMS = [("sys", name) for name in ("stdin", "stdout", "stderr")]
_UNWATCHED = frozenset({("sys", "modules"), ("sys", "path"), ("warnings", "filters"), ("warnings", "showwarning")})
"""What modules change of themselves in passing, or for the tests alone."""
_ABSENT = object()
_Target = tuple[str, str]
"""A module's name, and a name in it."""


def may_replace(source: str) -> bool:
    """Whether a test could replace something, told from the text."""
    return _SIGN.search(source) is not None


class Mirror:
    """Tells the candidate what the tests have replaced, before whatever they ask of it."""

    def __init__(self, session: Session, source: str) -> None:
        """Begin with nothing replaced.

        Args:
            session: With the candidate.
            source: The tests, in which the modules are named that they may replace something in.
        """
        self._session = session
        self._source = source
        self._mirrored: dict[_Target, tuple[dict[str, Any], Any]] = {}
        """The module's names, and what was there when the candidate was last told, or in the beginning."""
        self._environment = dict(os.environ) if "env" in source else None
        """Likewise; None if no test speaks of it. To look at it takes as long as half a request."""
        self._originals: dict[_Target, tuple[Any, Any]] = {}
        """What was there in the beginning, here and in the candidate."""
        self._written: dict[str, tuple[io.StringIO, int]] = {}
        self._busy = False

    def watch(self) -> None:
        """Note what is there, before the tests replace any of it; again where they may have imported more."""
        for path in _PATCHED.findall(self._source):
            _import_standard(path.rpartition(".")[0])
        words = set(re.findall(r"\w+", self._source))
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in sys.stdlib_module_names and name.rpartition(".")[2] in words | {"builtins"}:
                for key in words & vars(module).keys():
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
        """Have what the candidate does meanwhile see what the tests have replaced."""
        if self._busy:
            yield
            return
        self._apart(self._push)
        try:
            yield
        finally:
            self._apart(self._pull)

    def _apart(self, action: Callable[[], None]) -> None:
        """Do something that a test has not asked for, and which fails only where the program is not as it should be."""
        self._busy = True
        try:
            action()
        except UnsupportedTestError:
            raise
        except Exception as error:
            if "candidate_error" not in error.__dict__:
                self._session.abandon("protocol", text_of(error))
            raise
        finally:
            self._busy = False

    def _module(self, name: str) -> Proxy:
        module = self._session.request("import", None, name)
        if not isinstance(module, Proxy):
            self._session.abandon("protocol", f"{name} is not a module")
        return module

    def _seed(self, seed: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        """Seed both generators: a test does it so that the program's numbers are known."""
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
        """What the program is to write to, so that it can be read from there."""
        if isinstance(stream, io.StringIO):
            self._written[name] = stream, 0
            return io.StringIO()
        if isinstance(stream, io.IOBase):
            error = UnsupportedTestError(
                f"a test replaces sys.{name} by a {type(stream).__name__}; a StringIO can be used"
            )
            raise unsupported(error) if self._session.has_given(stream) else error
        return stream

    def _pull(self) -> None:
        for name, (stream, count) in self._written.items():
            theirs = getattr(self._module("sys"), name)
            if type(theirs) is io.StringIO and not (theirs.closed or stream.closed):
                text = theirs.getvalue()
                stream.write(text[count:])
                self._written[name] = stream, len(text)

    def _push_environment(self, before: dict[str, str], now: dict[str, str]) -> dict[str, str]:
        theirs: Any = self._module("os").environ
        for key in before.keys() - now.keys():
            del theirs[key]
        for key, value in now.items():
            if before.get(key) != value:
                theirs[key] = value
        return now


def _import_standard(name: str) -> None:
    """Import a module, if it is one of the standard library, or as much of its name as is one."""
    if name.partition(".")[0] in sys.stdlib_module_names:
        with contextlib.suppress(ImportError):
            for end in [*(at for at, letter in enumerate(name) if letter == "."), len(name)]:
                importlib.import_module(name[:end])
