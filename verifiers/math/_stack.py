"""Calls functions that need more stack than the caller has left."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def with_room(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function; if the caller's stack is too deep for it, call it again in a thread, which has its own stack.

    The function must have no effects that a second call would repeat.
    """
    try:
        return function(*args, **kwargs)
    except RecursionError:
        pass
    results: list[T] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            errors.append(error)
        finally:
            done.release()

    # Not `threading.Thread`: its own calls need a dozen frames, and only three may be left.
    done = _thread.allocate_lock()
    done.acquire()
    _thread.start_new_thread(call, ())
    done.acquire()
    if errors:
        raise errors[0]
    return results[0]
