"""The console command `rlvr`: runs the named subcommand, without importing the others.

Every error is one line on standard error. The exit code is

| | |
|---|---|
| 0 | done |
| 1 | the command failed, or found something (`verify`, `check-dataset`, `audit-verifier`, `contamination`, `rescore`) |
| 2 | the command line is invalid: an unknown option, a bad value, a file that is not there; `verify`: the verifier broke |
| 70 | a bug in rlvr-envs |
| 130, 143 | interrupted; stopped by SIGTERM, for commands that save their work |

A file that is there and holds something else than expected is a failure, 1. With the environment variable
`RLVR_TRACEBACK=1` the traceback is printed before the error.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import os
import sys
import sysconfig
import traceback
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Union, get_args, get_origin, get_type_hints

import tyro
from rich.console import Console
from rich.table import Table

from agents.commands.setting_names import setting_names
from agents.commands.usage_errors import unknown_options, usage_error, with_option_names
from agents.console.printable import in_one_line
from agents.console.terminal import TerminalConsole, print_warnings_safely
from agents.distributed.launched import is_launched
from agents.interrupts import Terminated
from verifiers import (
    InvalidArgumentError,
    MissingDataError,
    RLVRError,
    UnknownNameError,
    VerifierContractError,
    __version__,
    missing_dependency,
    unknown_name,
)

CANNOT, REFUSED, BUG, INTERRUPTED, TERMINATED = 1, 2, 70, 130, 143
"""Exit codes."""
TRACEBACK_VARIABLE = "RLVR_TRACEBACK"
_HELP = ("-h", "--help")
_PROCESSES = "agents.distributed.processes"
"""The module of runs with several processes, which is loaded only in such a run."""


@dataclass(frozen=True)
class Preview:
    """The part of a command that is read and checked before torch loads: all but the settings of an agent or a training."""

    options: type[Any]
    """The dataclass of its other options."""
    settings: str
    """The dataclass of the settings, as module:Class."""
    check: Callable[[Any, Mapping[str, str]], None]
    """Checks the options, given the settings that were typed, as text."""


class _Command(Protocol):
    """A dataclass of options."""

    def run(self, console: Console) -> int:
        """Run the command, and return the exit code."""
        ...

    def launcher(self) -> Callable[[Sequence[str]], int] | None:
        """A function that runs the command's arguments in several processes and returns the exit code; None to run in this one.

        Only commands that are `distributed` have it.
        """
        ...


@dataclass(frozen=True)
class _CommandEntry:
    home: str
    """The command's class; for a command with subcommands, a mapping from names to summaries with a method `load`."""
    summary: str
    subcommands: str | None = None
    """Placeholder of a subcommand in the usage; None for a command without subcommands."""
    distributed: bool = False
    """Whether processes that torchrun started run the command together."""
    preview: str | None = None
    """Function that returns the command's `Preview`; None if the command itself can be read without torch, or has
    subcommands."""


