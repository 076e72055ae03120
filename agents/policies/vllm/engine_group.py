"""`EngineGroup`: several engines with the same weights, used as one.

A request goes to the engine with the fewest requests. The requests of an engine that dies go to the other engines, with the
same seeds, so that each completion is the one that the dead engine would have sampled, and arrives once. A dead engine is
started again before the next weights are sent, or at once if no other engine is alive.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agents.policies.vllm.engine import Engine, Request, SampledCompletion, Sampling
from verifiers import EngineDiedError, EngineError

_LOGGER = logging.getLogger(__name__)
_REMEMBERED_PROMPTS = 4
_LOOK_S = 1.0
"""Seconds between two checks whether another thread has stopped sampling, which a wait for futures does not notice."""
_Result = TypeVar("_Result")


@dataclass(eq=False)
class Member:
    """An engine of a group."""

    number: int
    engine: Engine | None = None
    """The engine; None while it is dead."""
    asleep: bool = False
    """Whether the engine must be woken before use."""
    prompts: list[list[int]] = field(default_factory=list)
    """The last requested prompts, which are in the engine's cache."""
    transfer: Any = None
    """The transfer of weights to this engine alone, such as a connection between GPUs."""
    mark: str | None = None
    """Identifies the weights that a server was last given from here."""
    error: EngineError | None = None
    """Why the engine died, or could not be started again."""

    @property
    def alive(self) -> Engine:
        """The engine of a living member."""
        assert self.engine is not None
        return self.engine

    def wake(self, tag: str) -> None:
        """Allocate the memory of `"weights"` or `"kv_cache"` again, if it was freed."""
        if self.asleep:
            self.alive.wake(tag)

    def sleep(self) -> None:
        """Free the memory of weights and cache."""
        self.alive.sleep()
        self.asleep = True

    def refresh_cache(self) -> None:
        """Begin with an empty cache after a change of weights."""
        self.wake("kv_cache")
        self.asleep = False
        self.alive.reset_prefix_cache()

    def mark_weights(self) -> None:
        """Mark a server's weights; the mark is gone if the server is started again, or gets weights from elsewhere."""
        self.mark = uuid.uuid4().hex
        self.alive.rpc("mark_weights", self.mark)

    def require_marked(self) -> None:
        """Check that a server still has the weights that were marked.

        Raises:
            EngineError: If it has others.
        """
        if any(mark != self.mark for mark in self.alive.rpc("weights_mark")):
            raise EngineError(
                f"{self.alive} no longer has the weights that it was given from here, so some completions of this step may "
                "come from others: it was started again, or another run sends it weights. Give each run a server of its own, "
                "and resume this run from its last checkpoint"
            )


@dataclass(eq=False)
class Ticket:
    """A requested completion, independent of the engine that samples it."""

    request: Request
    sampling: Sampling
    member: Member | None = None
    engine: Engine | None = None
    """The member's engine at the time of the request, which differs from an engine that was started again since."""
    future: Future[SampledCompletion] = field(default_factory=Future)

    @property
    def death(self) -> EngineDiedError | None:
        """The error of an engine that died before the completion was finished, if the request reports this error."""
        if not self.future.done() or self.future.cancelled():
            return None
        error = self.future.exception()
        return error if isinstance(error, EngineDiedError) else None

    @property
    def arrived(self) -> bool:
        """Whether the completion is finished, or was refused."""
        return self.future.done() and not self.future.cancelled() and self.death is None

    @property
    def lost(self) -> bool:
        """Whether the completion's engine is gone, and will not finish it."""
        return not self.arrived and (self.member is None or self.member.engine is not self.engine)


Load = Callable[[Member], object]
"""Gives a newly started engine the weights of the other engines; if this kills the engine, the group notices it in `each`. None
in place of it means that engines can't be started again now, so that the death of the last one is an error."""


