"""Finds the JSON of a completion, and reads it strictly."""

from __future__ import annotations

import json
import math
import re
from collections import Counter

from verifiers.completion.blocks import Block, fenced_blocks
from verifiers.completion.explicit import explicit_marks

MAX_CHARACTERS = 1_000_000
"""Longest JSON that is read, in characters."""
_LANGUAGES = ("json", "jsonc", "json5", "jsonl", "application/json")
MAX_DEPTH = 100
"""Deepest nesting of objects and arrays that is read."""


class NotJSONError(ValueError):
    """A text is not JSON, or not JSON that is accepted here; the argument says why."""


def json_text(response: str) -> str | None:
    """The text of a response that should be JSON; None if there is none.

    It is the first of these that exists: the whole response, if it begins like an object or an array; the JSON in its last tag
    `answer`, found in the same way; its last fenced block that is labelled as JSON, or that has no label and begins like an
    object or array; the whole response, if it is JSON.
    """
    marks = () if response.lstrip()[:1] in ("{", "[") else explicit_marks(response, ("tag",))
    tagged = _json_text(marks[-1].contents[-1]) if marks else None
    return _json_text(response) if tagged is None else tagged


def _json_text(response: str) -> str | None:
    text = response.strip()
    if text[:1] in ("{", "["):
        return text
    blocks = [block for block in fenced_blocks(text) if block.language in _LANGUAGES or _begins(block)]
    if blocks:
        return blocks[-1].content.strip()
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    return text


def _begins(block: Block) -> bool:
    return not block.language and block.content.lstrip()[:1] in ("{", "[")


def without_byte_order_mark(text: str) -> str:
    """A text without its leading byte-order mark, which some tools write and which RFC 8259 lets a parser ignore."""
    return text.strip().removeprefix("\ufeff")


def read_json(text: str) -> object:
    """Read JSON by RFC 8259, but refuse what parsers read differently: repeated keys, and numbers too large for a float.

    A leading byte-order mark is ignored.

    Raises:
        NotJSONError: If the text is not JSON, too long or nested too deeply.
    """
    text = without_byte_order_mark(text)
    if len(text) > MAX_CHARACTERS:
        raise NotJSONError(f"longer than {MAX_CHARACTERS} characters")
    if _depth(text) > MAX_DEPTH:
        raise NotJSONError(f"nested deeper than {MAX_DEPTH}")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except NotJSONError:
        raise
    except ValueError as error:
        raise NotJSONError(f"not JSON: {error}") from error


def _depth(text: str) -> int:
    """The greatest depth of nested brackets, not counting brackets in strings."""
    depth = deepest = 0
    for sign in re.findall(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', text, re.DOTALL):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(sign, 0)
        deepest = max(deepest, depth)
    return deepest


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) != len(pairs):
        repeated = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise NotJSONError(f"the key {repeated[:80]!r} is repeated")
    return content


def _constant(name: str) -> object:
    raise NotJSONError(f"{name} is not JSON")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotJSONError(f"the number {text[:40]} is out of range")
    return number


def same(first: object, second: object) -> bool:
    """Whether two JSON values are the same: numbers by value, objects in any order; a bool is not a number."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(value, second[name]) for name, value in first.items())
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    return first == second