COMMANDS = {
    "envs": _CommandEntry("agents.commands.envs:Envs", "list the environments, or describe one"),
    "check-dataset": _CommandEntry(
        "agents.commands.check_dataset:CheckDataset", "check that a data set's gold answers pass its verifier"
    ),
    "data": _CommandEntry(
        "agents.commands.data_stats:DATA_COMMANDS",
        "look into a data set: rlvr data stats counts its contents, and problems that can't be judged",
        subcommands="COMMAND",
    ),
    "verify": _CommandEntry("agents.commands.verify:Verify", "verify one completion against one reference"),
    "serve-verifier": _CommandEntry("agents.commands.serve_verifier:ServeVerifier", "serve a verifier over HTTP"),
    "serve-env": _CommandEntry("agents.commands.serve_env:ServeEnv", "serve an environment over HTTP"),
    "audit-verifier": _CommandEntry(
        "agents.commands.audit_verifier:AuditVerifier", "test a verifier for errors, on a data set's gold answers"
    ),
    "train": _CommandEntry(
        "agents.commands.train:AGENT_COMMANDS",
        "train an agent, such as rlvr train grpo --env Addition; module:Class names a custom one",
        subcommands="AGENT",
        distributed=True,
    ),
    "sft": _CommandEntry(
        "agents.commands.sft:SFT",
        "fine-tune a model on gold completions, as a warm start",
        preview="agents.commands.options:SFT",
    ),
    "train-rm": _CommandEntry(
        "agents.commands.train_rm:TrainRM",
        "fit a reward model to preferences, such as right and wrong completions",
        preview="agents.commands.options:TRAIN_RM",
    ),
    "rlhf": _CommandEntry(
        "agents.commands.rlhf:RLHF",
        "run warm start, preferences, reward model and PPO, next to PPO on the verifier",
        preview="agents.commands.options:RLHF",
    ),
    "eval": _CommandEntry("agents.commands.evaluate:Evaluate", "evaluate a model on an environment's problems"),
    "play": _CommandEntry("agents.commands.play:Play", "step through one episode, by typing or with a model"),
    "bench": _CommandEntry(
        "agents.commands.bench:Bench", "evaluate several models, or agents trained first, and write a leaderboard"
    ),
    "grade": _CommandEntry("agents.commands.grade:Grade", "verify completions that were made elsewhere"),
    "rescore": _CommandEntry(
        "agents.commands.rescore:Rescore", "verify an evaluation's completions with another verifier"
    ),
    "compare": _CommandEntry("agents.commands.compare:Compare", "compare evaluations problem by problem"),
    "plot": _CommandEntry("agents.commands.plot:Plot", "draw a metric of training runs, with bands over seeds"),
    "watch": _CommandEntry("agents.commands.watch:Watch", "show runs in a browser while they train"),
    "view": _CommandEntry("agents.commands.view:View", "show recorded completions in Inspect's log viewer"),
    "show": _CommandEntry("agents.commands.show:Show", "show one recorded completion in the terminal"),
    "export": _CommandEntry(
        "agents.commands.export:Export",
        "write an environment for verl, TRL, prime-rl or lm-evaluation-harness, or merge a trained adapter into its base",
    ),
    "contamination": _CommandEntry(
        "agents.commands.contamination:Contamination", "find problems of one data set that occur in another"
    ),
    "gradient-lab": _CommandEntry(
        "agents.commands.gradient_lab:GradientLabCommand", "compare gradient estimators with the exact gradient"
    ),
    "demo": _CommandEntry("agents.commands.demo:Demo", "watch GRPO teach a tiny transformer to add"),
}


class _RefusedError(Exception):
    """The command line is invalid; the message explains why."""


class _FailedError(Exception):
    """The command failed; the message explains why."""


_REFUSING = (InvalidArgumentError, MissingDataError, UnknownNameError, VerifierContractError)
"""Errors that say that the command line is invalid."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; see the module's docstring for the exit codes."""
    print_warnings_safely()
    code = _exit_code(list(sys.argv[1:] if arguments is None else arguments))
    if (processes := sys.modules.get(_PROCESSES)) is not None:
        processes.leave(failed=code != 0)
    sys.exit(code)


