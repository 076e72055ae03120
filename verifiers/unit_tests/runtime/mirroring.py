"""What tests replace in the standard library is replaced in the candidate too, and what it writes meanwhile comes back.

`patch("builtins.input")`, `patch("time.time")`, `redirect_stdout`, `capsys`, `random.seed` and assignments such as
`sys.stdout = StringIO()` have an effect on the test's process alone, but are meant for the program.
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
from collections.abc import Callable, Mapping
from typing import Any

from .channel import Channel
from .pytest_subset import UnsupportedTestError
from .remote import Remote
from .report import Report, text_of
from .session import Session

_SIGN = re.compile(
    r"patch|redirect_std|capsys|catch_warnings|environ\b|\bseed\b|setattr|\b(?:[a-z]\w*|__builtins__)\.\w+ *(?::[^=\n]*)?=(?!=)"
)
"""What a test that replaces something has in its text; others have it too, and lose nothing but time."""
_PATCHED = re.compile(r"\b(?:patch(?:\.dict)?|setattr)\(\s*[\"']([\w.]+)[\"']")
_LAST_ERROR = ("last_type", "last_value", "last_traceback")
_OWN = {
    "sys": frozenset(("modules", "path", "meta_path", "path_hooks", "path_importer_cache", *_LAST_ERROR)),
    "warnings": frozenset(("filters", "showwarning", "formatwarning")),
}
"""What modules change of themselves in passing, or for the tests alone."""
_WRITTEN = ("stdout", "stderr")
_ABSENT = object()


def may_replace(source: str) -> bool:
    """Whether a test could replace something, told from the text."""
    return _SIGN.search(source) is not None


class MirroringSession(Session):
    """A session that tells the candidate what the tests have replaced, before whatever it asks."""

    def __init__(self, channel: Channel, report: Report, source: str) -> None:
        """Begin a session.

        Args:
            channel: To the candidate.
            report: Where findings go.
            source: The tests, in which the modules are named that they may replace something in.
        """
        super().__init__(channel, report)
        self._source = source
        self._watched: dict[str, dict[str, Any]] = {}
        self._environment = dict(os.environ)
        self._originals: dict[tuple[str, str], Any] = {}
        self._written: dict[str, tuple[io.StringIO, int]] = {}
        self._busy = False

    def watch(self) -> None:
        """Note what is there, before the tests replace any of it; again where they may have imported more."""
        if "catch_warnings" in self._source:
            _wrap("warnings", "catch_warnings", _catch_warnings)
        for target in _PATCHED.findall(self._source):
            _import_standard(target.rpartition(".")[0])
        named = _standard_modules(self._source) | {"builtins", "sys"}
        for name in named & sys.modules.keys() - self._watched.keys():
            self._watched[name] = _content(name)
        if re.search(r"\bseed\b", self._source):
            _wrap("random", "seed", self._seed)
            self._watched["random"] = _content("random")

    def request(self, operation: str, subject: object, /, *args: object, **kwargs: object) -> Any:
        """Have the candidate do something, and return or raise what came of it."""
        with self._turns:
            if self._busy:
                return super().request(operation, subject, *args, **kwargs)
            self._apart(self._push)
            try:
                return super().request(operation, subject, *args, **kwargs)
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
                self.abandon("protocol", text_of(error))
            raise
        finally:
            self._busy = False

    def _module(self, name: str) -> Remote:
        found = self.request("import", None, name)
        if not isinstance(found, Remote):
            self.abandon("protocol", f"{name} is no module")
        return found

    def _seed(self, seed: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        """Seed both generators: a test does it so that the program's numbers are known."""
        seed(*args, **kwargs)
        with self._turns:
            self._apart(lambda: self._module("random").seed(*args, **kwargs))  # type: ignore[operator]  # a function there

    def _push(self) -> None:
        for name, before in self._watched.items():
            now = _content(name)
            for key in now.keys() | before.keys():
                old, new = before.get(key, _ABSENT), now.get(key, _ABSENT)
                if new is not old:
                    self._replace(name, key, old, new)
            self._watched[name] = now
        if os.environ != self._environment:
            self._push_environment(dict(os.environ))

    def _replace(self, module: str, name: str, old: object, value: object) -> None:
        remote = self._module(module)
        place = module, name
        if place not in self._originals:
            self._originals[place] = old, getattr(remote, name, _ABSENT)
        mine, theirs = self._originals[place]
        if module == "sys":
            self._written.pop(name, None)
        if value is mine:
            value = theirs
        elif module == "sys" and name in _WRITTEN:
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
            raise UnsupportedTestError(
                f"a test replaces sys.{name} by a {type(stream).__name__}; a StringIO can be used"
            )
        return stream

    def _pull(self) -> None:
        for name, (stream, count) in self._written.items():
            theirs = getattr(self._module("sys"), name)
            if type(theirs) is io.StringIO and not (theirs.closed or stream.closed):
                text = theirs.getvalue()
                stream.write(text[count:])
                self._written[name] = stream, len(text)

    def _push_environment(self, now: Mapping[str, str]) -> None:
        theirs: Any = self._module("os").environ
        for key in self._environment.keys() - now.keys():
            del theirs[key]
        for key, value in now.items():
            if self._environment.get(key) != value:
                theirs[key] = value
        self._environment = dict(now)


def _wrap(module: str, name: str, function: Callable[..., Any]) -> None:
    """Put a function before one of a module, which becomes its first argument; once."""
    content = vars(importlib.import_module(module))
    if not isinstance(content[name], functools.partial):
        content[name] = functools.partial(function, content[name])


def _catch_warnings(catch: Callable[..., object], *, record: bool = False, **kwargs: object) -> object:
    if record:
        reason = "what the program warns of stays in its own process"
        raise UnsupportedTestError(f"catch_warnings(record=True) is not supported: {reason}")
    return catch(**kwargs)


def _content(module: str) -> dict[str, Any]:
    own = _OWN.get(module, frozenset())
    return {
        name: value
        for name, value in vars(sys.modules[module]).items()
        if not (name.startswith("_") or name in own or isinstance(value, types.ModuleType))
    }


def _standard_modules(source: str) -> set[str]:
    """What could be the name of a module of the standard library, such as `os` and `os.path` in `solution.os.path.exists`."""
    words = set(re.findall(r"\w+(?:\.\w+)*", source))
    paths = [word.split(".") for word in words]
    names = {".".join(path[start:end]) for path in paths for end in range(len(path) + 1) for start in range(end)}
    return {name for name in names if name.partition(".")[0] in sys.stdlib_module_names}


def _import_standard(name: str) -> None:
    """Import a module, if it is one of the standard library, or as much of its name as is one."""
    if name.partition(".")[0] in sys.stdlib_module_names:
        with contextlib.suppress(ImportError):
            for end in [*(at for at, letter in enumerate(name) if letter == "."), len(name)]:
                importlib.import_module(name[:end])
