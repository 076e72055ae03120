"""`Saving`: the checkpoints of an agent, composed of the states of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agents import distributed, learn
from agents.learn.random_state import random_state, set_random_state

if TYPE_CHECKING:
    import rlvr_envs
    from agents.distributed.ranks import Ranks
    from agents.learn.algorithm import Algorithm
    from agents.learn.models import Models
    from agents.runs.run import Run
    from agents.settings.agent import AgentConfig


class Part(Protocol):
    """A part of an agent that has a state."""

    def state(self) -> dict[str, Any]:
        """The state as tensors and plain data, for `load`; no two parts use the same name."""

    def load(self, state: dict[str, Any]) -> None:
        """Restore a state that `state` returned."""

    def components(self) -> dict[str, list[str] | None]:
        """Names of the weights of each component that a checkpoint must have; None for a component that must be absent."""


class Saving:
    """Writes and reads the state that an agent needs to resume.

    If weights are divided among ranks, all ranks call these methods: the weights are put together, and rank 0 writes.
    """

    def __init__(self, algorithm: Algorithm, models: Models, parts: Sequence[Part], ranks: Ranks) -> None:
        self._algorithm, self._models, self._parts, self._ranks = algorithm, models, parts, ranks
        self.tokenizer: rlvr_envs.Tokenizer | None = None
        """The environment's tokenizer, which is saved with the model."""

    def save(self, folder: Path) -> None:
        """Save the agent's complete state to a folder, atomically; an existing checkpoint is replaced.

        Raises:
            InvalidArgumentError: If the folder contains anything else.
        """
        model, state = self._whole()
        if self._models.sharded is None:
            self._write(folder, model, state)
        else:
            self._ranks.on_main(lambda: self._write(folder, model, state))

    def keep(self, run: Run | None, step: int) -> None:
        """Write a run's checkpoint of a step, unless it exists or there is no run."""
        if self._models.sharded is None:
            if run is not None:
                run.keep_checkpoint(step, self.save)
            return
        if not self._ranks.from_main(run is not None and not run.checkpoint_folder(step).exists()):
            return
        model, state = self._whole()
        self._ranks.together(
            lambda: None if run is None else run.keep_checkpoint(step, lambda to: self._write(to, model, state))
        )

    def load(self, folder: Path) -> None:
        """Restore the state of a saved agent.

        Raises:
            CheckpointError: If the folder holds no checkpoint, or one of another kind of agent, model, critic or reference;
                the agent is then unchanged.
        """
        sharded = self._models.sharded
        model = self._models.whole_model(everywhere=True)
        state = learn.load_checkpoint(folder, model, agent=self._algorithm.name, components=self._components())
        if sharded is not None:
            sharded.take(model)
        for part in self._parts:
            part.load(state)
        self._algorithm.load_own_state(state["own"])
        set_random_state(state["random"])

    def _whole(self) -> tuple[Any, dict[str, Any]]:
        """The model and the agent's state; if weights are divided, all ranks call this, and rank 0 gets them put together."""
        state: dict[str, Any] = {"agent": self._algorithm.name, "parts": self._components()}
        for part in self._parts:
            state |= part.state()
        state |= {"own": self._algorithm.own_state(), "random": random_state()}
        return self._models.whole_model(), state if self._models.sharded is None else distributed.whole_state(state)

    def _components(self) -> dict[str, list[str] | None]:
        components = self._models.components()
        for part in self._parts:
            components |= part.components()
        config = self._algorithm.config
        return components | ({_carried(config): []} if config.carried_groups else {})

    def _write(self, folder: Path, model: Any, state: dict[str, Any]) -> None:
        learn.save_checkpoint(folder, model, state, self.tokenizer, dtype=self._models.saved_dtype)


def _carried(config: AgentConfig) -> str:
    """A description of the settings that determine how many groups are carried and their size."""
    return f"{config.carried_groups} carried groups of {config.group_size}, beside {config.problems_per_step} a step"
