from __future__ import annotations

import csv
import gzip
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlvr_envs.data.local import read_rows
from verifiers import DataError, InvalidArgumentError, MissingDependencyError

WriteRows = Callable[..., Path]

ROWS = [
    {"question": "Ada has 2 pens and finds 3. How many has she?", "answer": "2 + 3 = 5\n#### 5"},
    {"question": "Six eggs, half are used. How many remain?", "answer": "6 / 2 = 3\n#### 3"},
]


def test_blank_lines_count_as_lines_but_not_as_rows_and_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 0}\n\n{"a": 1}\n   \n\r\n{"a": 2}')
    assert [(row.values["a"], row.index, row.location.rpartition(" ")[2]) for row in read_rows(path)] == [
        (0, 0, "1"),
        (1, 1, "3"),
        (2, 2, "6"),
    ]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b'{"a": 1', "not valid JSON: "),
        (b"[" * 200_000, "not valid JSON: "),
        (b'{"a": "\xff"}', "not UTF-8 text (invalid start byte at byte 7 of the line)"),
        (b"null", "expected one JSON object on each line, got a NoneType"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, complaint: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\n\n' + line + b"\n")
    with pytest.raises(DataError) as caught:
        read_rows(path)
    assert str(caught.value).startswith(f"{path}, line 3: {complaint}")


def test_a_suffix_that_cannot_be_read(tmp_path: Path) -> None:
    for name in ("x.txt", "x.parquet.gz", "x.gz", "x"):
        with pytest.raises(InvalidArgumentError, match=r"ends in \.jsonl, \.parquet, \.json or \.csv, or such an end"):
            read_rows(tmp_path / name)


def test_csv_arrays_and_compressed_files_hold_the_rows_of_json_lines(tmp_path: Path, write_rows: WriteRows) -> None:
    """Also where a value has line breaks, quotes and commas, and more than the csv module's 128 KiB."""
    rows = [*ROWS, {"question": 'She said "a,\nb".\r\n', "answer": "x" * 200_000}]
    lines = write_rows("x.jsonl", *rows)
    with (tmp_path / "x.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (tmp_path / "array.json").write_text(json.dumps(rows, indent=2))
    (tmp_path / "lines.json").write_bytes(lines.read_bytes())
    for name in ("x.jsonl", "x.csv", "array.json", "lines.json"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        for path in (tmp_path / name, tmp_path / f"{name}.gz"):
            assert [dict(row.values) for row in read_rows(path)] == rows, path
    third = read_rows(tmp_path / "x.jsonl.gz")[2]
    assert third.stored is not None
    assert third.stored.read(["question"]) == {"question": rows[2]["question"]}


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("x.json", b'[{"a": 1}, 2]', ", item 2: expected an object, got a int"),
        ("x.json", b'[{"a": 1}', ": not valid JSON: .*; expected an array of objects"),
        ("x.csv", b"a,b\n1,2\n3\n", r", line 3: expected as many values as the first line has names: \['a', 'b'\]"),
        ("x.csv", b"a\n\xff\n", ": not UTF-8 text"),
        ("x.csv", b"a,b,a\n1,2,3\n", ": two columns are named 'a'"),
        ("x.jsonl", b"\n  \n", ": the file holds no rows"),
        ("x.parquet", b"not a table", ": not a readable Parquet file: "),
        ("x.jsonl.gz", b'{"a": 1}\n', ": not a readable gzip file: Not a gzipped file"),
        ("x.jsonl.gz", gzip.compress(b'{"a": 1}\n', mtime=0)[:-9], ": not a readable gzip file: "),
    ],
)
def test_what_is_damaged_is_named(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"^{re.escape(str(tmp_path / name))}{complaint}"):
        read_rows(tmp_path / name)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"reading Parquet files needs .*pip install 'rlvr-envs\[hub\]'"):
        read_rows(tmp_path / "x.parquet")
