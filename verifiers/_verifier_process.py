"""Runs a verifier in another process: builds it there, passes requests and replies, and rebuilds its errors here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import IO, cast

from verifiers import errors
from verifiers._workers import START_DEADLINE_S, Worker, answer_requests, decode, encode
from verifiers.errors import InvalidArgumentError, RLVRError
from verifiers.registry import VerifierSpec, make
from verifiers.types import Verifier


def recipe(spec: VerifierSpec, arguments: Mapping[str, object]) -> str:
    """Serialise a verifier and its arguments as text, from which another process can make the verifier.

    Raises:
        InvalidArgumentError: If the verifier or an argument can't be pickled.
    """
    try:
        return encode((spec, dict(arguments)))
    except Exception as error:
        raise InvalidArgumentError(
            f"{spec!r} cannot be sent to another process ({error}); name it 'module:attribute'"
        ) from error


class VerifierProcess:
    """A verifier in a worker process; if the process was replaced, the verifier is made again.

    Args:
        module: The module that the worker runs; its `serve` calls `serve_verifier`.
        recipe: The verifier, from `recipe`.
        memory_mib: Limit on the process's address space in MiB; None for no limit.
    """

    def __init__(self, module: str, recipe: str, memory_mib: int | None) -> None:
        self._recipe = recipe
        self._worker = Worker(module, memory_mib=memory_mib)
        self._made_in: int | None = None

    def prepare(self) -> None:
        """Start the process if it is not running, and make the verifier in it.

        Raises:
            RLVRError: If the verifier can't be made, as for `verifiers.make`.
        """
        if self._made_in is not None and self._worker.pid == self._made_in:
            return
        error = cast("list[str]", self._worker.ask(["make", self._recipe], deadline_s=START_DEADLINE_S))
        if error:
            raise error_like(*error)
        self._made_in = self._worker.pid

    def ask(self, action: str, payload: str, deadline_s: float) -> object:
        """Send a request to the verifier, as `Worker.ask` does; the deadline does not include the start of the process."""
        self.prepare()
        return self._worker.ask([action, payload], deadline_s=deadline_s)

    def close(self) -> None:
        """Stop the process, if it runs."""
        self._worker.close()


def made_from(recipe: str) -> Verifier:
    """Make the verifier that a recipe describes; called in the other process.

    Raises:
        RLVRError: If the verifier can't be made, as for `verifiers.make`.
    """
    spec, arguments = decode(recipe)
    return make(spec, **arguments)


def serve_verifier(requests: IO[bytes], replies: IO[bytes], answer: Callable[[Verifier, str, str], object]) -> None:
    """Answer requests by the protocol of `verifiers._workers` until the requests end; called in the other process.

    Args:
        requests: Lines of JSON, each an action and its payload; the first request holds the recipe of the verifier.
        replies: The stream to which each reply is written as a line of JSON; the verifier's own output is discarded.
        answer: Function of the verifier, the action and the payload that returns the reply to any other request.
    """
    verifier: Verifier | None = None

    def reply(action: str, payload: str) -> object:
        nonlocal verifier
        if action == "make":
            verifier, error = _make_here(payload)
            return error
        assert verifier is not None, "the first request makes the verifier"
        return answer(verifier, action, payload)

    answer_requests(requests, _without_output(replies), reply)


def _make_here(payload: str) -> tuple[Verifier | None, list[str]]:
    """Make the verifier that a recipe describes; if that fails, return the class and the message of the error instead."""
    try:
        return made_from(payload), []
    except Exception as error:  # noqa: BLE001 - sent to the parent, which raises it
        return None, [type(error).__name__, str(error)]


def error_like(name: str, message: str) -> RLVRError:
    """Rebuild an error that the other process reported; it keeps its class if this package defines that class."""
    cls = vars(errors).get(name)
    if isinstance(cls, type) and issubclass(cls, RLVRError):
        return cls(message)
    return InvalidArgumentError(f"the other process cannot build the verifier: {name}: {message}")


def _without_output(replies: IO[bytes]) -> IO[bytes]:
    """Discard everything that is printed from now on; the stream returned here still reaches the parent."""
    own = os.fdopen(os.dup(replies.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return own
