"""The process that runs the verifier under audit; `serve` speaks the protocol of `verifiers._workers`."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO

from verifiers._verifier_process import serve_verifier
from verifiers._workers import decode
from verifiers.functions import convention_of
from verifiers.types import BatchVerifier, Problem, Verdict, Verifier

Asked = tuple[str, Problem]
Answered = dict[str, object]


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer requests until the requests end; the verifier's output is discarded."""
    serve_verifier(requests, replies, lambda verifier, mode, payload: _MODES[mode](verifier, decode(payload)))


def _judged(call: Callable[[], Verdict]) -> Answered:
    started = time.perf_counter()
    try:
        answered = _described(call())
    except Exception as error:  # noqa: BLE001 - recorded as the answer
        answered = {"error": f"{type(error).__name__}: {error}"[:300]}
    return answered | {"seconds": time.perf_counter() - started}


def _described(verdict: Verdict) -> Answered:
    """A verdict as plain data, with NaN as null, so that equal verdicts compare equal."""
    return {
        "outcome": str(verdict.outcome),
        "score": verdict.score if verdict.score == verdict.score else None,
        "answer": None if verdict.answer is None else verdict.answer[:300],
        "detail": repr(dict(verdict.detail))[:2000],
    }


def _single(verifier: Verifier, asked: Sequence[Asked]) -> list[Answered]:
    return [_judged(functools.partial(verifier, *pair)) for pair in asked]


def _batch(verifier: Verifier, asked: Sequence[Asked]) -> list[Answered]:
    if not isinstance(verifier, BatchVerifier):
        return []
    try:
        verdicts = verifier.verify_batch([completion for completion, _ in asked], [problem for _, problem in asked])
    except Exception as error:  # noqa: BLE001 - recorded as the answer
        return [{"error": f"{type(error).__name__}: {error}"[:300]}] * len(asked)
    return [_described(verdict) for verdict in verdicts]


def _threads(verifier: Verifier, asked: Sequence[Asked], count: int = 4) -> list[list[Answered]]:
    """The answers of several threads that ask at once, each in a different order."""
    answers: list[list[Answered]] = [[] for _ in range(count)]

    def ask(thread: int) -> None:
        start = thread * len(asked) // count
        replies = _single(verifier, [*asked[start:], *asked[:start]])
        answers[thread] = replies[len(asked) - start :] + replies[: len(asked) - start]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads take turns far more often than usual, to reveal shared state
    threads = [threading.Thread(target=ask, args=(thread,), daemon=True) for thread in range(count)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return answers


def _off_main_thread(verifier: Verifier, asked: Sequence[Asked]) -> list[list[Answered]]:
    return _threads(verifier, asked, count=1)


def _convention(verifier: Verifier, asked: Sequence[Asked]) -> list[Answered]:
    return [{"detail": convention_of(verifier) or ""} for _ in asked]


_MODES: dict[str, Callable[[Verifier, Sequence[Asked]], object]] = {
    "single": _single,
    "batch": _batch,
    "threads": _threads,
    "thread": _off_main_thread,
    "convention": _convention,
}