def _exit_code(arguments: list[str]) -> int:
    try:
        code = _run(arguments)
        sys.stdout.flush()  # here, where an error can still be reported
        return code
    except (_RefusedError, *_REFUSING) as error:
        return _report(error, str(error), REFUSED)
    except (_FailedError, RLVRError) as error:
        return _report(error, str(error), CANNOT)
    except BrokenPipeError as error:
        _drop_output()  # the reader has closed the pipe
        return _report(error, None, CANNOT)
    except OSError as error:
        if error.errno is None:
            return _unforeseen(error)  # raised by a library or the user's code, not by a system call
        if error.filename is None:
            _drop_output()  # it may be the output that can't be written
        return _report(error, _os_error(error), REFUSED if isinstance(error, FileNotFoundError) else CANNOT)
    except MemoryError as error:
        text = f"there is not enough memory ({error}): choose smaller numbers, such as fewer episodes at once with --num-envs"
        return _report(error, text, CANNOT)
    except KeyboardInterrupt as error:
        return _report(error, "interrupted", TERMINATED if isinstance(error, Terminated) else INTERRUPTED, label="")
    except Exception as error:  # noqa: BLE001 - the last resort: unexpected errors are reported
        return _unforeseen(error)


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in _HELP:
        usage = "usage: rlvr COMMAND [options]\n\nReinforcement learning with verifiable rewards."
        _print_choices(usage, {name: entry.summary for name, entry in COMMANDS.items()})
        print("\nrlvr COMMAND --help shows the options of a command; rlvr --version the version.")
        return 0
    name, *rest = arguments
    if name == "--version":
        print(f"rlvr-envs {__version__}")
        return 0
    if name not in COMMANDS:
        raise _RefusedError(str(unknown_name("command", name, COMMANDS)))
    entry, prog = COMMANDS[name], f"rlvr {name}"
    if entry.distributed and is_launched():
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")  # ranks report errors of exchanges themselves
        device = value_of("--device", rest)
        _load(f"{_PROCESSES}:join", prog)(device)  # first of all, so that any error is reported once
    if entry.preview is not None:
        check_before_loading(_load(entry.preview, prog), rest, prog)
    target = _load(entry.home, prog)
    if entry.subcommands is not None:
        usage = f"usage: {prog} {entry.subcommands} [options]"
        if not rest:
            raise _RefusedError(f"{usage}: expected one of {', '.join(target)}")
        if rest[0] in _HELP:
            _print_choices(f"{usage}\n\n{entry.summary}", target)
            print(f"\n{prog} {entry.subcommands} --help shows the options.")
            return 0
        if rest[0].startswith("-"):
            raise _RefusedError(f"{usage}: expected first one of {', '.join(target)}; got {rest[0]!r}")
        prog = f"{prog} {rest[0]}"
        try:
            if entry.distributed and not is_launched():  # whose processes find the same, and have to report it once
                check_before_loading(target.preview(rest[0]), rest[1:], prog)
            with _needing_torch(prog):
                target, rest = target.load(*rest), rest[1:]
        except UnknownNameError as error:
            raise _RefusedError(str(error)) from error
    command = parse_command(target, rest, prog)
    if entry.distributed and not is_launched() and (launcher := command.launcher()) is not None:
        return launcher(arguments)
    with _naming_options(target, rest), _needing_torch(prog):
        return command.run(TerminalConsole())


@contextlib.contextmanager
def _naming_options(options: type, arguments: Sequence[str]) -> Iterator[None]:
    """Within the block, errors call the settings of a command by the names of its options."""
    try:
        yield
    except RLVRError as error:
        message = with_option_names(str(error), options, arguments)
        raise (_RefusedError if isinstance(error, _REFUSING) else _FailedError)(message) from error


def check_before_loading(preview: Preview | None, arguments: Sequence[str], prog: str) -> None:
    """Refuse an invalid command line, as far as it can be checked without torch.

    Raises:
        _RefusedError: If the command line is invalid.
        _FailedError: If the command would fail.
    """
    if preview is None or {*_HELP} & {*arguments}:
        return
    others = [f"--{name.replace('_', '-')}" for name in setting_names(preview.settings)]
    options, rest = _parse(preview.options, arguments, prog, others)
    with _naming_options(preview.options, arguments), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the command itself gives the same
        preview.check(options, _typed(rest))


def _typed(words: Sequence[str]) -> dict[str, str]:
    """The settings on a part of a command line, each with the text that follows its name, which is empty for a switch."""
    typed: dict[str, str] = {}
    for name, value in itertools.pairwise([*words, ""]):
        if name.startswith("--"):
            flag, equals, text = name[2:].partition("=")
            typed[flag.replace("-", "_")] = text if equals else "" if value.startswith("--") else value
    return typed


def value_of(option: str, arguments: Sequence[str]) -> str | None:
    """The value of an option on a command line that is not read yet."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    return next((value for name, value in itertools.pairwise(words) if name == option), None)


def _load(home: str, prog: str) -> Any:
    module_name, _, attribute = home.partition(":")
    with _needing_torch(prog):
        return getattr(importlib.import_module(module_name), attribute)


@contextlib.contextmanager
def _needing_torch(prog: str) -> Iterator[None]:
    """Within the block, say how torch is installed if it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name in ("torch", "transformers", "jaxtyping"):
            raise missing_dependency(error.name, "train", prog) from error
        raise


def _print_choices(usage: str, choices: Mapping[str, str]) -> None:
    console = TerminalConsole()
    console.print(f"{usage}\n", highlight=False, markup=False)
    table = Table.grid(padding=(0, 3))
    for name, summary in choices.items():
        table.add_row(f"  {name}", summary)
    console.print(table, highlight=False)


# The command line


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
    """Parse text, numbers and optional values as `tyro` does, with messages that state what was expected."""
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


def parse_command(options: type[Any], arguments: Sequence[str], prog: str) -> _Command:
    """Read the options of a command.

    Raises:
        _RefusedError: If an option is unknown, or its value is invalid.
        SystemExit: After `--help`.
    """
    command: _Command
    command, _ = _parse(options, arguments, prog)
    return command


