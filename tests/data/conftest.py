from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlvr_envs import data

WriteRows = Callable[..., Path]


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tests say themselves where data is, and share no loaded data set."""
    monkeypatch.delenv(data.DATA_DIR_VARIABLE, raising=False)
    data.clear_cache()
    yield
    data.clear_cache()


@pytest.fixture
def write_rows(tmp_path: Path) -> WriteRows:
    """Writes rows as JSON Lines: `write_rows("gsm8k/test.jsonl", row, ...)`; gives the file's path."""

    def write(name: str, *rows: object) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write
