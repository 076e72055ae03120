"""Reads an answer: its text, its normal form for quick equality checks, and its tree."""

from __future__ import annotations

import contextlib
import functools
import re
from dataclasses import dataclass

from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.normalize import normal_text
from verifiers.math.reading.parse import parse
from verifiers.math.reading.plus_minus import expand_signs
from verifiers.math.reading.tokens import MAX_LENGTH
from verifiers.math.tree import Node

_CACHED_LENGTH = 1000
_INTEGER = re.compile(r"[+-]?[0-9]{1,300}(?:\.0{1,20})?")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3}){1,90}")


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An answer with its normal form and its tree."""

    text: str
    normal: str
    tree: Node


def read(
    text: str, *, thousands: bool = True, decimal_comma: bool = False, vectors: frozenset[str] = frozenset()
) -> ParsedAnswer:
    """Read an answer with the settings of `parse`; short answers are cached.

    Raises:
        UnreadableError: If the answer cannot be read.
    """
    if len(text) > MAX_LENGTH:
        raise UnreadableError(f"{len(text)} characters; at most {MAX_LENGTH} are read")
    return (_read_cached if len(text) <= _CACHED_LENGTH else _read)(text, thousands, decimal_comma, vectors)


def _read(text: str, thousands: bool, decimal_comma: bool, vectors: frozenset[str]) -> ParsedAnswer:
    tree = expand_signs(parse(text, thousands=thousands, decimal_comma=decimal_comma, vectors=vectors))
    return ParsedAnswer(text, normal_text(text), tree)


_read_cached = functools.lru_cache(maxsize=8192)(_read)


def tree_or_none(text: str) -> Node | None:
    """The tree of a text; None if it cannot be read."""
    with contextlib.suppress(UnreadableError):
        return read(text).tree
    return None


def plain_number(text: str) -> int | None:
    """The value of an integer in digits, possibly grouped by commas or with zeros after its point; None for anything else."""
    if _INTEGER.fullmatch(text):
        return int(text.partition(".")[0])
    return int(text.replace(",", "")) if _GROUPED.fullmatch(text) else None