def _parse(
    options: type[Any], arguments: Sequence[str], prog: str, others: Sequence[str] | None = None
) -> tuple[Any, list[str]]:
    """Read options, and return the words of the `others`, such as --group-size, which are read elsewhere."""
    _check_given_once(options, arguments)
    arguments = _without_commas(options, arguments)
    wide = contextlib.nullcontext() if {*_HELP} & {*arguments} else _wide_terminal()
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), wide:
            given: dict[str, Any] = {"args": arguments, "prog": prog, "config": _STYLE, "registry": _REGISTRY}
            if others is None:
                return tyro.cli(options, **given), []
            read, rest = tyro.cli(options, return_unknown_args=True, **given)
    except RLVRError as error:
        raise _RefusedError(with_option_names(str(error), options, arguments)) from error
    except SystemExit as stop:
        if not stop.code:
            raise
        # If a config rejects a value, tyro names the config's path within the command, which means nothing to the user.
        cause = next((raised for raised in _context(stop) if isinstance(raised, RLVRError)), stop)
        if isinstance(cause, RLVRError):
            raise _RefusedError(with_option_names(str(cause), options, arguments)) from cause
        raise _misused(usage_error(options, arguments, said.getvalue(), others or ()), prog) from cause
    if (unknown := unknown_options(options, arguments, others)) is not None:
        raise _misused(unknown, prog)
    return read, rest


def _misused(message: str, prog: str) -> _RefusedError:
    return _RefusedError(f"{message}{' See' if message.endswith('?') else '; see'} {prog} --help")


def _check_given_once(options: type[Any], arguments: Sequence[str]) -> None:
    """Reject a repeated option of several values, since only the last values would count."""
    hints = get_type_hints(options)
    several = [f"--{name.replace('_', '-')}" for name, hint in hints.items() if get_origin(hint) is tuple]
    own = itertools.takewhile(lambda argument: argument != "--", arguments)
    given = Counter(argument.partition("=")[0].replace("_", "-") for argument in own)
    for name in several:
        if given[name] > 1:
            raise _RefusedError(f"{name} is given twice: give it once, followed by all its values")


def _without_commas(options: type[Any], arguments: Sequence[str]) -> list[str]:
    """The same command line with the whole numbers of an option that takes several as separate words: 1,4 as 1 4."""
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
    """The chain of errors in whose handlers an error was raised."""
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


# Errors


def _report(error: BaseException, message: str | None, code: int, *, label: str = "error: ") -> int:
    if os.environ.get(TRACEBACK_VARIABLE, "") not in ("", "0"):
        traceback.print_exception(error, file=sys.stderr)
    if (processes := sys.modules.get(_PROCESSES)) is not None:
        message = processes.reported_here(message)
    if message is not None:
        console = TerminalConsole(stderr=True)
        console.print(label, style="red", end="", highlight=False)
        console.print(in_one_line(message), soft_wrap=True, highlight=False, markup=False)
    return code


def _os_error(error: OSError) -> str:
    """The system's error message, with the file's name."""
    return str(error.strerror) if error.filename is None else f"{error.strerror}: {os.fspath(error.filename)!r}"


def _drop_output() -> None:
    """Discard unwritten output, which Python would otherwise try to flush again on exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unforeseen(error: Exception) -> int:
    """Report an unexpected error as one of the user's code if it was raised there, and otherwise as a bug of rlvr-envs."""
    own = Path(__file__).parents[2]
    ours = [str(own / package) + os.sep for package in ("agents", "rlvr_envs", "verifiers")]
    others = [sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    what = f"{type(error).__name__}: {error}"
    again = f"run again with {TRACEBACK_VARIABLE}=1 to see the whole traceback"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        location = f"{frame.filename}:{frame.lineno}"
        if any(frame.filename.startswith(folder) for folder in ours):
            return _report(error, f"this is a bug in rlvr-envs {__version__}, at {location}: {what}; {again}", BUG)
        if os.path.isfile(frame.filename) and not any(frame.filename.startswith(folder) for folder in others):
            return _report(error, f"the code at {location} raised {what}; {again}", CANNOT)
    return _report(error, f"this is a bug in rlvr-envs {__version__}: {what}; {again}", BUG)
