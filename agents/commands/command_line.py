"""Reads the options of a command; error messages use the names of the options as they are typed."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import inspect
import io
import itertools
import os
import re
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol, Union, get_args, get_origin, get_type_hints

import tyro
from rich.console import Console

from agents.commands.usage_errors import usage_error, with_option_names
from verifiers import (
    Bound,
    InvalidArgumentError,
    MissingDataError,
    RLVRError,
    UnknownNameError,
    VerifierContractError,
    bounds_of,
    check_types,
)


class Command(Protocol):
    """A dataclass of options."""

    def run(self, console: Console) -> int:
        """Run the command, and return the exit code."""

    def check(self) -> None:
        """Raise an `RLVRError` if the options are invalid, as far as that shows without torch.

        Only commands that are `checked_first` have this method.
        """

    def launcher(self) -> Callable[[Sequence[str]], int] | None:
        """A function that runs the command's arguments in several processes; None to run in this process.

        The function returns the exit code. Only commands that are `distributed` have this method.
        """


HELP = ("-h", "--help")


class RefusedError(Exception):
    """The command line is invalid; the message says why."""


class FailedError(Exception):
    """The command failed; the message says why."""


REFUSING = (InvalidArgumentError, MissingDataError, UnknownNameError, VerifierContractError)
"""Errors that show that the command line is invalid."""


@contextlib.contextmanager
def naming_options(options: type, arguments: Sequence[str]) -> Iterator[None]:
    """Within the block, turn the names of settings in error messages into the names of the command's options."""
    try:
        yield
    except RLVRError as error:
        message = with_option_names(str(error), options, arguments)
        raise (RefusedError if isinstance(error, REFUSING) else FailedError)(message) from error


def check_before_loading(command: Command, arguments: Sequence[str]) -> None:
    """Refuse an invalid command line, as far as it can be checked without torch."""
    with naming_options(type(command), arguments), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the command itself gives the same warnings
        command.check()


