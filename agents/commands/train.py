"""`rlvr train`: the agents, and for each the options of the command that trains it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from rich.console import Console

from agents.commands.command_line import value_of
from agents.commands.train_options import TrainOptions, check_training, env_shows_vectors
from agents.registry import AGENTS, TABULAR_AGENTS, VALUE_AGENTS, agent_classes
from verifiers.devices import using_device

if TYPE_CHECKING:
    from agents.commands.tabular_options import TabularOptions


_NAMED = AGENTS | VALUE_AGENTS | TABULAR_AGENTS


class AgentCommands(Mapping[str, str]):
    """The agents with their summaries, and for each the options of the command that trains it."""

    def __getitem__(self, name: str) -> str:
        return _NAMED[name].summary

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMED)

    def __len__(self) -> int:
        return len(_NAMED)

    def load(self, name: str, *arguments: str) -> type[TrainOptions] | type[TabularOptions]:
        """Return the dataclass of the common options and the agent's own settings.

        Args:
            name: As for `agent_classes`.
            arguments: The rest of the command line; its environment determines the defaults, see `AgentConfig.for_control`.
        """
        if name in TABULAR_AGENTS:
            from agents.commands.train_tabular import tabular_command

            return tabular_command(name)
        cls, config_cls = agent_classes(name)
        make_default = config_cls.for_control if _names_control(arguments) else config_cls
        summary = _NAMED[name].summary if name in _NAMED else f"the custom agent {name}"

        def run(self: Any, console: Console) -> int:
            """Train, and print the folder of the results."""
            from agents.commands.training import train

            with using_device(self.device):
                return train(cls, self, self.config, console)

        return dataclasses.make_dataclass(
            f"Train{cls.__name__}",
            [("config", config_cls, field(default_factory=make_default))],
            bases=(TrainOptions,),
            namespace={
                "run": run,
                "check": lambda self: check_training(self, self.config, agent=cls.name),
                "__doc__": f"Train with {cls.__name__}: {summary}.",
            },
            frozen=True,
        )


def _names_control(arguments: Sequence[str]) -> bool:
    """Whether a command line names an environment whose observations are vectors."""
    name = value_of("--env", arguments)
    if name is None:
        return False
    later = itertools.dropwhile(lambda word: word != "--env-args", arguments)
    pairs = itertools.takewhile(lambda word: not word.startswith("--"), itertools.islice(later, 1, None))
    return env_shows_vectors(name, pairs)


AGENT_COMMANDS = AgentCommands()