class EngineGroup:
    """Several engines as one.

    Args:
        start: Starts the engines of the given numbers, in this order.
        count: Number of engines.
        max_restarts: Number of times that engines may be started again after they died.
        asleep: Whether engines may be asleep when they are started, as a server that is already running may be.
        restart: Starts the engine of a number again. The second argument is True if the caller has to wait for the engine,
            because no other engine is alive. None uses `start`.

    Raises:
        EngineError: If an engine does not start.
    """

    def __init__(
        self,
        start: Callable[[Sequence[int]], Sequence[Engine]],
        count: int = 1,
        *,
        max_restarts: int = 0,
        asleep: bool = False,
        restart: Callable[[int, bool], Engine] | None = None,
    ) -> None:
        self._start_again = restart or (lambda number, awaited: start([number])[0])
        self._max_restarts, self._asleep = max_restarts, asleep
        self._lock = threading.RLock()  # an opponent in self-play asks from threads of the environment
        self.restarts = 0
        """Number of attempts so far to start an engine again."""
        self.members = [Member(number, engine, asleep) for number, engine in enumerate(start(range(count)))]
        self._under_way: set[Ticket] = set()

    @property
    def living(self) -> list[Member]:
        """The engines that are not known to be dead."""
        return [member for member in self.members if member.engine is not None]

    # Sampling

    def submit(self, requests: Sequence[Request], sampling: Sampling, load: Load | None) -> list[Ticket]:
        """Begin to sample one completion for each request."""
        tickets = [Ticket(request, sampling) for request in requests]
        with self._lock:
            self._assign(tickets, load)
            self._under_way.update(tickets)
        return tickets

    def wait(self, tickets: Sequence[Ticket], load: Load | None, *, every: bool = True) -> list[bool]:
        """Wait until some of the completions, or all of them, have arrived; return for each whether it has arrived.

        Raises:
            EngineDiedError: If engines died more often than they may be started again.
            EngineError: If another thread has stopped all sampling meanwhile.
        """
        when = concurrent.futures.ALL_COMPLETED if every else concurrent.futures.FIRST_COMPLETED
        while True:
            with self._lock:
                self._bury_dead()
                lost = sorted((ticket for ticket in self._under_way if ticket.lost), key=lambda one: one.request.seed)
                self._assign(lost, load)
                if any(ticket not in self._under_way for ticket in tickets):
                    raise EngineError(
                        "sampling was stopped elsewhere, and with it the completions that are waited for here"
                    )
            waiting = [ticket.future for ticket in tickets if not ticket.arrived]
            if not waiting or (not every and len(waiting) < len(tickets)):
                return [ticket.arrived for ticket in tickets]
            concurrent.futures.wait(waiting, _LOOK_S, return_when=when)

    def take(self, ticket: Ticket) -> SampledCompletion:
        """The completion of a ticket; call this after it has arrived.

        Raises:
            EngineError: If the engine refused the request.
        """
        with self._lock:
            self._under_way.discard(ticket)
        return ticket.future.result()

    def knows(self, ticket: Ticket) -> bool:
        """Whether a completion is still wanted and was not sampled with outdated weights."""
        return ticket in self._under_way

    def cancel(self, ticket: Ticket) -> None:
        """Stop sampling a completion."""
        with self._lock:
            self._under_way.discard(ticket)
        ticket.future.cancel()

    def cancel_all(self) -> None:
        """Stop sampling with these engines for all callers; completions that arrived but were not taken are dropped."""
        with self._lock:
            for ticket in list(self._under_way):
                self.cancel(ticket)

    def _assign(self, tickets: Sequence[Ticket], load: Load | None) -> None:
        """Give requests to the engines with the fewest requests."""
        while tickets:
            if load is None:
                self.require_living()
            elif not self.living:
                self.revive(load)
            left: list[Ticket] = []
            for member, share in self._shares(tickets):
                member.prompts = [ticket.request.prompt for ticket in share[:_REMEMBERED_PROMPTS]]
                asked = member.alive
                try:
                    futures = asked.submit([ticket.request for ticket in share], share[0].sampling)
                except EngineDiedError as error:
                    self._bury(member, error)
                    left += share
                    continue
                for ticket, future in zip(share, futures, strict=True):
                    ticket.member, ticket.engine, ticket.future = member, asked, future
            tickets = left

    def _shares(self, tickets: Sequence[Ticket]) -> list[tuple[Member, list[Ticket]]]:
        """The tickets of each engine and sampling distribution."""
        living = self.living
        counts = dict.fromkeys(living, 0)
        for ticket in self._under_way:
            if ticket.member in counts and not ticket.future.done():
                counts[ticket.member] += 1
        shares: dict[tuple[Member, Sampling], list[Ticket]] = {}
        for ticket in tickets:
            member = min(living, key=counts.__getitem__)
            counts[member] += 1
            shares.setdefault((member, ticket.sampling), []).append(ticket)
        return [(member, share) for (member, _), share in shares.items()]

    # Deaths

    def _bury_dead(self) -> None:
        """Note which engines died."""
        for ticket in list(self._under_way):
            if ticket.death is not None and ticket.member is not None and ticket.member.engine is ticket.engine:
                self._bury(ticket.member, ticket.death)

    def _bury(self, member: Member, error: EngineDiedError) -> None:
        if member.engine is None:
            return
        engine, member.engine, member.transfer, member.error = member.engine, None, None, error
        _LOGGER.warning("%s", error)
        with contextlib.suppress(EngineError):
            engine.close()

    @property
    def restartable(self) -> bool:
        """Whether there is a dead engine that may be started again."""
        return len(self.living) < len(self.members) and self.restarts < self._max_restarts

    def revive(self, load: Load) -> None:
        """Try once to start each dead engine again and give it weights, and go on trying while no engine lives.

        Raises:
            EngineError: If no engine lives, and engines died more often than they may be started again; this is the last
                engine's error.
        """
        for member in self.members:
            if member.engine is None and (self.restartable or not self.living):
                self._restart(member, load)
        while not self.living:
            for member in self.members:
                self._restart(member, load)

    def _restart(self, member: Member, load: Load) -> None:
        if self.restarts >= self._max_restarts:
            assert member.error is not None
            raise member.error
        self.restarts += 1
        try:
            member.engine = self._start_again(member.number, not self.living)
        except EngineError as error:
            member.error = error
            return
        member.asleep, member.prompts = self._asleep, []
        load(member)

    # All engines

    def each(self, call: Callable[[Member], _Result], members: Sequence[Member] | None = None) -> list[_Result]:
        """Call a function with all or some engines at the same time; return the results of the engines that survive."""

        def survived(member: Member) -> list[_Result]:
            try:
                return [call(member)]
            except EngineDiedError as error:
                self._bury(member, error)
                return []

        living = [
            member for member in self.members if member.engine is not None and (members is None or member in members)
        ]
        if len(living) <= 1:
            return [value for member in living for value in survived(member)]
        with ThreadPoolExecutor(len(living)) as pool:
            return [value for values in pool.map(survived, living) for value in values]

    def require_living(self) -> None:
        """Check that an engine lives.

        Raises:
            EngineError: If all are dead; this is the first engine's error.
        """
        if not self.living:
            assert self.members[0].error is not None
            raise self.members[0].error

    def close(self) -> None:
        """Stop the engines."""
        with contextlib.ExitStack() as closing:  # closes all engines, whatever one raises
            for member in self.living:
                closing.callback(member.alive.close)
