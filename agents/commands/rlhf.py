"""`rlvr rlhf`."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console

import rlvr_envs
from agents.commands.common import env_arguments, on_device, shown_warnings, verifier_spec
from agents.commands.options import RLHFOptions
from agents.commands.policies import policy_for
from agents.experiments.rlhf import RLHFConfig, Task, run_rlhf
from agents.interrupts import sigterm_interrupts
from agents.policies.transformers.config import PolicyConfig
from agents.runs.files.outputs import check_new_folder
from verifiers import InvalidArgumentError


@dataclass(frozen=True)
class RLHF(RLHFOptions):
    """Run RLHF (warm start, preferences, reward model, PPO with a KL penalty) and, to compare, PPO on the verifier."""

    config: RLHFConfig = field(default_factory=RLHFConfig)
    """Settings of the pipeline."""

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
            "the reward model's score is worth",
            markup=False,
            soft_wrap=True,
        )
        return 0
