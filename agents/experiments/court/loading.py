"""Load estimators by name: `module:function`, `module:estimator`, or the name of an agent."""

from __future__ import annotations

import dataclasses
from typing import Any

from agents.experiments.court.cases import BASE, case
from agents.experiments.court.own import of_agent
from agents.experiments.court.record import Estimator
from agents.experiments.court.tables import Tables
from agents.experiments.court.trial import as_numbers
from verifiers import InvalidArgumentError, import_attribute, is_attribute_path


def load(name: str) -> Estimator:
    """Load an estimator by its name.

    Args:
        name: An agent's name, or the module:attribute of an `Estimator` or of a function. The function takes a `Record`, and
            returns a loss (a tensor of one number) or advantages (a tensor or NumPy array of one number for each episode or
            token).

    Raises:
        UnknownNameError: If there is no object or agent of this name.
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
    """Make an estimator from a function. The size of its result on one record tells a loss from advantages."""
    tables = Tables(case(BASE, 2))
    result = function(tables.record((0, 1), tables.theta))
    title = name.partition(":")[2]
    if as_numbers(title, result).numel() == 1:
        return Estimator(title, loss=function, address=name)
    return Estimator(title, advantages=function, address=name)
