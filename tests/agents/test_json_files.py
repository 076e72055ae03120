"""The writer of JSON: any data gives one strict line, ordinary data comes back as it was, and a line is whole or not there."""

from __future__ import annotations

import errno
import json
import math
import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from agents.losses import Aggregation
from agents.runs.files.json_files import JsonLines, differences, plain, read_json, to_json, write_json
from verifiers import DataError, Message


def strictly(text: str) -> Any:
    """Read JSON as RFC 8259 and readers in other languages have it: UTF-8, no NaN, no name twice, no control character."""

    def constant(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    value = json.loads(text.encode("utf-8"), parse_constant=constant, object_pairs_hook=unique_keys)
    assert text.isprintable() or all(character.isprintable() or ord(character) > 0x9F for character in text)
    assert len(text.splitlines()) == 1
    assert not any(0xD800 <= ord(character) <= 0xDFFF for character in str(value))
    return value


class Broken(dict[str, Any]):
    """A mapping that can't be read or shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def items(self) -> Any:
        raise RuntimeError("no items")

    def __hash__(self) -> int:
        return 7


@dataclass
class Pair:
    left: object
    right: object


any_text = st.text(st.characters(exclude_categories=()))  # lone surrogates too
numbers = st.integers() | st.integers(-(2**3000), 2**3000) | st.floats() | st.booleans() | st.complex_numbers()
arrays = (
    np.float32("nan"),
    np.int8(-3),
    np.bool_(True),
    np.str_("s\ud800"),
    np.longdouble(2),
    np.datetime64("2020-01-01"),
)
odd = st.builds(Broken, a=st.just(1)) | st.sampled_from([Path("a/b"), len, Aggregation.TOKEN_MEAN, *arrays])
hashable = st.recursive(
    st.none() | any_text | numbers | st.binary() | odd,
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
anything = st.recursive(
    hashable,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(hashable, inner, max_size=4)
        | st.sets(hashable, max_size=4)
        | st.builds(Pair, inner, inner)
        | st.builds(MappingProxyType, st.dictionaries(hashable, inner, max_size=2))
        | st.lists(st.floats(), max_size=3).map(np.array)
    ),
    max_leaves=20,
)
ordinary = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def same_size(value: Any, written: Any) -> bool:
    """Whether no item of a container is lost."""
    if type(value) in (dict, MappingProxyType):
        return len(value) == len(written) and all(map(same_size, value.values(), written.values()))
    if type(value) in (list, tuple):
        return len(value) == len(written) and all(map(same_size, value, written))
    return type(value) not in (set, frozenset) or len(value) == len(written)


@given(anything)
def test_any_data_becomes_one_strict_line_and_nothing_of_it_is_lost(value: object) -> None:
    written = strictly(to_json(value))
    assert written == plain(value)
    assert same_size(value, written)
    assert to_json(written) == to_json(value)


@given(ordinary)
def test_ordinary_data_comes_back_as_it_was(value: object) -> None:
    back = strictly(to_json(value))
    assert back == value
    assert repr(back) == repr(value)  # 1, 1.0 and True are equal


VISIBLE: list[tuple[object, object]] = [
    ("a\ud800b", "a\\ud800b"),
    ("\ud83d\ude00", "\\ud83d\\ude00"),  # two surrogates are not the character of their pair
    ([math.nan, math.inf, -math.inf, np.float32("nan")], ["NaN", "Infinity", "-Infinity", "NaN"]),
    ({(1, "a"): 2, None: 3, True: 4, 1.5: 5, b"\xff": 6}, {'[1, "a"]': 2, "null": 3, "true": 4, "1.5": 5, "\\xff": 6}),
    ({1: "number", "1": "text"}, {"1'": "number", "1": "text"}),
    ({"\ud800": 1, "\\ud800": 2}, {"\\ud800'": 1, "\\ud800": 2}),
    ({3, 1, 2}, [1, 2, 3]),
    ({"b", "a", 1}, ["a", "b", 1]),
    (b"a\xff", "a\\xff"),
    (2**2047, 2**2047),
    (-(2**2048), hex(-(2**2048))),
    (10**5000, hex(10**5000)),  # which the json module refuses to write
    (np.arange(4, dtype=np.int16).reshape(2, 2), [[0, 1], [2, 3]]),
    (torch.tensor([1.5, math.nan]), [1.5, "NaN"]),
    (np.array([{"a": (1,)}], dtype=object), [{"a": [1]}]),
    (Pair(1, (2,)), {"left": 1, "right": [2]}),
    ((Message("user", "hi"),), [{"role": "user", "content": "hi"}]),
    (Path("a/b"), "a/b"),
    (Aggregation.TOKEN_MEAN, "token-mean"),
    (MappingProxyType({"a": 1}), {"a": 1}),
    (ValueError("\ud800"), "ValueError('\\ud800')"),
    ([1, Broken(), 2], [1, "<Broken whose repr raised RuntimeError>", 2]),
]


@pytest.mark.parametrize(("value", "written"), VISIBLE, ids=map(str, range(len(VISIBLE))))
def test_what_json_has_not_is_written_visibly(value: object, written: object) -> None:
    assert strictly(to_json(value)) == written


def test_what_contains_itself_ends() -> None:
    circle: list[Any] = [1]
    circle.append(circle)
    assert strictly(to_json({"a": circle})) == {"a": [1, "[1, [...]]"]}
    shared = [1]
    assert strictly(to_json([shared, shared])) == [[1], [1]]  # twice is no circle
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    inner = strictly(to_json(deep))
    for _ in range(64):
        (inner,) = inner
    assert "repr raised RecursionError" in inner


def test_a_line_is_one_line_for_every_reader_sends_nothing_to_a_terminal_and_is_readable() -> None:
    for end in "\n\r\x0b\x0c\x1c\x85\u2028\u2029\x1b\x7f\x9b":
        text = to_json({end: f"a{end}b"})
        assert len(text.splitlines()) == 1
        assert end not in text
        assert strictly(text) == {end: f"a{end}b"}
    assert to_json("Größe 三 😀") == '"Größe 三 😀"'


def test_a_file_appears_as_a_whole_or_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_json(path, {"a": 2})
    assert read_json(path) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"nothing", b"[" * 100_000])
def test_a_file_that_is_no_json_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.json is not valid JSON"):
        read_json(path)


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[JsonLines]:
    opened = JsonLines(tmp_path / "lines.jsonl")
    yield opened
    opened.close()


def test_a_crash_at_any_byte_costs_the_line_that_was_being_written_and_no_other(lines: JsonLines) -> None:
    rows = [{"a": 1}, {"b": "ü\n"}, [2]]
    for row in rows:
        lines.write(row)
    whole = lines.path.read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        lines.path.write_bytes(whole[:cut])
        kept = sum(end <= cut for end in ends)
        assert lines.read(lambda value: value) == rows[:kept]
        for row in rows[kept:]:
            lines.write(row)
        assert lines.path.read_bytes() == whole


def test_a_line_that_is_damaged_is_named_and_nothing_is_removed(lines: JsonLines) -> None:
    content = b'{"a": 1}\nnothing\n{"a": 2}\n{"a"'
    lines.path.write_bytes(content)
    with pytest.raises(DataError, match=r"lines\.jsonl, line 2 is damaged .*remove that line, and it is generated"):
        lines.read(lambda value: value)
    assert lines.path.read_bytes() == content


def test_a_line_for_which_there_is_no_room_leaves_the_file_as_it_was(lines: JsonLines) -> None:
    """The kernel takes the first half of the second line before it refuses the rest."""
    lines.write({"a": 1})
    before = lines.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, hard))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            lines.write("x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert raised.value.filename == str(lines.path)
    assert lines.path.read_bytes() == before
    lines.write({"a": 2})
    assert lines.read(lambda value: value) == [{"a": 1}, {"a": 2}]


def test_differences_are_named_to_the_last_part() -> None:
    before = {"a": {"b": [1, 2], "c": 1}, "d": 0}
    assert list(differences(before, {"a": {"b": [1, 3], "c": 1}, "e": 5})) == [
        ("a.b", [1, 2], [1, 3]),
        ("d", 0, None),
        ("e", None, 5),
    ]
    assert not list(differences(before, before))
