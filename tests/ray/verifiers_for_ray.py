"""Verifiers that the workers of a Ray cluster make by name."""

from __future__ import annotations

import os
import time
from pathlib import Path

import verifiers
from verifiers import Outcome, Problem, Verdict


def fragile(completion: str, problem: Problem) -> float:
    """Ends its process at the completion "die", after it left a line in the file that the problem names."""
    if completion == "die":
        with open(str(problem.reference), "a", encoding="utf-8") as deaths:
            deaths.write(f"{os.getpid()}\n")
        os._exit(1)
    return float(len(completion))


def patient(completion: str, problem: Problem) -> Verdict:
    """Says where it runs, then waits until it may end."""
    import ray

    folder = Path(str(problem.reference))
    node = ray.get_runtime_context().get_node_id()
    (folder / f"{completion}-{node}").write_text(str(os.getpid()))
    while not (folder / "go").exists():
        time.sleep(0.02)
    return Verdict(1.0, Outcome.SCORED, node)


def own_process(completion: str, problem: Problem) -> float:
    """The process that judges."""
    return float(os.getpid())


def nothing(completion: str, problem: Problem) -> None:
    """No verdict."""


@verifiers.factory
def picky() -> None:
    """Can't be made."""
    raise verifiers.InvalidArgumentError("not today")


class Unpicklable:
    """A problem's reference that can't be sent."""

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("not for others")


class Unreadable:
    """A problem's reference that can't be read where it is sent."""

    def __reduce__(self) -> tuple[object, ...]:
        return _unreadable, ()


def _unreadable() -> None:
    raise ValueError("not for you")
