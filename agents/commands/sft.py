"""`rlvr sft`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from agents.commands.common import env_arguments
from agents.commands.policies import policy_for
from agents.models import save_model
from agents.outputs import check_new_folder, whole_folder
from agents.progress import progress
from agents.supervised import SupervisedConfig, train_supervised
from rlvr_envs import TokenVectorEnv
from verifiers import InvalidArgumentError


@dataclass(frozen=True)
class SFT:
    """Fit a model to a data set's gold completions: the supervised warm start of reinforcement learning."""

    env: str
    """An environment, such as Addition or rlvr/GSM8K-v0."""
    out: Path
    """The folder for the model, as `rlvr train --model` and `rlvr eval --model` read it."""
    model: str = "tiny"
    """A folder or a Hugging Face name; "tiny" is a small transformer with random weights, made on the spot."""
    split: str = "train"
    """The problems to learn from."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as tokenizer=char or prompt=boxed_chat."""
    config: SupervisedConfig = field(default_factory=SupervisedConfig)
    """The settings."""

    def run(self, console: Console) -> int:
        """Train, save the model and print where it is."""
        check_new_folder(self.out)
        policy, env = policy_for(
            self.model,
            self.env,
            num_envs=1,
            arguments=env_arguments(self.env_args),
            task_arguments={"split": self.split},
            settings={},
        )
        if not isinstance(env, TokenVectorEnv):
            raise InvalidArgumentError(
                f"{self.env} has no data set of gold completions: expected a subclass of rlvr_envs.TaskEnv"
            )
        last = 0.0
        with progress(f"supervised {self.env}", self.config.steps) as advance:

            def show(step: int, loss: float) -> None:
                nonlocal last
                last = loss
                advance(step, f"loss {loss:.3f}")

            steps = train_supervised(policy, env.streams, self.config, on_step=show)
        with whole_folder(self.out) as folder:
            save_model(folder, policy.model, env.streams.rules.tokenizer)
        console.print(f"{steps} steps, last loss {last:.3f} nats per token; the model is in {self.out}", markup=False)
        return 0
