"""`rlvr export`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from agents.adapters import lm_eval, primeintellect, trl, verl
from agents.commands.common import check_at_least, env_arguments
from agents.commands.problems import check_data_arguments
from agents.files.outputs import check_folder
from rlvr_envs import environment_class

Target = Literal["verl", "trl", "prime-rl", "lm-eval"]


@dataclass(frozen=True)
class Export:
    """Write an environment for another trainer or evaluation, and say how it is used there.

    The verifier stays that of rlvr-envs: verl, TRL and lm-evaluation-harness call it, so it has to be installed where they run;
    what is written for prime-rl asks a running `rlvr serve-verifier`.
    """

    target: Annotated[Target, tyro.conf.Positional]
    """For whom: verl (Parquet and a reward function), trl (a script), prime-rl (a taskset for Prime Intellect's verifiers), or
    lm-eval (a task for lm-evaluation-harness)."""
    env: str
    """Environment, such as GSM8K or rlvr/GSM8K-v0."""
    folder: Path
    """Folder to write to, made if it is not there; for prime-rl its name is the package's."""
    split: str | None = None
    """Split of the data set; by default the environment's own."""
    limit: int | None = None
    """Number of problems to write, the first ones; all of them by default."""
    args: tuple[str, ...] = ()
    """Arguments of the data set, each as name=value, such as digits=3 or data_dir=FOLDER."""

    def __post_init__(self) -> None:
        check_at_least(1, limit=self.limit)

    def run(self, console: Console) -> int:
        """Write the files, and print what to do with them."""
        arguments = env_arguments(self.args)
        check_data_arguments(environment_class(self.env).task, arguments)
        check_folder(self.folder)
        for line in _WRITERS[self.target](self, arguments):
            console.print(line, markup=False, soft_wrap=True)
        return 0

    def selected(self) -> dict[str, Any]:
        """Which problems are written."""
        return {"split": self.split, "limit": self.limit}


def _to_verl(options: Export, arguments: Mapping[str, Any]) -> list[str]:
    data, reward = verl.export(options.env, options.folder, **options.selected(), **arguments)
    return [
        f"data.train_files={data.absolute()}",
        f"reward.custom_reward_function.path={reward.absolute()}",
        "reward.custom_reward_function.name=compute_score",
    ]


def _to_trl(options: Export, arguments: Mapping[str, Any]) -> list[str]:
    script = trl.export(options.env, options.folder, **options.selected(), **arguments)
    return [f"accelerate launch {shlex.quote(str(script))} --model_name_or_path MODEL --output_dir FOLDER"]


def _to_prime_rl(options: Export, arguments: Mapping[str, Any]) -> list[str]:
    name, settings = primeintellect.export(options.env, options.folder, **options.selected(), **arguments)
    served = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    serve = ["rlvr", "serve-verifier", "--verifier", name, *(["--args", *served] if served else [])]
    return [
        shlex.join(serve),
        f"pip install {shlex.quote(str(options.folder.absolute()))}    # where Prime Intellect's verifiers is",
        "RLVR_VERIFIER_URL=http://127.0.0.1:8000    # there, too",
    ]


def _to_lm_eval(options: Export, arguments: Mapping[str, Any]) -> list[str]:
    yaml = lm_eval.export(options.env, options.folder, **options.selected(), **arguments)
    include = shlex.quote(str(yaml.parent))
    return [f"lm_eval --include_path {include} --tasks {yaml.stem} --model hf --model_args pretrained=MODEL"]


_WRITERS = {"verl": _to_verl, "trl": _to_trl, "prime-rl": _to_prime_rl, "lm-eval": _to_lm_eval}
