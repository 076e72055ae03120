"""Verification on the cores of a Ray cluster: a batch is cut into chunks, and each chunk is a Ray task."""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import verifiers
from verifiers._settings import checked
from verifiers._verifier_process import error_like, made_from, recipe
from verifiers.bounds import Above, AtLeast, Count
from verifiers.composition import PartSpec, part_spec
from verifiers.errors import InvalidArgumentError, VerifierContractError, missing_dependency
from verifiers.functions import verifier_error
from verifiers.registry import verify_batch
from verifiers.types import Outcome, Problem, Verdict, Verifier

_LOOKED_AT = 64
"""Maximum number of tasks to wait for at once, the oldest first: Ray starts tasks in order, and each check takes time."""
_CONNECT_S = 10.0
"""Seconds within which a cluster has to answer."""
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Environment variable that Ray reads when imported; with "0", a Ray started here listens on the loopback interface only."""

_Failed = tuple[str, str]
"""The class and the message of an error that the caller must raise."""


class RayVerifier:
    """Runs a verifier in the worker processes of a Ray cluster.

    Each worker makes the verifier once and keeps it. A chunk whose worker or node dies is sent again, `retries` times, and is
    then cut in two halves, which are sent in the same way: in the end a completion that kills its worker is alone in its chunk.
    This completion is a `VERIFIER_ERROR`, and the others get their verdicts. Nothing ends a task that hangs: if a verifier has
    no deadline, wrap it in `with_timeout`.

    Unless the process is connected to Ray already, `address` or the environment variable RAY_ADDRESS names a cluster, which
    must have the same version of this package on its nodes. If no cluster is named, Ray is started on this machine alone: it
    listens on the loopback interface only, without a dashboard and, unless RAY_AUTH_MODE says otherwise, without tokens.

    Sending a completion costs more time than a cheap verifier takes: see `docs/verification-at-scale.md`.

    Args:
        of: The verifier, or a pair of a verifier and its arguments, as in `("unit_tests", {"workers": 1})`. The verifier is
            made in the workers, so it is best given by name; an object has to be picklable.
        chunk: Number of completions in a task.
        retries: How often a chunk whose worker or node died is sent again before it is cut in two.
        cpus: Number of cores that Ray reserves for a task. Ray does not keep a task from using more cores, so reserve as many
            as the verifier has processes.
        address: Address of the cluster, such as `"10.0.0.1:6379"`, or `"auto"` for the cluster that runs on this machine.
        dashboard: Whether to start the dashboard if Ray is started here.

    Raises:
        MissingDependencyError: If Ray is not installed.
        InvalidArgumentError: If the verifier can't be sent to another process or made there, an argument is out of range, the
            cluster can't be reached or has another version of this package, or the process is connected to another cluster.
        UnknownNameError: If there is no such verifier.
    """

    @checked
    def __init__(
        self,
        of: PartSpec,
        *,
        chunk: Count = 16,
        retries: Annotated[int, AtLeast(0)] = 1,
        cpus: Annotated[float, Above(0)] = 1.0,
        address: str | None = None,
        dashboard: bool = False,
    ) -> None:
        self._arguments: dict[str, Any] = {
            "of": of, "chunk": chunk, "retries": retries, "cpus": cpus, "address": address, "dashboard": dashboard
        }  # fmt: skip
        self._chunk = chunk
        self._retries = retries
        self._recipe = recipe(*part_spec(of))
        self._ray = _connected(address, dashboard=dashboard)
        # Ray itself retries without limit if a task runs out of memory, which the completion may have caused.
        self._judge = self._ray.remote(_judge).options(num_cpus=cpus, max_retries=0)
        self._check_workers(cpus)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            VerifierContractError: If the verifier returned something that is not a verdict.
        """
        return self.verify_batch([completion], [problem])[0]

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i; chunks are judged at the same time.

        Raises:
            VerifierContractError: If the verifier returned something that is not a verdict.
        """
        return _Batch(self._ray, self._judge, self._recipe, self._retries, completions, problems).judged(self._chunk)

    def _check_workers(self, cpus: float) -> None:
        """Make the verifier in one worker, so that a verifier that can't be made is refused at once."""
        most = max((node["Resources"].get("CPU", 0.0) for node in self._ray.nodes() if node["Alive"]), default=0.0)
        if cpus > most:
            raise InvalidArgumentError(
                f"a task needs {cpus:g} cores, and the largest node of the Ray cluster has {most:g}: set cpus"
            )
        prepare = self._ray.remote(_prepare).options(num_cpus=cpus, max_retries=self._retries)
        try:
            version, error = self._ray.get(prepare.remote(self._recipe))
        except self._ray.exceptions.RayError as failed:
            raise InvalidArgumentError(
                f"a worker of the Ray cluster could not make the verifier: {_last_line(failed)}. Install rlvr-envs "
                f"{verifiers.__version__} on its nodes, and whatever the verifier needs"
            ) from failed
        if version != verifiers.__version__:
            raise InvalidArgumentError(
                f"the Ray cluster has rlvr-envs {version}, and this is {verifiers.__version__}: install the same on its nodes"
            )
        if error is not None:
            raise error_like(*error)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copied or unpickled verifier connects to Ray by itself."""
        return functools.partial(type(self), **self._arguments), ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._arguments['of']!r}, chunk={self._chunk})"


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some rows of a batch, and how often they have been sent."""

    rows: range
    sent: int = 0


