"""`ProcessEngine`: vLLM in a separate process, its log, and the lines of it that errors quote.

vLLM affects its whole process: on CPU it replaces `torch.set_num_threads`, and it needs an older version of `transformers`. The
process may therefore use the interpreter of another virtual environment that has vLLM.
"""

from __future__ import annotations

import base64
import contextlib
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

from agents.interrupts import interrupts_deferred
from agents.policies.vllm.engine import Request, SampledCompletion, Sampling
from agents.policies.vllm.worker_extension import EXTENSION
from verifiers import EngineDiedError, EngineError, InvalidArgumentError

_POLL_S = 0.05
_CLOSE_S = 30.0
"""Seconds that the process may take to end by itself."""
_LOG_LINES = 10
"""Number of lines with errors, and number of last lines, that an error quotes from the engine's log."""
_ERROR = re.compile(r"\b[A-Z]\w*(Error|Exception): ")
RESUME = "resume the run from its last checkpoint, if it has one"


@dataclass
class _Calls:
    """The calls that wait for an answer."""

    waiting: dict[int, tuple[str, Future[Any]]] = field(default_factory=dict)
    """Method and future of each call by its number."""
    count: int = 0
    ended: EngineError | None = None
    """The error of all further calls, once the engine has ended."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while `waiting`, `count` or `ended` changes, and never while anything is sent or received."""
    sending: threading.Lock = field(default_factory=threading.Lock)
    """Held while a message is sent. The reading thread never takes it while the process lives: if both ends have more to send
    than the connection holds, one of them must read.
    """


