"""Checks that the configs of several agents share."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from agents.settings.agent import AgentConfig
from agents.settings.choices import Correction, Truncation
from verifiers import InvalidArgumentError


def require_groups(group_size: int) -> None:
    """Check that groups have at least two members to compare."""
    if group_size < 2:
        raise InvalidArgumentError(
            f"group_size must be at least 2, since scores are compared in groups; got {group_size}"
        )


def require_one_step(config: AgentConfig, reason: str) -> None:
    """Check that each batch is used for one optimiser step."""
    if config.epochs * config.minibatches > 1:
        raise InvalidArgumentError(
            f"{reason}: epochs and minibatches must be 1, got epochs={config.epochs} and minibatches={config.minibatches}"
        )
    if reason == NO_RATIO and config.older_weights and config.importance_correction is Correction.NONE:
        raise InvalidArgumentError(
            f"the loss of a {type(config).__name__} has no ratio to the policy that sampled: with {config.older_weights}, "
            "leave out importance_correction='none'"
        )


def require_on_policy(config: AgentConfig, reason: str) -> None:
    """Check that each batch is sampled with the weights that learn from it."""
    if config.older_weights:
        name, _, value = config.older_weights.partition("=")
        raise InvalidArgumentError(f"{reason}: {name} must be 0, got {value}")


def require_defaults(settings: Any, names: Sequence[str], instead: str) -> None:
    """Check that settings without effect have their default values.

    Args:
        settings: A dataclass.
        names: The names of its fields without effect.
        instead: What applies instead of them, for the message.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    for name in names:
        if getattr(settings, name) != defaults[name]:
            raise InvalidArgumentError(
                f"{name}={getattr(settings, name)!r} would have no effect here: leave it out. {instead}"
            )


NO_RATIO = "its loss has no ratio to the policy that sampled, so only the first optimiser step on a batch is correct"
"""The reason why an agent whose loss is `policy_gradient` takes one optimiser step per batch."""


def require_plain_scores(config: AgentConfig, reason: str) -> None:
    """Check that no setting changes the scores of the verifier."""
    if config.truncation in (Truncation.FIXED_REWARD, Truncation.SOFT_OVERLONG):
        raise InvalidArgumentError(f"{reason}: truncation {config.truncation.value!r} would change scores")
    if config.has_kl_term and config.kl_placement == "reward":
        raise InvalidArgumentError(f"{reason}: set kl_placement='loss'")
