"""`ProcessEngine`: vLLM in a separate process.

vLLM affects its whole process: on CPU it replaces `torch.set_num_threads`, and it needs an older version of `transformers`. The
process may therefore use the interpreter of another virtual environment that has vLLM.
"""

from __future__ import annotations

import base64
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

from agents.interrupts import interrupts_deferred
from agents.policies.vllm.engine import Request, SampledCompletion, Sampling
from agents.policies.vllm.worker_extension import EXTENSION
from verifiers import EngineError

_POLL_S = 0.05
_CLOSE_S = 30.0
"""Time that the process may take to end by itself."""
_LOG_LINES = 10
"""Number of lines of the engine's log that an error quotes, of errors and of the end each."""
_ERROR = re.compile(r"\b[A-Z]\w*(Error|Exception): ")
RESUME = "resume the run from its last checkpoint, if it has one"


class ProcessEngine:
    """Starts vLLM in a process and communicates with it; see `agents.policies.vllm.engine.Engine`.

    Args:
        model: Folder of the model.
        settings: Further arguments of `vllm.LLM`.
        python: An interpreter with vLLM and this package's requirements; None for the current one.
        environment: Environment variables of the process, in addition to those of this one.

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
            self._process = subprocess.Popen(
                [python or sys.executable, "-P", "-m", "agents.policies.vllm.process_main", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # keyboard interrupts are handled by the learner
                env=_environment(environment or {}),
            )
        self._connection = Connection(ours.detach())
        self._finalizer = weakref.finalize(self, _end, self._process, self._connection, self._log)
        self._calls = 0
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

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[SampledCompletion]:
        """Sample one completion for each request."""
        completions: list[SampledCompletion] = self._call("generate", list(requests), sampling)
        return completions

    def rpc(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every worker."""
        results: list[Any] = self._call("rpc", method, *arguments)
        return results

    def weight_client(self) -> WeightClient:
        """The client that vLLM's trainer side of a weight transfer uses."""
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
        """End the process."""
        self._finalizer()

    def _call(self, method: str, *arguments: Any) -> Any:
        if not self._finalizer.alive:
            raise EngineError(f"the vLLM engine has ended and can't {method}: create another policy")
        try:
            self._send(method, arguments)
            outcome, value = self._answer()
        except (EOFError, OSError) as error:
            raise self._dead(method) from error
        if outcome == "failed":
            raise EngineError(f"the vLLM engine failed to {method}: {value}\n{self._tail()}")
        return value

    def _send(self, method: str, arguments: tuple[Any, ...]) -> None:
        with interrupts_deferred():  # a partial message would break the connection
            self._calls += 1
            self._connection.send((self._calls, method, arguments))

    def _answer(self) -> tuple[str, Any]:
        """Wait for the answer to the last call; answers to interrupted calls arrive before it, and are dropped."""
        while True:
            self._connection.poll(None)
            with interrupts_deferred():
                number, outcome, value = self._connection.recv()
            if number == self._calls:
                return outcome, value

    def _dead(self, method: str) -> EngineError:
        tail = self._tail()
        self._finalizer()
        return EngineError(
            f"the vLLM engine died (exit status {self._process.returncode}) during {method!r}; {RESUME}. {tail}"
        )

    def _tail(self) -> str:
        """The errors in the log, of which the first cause the others, and its end."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        errors = [line for line in lines[:-_LOG_LINES] if _ERROR.search(line)]
        return "From its log:\n" + "\n".join([*errors[:_LOG_LINES], "...", *lines[-_LOG_LINES:]])


class WeightClient:
    """The four calls of vLLM's `VLLMWeightSyncClient`, for an engine in a separate process.

    CUDA handles are not plain data, so they are pickled, which the engine's process must allow
    (`VLLM_ALLOW_INSECURE_SERIALIZATION`); it is our own child process.
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


def _end(process: subprocess.Popen[bytes], connection: Connection, log: IO[bytes]) -> None:
    """Close the connection, which ends the process, and stop its whole group, since vLLM's workers may outlive it.

    SIGTERM comes before SIGKILL, so that Python's resource tracker, one of the group, removes their shared memory.
    """
    connection.close()
    deadline = time.monotonic() + _CLOSE_S
    look = os.WEXITED | os.WNOHANG | os.WNOWAIT  # leaves it a zombie, so that its group id is not reused
    while os.waitid(os.P_PID, process.pid, look) is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    for number in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(process.pid, number)
        deadline = time.monotonic() + _CLOSE_S
        while _lives(process.pid) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    process.wait()
    log.close()


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
