"""The options that can be read and checked without torch, of commands whose settings need torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from agents.commands.before_loading import UNTRAINED, check_policy
from agents.commands.command_line import Preview
from agents.commands.common import DEVICE, env_arguments, verifier_spec
from agents.policies.transformers.model_files import check_model, model_folder
from agents.preferences.pairs import read_pairs
from agents.runs.files.outputs import check_new_folder
from agents.settings.choices import SaveDtype
from verifiers import AtLeast, Between, check_spec
from verifiers.devices import check_device_name


@dataclass(frozen=True)
class SFTOptions:
    """Options of `rlvr sft`."""

    env: str
    """Environment, such as Addition, rlvr/GSM8K-v0, or your own, such as my_envs:MyEnv."""
    out: Path
    """Folder for the model, which `rlvr train --model` and `rlvr eval --model` can read."""
    model: str = "tiny"
    """Folder, GGUF file or Hugging Face name of the model; "tiny" creates a small transformer with random weights."""
    split: str = "train"
    """Split of the data set to learn from."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as tokenizer=char or prompt=boxed_chat."""
    resume: bool = False
    """Continue the interrupted training in the folder --out. The other options must be the same."""
    device: str = DEVICE
    """Device for models: cpu, cuda, xpu, mps, or a numbered device, such as cuda:1; "auto" is the device in the variable
    RLVR_DEVICE, or else the first available one of cuda, xpu and mps."""
    save_dtype: SaveDtype = "source"
    """Type of the saved weights: source (the type in --model), float32, bfloat16 or float16."""

    def check(self, settings: Mapping[str, str]) -> None:
        """Refuse invalid options, as far as they can be checked before torch loads.

        Raises:
            RLVRError: If an option is invalid.
        """
        check_device_name(self.device)
        if not self.resume:
            check_new_folder(self.out)
        check_policy(self.model, self.env, env_arguments(self.env_args), {"split": self.split}, acts=False)


@dataclass(frozen=True)
class TrainRMOptions:
    """Options of `rlvr train-rm`."""

    pairs: Path
    """Pairs to learn from: a .jsonl or .parquet file with the columns prompt, chosen and rejected, or a folder of rlvr eval, in
    which completions of the same problem are paired by their scores, such as right with wrong."""
    out: Path
    """Folder for the reward model, which --reward-model can read."""
    model: str = "tiny"
    """Folder, GGUF file or Hugging Face name of the model to start from; "tiny" creates a small transformer with random
    weights."""
    held_out: Annotated[float, Between(0, 1, open_low=True, open_high=True)] = 0.1
    """Share of the prompts whose pairs are held out to test the reward model."""
    per_problem: Annotated[int, AtLeast(1)] = 4
    """Maximum number of pairs that are made for each problem from a folder of rlvr eval."""
    device: str = DEVICE
    """Device for models: cpu, cuda, xpu, mps, or a numbered device, such as cuda:1; "auto" is the device in the variable
    RLVR_DEVICE, or else the first available one of cuda, xpu and mps."""

    def check(self, settings: Mapping[str, str]) -> None:
        """Refuse invalid options, as far as they can be checked before torch loads.

        Raises:
            RLVRError: If an option is invalid.
        """
        check_device_name(self.device)
        check_new_folder(self.out)
        read_pairs(self.pairs, per_problem=self.per_problem)
        if self.model != UNTRAINED:
            check_model(model_folder(self.model))


@dataclass(frozen=True)
class RLHFOptions:
    """Options of `rlvr rlhf`."""

    env: str
    """Environment, such as Addition or rlvr/GSM8K-v0."""
    out: Path
    """New folder for the models, the pairs and the runs."""
    model: str = "tiny"
    """Folder, GGUF file or Hugging Face name of the model to start from; "tiny" creates a small transformer with random
    weights."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as tokenizer=char or max_new_tokens=64."""
    verifier: str | None = None
    """Verifier whose scores decide which completion is preferred, such as judge, in place of the environment's own."""
    verifier_args: tuple[str, ...] = ()
    """Arguments of the verifier that decides preferences, each as name=value."""
    device: str = DEVICE
    """Device for models: cpu, cuda, xpu, mps, or a numbered device, such as cuda:1; "auto" is the device in the variable
    RLVR_DEVICE, or else the first available one of cuda, xpu and mps."""

    def check(self, settings: Mapping[str, str]) -> None:
        """Refuse invalid options, as far as they can be checked before torch loads.

        Raises:
            RLVRError: If an option is invalid.
        """
        check_device_name(self.device)
        check_new_folder(self.out)
        preferences = verifier_spec(self.verifier, self.verifier_args, None)
        if preferences is not None:
            check_spec(*preferences)
        check_policy(self.model, self.env, env_arguments(self.env_args), {"split": "train"})


SFT = Preview(SFTOptions, "agents.experiments.supervised:SupervisedConfig", SFTOptions.check)
TRAIN_RM = Preview(TrainRMOptions, "agents.preferences.reward_model:RewardModelConfig", TrainRMOptions.check)
RLHF = Preview(RLHFOptions, "agents.experiments.rlhf:RLHFConfig", RLHFOptions.check)
