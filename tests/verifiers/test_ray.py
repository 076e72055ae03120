"""The verifier "ray" without Ray; `make test-ray` tests it on a cluster."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import verifiers
from verifiers import InvalidArgumentError, MissingDependencyError, Outcome, Problem, UnknownNameError

PROBLEM = Problem("p", "", "95")


class Died(Exception):
    """What Ray raises where a worker died."""


@dataclass(eq=False)
class Call:
    """A call that is still to be made."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Task:
    """A function that others run."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def options(self, **options: object) -> Task:
        return self

    def remote(self, *arguments: Any) -> Call:
        return Call(self.function, arguments)


def run(call: Call) -> Any:
    """Run a task at last; a worker dies of a completion of that name."""
    if len(call.arguments) == 3:
        sent.append(call.arguments[1])
        if "die" in call.arguments[1]:
            raise Died
    return call.function(*call.arguments)


sent: list[list[str]] = []


class Ray(types.ModuleType):
    """A stand-in, of what the verifier calls; the last task is done first."""

    exceptions = types.SimpleNamespace(RayError=Died, RayTaskError=type("RayTaskError", (Died,), {}))
    remote = Task
    get = staticmethod(run)

    def is_initialized(self) -> bool:
        return True

    def get_runtime_context(self) -> Any:
        return types.SimpleNamespace(gcs_address="here:1")

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 2.0}}, {"Alive": False, "Resources": {"CPU": 8.0}}]

    def wait(self, tasks: Sequence[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return [tasks[-1]], list(tasks[:-1])


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    sent.clear()
    made = Ray("ray")
    monkeypatch.setitem(sys.modules, "ray", made)
    return made


def test_verdicts_stand_in_order_whatever_is_done_first(ray: Ray) -> None:
    answers = ["95", "7", "none", "95.0", "-95"]
    judge = verifiers.make("ray", of=("numeric", {}), chunk=2)
    assert verifiers.verify_batch(judge, answers, [PROBLEM] * 5) == [
        verifiers.verify("numeric", said, "95") for said in answers
    ]
    assert [len(chunk) for chunk in sent] == [1, 2, 2]


def test_a_chunk_is_sent_again_and_then_cut_in_two(ray: Ray) -> None:
    judge = verifiers.make("ray", of="numeric", chunk=4, retries=2)
    verdicts = verifiers.verify_batch(judge, ["95", "die", "7", "95"], [PROBLEM] * 4)
    assert [verdict.outcome for verdict in verdicts] == ["correct", "verifier_error", "incorrect", "correct"]
    assert sum("die" in chunk for chunk in sent) == 9  # with three others, with one, alone
    assert sum(chunk == ["die"] for chunk in sent) == 3
    assert verdicts[1].detail["error"] == "its Ray task died 3 times, with no other completion in it (Died)"


def test_a_worker_of_another_version_is_refused(ray: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "get", lambda task: ("0.0.1", None))
    with pytest.raises(InvalidArgumentError, match=r"has rlvr-envs 0\.0\.1, and this is .*: install the same"):
        verifiers.make("ray", of="numeric")


def test_what_cannot_work_is_refused_at_once(ray: Ray) -> None:
    with pytest.raises(InvalidArgumentError, match=r"needs 4 cores, and the largest node of the Ray cluster has 2"):
        verifiers.make("ray", of="numeric", cpus=4)
    with pytest.raises(InvalidArgumentError, match=r"connected to the Ray cluster at here:1 already"):
        verifiers.make("ray", of="numeric", address="there:1")
    with pytest.raises(UnknownNameError, match="Did you mean 'numeric'"):
        verifiers.make("ray", of="numerik")


def test_without_ray_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rlvr-envs\[ray\]'"):
        verifiers.make("ray", of="numeric")


def test_an_error_of_a_worker_is_no_score(ray: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(task: Call) -> Any:
        if len(task.arguments) == 3:
            raise ray.exceptions.RayTaskError("Traceback\nValueError: not for you\n")
        return run(task)

    monkeypatch.setattr(ray, "get", unreadable)
    (verdict,) = verifiers.verify_batch(verifiers.make("ray", of="numeric"), ["95"], [PROBLEM])
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert verdict.detail == {"error": "RayTaskError: ValueError: not for you"}
