"""Evaluations as they are recorded, made up row by row."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agents.runs.evaluation_record import EvaluationRecord
from agents.runs.reading import RecordedRun

ODD = (
    "</script><script>alert(1)</script>",
    "<|im_start|>\x1b[31m\x00\x07\u202e\u2028",
    "# Title\n\n![x](http://example.com/x.png)",
    "half a pair \ud800",
    "",
    "x" * 1_000_000,
)


def row(problem: int = 0, sample: int = 0, **columns: Any) -> dict[str, Any]:
    return {
        "problem": problem,
        "problem_id": f"p{problem}",
        "sample": sample,
        "seed": 2**64 - 1,
        "prompt": f"2+{problem}=",
        "reference": "4",
        "completion": "four",
        "outcome": "incorrect",
        "score": 0.0,
        "answer": "four",
        "detail": {"reason": "no number"},
        "tokens": 3,
        "truncated": False,
        "error": None,
        "unsupported": False,
        "applied": None,
        "cluster": repr(columns["prompt"]) if columns.get("prompt") is not None else None,
        "search_tokens": None,
        "prompt_tokens": None,
        "cost": None,
        **columns,
    }


def run_of(folder: Path, rows: Iterable[dict[str, Any]], *, finished: bool = True, **settings: Any) -> RecordedRun:
    with EvaluationRecord(
        folder, settings={"env": "rlvr/Sort-v0", "split": "test", "model": "m", **settings}
    ) as record:
        record.begin({"environment": {"dataset": "Sort(split='test')"}})
        for row in rows:
            record.add(row)
        if finished:
            record.finish({})
    return RecordedRun.read(folder)
