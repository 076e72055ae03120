"""Estimators by name, and agents of this package as estimators.

An agent is examined by its own code, from the columns of a batch to the loss of an optimiser step.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

from agents import policies
from agents.batch import Batch
from agents.deferred import torch
from agents.experiments.court.cases import BASE, case
from agents.experiments.court.record import Estimator, Record
from agents.experiments.court.tables import Tables
from agents.experiments.court.trial import as_numbers
from agents.experiments.court.worlds import VOCABULARY
from agents.experiments.gradient_lab import batch_loss
from agents.policies.trainable import TokenOutputs
from agents.registry import agent_classes
from agents.settings.choices import Aggregation
from verifiers import InvalidArgumentError, import_attribute, is_attribute_path

if TYPE_CHECKING:
    from torch import Tensor

    from agents.learn.agent import Agent

_WHOLE = "the learner weighs the tokens of a whole step before it divides the step"
LONGEST = 4
"""Maximum number of the policy's own tokens in an episode of any case."""


def of_agent(agent: str, title: str | None = None, **settings: Any) -> Estimator:
    """Make an estimator from an agent.

    Args:
        agent: Name of the agent, or module:Class.
        title: Name of the estimator; by default the agent's name.
        settings: Settings of the agent. By default there is no entropy bonus, a batch is one optimiser step, and `max_tokens`
            is 4 if the aggregation needs this setting. The cases about the KL term set the KL coefficient.
    """
    objective = settings.pop("objective", "return")
    successes = settings.pop("binary", False)
    first = settings.pop("first_group_size", 2)

    @functools.cache
    def agent_for(kl_coefficient: float) -> Agent:
        return _build(agent, kl_coefficient=kl_coefficient, **settings)

    def loss(record: Record) -> Tensor:
        built = agent_for(record.kl_coefficient)
        batch = _batch(built, record)
        return batch_loss(built, batch, built.advantages(batch), TokenOutputs(record.logprobs, record.entropies))

    return Estimator(
        title or agent,
        loss=loss,
        objective=objective,
        binary=successes,
        group_sizes=range(first, 9),
        skipped={"accumulation": _WHOLE, "ranks": _WHOLE},
    )


def _build(name: str, **settings: Any) -> Agent:
    cls, config_cls = agent_classes(name)
    chosen: dict[str, Any] = {"entropy_coefficient": 0.0, "epochs": 1, "minibatches": 1, **settings}
    if not chosen["kl_coefficient"]:
        del chosen["kl_coefficient"]
        chosen = {key: value for key, value in chosen.items() if not key.startswith("kl_")}
    if chosen.get("aggregation", config_cls.aggregation) == Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM:
        chosen.setdefault("max_tokens", LONGEST)
    return cls(policies.CausalLMPolicy(policies.tiny_model(VOCABULARY + 1)), config_cls(**chosen))


def _batch(agent: Agent, record: Record) -> Batch:
    """The batch of `update` before advantages are computed; columns of the record replace the outputs of models."""
    batch = Batch(
        **{one.name: getattr(record, one.name) for one in dataclasses.fields(Batch) if hasattr(record, one.name)}
        | {"loss_mask": record.mask, "logprobs": record.sampler_logprobs, "old_logprobs": None, "values": None},
        step_values=torch.where(record.mask, record.values, torch.nan),
        component_names=("first", "second"),
        component_weights=torch.ones(2, dtype=torch.float64),
    )
    after = torch.nn.functional.pad(record.values, (0, 1))
    columns = {"old": record.old_logprobs, "reference": record.reference_logprobs, "values": after}
    models = agent.models
    read = {
        name: column
        for name, column in columns.items()
        if {"old": True, "reference": models.reference is not None, "values": models.critic is not None}[name]
    }
    return agent.updating.enrich.with_columns(agent.truncated(agent.usable(batch)), read)


def load(name: str) -> Estimator:
    """Load an estimator by its name.

    Args:
        name: module:attribute of an `Estimator`, or of a function from a `Record` to a loss (a tensor of one number) or to
            advantages (a tensor or NumPy array of one number for each episode or token); or an agent's name.

    Raises:
        UnknownNameError: If there is nothing of this name.
        InvalidArgumentError: If the object of this name is not an estimator.
    """
    found = import_attribute(name, "estimator") if is_attribute_path(name) else name
    if isinstance(found, str | type):
        return dataclasses.replace(of_agent(name), address=name)
    if isinstance(found, Estimator):
        return dataclasses.replace(found, address=name)
    if not callable(found):
        raise InvalidArgumentError(
            f"{name!r} is no estimator: expected an agents.experiments.court.Estimator, or a function from a record to a loss "
            f"or to advantages, got {type(found).__name__}"
        )
    return _of_function(found, name)


def _of_function(function: Any, name: str) -> Estimator:
    """Make an estimator from a function; the size of its result on one record shows whether it is a loss or advantages."""
    tables = Tables(case(BASE, 2))
    result = function(tables.record((0, 1), tables.theta))
    title = name.partition(":")[2]
    if as_numbers(title, result).numel() == 1:
        return Estimator(title, loss=function, address=name)
    return Estimator(title, advantages=function, address=name)
