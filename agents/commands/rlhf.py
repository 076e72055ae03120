"""The command `rlvr rlhf`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

import rlvr_envs
from agents.commands.before_loading import check_policy
from agents.commands.common import DEVICE, Device, env_arguments, on_device, shown_warnings, verifier_spec
from agents.commands.policies import policy_for
from agents.experiments.rlhf import RLHFConfig, Task, run_rlhf
from agents.interrupts import sigterm_interrupts
from agents.policies.transformers.config import PolicyConfig
from agents.runs.files.outputs import check_new_folder
from verifiers import InvalidArgumentError, check_spec
from verifiers.devices import check_device_name


@dataclass(frozen=True)
class RLHF:
    """Run RLHF (warm start, preferences, reward model, PPO with a KL penalty) and, to compare, PPO on the verifier."""

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
    device: Device = DEVICE
    config: RLHFConfig = field(default_factory=RLHFConfig)
    """Settings of the pipeline."""

    def check(self) -> None:
        """Refuse invalid options, as far as they can be checked before torch loads."""
        check_device_name(self.device)
        check_new_folder(self.out)
        preferences = verifier_spec(self.verifier, self.verifier_args, None)
        if preferences is not None:
            check_spec(*preferences)
        check_policy(self.model, self.env, env_arguments(self.env_args), {"split": "train"})

    @on_device
    def run(self, console: Console) -> int:
        """Run the pipeline and print its results."""
        check_new_folder(self.out)
        preferences = verifier_spec(self.verifier, self.verifier_args, None)
        task = Task(rlvr_envs.environment_id(self.env), env_arguments(self.env_args), preferences)
        policy, env = policy_for(
            self.model,
            self.env,
            num_envs=1,
            arguments=dict(task.arguments),
            task_arguments={"split": "train"},
            config=PolicyConfig(),
        )
        if not isinstance(env, rlvr_envs.TokenVectorEnv):
            raise InvalidArgumentError(
                f"{self.env} has no data set of problems: expected a subclass of rlvr_envs.TaskEnv"
            )
        with shown_warnings(), sigterm_interrupts():
            run_rlhf(task, self.config, self.out, console, policy, env.streams)
        console.print(
            f"everything is in {self.out}; rlvr plot {self.out / 'rlhf'} --metric reward gold_reward --against kl draws what "
            "the reward model's score is worth"
        )
        return 0
