"""What an agent carries from step to step, as it goes into a checkpoint beside the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents.training.random_state import random_state, set_random_state

if TYPE_CHECKING:
    from agents.agent import Agent


def agent_state(agent: Agent) -> dict[str, Any]:
    """Tensors and plain data from which `restore` makes an agent of the same kind go on."""
    return {
        "agent": agent.name,
        "parts": components_of(agent),
        "steps": agent.steps,
        "rounds": agent.rounds,
        "tokens": agent.tokens,
        "learner": agent.learner.state_dict(),
        "reference": None if agent.reference is None else agent.reference.state_dict(),
        "kl_coefficient": None if agent.kl_controller is None else agent.kl_controller.coefficient,
        "own": agent.own_state(),
        "random": random_state(),
    }


def restore(agent: Agent, state: dict[str, Any]) -> None:
    """Go on from a state of `agent_state`, that of an agent with the same parts."""
    agent.steps, agent.rounds, agent.tokens = state["steps"], state["rounds"], state["tokens"]
    agent.learner.load_state_dict(state["learner"])
    if agent.reference is not None:
        agent.reference.load_state_dict(state["reference"])
    if agent.kl_controller is not None:
        agent.kl_controller.coefficient = state["kl_coefficient"]
    agent.load_own_state(state["own"])
    set_random_state(state["random"])


def components_of(agent: Agent) -> dict[str, list[str] | None]:
    """What an agent has beside its policy, by the names of the weights; None for what it has not."""
    return {
        "critic": None if agent.critic is None else list(agent.critic.state_dict()),
        "reference": None if agent.reference is None else list(agent.reference.state_dict() or ()),
        "KL controller": None if agent.kl_controller is None else [],
    }
