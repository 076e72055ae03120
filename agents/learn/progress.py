"""`Progress`: how far the training of an agent has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.learn.carried import CarriedGroup, carried_from_state, carried_state
from agents.learn.sampled import Sampled
from agents.rollouts.problem_parts import ProblemParts
from agents.rollouts.problem_samplers import UniformSampler


@dataclass
class Progress:
    """The counts of an agent, and the groups that it carries from one step to the next."""

    steps: int = 0
    """Number of training steps done, each on one batch of episodes."""
    rounds: int = 0
    """Number of rounds of problems drawn; more than `steps` if a step draws several."""
    tokens: int = 0
    """Number of tokens generated so far, including completions that were not trained on."""
    carried: tuple[CarriedGroup, ...] = ()
    """The groups that were begun, and that the next step continues (`carried_groups`)."""
    problems: UniformSampler = field(default_factory=lambda: UniformSampler(0))
    """The sampler that chooses problems, given the observations so far."""
    parts: ProblemParts | None = None
    """The problems of the training environment."""

    def count(self, sampled: Sampled) -> None:
        """Add a batch that was learned from to the counts."""
        self.problems.observe(self.parts, sampled.outcomes)
        self.rounds += sampled.rounds
        self.tokens += sampled.tokens
        self.carried = sampled.carried

    def state(self) -> dict[str, Any]:
        """The state as tensors and plain data, for `load`."""
        return {
            "steps": self.steps,
            "rounds": self.rounds,
            "tokens": self.tokens,
            "carried": carried_state(self.carried),
            "problems": self.problems.state(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `state` returned."""
        self.steps, self.rounds, self.tokens = state["steps"], state["rounds"], state["tokens"]
        self.carried = carried_from_state(state["carried"])
        self.problems = self.problems.with_state(state["problems"])

    def components(self) -> dict[str, list[str] | None]:
        """No components, since every agent has these counts."""
        return {}