class _Batch:
    """A batch in progress: the chunks that were sent, and the verdicts that came back."""

    def __init__(
        self,
        ray: Any,
        judge: Any,
        recipe: str,
        retries: int,
        completions: Sequence[str],
        problems: Sequence[Problem],
    ) -> None:
        self._ray = ray
        self._judge = judge
        self._recipe = recipe
        self._retries = retries
        self._completions = completions
        self._problems = problems
        self._out: dict[Any, _Chunk] = {}
        self._verdicts: dict[int, Verdict] = {}

    def judged(self, size: int) -> list[Verdict]:
        """Send chunks of at most this size, and return all verdicts in order.

        Raises:
            VerifierContractError: If the verifier returned something that is not a verdict.
        """
        rows = range(len(self._problems))
        try:
            for first in rows[::size]:
                self._send(_Chunk(rows[first : first + size]))
            while self._out:
                oldest = list(itertools.islice(self._out, _LOOKED_AT))
                for ready in self._ray.wait(oldest, num_returns=1)[0]:
                    self._receive(ready, self._out.pop(ready))
        finally:
            for task in self._out:  # after an interrupt or an error; force ends running tasks
                self._ray.cancel(task, force=True)
        return [self._verdicts[row] for row in rows]

    def _send(self, chunk: _Chunk) -> None:
        completions, problems = ([of[row] for row in chunk.rows] for of in (self._completions, self._problems))
        try:
            task = self._judge.remote(self._recipe, completions, problems)
        except Exception as error:  # noqa: BLE001 - pickling runs code of any class
            self._split(chunk, verifier_error(error))
        else:
            self._out[task] = _Chunk(chunk.rows, chunk.sent + 1)

    def _receive(self, task: Any, chunk: _Chunk) -> None:
        try:
            reply = self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:  # the code raised, and would raise again
            self._split(chunk, Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": _last_line(error)}))
        except self._ray.exceptions.RayError as error:
            if chunk.sent <= self._retries:
                self._send(chunk)
            else:
                self._split(chunk, _lost(chunk, error))
        else:
            if isinstance(reply, tuple):
                raise VerifierContractError(reply[1])
            self._verdicts.update(zip(chunk.rows, reply, strict=True))

    def _split(self, chunk: _Chunk, verdict: Verdict) -> None:
        """Send the two halves of a chunk; a chunk of one completion gets the given verdict instead."""
        middle = len(chunk.rows) // 2
        if middle:
            self._send(_Chunk(chunk.rows[:middle]))
            self._send(_Chunk(chunk.rows[middle:]))
        else:
            self._verdicts[chunk.rows[0]] = verdict


def _lost(chunk: _Chunk, error: Exception) -> Verdict:
    said = f"its Ray task died {chunk.sent} times, with no other completion in it ({type(error).__name__})"
    return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": said})


def _last_line(error: Exception) -> str:
    """The last cause in Ray's traceback; the class of the error if the traceback has no message."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1].strip()}" if lines else type(error).__name__


def _connected(address: str | None, *, dashboard: bool) -> Any:
    """The package `ray`, connected to a cluster."""
    named = address or os.environ.get("RAY_ADDRESS")
    if named is None and "ray" not in sys.modules:
        os.environ.setdefault(_LOOPBACK, "0")
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise missing_dependency("ray", "ray", "the verifier 'ray'") from error
    if ray.is_initialized():
        connected = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", connected, *_joined):
            raise InvalidArgumentError(
                f"this process is connected to the Ray cluster at {connected} already, and can't connect to {address!r} too"
            )
        return ray
    try:
        if named is None:
            _start(ray, dashboard=dashboard)
        else:
            _join(ray, named)
    except (OSError, RuntimeError, ValueError) as error:
        what = "Ray could not be started here" if named is None else f"no Ray cluster can be reached at {named!r}"
        raise InvalidArgumentError(f"{what}: {_last_line(error)}") from error
    return ray


_joined: set[str] = set()
"""Addresses that callers gave for the connected cluster; Ray itself knows the cluster by another address."""
_QUIET = {"logging_level": "warning", "log_to_driver": False}


def _join(ray: Any, address: str) -> None:
    """Connect to a cluster, but only after checking that it answers, since Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if "://" not in address and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    ray.init(address, **_QUIET)
    _joined.add(address)


def _start(ray: Any, *, dashboard: bool) -> None:
    """Start Ray on this machine, without Ray's default tokens if it listens on the loopback interface only."""
    if os.environ.get(_LOOPBACK) == "0":
        os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    ray.init("local", include_dashboard=dashboard, **_QUIET)


# Functions that run in the workers


@functools.lru_cache(maxsize=8)
def _verifier_of(recipe: str) -> Verifier:
    return made_from(recipe)


def _prepare(recipe: str) -> tuple[str, _Failed | None]:
    """The version of this package on this node, and the error raised while making the verifier, if there was one."""
    try:
        _verifier_of(recipe)
    except Exception as error:  # noqa: BLE001 - sent to the caller, which raises it
        return verifiers.__version__, (type(error).__name__, str(error))
    return verifiers.__version__, None


def _judge(recipe: str, completions: list[str], problems: list[Problem]) -> list[Verdict] | _Failed:
    """The verdicts on a chunk, or the error that the caller has to raise."""
    try:
        return verify_batch(_verifier_of(recipe), completions, problems)
    except VerifierContractError as error:
        return type(error).__name__, str(error)
