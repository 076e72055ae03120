"""Folders of runs, written line by line as training writes them."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.loopback import listen
from agents.watching.runs import WatchedRun
from agents.watching.server import WatchServer
from tests.recorded import row

TOKEN = "the-token-of-the-tests"


def run_folder(folder: Path, **settings: Any) -> Path:
    """A training run that has just begun."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"agent": "grpo", "env": "rlvr/Sort-v0", "steps": 40, **settings}))
    return folder


def append(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(f"{json.dumps(line)}\n" for line in lines))


def rollouts(step: int, group: int, scores: Sequence[float | None], **columns: Any) -> list[dict[str, Any]]:
    """A group of completions, each right that has the score 1; None is of a verifier that broke."""
    outcomes = {None: "verifier_error", 1.0: "correct"}
    return [
        row(
            group,
            index,
            score=score,
            outcome=outcomes.get(score, "incorrect"),
            error="the pool died" if score is None else None,
            **{"step": step, "episode": index, "group": group, "advantage": (score or 0.0) - 0.5, **columns},
        )
        for index, score in enumerate(scores)
    ]


@contextlib.contextmanager
def served(*folders: Path) -> Iterator[WatchServer]:
    """The page of some runs, on a free port."""
    with listen("127.0.0.1", 0) as listener:
        server = WatchServer(listener, [WatchedRun(folder) for folder in folders], TOKEN)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
