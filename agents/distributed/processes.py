"""`join` and `leave` make this process one rank of a run, with `torch.distributed`; a failing rank's error goes to rank 0.

Objects and CPU tensors travel over gloo, GPU tensors over NCCL or XCCL. Before every exchange, the ranks meet at torch's
monitored barrier, which names a rank that died or hangs. So the exchange itself never waits for such a rank. The `Heartbeat`
notices a process that is stopped, even within an exchange.

An error is reported once. A rank other than 0 posts its error in the process group's store and disconnects. At its next
exchange, rank 0 fails with the posted error and reports the error.
"""

from __future__ import annotations

import contextlib
import copy
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from types import FrameType
from typing import Any, TypeVar

import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined] # torch exports them nowhere else

from agents.distributed.heartbeat import EXIT_CODE, SILENT_S, Heartbeat, left_key, whereabouts
from agents.distributed.launched import is_launched
from agents.distributed.ranks import Ranks, SingleProcess, active_ranks, set_joined
from agents.interrupts import Terminated
from verifiers import InvalidArgumentError, RankError, UnknownNameError
from verifiers.devices import choose_device, device_module

T = TypeVar("T")
JOIN_TIMEOUT_S = 300.0
"""Seconds after which a rank that has not started counts as missing. Importing torch from a slow disk takes a while."""
_REPORT_TIMEOUT_S = 50.0
"""Seconds for which a failed rank waits for rank 0 to report its error."""
_PATIENCE = 0.1
"""Share of the time limit after which the position of a late rank is printed."""
_LATER_S = 5.0
"""Seconds that the other ranks wait for rank 0 beyond the time that rank 0 waits for other ranks."""
_FAREWELL_S = 3.0
"""Maximum number of seconds that rank 0 waits until the other ranks know how it ended."""
_COLLECTIVES = {"cuda": "nccl", "xpu": "xccl"}
"""The library for exchanges of tensors between GPUs, by the type of device."""
_END, _FAILED = "end", "failed"
"""The key in the store that says how rank 0 ended, and the value of the key after a failure."""