def value_of(option: str, arguments: Sequence[str]) -> str | None:
    """The value of an option on a command line that has not been parsed yet."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    return next((value for name, value in itertools.pairwise(words) if name == option), None)


_STYLE = (
    tyro.conf.AvoidSubcommands,
    tyro.conf.OmitSubcommandPrefixes,
    tyro.conf.OmitArgPrefixes,
    tyro.conf.EnumChoicesFromValues,
)
_REGISTRY = tyro.constructors.ConstructorRegistry()


def _text(values: list[str]) -> str:
    try:
        values[0].encode()
    except UnicodeEncodeError:
        # Bytes of the command line that are not UTF-8 become lone surrogates.
        raise ValueError(f"expected text in UTF-8, got {values[0]!a}") from None
    return values[0]


def _path(values: list[str]) -> Path:
    if not values[0]:
        raise ValueError("expected a path, got ''")
    return Path(_text(values))


def _whole_number(values: list[str]) -> int:
    try:
        return int(values[0])
    except ValueError:
        raise ValueError(f"expected a whole number, got {values[0]!r}") from None


def _number(values: list[str]) -> float:
    try:
        number = float(values[0])
    except ValueError:
        number = float("nan")
    if number != number:
        raise ValueError(f"expected a number, got {values[0]!r}")
    return number


_READERS: dict[Any, tuple[str, Any]] = {
    str: ("STR", _text),
    Path: ("PATH", _path),
    int: ("INT", _whole_number),
    float: ("FLOAT", _number),
}


@_REGISTRY.primitive_rule
def _plain_value(
    info: tyro.constructors.PrimitiveTypeInfo,
) -> tyro.constructors.PrimitiveConstructorSpec[Any] | None:
    """Parse text, numbers and optional values like `tyro`, but with messages that state the expected kind of value."""
    allowed = get_args(info.type) if get_origin(info.type) in (types.UnionType, Union) else (info.type,)
    optional = types.NoneType in allowed
    required = [cls for cls in allowed if cls is not types.NoneType]
    if len(required) != 1 or required[0] not in _READERS:
        return None
    (cls,) = required
    metavar, read = _READERS[cls]

    def read_optional(values: list[str]) -> Any:
        if values == ["None"]:
            return None
        try:
            return read(values)
        except ValueError as error:
            raise ValueError(str(error).replace(", got", " or None, got", 1)) from None

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=f"{metavar}|None" if optional else metavar,
        instance_from_str=read_optional if optional else read,
        is_instance=lambda value: isinstance(value, allowed) or (cls is float and isinstance(value, int)),
        str_from_instance=lambda value: [str(value)],
    )


@_REGISTRY.struct_rule
def _options_of(info: tyro.constructors.StructTypeInfo) -> tyro.constructors.StructConstructorSpec | None:
    """Read a dataclass like `tyro`, but with the bounds of its numbers in the help."""
    if not dataclasses.is_dataclass(info.type) or info.type in _BEING_READ:
        return None
    _BEING_READ.add(info.type)
    try:
        spec = tyro.constructors.ConstructorRegistry.get_struct_spec(info)
    finally:
        _BEING_READ.discard(info.type)
    assert isinstance(spec, tyro.constructors.StructConstructorSpec)
    bounds = dict(bounds_of(info.type))
    texts = option_texts(info.type)
    fields = (
        dataclasses.replace(
            _option(field, bounds.get(field.name), {*info.markers, *_STYLE}), helptext=texts.get(field.name)
        )
        for field in spec.fields
    )
    return dataclasses.replace(spec, fields=tuple(fields))


_BEING_READ: set[type] = set()
"""Dataclasses whose fields `tyro` is currently collecting."""


def _option(
    field: tyro.constructors.StructFieldSpec, bound: Bound | None, markers: set[Any]
) -> tyro.constructors.StructFieldSpec:
    """An option with a reader of its values and, if it has a bound, with the bound in its help.

    Setting the reader keeps `tyro` from comparing the default with a type that is not a class, for which it would load
    typeguard, and thereby asyncio and unittest.
    """
    hint: Any = field.type
    plain, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if type(plain) is not type:
        info = tyro.constructors.PrimitiveTypeInfo.make(hint, markers)
        reader = tyro.constructors.ConstructorRegistry.get_primitive_spec(info)
        if isinstance(reader, tyro.constructors.PrimitiveConstructorSpec):
            plain, notes = object, [*notes, reader]
        elif isinstance(plain, types.UnionType):  # tyro has its own check for `Union`, but not for `|`
            plain = Union[get_args(plain)]  # noqa: UP007
    if bound is not None:
        notes.append(tyro.conf.arg(help_behavior_hint=lambda default: f"({bound}; default: {default})"))
    read_as: Any = Annotated[plain, *notes] if notes else plain
    return dataclasses.replace(field, type=read_as)


def option_texts(options: type[Any]) -> dict[str, str]:
    """The docstring below each field of a dataclass and its bases; tyro would take three times as long to find them."""
    texts: dict[str, str] = {}
    for base in reversed(options.__mro__[:-1]):
        source = getattr(sys.modules.get(base.__module__), "__file__", None)
        body = [] if source is None else _class_bodies(source).get(base.__name__, [])
        for field, below in itertools.pairwise(body):
            text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, str):
                texts[field.target.id] = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(text))
    return texts


@functools.cache
def _class_bodies(source: str) -> dict[str, list[ast.stmt]]:
    """The statements of each class at the top of a file."""
    tree = ast.parse(Path(source).read_bytes())
    return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}


def parse_command(options: type[Any], arguments: Sequence[str], prog: str) -> Command:
    """Read the options of a command."""
    _check_given_once(options, arguments)
    arguments = _without_commas(options, arguments)
    wide = contextlib.nullcontext() if {*HELP} & {*arguments} else _wide_terminal()
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), wide:
            command: Command = tyro.cli(options, args=arguments, prog=prog, config=_STYLE, registry=_REGISTRY)
            check_types(command)
    except RLVRError as error:
        raise RefusedError(with_option_names(str(error), options, arguments)) from error
    except SystemExit as stop:
        if not stop.code:
            raise
        # If a config rejects a value, tyro names the config's path within the command, which means nothing to the user.
        cause = next((raised for raised in _context(stop) if isinstance(raised, RLVRError)), stop)
        if isinstance(cause, RLVRError):
            raise RefusedError(with_option_names(str(cause), options, arguments)) from cause
        message = usage_error(options, arguments, said.getvalue())
        raise RefusedError(f"{message}{' See' if message.endswith('?') else '; see'} {prog} --help") from cause
    return command


def _check_given_once(options: type[Any], arguments: Sequence[str]) -> None:
    """Reject a repetition of an option that takes several values, since only the last values would count."""
    hints = get_type_hints(options)
    several = [f"--{name.replace('_', '-')}" for name, hint in hints.items() if get_origin(hint) is tuple]
    own = itertools.takewhile(lambda argument: argument != "--", arguments)
    given = Counter(argument.partition("=")[0].replace("_", "-") for argument in own)
    for name in several:
        if given[name] > 1:
            raise RefusedError(f"{name} is given twice: give it once, followed by all its values")


def _without_commas(options: type[Any], arguments: Sequence[str]) -> list[str]:
    """Split comma-separated whole numbers of options that take several numbers into separate words: 1,4 becomes 1 4."""
    hints = get_type_hints(options).items()
    several = {f"--{name.replace('_', '-')}" for name, hint in hints if hint == tuple[int, ...]}
    words: list[str] = []
    inside = False
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if argument.startswith("--"):
            inside = name.replace("_", "-") in several
            words += [name, *value.split(",")] if inside and equals else [argument]
        else:
            words += argument.split(",") if inside else [argument]
    return words


def _context(error: BaseException) -> Iterator[BaseException]:
    """The errors that were being handled when an error was raised, one after another."""
    while (error := error.__context__) is not None:  # type: ignore[assignment]  # None ends the loop
        yield error


@contextlib.contextmanager
def _wide_terminal() -> Iterator[None]:
    """Keep tyro from wrapping its messages."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "10000"
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
