"""Messages of training commands about saved models: their size on disk, their folder, the command that evaluates them."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from agents import learn
from agents.commands.common import redacted_pairs
from agents.console.counting import counted
from agents.rollouts.vector_adapter import num_problems
from agents.runs.files.sizes import describe_model, in_words, size_on_disk

_DRAWN = "100"
"""Number of problems of an evaluation if the environment draws an unlimited number of them."""


def say_disk(console: Console, size: learn.CheckpointSize, kept: int, folder: Path) -> None:
    """Print how much space checkpoints will take on disk.

    Args:
        console: Where to print.
        size: The size of one checkpoint.
        kept: The largest number of checkpoints that are kept; 0 if only an interrupt leaves a checkpoint, and otherwise the
            model is saved alone.
        folder: The checkpoints' folder, which need not exist yet.
    """
    several = "" if kept <= 1 else f", and up to {counted(kept, 'checkpoint')} {in_words(kept * size.total)}"
    what = "a checkpoint" if kept else f"the model takes about {in_words(size.model)}, and what an interrupt leaves"
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = in_words(shutil.disk_usage(there).free)
    console.print(f"{what} takes about {size}{several}; {free} of disk are free")


def say_saved(console: Console, model: Path | None, command: str, *, of: Path | None = None) -> None:
    """Print where a saved model is, its size, and the command that evaluates it.

    Args:
        console: Where to print.
        model: The model's folder; None if no model was saved.
        command: The command.
        of: The folder of the run that saved the model; its size is printed too.
    """
    sizes = [] if model is None else [describe_model(model)]
    sizes += [] if of is None else [f"the run takes {in_words(size_on_disk(of))}"]
    console.print("; ".join(filter(None, sizes)))
    console.print(f"evaluate it: {command}")


def evaluation_command(
    model: Path,
    env: Any,
    name: str,
    *,
    env_args: Sequence[str] = (),
    verifier: str | None = None,
    verifier_args: Sequence[str] = (),
    reward_model: str | None = None,
) -> str:
    """The command that evaluates a model in the environment in which it learned, with the same verifier."""
    given = {
        "--problems": [_DRAWN] if num_problems(env) is None else [],
        "--env-args": redacted_pairs(env_args),
        "--verifier": [] if verifier is None else [verifier],
        "--verifier-args": redacted_pairs(verifier_args),
        "--reward-model": [] if reward_model is None else [reward_model],
    }
    options = [word for flag, values in given.items() if values for word in (flag, *values)]
    return shlex.join(["rlvr", "eval", "--env", name, "--model", str(model), *options])
