"""`rlvr sft`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from agents.commands.common import env_arguments
from agents.commands.policies import policy_for
from agents.console.counting import counted
from agents.console.progress import progress
from agents.experiments.supervised import SupervisedConfig, train_supervised
from agents.files.outputs import check_new_folder, whole_folder
from agents.interrupts import interrupts_deferred, sigterm_interrupts
from agents.policies.transformers.config import PolicyConfig
from agents.policies.transformers.loading import save_model
from agents.training.learning_rate import describe_choice
from rlvr_envs import TokenVectorEnv
from verifiers import InvalidArgumentError


@dataclass(frozen=True)
class SFT:
    """Fine-tune a model on a data set's gold completions: a supervised warm start for reinforcement learning."""

    env: str
    """Environment, such as Addition, rlvr/GSM8K-v0, or one of your own, my_envs:MyEnv."""
    out: Path
    """Folder for the model, as `rlvr train --model` and `rlvr eval --model` read it."""
    model: str = "tiny"
    """Folder or Hugging Face name of the model; "tiny" creates a small transformer with random weights."""
    split: str = "train"
    """Split of the data set to learn from."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as tokenizer=char or prompt=boxed_chat."""
    config: SupervisedConfig = field(default_factory=SupervisedConfig)
    """Settings of supervised learning."""

    def run(self, console: Console) -> int:
        """Train, save the model and print its folder."""
        check_new_folder(self.out)
        policy, env = policy_for(
            self.model,
            self.env,
            num_envs=1,
            arguments=env_arguments(self.env_args),
            task_arguments={"split": self.split},
            config=PolicyConfig(),
        )
        if not isinstance(env, TokenVectorEnv):
            raise InvalidArgumentError(
                f"{self.env} has no data set of gold completions: expected a subclass of rlvr_envs.TaskEnv"
            )
        config = self.config.for_model(policy.model, trained=self.model != "tiny")
        assert config.steps is not None
        console.print(self._choices(config, policy.model), markup=False, soft_wrap=True)
        done, last = 0, 0.0
        try:
            with sigterm_interrupts(), progress(f"supervised {self.env}", config.steps) as advance:

                def show(step: int, loss: float) -> None:
                    nonlocal done, last
                    done, last = step, loss
                    advance(step, f"loss {loss:.3f}")

                train_supervised(policy, env.streams, config, on_step=show)
        finally:
            if done:  # also after an interrupt, so that progress is not lost
                with interrupts_deferred(), whole_folder(self.out) as folder:
                    save_model(folder, policy.model, env.streams.rules.tokenizer)
                steps = (
                    counted(done, "step") if done == config.steps else f"stopped after {done} of {config.steps} steps"
                )
                console.print(
                    f"{steps}, last loss {last:.3f} nats per token; the model is in {self.out}",
                    markup=False,
                    soft_wrap=True,
                )
        return 0

    def _choices(self, config: SupervisedConfig, model: Any) -> str:
        """Describe the steps and the learning rate, and how to set them if they were chosen automatically."""
        assert config.learner.learning_rate is not None
        assert config.steps is not None
        if config.learner == self.config.learner:
            return f"{counted(config.steps, 'step')}, learning rate {config.learner.learning_rate:.1e}"
        rate = describe_choice(config.learner.learning_rate, model)
        return f"{counted(config.steps, 'step')}, {rate}; set --steps and --learning-rate to change them"
