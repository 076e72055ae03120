"""Finds the words at the top level of a statement without parsing it; skips strings, quoted names, comments and brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from verifiers.completion.blocks import last_block
from verifiers.completion.explicit import explicit_marks

_TOKEN = re.compile(
    r"""(?P<skipped>'(?:[^']|'')*+(?:'|\Z)|"(?:[^"]|"")*+(?:"|\Z)|`[^`]*+(?:`|\Z)|\[[^\]]*+(?:\]|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|\s+)|(?P<word>\w+)|.""",
    re.DOTALL,
)


def _top_level(statement: str) -> Iterator[str]:
    """The words and signs of a statement outside brackets, in lower case."""
    depth = 0
    for match in _TOKEN.finditer(statement):
        if match["skipped"] is None:
            depth -= match[0] == ")"
            if depth == 0:
                yield match[0].lower()
            depth += match[0] == "("


def is_query(statement: str) -> bool:
    """Whether a statement begins like a query, with SELECT, WITH or VALUES."""
    return next(_top_level(statement), "") in ("select", "with", "values")


def is_ordered(query: str) -> bool:
    """Whether a query states the order of its rows, with ORDER BY outside of brackets."""
    return ("order", "by") in pairwise(_top_level(query))


_LANGUAGES = ("sql", "sqlite", "sqlite3", "mysql", "postgresql", "postgres", "plsql", "tsql", "")


def query_text(response: str) -> str | None:
    """The query in the last tag `answer`, else the last fenced block that is a query, else the whole response, or None."""
    marks = () if is_query(response.strip()) else explicit_marks(response, ("tag",))  # SQL quotes names as [answer]
    tagged = _query(marks[-1].contents[-1]) if marks else None
    return _query(response) if tagged is None else tagged


def _query(response: str) -> str | None:
    block = last_block(response, _LANGUAGES, lambda content: is_query(content.strip()))
    if block is not None:
        return block.strip()
    return response.strip() if is_query(response.strip()) else None
