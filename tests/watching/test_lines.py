"""Files that grow while they are read: at any time, what was read is what a fresh reader of the whole lines reads."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agents.watching.lines import GrowingLines, Place

pytest.importorskip("hypothesis")

from hypothesis import given, strategies as st

_lines = st.lists(st.one_of(st.just("half a line"), st.just("[1]"), st.text(max_size=300)), max_size=8)


def reader(path: Path) -> GrowingLines[tuple[Any, Place]]:
    return GrowingLines(path, lambda line, place: (line, place))


@given(written=_lines, cuts=st.lists(st.integers(0, 4000), max_size=8), kept=st.integers(0, 8), later=_lines)
def test_a_file_that_is_appended_to_cut_and_replaced_is_read_as_it_stands(
    tmp_path_factory: pytest.TempPathFactory, written: list[str], cuts: list[int], kept: int, later: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    path, number = folder / "x.jsonl", iter(range(100))
    growing = reader(path)

    def encoded(text: str) -> bytes:  # unlike all other lines, as a run's are by their times and texts
        good = json.dumps({"number": next(number), "text": text})
        return (good if text not in ("half a line", "[1]") else f"{text[:-1]} {next(number)}").encode() + b"\n"

    def check() -> None:
        growing.read()
        fresh = reader(path)
        fresh.read()
        assert (growing.values, growing.damaged) == (fresh.values, fresh.damaged)
        whole = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        assert len(growing.values) + growing.damaged == len(whole)
        assert [json.loads(growing.line(place)) for _, place in growing.values] == [line for line, _ in growing.values]

    lines = [encoded(text) for text in written]
    content = b"".join(lines)
    check()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(content)], strict=True):
        with path.open("ab") as file:
            file.write(content[start:end])
        check()
    more = [encoded(text) for text in later]
    os.truncate(path, len(b"".join(lines[:kept])))  # a resumed run cuts its rollouts, and goes on
    with path.open("ab") as file:
        file.write(b"".join(more))
    check()
    (folder / "new").write_bytes(b"".join(more))
    os.replace(folder / "new", path)  # as it replaces its metrics
    check()
    path.unlink()
    check()


def test_the_version_changes_with_what_was_read(tmp_path: Path) -> None:
    growing = reader(tmp_path / "x.jsonl")
    versions = []
    for text in ("", '{"a": 1}\n', "", '{"b"', ": 2}\n"):
        with growing.path.open("a") as file:
            file.write(text)
        growing.read()
        versions.append(growing.version)
    assert versions == [1, 2, 2, 2, 3]
