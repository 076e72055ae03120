"""A verifier that gives any other verifier a deadline."""

from __future__ import annotations

import functools
import queue
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Annotated, Any, Literal, cast

from verifiers._settings import checked
from verifiers._verifier_process import VerifierProcess, recipe, serve_verifier
from verifiers._workers import WorkerBrokenError, WorkerTimeoutError, decode, encode
from verifiers.bounds import AtLeast, Count, Seconds
from verifiers.composition import PartSpec, part_spec
from verifiers.errors import VerifierContractError
from verifiers.functions import verifier_error
from verifiers.registry import verify_batch
from verifiers.types import Outcome, Problem, Verdict, Verifier

OnTimeout = Literal["verifier_error", "timeout"]


class WithTimeout:
    """Runs a verifier in a separate process, which is killed when a verdict takes too long.

    A thread can't be killed, and a regular expression or computer algebra blocks the interpreter until it is done, so a
    deadline for arbitrary code needs a process. The process is started when this verifier is made, and again after each kill. A
    start takes a fraction of a second plus the time to load the verifier, and does not count against the deadline. The
    verifier's output is discarded. Processes that the verifier itself started are not killed with it.

    Args:
        part: The verifier, or a pair of a verifier and its arguments. The verifier is made in the process, so it is best given
            by name; an object has to be picklable.
        seconds: Wall-clock time that one verdict may take, in seconds.
        on_timeout: `"verifier_error"`: the cause is unknown, and nothing is learned from the verdict; `"timeout"`: the
            completion is to blame and scores 0, for example if a pattern takes long only on unusual texts.
        workers: Number of processes, which judge a batch together.
        memory_mib: Limit on the address space of a process; None for no limit.

    Raises:
        InvalidArgumentError: If the verifier can't be sent to another process or made there, or an argument is out of range.
        UnknownNameError: If there is no such verifier, or no such `on_timeout`.
    """

    @checked
    def __init__(
        self,
        part: PartSpec,
        seconds: Seconds,
        *,
        on_timeout: OnTimeout = "verifier_error",
        workers: Count = 1,
        memory_mib: Annotated[int | None, AtLeast(1)] = None,
    ) -> None:
        self._arguments: dict[str, Any] = {
            "part": part, "seconds": seconds, "on_timeout": on_timeout, "workers": workers, "memory_mib": memory_mib
        }  # fmt: skip
        self._seconds = seconds
        self._outcome = Outcome.TIMEOUT if on_timeout == "timeout" else Outcome.VERIFIER_ERROR
        self._workers = workers
        self._free: queue.SimpleQueue[VerifierProcess] = queue.SimpleQueue()
        made = recipe(*part_spec(part))
        for process in [VerifierProcess("verifiers.timeout", made, memory_mib) for _ in range(workers)]:
            process.prepare()
            self._free.put(process)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            VerifierContractError: If the verifier returned something that is not a verdict.
        """
        try:
            asked = encode((completion, problem))
        except Exception as error:  # noqa: BLE001 - pickling runs code of any class
            return verifier_error(error)
        process = self._free.get()
        try:
            reply = process.ask("judge", asked, self._seconds)
            if isinstance(reply, list):
                raise VerifierContractError(reply[1])
            verdict: Verdict = decode(cast(str, reply))
            return verdict
        except WorkerTimeoutError:
            return Verdict.of(self._outcome, detail={"error": f"no verdict within {self._seconds:g} s"})
        except WorkerBrokenError as error:
            return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": f"the verifier's process broke: {error}"})
        finally:
            self._free.put(process)

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i; each completion has the whole deadline."""
        with ThreadPoolExecutor(self._workers, thread_name_prefix="with_timeout") as threads:
            return list(threads.map(self, completions, problems))

    def __reduce__(self) -> tuple[Any, ...]:
        """A copied or unpickled verifier has its own processes."""
        return functools.partial(type(self), **self._arguments), ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._arguments['part']!r}, {self._seconds:g})"


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer requests until the requests end; runs in the process of the verifier, whose output is discarded."""
    serve_verifier(requests, replies, lambda verifier, _, payload: _judged(verifier, payload))


def _judged(verifier: Verifier, payload: str) -> str | list[str]:
    """The pickled verdict, or the class and the message of the exception that the parent must raise."""
    try:
        completion, problem = decode(payload)
        (verdict,) = verify_batch(verifier, [completion], [problem])
        return encode(verdict)
    except VerifierContractError as error:
        return [type(error).__name__, str(error)]
    except Exception as error:  # noqa: BLE001 - recorded in the verdict, never scored
        return encode(verifier_error(error))
