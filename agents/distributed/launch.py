"""Starts a command in several processes on this machine, with the launcher of torchrun."""

from __future__ import annotations

import logging
import os
import signal
import sys
import uuid
from collections.abc import Mapping, Sequence

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from agents.distributed.heartbeat import EXIT_CODE
from agents.interrupts import Terminated
from verifiers import RankError

_SHUTDOWN_S = 20
"""Seconds that the other processes have to end, after a process failed or Ctrl-C was pressed, before they are killed."""
_LOGGERS = ("torch.distributed.elastic", "torch.distributed.launcher")


def launch(arguments: Sequence[str], *, processes: int, max_restarts: int) -> int:
    """Run `rlvr` with these arguments in several processes. Return 0, or the exit code of the failed process.

    Raises:
        RankError: If a signal killed a process.
        KeyboardInterrupt: On Ctrl-C or SIGTERM, after all processes have ended.
    """
    # Otherwise a restart finds the keys of the failed processes.
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")  # ranks themselves report errors of exchanges
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, len(os.sched_getaffinity(0)) // processes)))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=str(uuid.uuid4()),
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",  # any free port
        max_restarts=max_restarts,
        shutdown_timeout=_SHUTDOWN_S,
    )
    _silence_launcher()
    try:
        elastic_launch(config, sys.executable)("-m", "agents", *arguments)
    except ChildFailedError as error:
        return exit_code_of(error.failures)
    except SignalException as error:
        raise (Terminated if error.sigval == signal.SIGTERM else KeyboardInterrupt) from error
    return 0


def exit_code_of(failures: Mapping[int, ProcessFailure]) -> int:
    """The exit code of the first rank that failed by itself; this rank has reported the reason.

    The launcher kills a process that has stopped, after another process has reported it.
    """
    if any(failure.exitcode == EXIT_CODE for failure in failures.values()):
        return 1
    for rank, failure in failures.items():
        if (
            failure.exitcode < 0 and -failure.exitcode != signal.SIGTERM
        ):  # which the launcher sends to the other processes
            hint = ", perhaps for lack of memory" if -failure.exitcode == signal.SIGKILL else ""
            raise RankError(f"rank {rank} (process {failure.pid}) was killed by {failure.signal_name()}{hint}")
    return next((failure.exitcode for failure in failures.values() if failure.exitcode > 0), 1)


def _silence_launcher() -> None:
    """Suppress the launcher's own report of a failure, since the report of the failed process says more."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(_LOGGERS):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
