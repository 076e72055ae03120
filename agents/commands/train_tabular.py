"""`rlvr train` for agents that learn a table and need no model."""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import TYPE_CHECKING, Any

from rich.console import Console

import rlvr_envs
from agents.commands.common import env_arguments, make_one
from agents.commands.run_settings import check_same, plain_options, resumes, run_folder
from agents.commands.tabular_options import TabularOptions, check_tabular
from agents.registry import TABULAR_AGENTS, tabular_classes
from agents.runs.files.json_files import plain
from agents.runs.files.outputs import check_folder

if TYPE_CHECKING:
    from agents.tables.agent import TabularAgent, TabularConfig


def tabular_command(name: str) -> type[TabularOptions]:
    """Return the dataclass of the common options and the settings of an agent that learns a table."""
    cls, config_cls = tabular_classes(name)

    def run(self: Any, console: Console) -> int:
        """Train, and print the folder of the results."""
        return _train_table(cls, self, self.config, console)

    return dataclasses.make_dataclass(
        f"Train{cls.__name__}",
        [("config", config_cls, field(default_factory=config_cls))],
        bases=(TabularOptions,),
        namespace={
            "run": run,
            "check": lambda self: check_tabular(self, self.config, agent=cls.name),
            "__doc__": f"Train with {cls.__name__}: {TABULAR_AGENTS[name].summary}.",
        },
        frozen=True,
    )


def _train_table(cls: type[TabularAgent], options: TabularOptions, config: TabularConfig, console: Console) -> int:
    from agents.commands.training import train_in

    config.check_effects()
    name = rlvr_envs.environment_id(options.env)
    folder = run_folder(options, cls.name, name)
    check_folder(folder)
    env = make_one(name, rlvr_envs.state_environment(name), env_arguments(options.env_args))
    agent = cls(env, config)
    record = {
        "agent": cls.name,
        **plain_options(options),
        "config": plain(dataclasses.asdict(config)),
        "environment": getattr(env.unwrapped, "manifest", {"class": type(env).__name__}),
    }
    options = dataclasses.replace(options, resume=resumes(options, folder))
    if options.resume:
        check_same(folder, record)
    return train_in(folder, agent, env, options, record, console)
