"""Loads the data set and the verifier that a command names, without an environment to sample in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import rlvr_envs
import verifiers
from agents.commands.common import VerifierChoice
from verifiers import DataError, InvalidArgumentError, Verifier, is_verifier_file, preferring, unit_tests, unknown_name


def load_problems(name: str, split: str | None, arguments: Mapping[str, Any]) -> rlvr_envs.Dataset:
    """Load the data set of an environment."""
    task = rlvr_envs.environment_class(name).task
    check_data_arguments(task, arguments)
    return task.problems(split, **arguments)


def check_data_arguments(task: rlvr_envs.TaskSpec, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that a task's data set does not take."""
    for argument in arguments:
        if argument not in task.data_options:
            raise unknown_name("data argument", argument, task.data_options)


def recorded_verifier(settings: Mapping[str, Any]) -> Verifier:
    """Build the verifier that judged a recorded evaluation."""
    record = settings.get("verifier") or settings.get("environment", {}).get("verifier")
    if not (isinstance(record, list) and len(record) == 2 and isinstance(record[1], Mapping)):
        raise DataError(f"the record names no verifier that can be built again, but {record!r}")
    name, arguments = record
    made = verifiers.make(name) if is_verifier_file(name) else verifiers.make(name, **arguments)
    return preferring(made, settings.get("environment", {}).get("prompt", {}).get("answer"))


def with_gold(proxy: VerifierChoice | None, gold: str) -> VerifierChoice:
    """The verifier for training on a proxy, combined with a gold verifier."""
    if proxy is None:
        raise InvalidArgumentError(
            "--gold-verifier is asked beside a verifier that is trained on: give that one by --verifier or --reward-model"
        )
    return "with_gold", {"proxy": proxy, "gold": gold}


def make_verifier(
    task: rlvr_envs.TaskSpec,
    spec: VerifierChoice | None,
    dataset: rlvr_envs.Dataset,
    prompt: Mapping[str, Any] | None = None,
) -> Verifier:
    """Build the verifier that a command is given, or the default of the data set.

    Args:
        task: The task of the environment.
        spec: Name and arguments of the verifier that the command is given; None for the default.
        dataset: The problems.
        prompt: The prompt of recorded completions, as their record describes it.
    """
    prompt = prompt or {}
    name, arguments = task.verifier_of(dataset, chat=prompt.get("chat", False)) if spec is None else spec
    verifier = preferring(verifiers.make(name, **arguments), prompt.get("answer"))
    permit_together(verifier)
    if isinstance(verifier, unit_tests.UnitTestVerifier):
        verifier.check_installed(dataset)
    verifiers.check_reading(verifier, dataset)
    return verifier


def permit_together(verifier: Verifier | None) -> None:
    """Let a verifier run tests in one process with the program; use this only for verdicts that no policy learns from."""
    if isinstance(verifier, unit_tests.UnitTestVerifier):
        verifier.allow_together = True