class ProcessEngine:
    """Starts vLLM in a process and communicates with it; see `agents.policies.vllm.engine.Engine`.

    Args:
        model: Folder of the model.
        settings: Further arguments of `vllm.LLM`.
        python: An interpreter with vLLM and this package's requirements; None for the current one.
        environment: Environment variables of the process, in addition to the current ones.

    Raises:
        EngineError: If vLLM does not start; the message quotes its log.
    """

    def __init__(
        self,
        model: Path,
        settings: Mapping[str, Any],
        *,
        python: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._log = tempfile.NamedTemporaryFile(prefix="rlvr-vllm-", suffix=".log")  # noqa: SIM115 - lives as long as this
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [python or sys.executable, "-P", "-m", "agents.policies.vllm.process_main", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # keyboard interrupts are handled by the learner
                    env=_environment(environment or {}),
                )
            except (FileNotFoundError, PermissionError) as error:
                ours.close()
                raise InvalidArgumentError(
                    f"python must be the path of an interpreter that has vLLM, got {python!r}: {error.strerror}"
                ) from error
        self._calls = _Calls()
        self._connection = Connection(os.dup(ours.fileno()))
        self._finalizer = weakref.finalize(self, _end, self._process, ours, self._log)
        # The thread does not refer to this object, which may therefore be collected while it reads.
        reading = (self._connection, self._calls, self._finalizer, self._process, self.log)
        threading.Thread(target=_read, args=reading, name="vllm-answers", daemon=True).start()
        try:
            self._call("start", {"model": str(model), "worker_extension_cls": EXTENSION, **settings})
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process id, and id of the session of vLLM's other processes."""
        return self._process.pid

    @property
    def log(self) -> Path:
        """File with vLLM's output, which exists as long as the engine lives."""
        return Path(self._log.name)

    def submit(self, requests: Sequence[Request], sampling: Sampling) -> list[Future[SampledCompletion]]:
        """Begin to sample one completion for each request."""
        futures: list[Future[SampledCompletion]] = []
        try:
            for request in requests:
                futures.append(self._start_call("generate", request, sampling))
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        return futures

    def rpc(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every worker."""
        results: list[Any] = self._call("rpc", method, *arguments)
        return results

    def load_adapter(self, folder: str) -> None:
        """Load an adapter; see `agents.policies.vllm.engine.LoadsAdapters`."""
        self._call("load_adapter", folder)

    def weight_client(self) -> WeightClient:
        """The client for the trainer's side of a weight transfer by vLLM."""
        return WeightClient(self)

    def reset_prefix_cache(self) -> None:
        """Drop the keys and values of earlier prompts."""
        self._call("reset_prefix_cache")

    def sleep(self) -> None:
        """Free the memory of weights and cache."""
        self._call("sleep")

    def wake(self, tag: str) -> None:
        """Allocate the memory of `"weights"` or `"kv_cache"` again."""
        self._call("wake", tag)

    def close(self) -> None:
        """End the process of the engine."""
        self._finalizer()

    def _call(self, method: str, *arguments: Any) -> Any:
        return self._start_call(method, *arguments).result()

    def _start_call(self, method: str, *arguments: Any) -> Future[Any]:
        """Send a call; its answer arrives even if nobody waits for it or the call is interrupted."""
        future: Future[Any] = Future()
        with interrupts_deferred(), self._calls.sending:  # a partial message would break the connection
            with self._calls.lock:
                if self._calls.ended is not None:
                    raise self._calls.ended
                self._calls.count += 1
                number = self._calls.count
                self._calls.waiting[number] = method, future
            _send(self._connection, (number, method, arguments))
        if method == "generate":
            future.add_done_callback(partial(_stop_if_cancelled, self._connection, self._calls, number))
        return future


def _send(connection: Connection, message: tuple[int, str, tuple[Any, ...]]) -> None:
    """Send a message; if the other end is gone, the reading thread reports it."""
    with contextlib.suppress(OSError):
        connection.send(message)


def _stop_if_cancelled(connection: Connection, calls: _Calls, number: int, future: Future[Any]) -> None:
    if future.cancelled():
        with interrupts_deferred(), calls.sending:
            with calls.lock:
                expected = calls.waiting.pop(number, None) is not None and calls.ended is None
            if expected:
                _send(connection, (number, "cancel", ()))


def _read(
    connection: Connection,
    calls: _Calls,
    finalizer: weakref.finalize[..., Any],
    process: subprocess.Popen[bytes],
    log: Path,
) -> None:
    """Pass each answer to the call that waits for it; when the process ends, pass its error to all waiting calls."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            number, outcome, value = connection.recv()
            with calls.lock:
                method, future = calls.waiting.pop(number, ("", None))
            if future is None or not future.set_running_or_notify_cancel():
                continue  # cancelled meanwhile
            if outcome == "done":
                future.set_result(value)
            else:
                future.set_exception(EngineError(f"the vLLM engine failed to {method}: {value}\n{_tail(log)}"))
    tail = _tail(log)
    died = finalizer() is not None  # otherwise the engine was closed
    with calls.lock:
        waiting, calls.waiting = calls.waiting, {}
        methods = sorted({method for method, _ in waiting.values()})
        if died:
            during = f" during {methods[0]!r}" if methods else ""
            calls.ended = EngineDiedError(
                f"the vLLM engine died (exit status {process.returncode}){during}; {RESUME}. {tail}"
            )
        else:
            calls.ended = EngineError("the vLLM engine was closed: create another policy")
    with calls.sending:
        connection.close()
    for _, future in waiting.values():
        if future.set_running_or_notify_cancel():
            future.set_exception(calls.ended)


def _tail(log: Path) -> str:
    """The first errors in the log, which cause all others, and the end of the log."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    errors = [line for line in lines[:-_LOG_LINES] if _ERROR.search(line)]
    return "From its log:\n" + "\n".join([*errors[:_LOG_LINES], "...", *lines[-_LOG_LINES:]])


class WeightClient:
    """The four calls of vLLM's `VLLMWeightSyncClient`, for an engine in a separate process.

    CUDA handles are not plain data, so they are pickled, which the engine's process must allow
    (`VLLM_ALLOW_INSECURE_SERIALIZATION`); the process is our own child.
    """

    def __init__(self, engine: ProcessEngine) -> None:
        self._engine = engine

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """Connect the workers to the learner."""
        self._engine.rpc("init_weight_transfer_engine", init_info)

    def start_weight_update(self) -> None:
        """Prepare the workers for new weights."""
        self._engine.rpc("start_weight_update")

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Let the workers receive weights."""
        handles = update_info.get("ipc_handles")
        if handles is not None:
            pickled = base64.b64encode(pickle.dumps(handles)).decode("ascii")
            update_info = {**update_info, "ipc_handles": None, "ipc_handles_pickled": pickled}
        self._engine.rpc("update_weights", update_info)

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """Let the workers use the received weights; the policy counts the version."""
        self._engine.rpc("finish_weight_update")


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Environment variables of the process: it can import this package, sends no usage statistics, and spawns its workers."""
    root = str(Path(__file__).parents[3])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    ours = {
        "PYTHONPATH": paths,
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_WORKER_MULTIPROCESSING_METHOD": "spawn",
        "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
    }
    return {**os.environ, **ours, **extra}


def _end(process: subprocess.Popen[bytes], ours: socket.socket, log: IO[bytes]) -> bool:
    """Close the connection, which ends the process, and stop its whole group, since vLLM's workers may outlive it.

    SIGTERM comes before SIGKILL, so that Python's resource tracker, a process of this group, removes the shared memory.

    Returns:
        True: a finalizer that has run before returns None.
    """
    with ours, contextlib.suppress(OSError):
        ours.shutdown(socket.SHUT_RDWR)  # both sides stop reading
    deadline = time.monotonic() + _CLOSE_S
    look = os.WEXITED | os.WNOHANG | os.WNOWAIT  # the process stays a zombie, so that its group id is not reused
    while os.waitid(os.P_PID, process.pid, look) is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    for number in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(process.pid, number)
        deadline = time.monotonic() + _CLOSE_S
        while _lives(process.pid) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    process.wait()
    log.close()
    return True


def _lives(group: int) -> bool:
    """Whether a group has a process that is not a zombie."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        if int(its_group) == group and state != "Z":
            return True
    return False