class ProcessRanks(Ranks):
    """The processes that a launcher such as torchrun started.

    Args:
        store: A store of all processes, for this run alone.
        rank: Number of this process.
        size: Number of processes.
        connect: Opens another connection to the store.
    """

    def __init__(self, store: Store, rank: int, size: int, connect: Callable[[], Store]) -> None:
        self.rank, self.size = rank, size
        self.timeout_s = JOIN_TIMEOUT_S
        self._store = store
        self._control: Any = _control_group()
        self._noted: type[KeyboardInterrupt] | None = None
        self._raises = False
        self._terminated = False
        listens = range(1, size) if rank == 0 else (0,)
        self._heartbeat = Heartbeat(connect, rank, listens, self._end_without)

    def gather(self, value: T) -> list[T]:
        """See `Ranks.gather`."""
        self._meet()
        values: list[Any] = [None] * self.size
        with self.failures_named():
            dist.all_gather_object(values, value, group=self._control)
        return values

    def sum_tensors(self, tensors: Sequence[Tensor]) -> None:
        """See `Ranks.sum_tensors`."""
        self._meet()
        with self.failures_named():
            for tensor in tensors:
                dist.all_reduce(tensor)

    def branch(self) -> ProcessRanks:
        """See `Ranks.branch`."""
        other = copy.copy(self)
        other._control = _control_group()
        return other

    def _meet(self) -> None:
        """Wait until all ranks have reached this exchange.

        Raises:
            RankError: If a rank died, or does not reach the exchange in time.
        """
        started = time.monotonic()
        # Rank 0 must time out first, since only rank 0 learns which ranks are missing.
        timeout = timedelta(seconds=self.timeout_s + (0 if self.is_main else _LATER_S))
        try:
            with self._heartbeat.waiting(_PATIENCE * self.timeout_s):
                dist.monitored_barrier(self._control, timeout, wait_all_ranks=True)
        except RuntimeError as error:
            raise self._missing(error, waited_s=time.monotonic() - started) from error

    @contextlib.contextmanager
    def failures_named(self) -> Iterator[None]:
        """See `Ranks.failures_named`."""
        try:
            yield
        except RuntimeError as error:
            if not (isinstance(error, dist.DistError) or "gloo" in str(error)):
                raise
            raise self._missing(error, waited_s=0.0) from error

    def set_timeout(self, seconds: float) -> None:
        """See `Ranks.set_timeout`."""
        super().set_timeout(seconds)
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=seconds))  # torch has no public function for this

    def _missing(self, error: RuntimeError, *, waited_s: float) -> Exception:
        """The error for ranks that did not reach an exchange: an error that such a rank posted, or else a `RankError`."""
        posted = self._posted()
        if posted is not None:
            return posted
        # On rank 0 only, torch says "Ranks 1, 2 failed to pass monitoredBarrier in 1000 ms".
        _, found, rest = str(error).partition("Ranks ")
        ranks = rest.partition(" failed")[0] if found else ""
        who = f"rank {ranks}" if ranks else "rank 0" if not self.is_main else "another rank"
        if waited_s >= 0.9 * self.timeout_s:
            return RankError(
                f"{who} did not come to an exchange within {self.timeout_s:g} s: it hangs, or is slower by more than that; "
                f"look at its process, or raise --rank-timeout. {self._whereabouts(ranks)}"
            )
        return RankError(f"{who} ended during the run, without an error of its own: {_first_line(error)}")

    def _whereabouts(self, ranks: str) -> str:
        """The positions of the named ranks; if none are named, the position of rank 0."""
        late = [int(rank) for rank in ranks.split(",")] if ranks else [0]
        with contextlib.suppress(RuntimeError):
            if where := whereabouts(self._store, late):
                return where
        return "It does not say where it is"

    def _posted(self) -> Exception | None:
        """The first error that another rank has posted, if any; a failing rank posts its error before it disconnects."""
        with contextlib.suppress(RuntimeError):
            for rank in range(self.size):
                if rank != self.rank and self._store.check([_error_key(rank)]):
                    return RankError(self._store.get(_error_key(rank)).decode())
        return None

    # Ctrl-C and SIGTERM

    @contextlib.contextmanager
    def interrupts_together(self) -> Iterator[None]:
        """See `Ranks.interrupts_together`."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handled = [number for number in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(number))]
        previous = {number: signal.signal(number, self._note) for number in handled}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            self._noted = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = Terminated if number == signal.SIGTERM else KeyboardInterrupt
        self._terminated |= number == signal.SIGTERM
        if self._raises:
            raise self._noted

    @contextlib.contextmanager
    def _local_interrupts(self) -> Iterator[None]:
        self._raises = True
        try:
            if self._noted is not None:
                raise self._noted
            yield
        finally:
            self._raises = False

    # The end

    def _end_without(self, silent: Sequence[int]) -> None:
        """End this process at once, since nothing wakes up a thread that waits for a stopped process."""
        who = f"rank {silent[0]}" if len(silent) == 1 else f"ranks {', '.join(map(str, silent))}"
        says = "" if self.is_main else f"rank {self.rank}: "
        sys.stderr.write(
            f"error: {says}{who} gave no sign of life for {SILENT_S:g} s: the process, its machine or the network has "
            "stopped, or a call holds Python's lock, and the process has written which; resume from the last checkpoint\n"
        )
        sys.stderr.flush()
        os._exit(EXIT_CODE)

    def report_on_main(self, error: str) -> bool:
        """Post the error that ends this rank, and disconnect; return whether rank 0 reports an error in place of this rank."""
        with contextlib.suppress(RuntimeError):
            self._store.set(_error_key(self.rank), f"rank {self.rank} on {socket.gethostname()}: {error}")
        self._hang_up()
        try:
            self._store.wait([_END], timedelta(seconds=_REPORT_TIMEOUT_S))
            return self._store.get(_END).decode() == _FAILED
        except RuntimeError:
            # Rank 0 died, or hangs. After SIGTERM from a launcher, another rank has failed and reported the reason.
            return self._terminated

    def _hang_up(self) -> None:
        """Close the connections of exchanges, so that other ranks notice.

        Torch closes them once nothing refers to the group.
        """
        self._control = None
        with contextlib.suppress(RuntimeError, ValueError, AssertionError):
            dist.destroy_process_group()

    def end(self, *, failed: bool) -> None:
        """End this rank; rank 0 posts how it ended and, after a failure, waits until the other ranks know."""
        self._heartbeat.stop()
        with contextlib.suppress(RuntimeError):
            self._store.set(left_key(self.rank), "")
            if self.is_main:
                self._store.set(_END, _FAILED if failed else "done")
        self._hang_up()
        if self.is_main and failed:
            with contextlib.suppress(RuntimeError):
                others = [left_key(rank) for rank in range(1, self.size)]
                self._store.wait(others, timedelta(seconds=_FAREWELL_S))


def join(device: str | None = None) -> Ranks:
    """Join the other processes, if a launcher such as torchrun started this process with others. `leave` undoes this.

    Each rank uses the GPU of its local rank, if there are GPUs and `device` is not the CPU. Everything afterwards, such as
    building an agent, must be done on all ranks alike.

    Args:
        device: The device of the ranks, as for `verifiers.devices.choose_device`. A wrong device raises its error later, when
            models are loaded.

    Raises:
        InvalidArgumentError: If the port is in use, or the launcher's settings can't work.
        RankError: If a rank does not join.
    """
    ranks = active_ranks()
    if not is_launched() or isinstance(ranks, ProcessRanks):
        return ranks
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    attempt = _attempt()

    def connect() -> Store:
        return PrefixStore(f"rlvr/{attempt}", _open_store(rank, size, hosts=False))

    hosts = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    store = PrefixStore(f"rlvr/{attempt}", _open_store(rank, size, hosts=hosts))
    _wait_for_all(store, rank, size)
    dist.init_process_group(_backends(rank, device), store=store, rank=rank, world_size=size)
    joined = ProcessRanks(store, rank, size, connect)
    set_joined(joined)
    return joined


def reported_here(message: str | None) -> str | None:
    """The error to print before this process ends; None if rank 0 prints this error or a more useful one."""
    ranks = active_ranks()
    if not isinstance(ranks, ProcessRanks) or ranks.is_main:
        return message
    return None if ranks.report_on_main(message or "") else f"rank {ranks.rank}: {message}"


def leave(*, failed: bool = False) -> None:
    """Leave the other processes, if this process has joined any."""
    ranks = active_ranks()
    if isinstance(ranks, ProcessRanks):
        set_joined(SingleProcess())
        ranks.end(failed=failed)


def _backends(rank: int, device: str | None) -> str:
    """Select this rank's GPU, and return the backends. Ranks that share a GPU, as in tests, can't use NCCL."""
    try:
        name = choose_device(device).type
    except (InvalidArgumentError, UnknownNameError):
        return "gloo"
    if name not in _COLLECTIVES:
        return "gloo"
    module = device_module(name)
    gpus = module.device_count()
    module.set_device(int(os.environ.get("LOCAL_RANK", rank)) % gpus)
    shared = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > gpus
    return f"cpu:gloo,{name}:{'gloo' if shared else _COLLECTIVES[name]}"


def _attempt() -> str:
    """The prefix of all keys in the store for this start of the processes, so that keys of earlier starts are never found.

    Each node counts restarts separately, so each start on several nodes needs a new store.
    """
    if (
        os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
        or os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0") == "0"
    ):
        return "0"
    if os.environ.get("GROUP_WORLD_SIZE", "1") != "1":
        raise InvalidArgumentError(
            "torchrun reuses the store of the processes that failed when it restarts on several nodes: set "
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in its environment, or leave --max-restarts at 0"
        )
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


def _open_store(rank: int, size: int, *, hosts: bool) -> Store:
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    try:
        return TCPStore(
            address,
            port,
            size,
            is_master=hosts,
            timeout=timedelta(seconds=JOIN_TIMEOUT_S),
            wait_for_workers=False,
        )
    except RuntimeError as error:
        if hosts:
            raise InvalidArgumentError(
                f"rank 0 can't listen on port {port} of {address} ({_first_line(error)}): set another MASTER_PORT "
                "(torchrun --master-port)"
            ) from error
        raise RankError(f"rank {rank} can't reach rank 0 at {address}:{port}: {_first_line(error)}") from error


def _wait_for_all(store: Store, rank: int, size: int) -> None:
    store.set(_here_key(rank), "")
    keys = [_here_key(number) for number in range(size)]
    try:
        store.wait(keys, timedelta(seconds=JOIN_TIMEOUT_S))
    except RuntimeError as error:
        missing = [number for number, key in enumerate(keys) if not store.check([key])]
        raise RankError(
            f"ranks {missing} of {size} did not join within {JOIN_TIMEOUT_S:g} s: start them all with the same MASTER_ADDR and "
            "MASTER_PORT, which must be reachable from their hosts"
        ) from error


def _control_group() -> Any:
    return dist.new_group(backend="gloo", timeout=timedelta(days=1))


def _first_line(error: Exception) -> str:
    """The first line of an error, without the guesses and advice that torch adds."""
    return str(error).strip().partition("\n")[0].partition(". This is")[0]


def _here_key(rank: int) -> str:
    return f"here/{rank}"


def _error_key(rank: int) -> str:
    return f"error/{rank}"
