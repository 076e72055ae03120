"""The command `rlvr export`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

import rlvr_envs
from agents.adapters import lm_eval, primeintellect, trl, verl
from agents.adapters.episodes import has_turns
from agents.commands.common import env_arguments
from agents.commands.problems import check_data_arguments
from agents.policies.transformers.model_files import check_model, model_folder
from agents.runs.files.outputs import check_folder, check_new_folder, whole_folder
from agents.runs.files.sizes import describe_model
from agents.settings.choices import SaveDtype
from verifiers import AtLeast, InvalidArgumentError

Target = Literal["verl", "trl", "prime-rl", "lm-eval"]


@dataclass(frozen=True)
class Export:
    """Write an environment for another trainer or evaluation, and print how to use it; or, with --merge, write a trained model.

    The exported environment uses rlvr-envs' own verifier. verl, TRL and lm-evaluation-harness call it directly, so rlvr-envs
    must be installed where they run; an export for prime-rl asks a running `rlvr serve-verifier`.
    """

    folder: Path
    """Folder to write to, created if it does not exist; for prime-rl its name is also the package's name."""
    target: Annotated[Target | None, tyro.conf.Positional, tyro.conf.arg(metavar="{verl,trl,prime-rl,lm-eval}")] = None
    """Target of the export: verl (Parquet and a reward function, or an agent loop for several turns), trl (a script), prime-rl
    (a taskset for Prime Intellect's verifiers), or lm-eval (a task for lm-evaluation-harness)."""
    env: str | None = None
    """Environment, such as GSM8K or rlvr/GSM8K-v0."""
    split: str | None = None
    """Split of the data set; by default the environment's own."""
    limit: Annotated[int | None, AtLeast(1)] = None
    """Number of problems to write, beginning with the first; all of them by default."""
    args: tuple[str, ...] = ()
    """Arguments of the data set, each as name=value, such as digits=3 or data_dir=FOLDER; for trl and verl also arguments of an
    environment with several turns, such as tools=calculator."""
    overwrite: bool = False
    """Write even if the folder holds files; files of the same names are replaced."""
    merge: str | None = None
    """Run, checkpoint, folder with an adapter, or GGUF file whose model is written as an independent model, in place of a
    target and --env: an adapter is merged into its base model, and quantised weights become ordinary weights."""
    base_model: str | None = None
    """Folder or Hugging Face name of the base model of the adapter in --merge, if the adapter's settings do not give the
    right place."""
    save_dtype: SaveDtype = "source"
    """Type of the weights that --merge writes: float32, bfloat16, float16, or source, the type of the saved model or of the
    adapter's base (bfloat16 if that is quantised)."""

    def __post_init__(self) -> None:
        if self.merge is None:
            if self.target is None or self.env is None:
                raise InvalidArgumentError(
                    "a target and --env are needed, as in rlvr export verl --env GSM8K --folder FOLDER; or --merge, as in "
                    "rlvr export --merge RUN --folder FOLDER"
                )
            dtype = None if self.save_dtype == "source" else self.save_dtype
            _refuse("without --merge", base_model=self.base_model, save_dtype=dtype)
        else:
            given = {"env": self.env, "split": self.split, "limit": self.limit, "args": self.args or None}
            given["overwrite"] = self.overwrite or None
            _refuse(f"with --merge {self.merge!r}, which writes a model", target=self.target, **given)

    def run(self, console: Console) -> int:
        """Write the files, and print what to do with them."""
        lines = self._merged(self.merge) if self.merge is not None else self._written()
        for line in lines:
            console.print(line)
        return 0

    def _written(self) -> list[str]:
        assert self.target is not None
        arguments = env_arguments(self.args)
        if self.target not in _PLAYERS or not has_turns(self.environment, self.split, **arguments):
            check_data_arguments(rlvr_envs.environment_class(self.environment).task, arguments)
        check_folder(self.folder)
        if not self.overwrite and self.folder.is_dir() and any(self.folder.iterdir()):
            raise InvalidArgumentError(
                f"{self.folder} holds files, and those of the same names would be replaced: choose another folder, or give "
                "--overwrite"
            )
        return _WRITERS[self.target](self, arguments)

    def _merged(self, name: str) -> list[str]:
        check_new_folder(self.folder)
        if self.base_model is None:
            check_model(model_folder(name))
        from agents.policies.transformers.config import PolicyConfig
        from agents.policies.transformers.loading import load_policy, save_model

        policy, tokenizer = load_policy(
            name, PolicyConfig(save_dtype=self.save_dtype), dtype="float32", device="cpu", base_model=self.base_model
        )
        with whole_folder(self.folder) as folder:
            save_model(folder, policy.model, tokenizer, dtype=policy.saved_dtype)
        return [str(describe_model(self.folder))]

    @property
    def environment(self) -> str:
        """The environment that is written."""
        assert self.env is not None
        return self.env

    def selected(self) -> dict[str, Any]:
        """The options that select which problems are written."""
        return {"split": self.split, "limit": self.limit}


def _refuse(where: str, **given: object) -> None:
    """Refuse options that are given but have no effect."""
    names = [name for name, value in given.items() if value is not None]
    if names:
        what = "the target" if names[0] == "target" else f"--{names[0].replace('_', '-')}"
        raise InvalidArgumentError(f"{what} has no effect {where}: leave it out")


def _to_verl(options: Export, arguments: Mapping[str, Any]) -> list[str]:
    data, judge = verl.export(options.environment, options.folder, **options.selected(), **arguments)
    if judge.suffix == ".yaml":
        return [
            f"data.train_files={data.absolute()}",
            f"actor_rollout_ref.rollout.agent.agent_loop_config_path={judge.absolute()}",
        ]
    return [
        f"data.train_files={data.absolute()}",
        f"reward.custom_reward_function.path={judge.absolute()}",
        "reward.custom_reward_function.name=compute_score",
    ]


def _to_trl(options: Export, arguments: Mapping[str, Any]) -> list[str]:
    script = trl.export(options.environment, options.folder, **options.selected(), **arguments)
    return [f"accelerate launch {shlex.quote(str(script))} --model_name_or_path MODEL --output_dir FOLDER"]


def _to_prime_rl(options: Export, arguments: Mapping[str, Any]) -> list[str]:
    name, settings = primeintellect.export(options.environment, options.folder, **options.selected(), **arguments)
    served = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    serve = ["rlvr", "serve-verifier", "--verifier", name, *(["--args", *served] if served else [])]
    return [
        shlex.join(serve),
        f"pip install {shlex.quote(str(options.folder.absolute()))}    # where Prime Intellect's verifiers is",
        "RLVR_VERIFIER_URL=http://127.0.0.1:8000    # there, too",
    ]


def _to_lm_eval(options: Export, arguments: Mapping[str, Any]) -> list[str]:
    yaml = lm_eval.export(options.environment, options.folder, **options.selected(), **arguments)
    include = shlex.quote(str(yaml.parent))
    return [f"lm_eval --include_path {include} --tasks {yaml.stem} --model hf --model_args pretrained=MODEL"]


_PLAYERS = ("trl", "verl")
"""Targets whose trainers play several turns."""
_WRITERS = {"verl": _to_verl, "trl": _to_trl, "prime-rl": _to_prime_rl, "lm-eval": _to_lm_eval}
