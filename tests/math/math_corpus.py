"""The labelled pairs of `corpus.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).with_name("corpus.toml")


@dataclass(frozen=True)
class Pair:
    """An answer to judge against a gold answer, and whether it is correct."""

    group: str
    gold: str
    answer: str
    correct: bool


def _pairs() -> Iterator[Pair]:
    for group, rows in tomllib.loads(_FILE.read_text(encoding="utf-8")).items():
        for row in rows:
            for label in ("equal", "different"):
                for answer in row[label]:
                    text = answer if isinstance(answer, str) else "".join(piece * count for piece, count in answer)
                    yield Pair(group, row["gold"], text, label == "equal")


PAIRS = list(_pairs())
