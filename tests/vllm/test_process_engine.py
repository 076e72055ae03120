"""Messages between `ProcessEngine` and its process; the process itself is in test_engine.py."""

from __future__ import annotations

import threading
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from agents.policies.vllm.process_engine import ProcessEngine, _Calls, _read
from verifiers import EngineError

_MUCH = "x" * 4_000_000
"""More than a connection holds."""


def test_both_sides_may_send_more_than_the_connection_holds_at_the_same_time(tmp_path: Path) -> None:
    ours, theirs = Pipe()
    engine = ProcessEngine.__new__(ProcessEngine)
    engine._calls, engine._connection = _Calls(), ours  # type: ignore[assignment]
    closed, unused = lambda: None, None
    reader = threading.Thread(target=_read, args=(ours, engine._calls, closed, unused, tmp_path / "log"), daemon=True)
    reader.start()
    received: list[Any] = []

    def sample() -> None:
        """As a process that sends completions before it looks for other requests."""
        first, _, _ = theirs.recv()
        theirs.send((first, "done", _MUCH))
        received.append(theirs.recv())

    process = threading.Thread(target=sample, daemon=True)
    process.start()
    first = engine._start_call("generate", "a")
    sending = threading.Thread(target=engine._start_call, args=("generate", _MUCH), daemon=True)
    sending.start()
    sending.join(60)
    assert not sending.is_alive()
    assert first.result(60) == _MUCH
    process.join(60)
    assert received[0][2] == (_MUCH,)
    theirs.close()
    reader.join(60)
    assert isinstance(engine._calls.ended, EngineError)
