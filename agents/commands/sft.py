"""The command `rlvr sft`."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

import rlvr_envs
from agents import learn, policies
from agents.commands.before_loading import check_policy
from agents.commands.common import DEVICE, Device, env_arguments, on_device, say_prompt, say_stops
from agents.commands.policies import policy_for, say_device
from agents.commands.saved_models import evaluation_command, say_disk, say_saved
from agents.console.counting import counted
from agents.console.progress import progress
from agents.experiments.supervised import SupervisedConfig, supervised_learner, train_supervised
from agents.interrupts import interrupts_deferred, sigterm_interrupts
from agents.policies.transformers.config import PolicyConfig
from agents.runs.files.outputs import check_new_folder, whole_folder
from agents.settings.choices import SaveDtype
from agents.settings.learning_rate import describe_choice
from verifiers import CheckpointError, InvalidArgumentError
from verifiers.devices import check_device_name

_NAME = "sft"
"""The name that the checkpoint of an interrupted training has in place of an agent's name."""


@dataclass(frozen=True)
class SFT:
    """Fine-tune a model on a data set's gold completions: a supervised warm start for reinforcement learning."""

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
    device: Device = DEVICE
    save_dtype: SaveDtype = "source"
    """Type of the saved weights: source (the type in --model), float32, bfloat16 or float16."""
    config: SupervisedConfig = field(default_factory=SupervisedConfig)
    """Settings of supervised learning."""

    def check(self) -> None:
        """Refuse invalid options, as far as they can be checked before torch loads."""
        check_device_name(self.device)
        if not self.resume:
            check_new_folder(self.out, resumable=True)
        check_policy(self.model, self.env, env_arguments(self.env_args), {"split": self.split}, acts=False)

    @on_device
    def run(self, console: Console) -> int:
        """Train, save the model and print its folder."""
        if not self.resume:
            check_new_folder(self.out, resumable=True)
        policy, env = policy_for(
            self.model,
            self.env,
            num_envs=1,
            arguments=env_arguments(self.env_args),
            task_arguments={"split": self.split},
            config=PolicyConfig(save_dtype=self.save_dtype),
        )
        if not isinstance(env, rlvr_envs.TokenVectorEnv):
            raise InvalidArgumentError(
                f"{self.env} has no data set of gold completions: expected a subclass of rlvr_envs.TaskEnv"
            )
        config = self.config.for_model(policy.model, trained=self.model != "tiny")
        assert config.steps is not None
        say_device(console, policy.device)
        say_prompt(console, env)
        say_stops(console, env)
        console.print(self._choices(config, policy.model))
        learner = supervised_learner(policy, config)
        say_disk(console, learn.checkpoint_size(policy, learner), 0, self.out.parent)
        settings = self._settings(config)
        if self.resume:
            self._restore(learner, settings)
        before = done = learner.steps
        last = 0.0
        try:
            with sigterm_interrupts(), progress(f"supervised {self.env}", config.steps) as advance:

                def show(step: int, loss: float) -> None:
                    nonlocal done, last
                    done, last = step, loss
                    advance(step, f"loss {loss:.3f}")

                train_supervised(policy, env.streams, config, on_step=show, learner=learner)
        finally:
            if done == config.steps:
                self._finish(policy, env.streams.rules.tokenizer)
                said = f"{counted(done, 'step')}, last loss {last:.3f} nats per token; the model is in {self.out}"
                console.print(said)
                say_saved(console, self.out, evaluation_command(self.out, env, self.env, env_args=self.env_args))
            elif done > before:  # even after an interrupt, so that progress is not lost
                with interrupts_deferred():
                    state = {"agent": _NAME, "parts": {}, "settings": settings, "learner": learner.state_dict()}
                    tokenizer, dtype = env.streams.rules.tokenizer, policy.saved_dtype
                    learn.save_checkpoint(self.out, policy.model, state, tokenizer, dtype=dtype)
                said = (
                    f"stopped after {done} of {config.steps} steps, last loss {last:.3f} nats per token; the model so far is "
                    f"in {self.out}; continue with the same command and --resume"
                )
                console.print(said)
        return 0

    def _finish(self, policy: policies.CausalLMPolicy, tokenizer: rlvr_envs.Tokenizer) -> None:
        """Save the model alone, in place of the files of an interrupted training."""
        with interrupts_deferred(), whole_folder(self.out) as folder:
            policies.save_model(folder, policy.model, tokenizer, dtype=policy.saved_dtype)
            if self.resume:
                shutil.rmtree(self.out)

    def _settings(self, config: SupervisedConfig) -> dict[str, str]:
        """The settings that determine the training steps, by the names of the options."""
        own = {"env": self.env, "model": self.model, "split": self.split, "env_args": " ".join(self.env_args)}
        return own | {name: repr(value) for name, value in dataclasses.asdict(config).items()}

    def _restore(self, learner: learn.Learner, settings: Mapping[str, str]) -> None:
        """Load the weights and the state of an interrupted training."""
        state = learn.load_checkpoint(self.out, learner.policy.model, agent=_NAME, components={})
        for name, value in settings.items():
            if state["settings"].get(name) != value:
                raise CheckpointError(
                    f"the training in {self.out} had {name} {state['settings'].get(name)}, not {value}: resume it with the "
                    "options of its command"
                )
        learner.load_state_dict(state["learner"])

    def _choices(self, config: SupervisedConfig, model: Any) -> str:
        """Describe the steps and the learning rate, and how to set them if they were chosen automatically."""
        assert config.learner.learning_rate is not None
        assert config.steps is not None
        if config.learner == self.config.learner:
            return f"{counted(config.steps, 'step')}, learning rate {config.learner.learning_rate:.1e}"
        rate = describe_choice(config.learner.learning_rate, model)
        return f"{counted(config.steps, 'step')}, {rate}; set --steps and --learning-rate to change them"
