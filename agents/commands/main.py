"""The console command `rlvr`: runs the named subcommand, prints its error, and exits with the error's code.

The other subcommands are not imported. Every error is one line on standard error. The exit code is

| | |
|---|---|
| 0 | done |
| 1 | the command failed, or found something (`verify`, `check-dataset`, `audit-verifier`, `contamination`, `rescore`) |
| 2 | the command line is invalid: an unknown option, a bad value, a missing file; `verify`: the verifier broke |
| 70 | a bug in rlvr-envs |
| 130, 143 | interrupted; stopped by SIGTERM, for commands that save their work |

A file that exists but has unexpected contents is a failure, 1. With the environment variable
`RLVR_TRACEBACK=1` the traceback is printed before the error.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.commands.command_line import (
    HELP,
    REFUSING,
    FailedError,
    RefusedError,
    check_before_loading,
    naming_options,
    parse_command,
    value_of,
)
from agents.console.printable import in_one_line
from agents.console.terminal import TerminalConsole, print_warnings_safely
from agents.distributed.launched import is_launched
from agents.interrupts import Terminated
from verifiers import (
    RLVRError,
    UnknownNameError,
    __version__,
    missing_dependency,
    unknown_name,
)

CANNOT, REFUSED, BUG, INTERRUPTED, TERMINATED = 1, 2, 70, 130, 143
"""Exit codes; the module's docstring explains them."""
TRACEBACK_VARIABLE = "RLVR_TRACEBACK"
_PROCESSES = "agents.distributed.processes"
"""The module of runs with several processes, which is loaded only in such a run."""


@dataclass(frozen=True)
class _CommandEntry:
    home: str
    """The command's class; for a command with subcommands, a mapping from names to summaries with a method `load`."""
    summary: str
    subcommands: str | None = None
    """Placeholder of a subcommand in the usage; None for a command without subcommands."""
    distributed: bool = False
    """Whether processes started by torchrun can run the command together."""
    checked_first: bool = False
    """Whether the command has a method `check`, which is called before torch loads."""


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
        checked_first=True,
    ),
    "sft": _CommandEntry(
        "agents.commands.sft:SFT",
        "fine-tune a model on gold completions, as a warm start",
        checked_first=True,
    ),
    "train-rm": _CommandEntry(
        "agents.commands.train_rm:TrainRM",
        "fit a reward model to preferences, such as right and wrong completions",
        checked_first=True,
    ),
    "rlhf": _CommandEntry(
        "agents.commands.rlhf:RLHF",
        "run warm start, preferences, reward model and PPO, next to PPO on the verifier",
        checked_first=True,
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
        sys.stdout.flush()  # flush here, while an error can still be reported
        return code
    except (RefusedError, *REFUSING) as error:
        return _report(error, str(error), REFUSED)
    except (FailedError, RLVRError) as error:
        return _report(error, str(error), CANNOT)
    except BrokenPipeError as error:
        _drop_output()  # the reader has closed the pipe
        return _report(error, None, CANNOT)
    except OSError as error:
        if error.errno is None:
            return _unforeseen(error)  # raised by a library or the user's code, not by a system call
        if error.filename is None:
            _drop_output()  # perhaps the output can't be written
        return _report(error, _os_error(error), REFUSED if isinstance(error, FileNotFoundError) else CANNOT)
    except MemoryError as error:
        text = f"there is not enough memory ({error}): choose smaller numbers, such as fewer episodes at once with --num-envs"
        return _report(error, text, CANNOT)
    except KeyboardInterrupt as error:
        return _report(error, "interrupted", TERMINATED if isinstance(error, Terminated) else INTERRUPTED, label="")
    except Exception as error:  # noqa: BLE001 - the last resort: unexpected errors are reported
        return _unforeseen(error)


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in HELP:
        usage = "usage: rlvr COMMAND [options]\n\nReinforcement learning with verifiable rewards."
        _print_choices(usage, {name: entry.summary for name, entry in COMMANDS.items()})
        print("\nrlvr COMMAND --help shows the options of a command; rlvr --version the version.")
        return 0
    name, *rest = arguments
    if name == "--version":
        print(f"rlvr-envs {__version__}")
        return 0
    if name not in COMMANDS:
        raise RefusedError(str(unknown_name("command", name, COMMANDS)))
    entry, prog = COMMANDS[name], f"rlvr {name}"
    if entry.distributed and is_launched():
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")  # ranks report errors of exchanges themselves
        device = value_of("--device", rest)
        _load(f"{_PROCESSES}:join", prog)(device)  # before all else, so that any error is reported only once
    target = _load(entry.home, prog)
    if entry.subcommands is not None:
        usage = f"usage: {prog} {entry.subcommands} [options]"
        if not rest:
            raise RefusedError(f"{usage}: expected one of {', '.join(target)}")
        if rest[0] in HELP:
            _print_choices(f"{usage}\n\n{entry.summary}", target)
            print(f"\n{prog} {entry.subcommands} --help shows the options.")
            return 0
        if rest[0].startswith("-"):
            raise RefusedError(f"{usage}: expected first one of {', '.join(target)}; got {rest[0]!r}")
        prog = f"{prog} {rest[0]}"
        try:
            with _needing_torch(prog):
                target, rest = target.load(*rest), rest[1:]
        except UnknownNameError as error:
            raise RefusedError(str(error)) from error
    command = parse_command(target, rest, prog)
    launched = entry.distributed and is_launched()
    if entry.checked_first and not launched:  # otherwise the launching process has already checked
        check_before_loading(command, rest)
    if entry.distributed and not launched and (launcher := command.launcher()) is not None:
        return launcher(arguments)
    with naming_options(target, rest), _needing_torch(prog):
        return command.run(TerminalConsole())


def _load(home: str, prog: str) -> Any:
    module_name, _, attribute = home.partition(":")
    with _needing_torch(prog):
        return getattr(importlib.import_module(module_name), attribute)


@contextlib.contextmanager
def _needing_torch(prog: str) -> Iterator[None]:
    """If torch is missing within the block, say how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name in ("torch", "transformers"):
            raise missing_dependency(error.name, "train", prog) from error
        raise


def _print_choices(usage: str, choices: Mapping[str, str]) -> None:
    from rich.table import Table

    console = TerminalConsole()
    console.print(f"{usage}\n")
    table = Table.grid(padding=(0, 3))
    for name, summary in choices.items():
        table.add_row(f"  {name}", summary)
    console.print(table)


# Errors


def _report(error: BaseException, message: str | None, code: int, *, label: str = "error: ") -> int:
    if os.environ.get(TRACEBACK_VARIABLE, "") not in ("", "0"):
        traceback.print_exception(error, file=sys.stderr)
    if (processes := sys.modules.get(_PROCESSES)) is not None:
        message = processes.reported_here(message)
    if message is not None:
        console = TerminalConsole(stderr=True)
        console.print(label, style="red", end="")
        console.print(in_one_line(message))
    return code


def _os_error(error: OSError) -> str:
    """The system's error message, with the file's name."""
    return str(error.strerror) if error.filename is None else f"{error.strerror}: {os.fspath(error.filename)!r}"


def _drop_output() -> None:
    """Discard unwritten output, which Python would otherwise try to flush again on exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unforeseen(error: Exception) -> int:
    """Report an unexpected error as a fault of the user's code if that code raised it, otherwise as a bug in rlvr-envs."""
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
