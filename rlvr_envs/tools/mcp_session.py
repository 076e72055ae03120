"""One session with an MCP server, in a thread with its own event loop. Only this module imports asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class Session:
    """A client of an MCP server, and the thread that serves it.

    Args:
        server: The server, in a form that `mcp.Client` accepts.
        timeout_s: Time limit, in seconds, of the server's start.

    Raises:
        Exception: Any error of the client if the server can't be reached.
    """

    def __init__(self, server: Any, timeout_s: float) -> None:
        from mcp import Client

        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._run_loop, args=(Client, server), name="mcp", daemon=True)
        self._thread.start()
        try:
            self.client = self._ready.result(timeout_s)
        except BaseException:
            self.close()
            raise

    def _run_loop(self, client: Any, server: Any) -> None:
        try:
            asyncio.run(self._serve(client, server))  # cancels open questions at the end
        except BaseException as error:  # noqa: BLE001 - raised where the session is opened
            if not self._ready.done():
                self._ready.set_exception(error)

    async def _serve(self, client: Any, server: Any) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        # A client must be opened and closed by the same task.
        async with client(server) as opened:
            self._ready.set_result(opened)
            await asyncio.Event().wait()  # until the task is cancelled

    def is_alive(self) -> bool:
        """Whether the session can answer questions."""
        return self._thread.is_alive()

    def run(self, question: Coroutine[Any, Any, _T], timeout_s: float) -> _T:
        """Ask a question from any thread, and wait for the answer."""
        assert self._loop is not None
        future = asyncio.run_coroutine_threadsafe(question, self._loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def close(self) -> None:
        """End the session, without waiting for its end."""
        if self._loop is not None and self._task is not None and self.is_alive():
            with contextlib.suppress(RuntimeError):  # the session has just ended by itself
                self._loop.call_soon_threadsafe(self._task.cancel)
