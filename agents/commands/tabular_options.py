"""Options shared by all agents that learn a table, and checks of these options before training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import rlvr_envs
from agents.commands.common import env_arguments, make_one
from agents.commands.run_settings import check_run_folder
from agents.runs.loggers import check_loggers
from verifiers import AtLeast

if TYPE_CHECKING:
    from agents.tables.agent import TabularConfig


@dataclass(frozen=True)
class TabularOptions:
    """Options shared by the training of all agents that learn a table."""

    env: str
    """Environment with numbered states, such as Bandit, Maze, rlvr/MazeState-v0, or your own, such as my_envs:MyEnv."""
    steps: Annotated[int, AtLeast(1)] = 100
    """Total number of training steps; each step has episodes_per_step episodes."""
    token_budget: Annotated[int | None, AtLeast(1)] = None
    """Number of actions after which training ends, even before --steps; the step that reaches this number is completed."""
    run_folder: Path | None = None
    """Folder for metrics and checkpoints; by default runs/AGENT-ENVIRONMENT."""
    resume: bool = False
    """Continue from the last intact checkpoint in the run's folder, or from the beginning if there is none yet; the other
    options must be the same as when the run was started."""
    checkpoint_every: Annotated[int, AtLeast(1)] = 50
    """Number of steps between checkpoints."""
    keep: Annotated[int | None, AtLeast(1)] = 2
    """Number of most recent checkpoints to keep in addition to the one with the best mean reward; None keeps all."""
    loggers: tuple[str, ...] = ("tensorboard",)
    """Loggers that get the metrics in addition to metrics.jsonl: tensorboard, wandb or trackio; without a name, there are no
    loggers."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as arms=5 or split=test."""

    def __post_init__(self) -> None:
        check_loggers(self.loggers)

    def launcher(self) -> None:
        """Return None: one process is enough."""


def check_tabular(options: TabularOptions, config: TabularConfig, *, agent: str) -> None:
    """Refuse an invalid training run, as far as it can be checked before torch loads; see `check_training`."""
    name = rlvr_envs.environment_id(options.env)
    check_run_folder(options, config, agent, name)
    make_one(name, rlvr_envs.state_environment(name), env_arguments(options.env_args)).close()
