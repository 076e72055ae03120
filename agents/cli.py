"""The console command `rlvr`: finds the command that is named, and imports nothing of the others."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agents.interrupts import Terminated
from verifiers import RLVRError, missing_dependency, unknown_name


@dataclass(frozen=True)
class _Entry:
    home: str
    summary: str
    depends_on_arguments: bool = False
    """Whether `home` is a function that gives the command for the arguments, in place of the command itself."""


_COMMANDS = {
    "envs": _Entry("agents.commands.envs:Envs", "list the environments, or describe one"),
    "check-dataset": _Entry(
        "agents.commands.check_dataset:CheckDataset", "put a data set's gold answers through its verifier"
    ),
    "verify": _Entry("agents.commands.verify:Verify", "judge one completion against one reference, and say why"),
    "audit-verifier": _Entry(
        "agents.commands.audit_verifier:AuditVerifier", "look for what is wrong with a verifier, on a data set's golds"
    ),
    "train": _Entry(
        "agents.commands.train:train_command",
        "train an agent: rlvr train grpo --env Addition; your own is module:Class",
        depends_on_arguments=True,
    ),
    "sft": _Entry("agents.commands.sft:SFT", "fit a model to gold completions, as a start for training"),
    "eval": _Entry("agents.commands.evaluate:Evaluate", "score a model on an environment's problems"),
    "gradient-lab": _Entry(
        "agents.commands.gradient_lab:GradientLabCommand", "compare gradient estimators with the exact gradient"
    ),
    "demo": _Entry("agents.commands.demo:Demo", "watch GRPO teach a tiny transformer to add"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Exits with 1 after an error of the user's, with 130 after Ctrl-C, and with 143 after SIGTERM in a command that handles it.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        _print_help()
        sys.exit(0)
    try:
        code = _run(given[0], given[1:])
    except (RLVRError, OSError) as error:
        Console(stderr=True).print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True, highlight=False)
        code = 1
    except KeyboardInterrupt as stop:
        Console(stderr=True).print("interrupted")
        code = 143 if isinstance(stop, Terminated) else 130
    sys.exit(code)


def _run(name: str, arguments: list[str]) -> int:
    if name not in _COMMANDS:
        raise unknown_name("command", name, _COMMANDS)
    entry = _COMMANDS[name]
    module_name, _, attribute = entry.home.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        if error.name in ("torch", "transformers", "jaxtyping"):
            raise missing_dependency(error.name, "train", f"rlvr {name}") from error
        raise
    kind = found(arguments) if entry.depends_on_arguments else found
    style = (
        tyro.conf.AvoidSubcommands,
        tyro.conf.OmitSubcommandPrefixes,
        tyro.conf.OmitArgPrefixes,
        tyro.conf.EnumChoicesFromValues,
    )
    command = tyro.cli(kind, args=arguments, prog=f"rlvr {name}", config=style)
    code: int = command.run(Console())
    return code


def _print_help() -> None:
    console = Console()
    usage = "usage: rlvr COMMAND [options]\n\nReinforcement learning with verifiable rewards.\n"
    console.print(usage, highlight=False, markup=False)
    table = Table.grid(padding=(0, 3))
    for name, entry in _COMMANDS.items():
        table.add_row(f"  {name}", entry.summary)
    console.print(table, highlight=False)
    console.print("\nrlvr COMMAND --help tells a command's options.", highlight=False)
