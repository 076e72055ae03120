"""Recognition of the kind of a gold answer."""

from __future__ import annotations

import re
from collections.abc import Callable

from verifiers.audit.golds import RECOGNISERS, Gold, Kind
from verifiers.audit.reading import MAX_LENGTH
from verifiers.audit.structures import (
    condition,
    family,
    half_lines,
    indexed_symbol,
    labelled_values,
    linear_equation,
    named_list,
    rounded_expression,
    statement,
)

_STRUCTURES: tuple[tuple[Kind, Callable[[str], object]], ...] = (
    (Kind.TIME, re.compile(r"(?:[1-9]|1\d|2[0-3]):[0-5]\d").fullmatch),
    (Kind.LABELLED, labelled_values),
    (Kind.NAMED_LIST, named_list),
    (Kind.FAMILY, family),
    (Kind.HALF_LINES, half_lines),
    (Kind.CONDITION, condition),
    (Kind.STATEMENT, statement),
    (Kind.LINEAR_EQUATION, linear_equation),
    (Kind.ROUNDED, rounded_expression),
    (Kind.INDEXED, indexed_symbol),
)


def recognise(text: str) -> Gold:
    """Find the kind of a gold answer; `Kind.UNKNOWN` whenever it could be read in two ways."""
    stripped = text.strip()
    if not 0 < len(stripped) <= MAX_LENGTH:
        return Gold(text, Kind.UNKNOWN)
    for recogniser in RECOGNISERS:
        gold = recogniser(stripped)
        if gold is not None:
            return gold
    plain = stripped.strip("$")
    kind = next((kind for kind, read in _STRUCTURES if read(plain)), None)
    return Gold(text, Kind.UNKNOWN) if kind is None else Gold(plain, kind)
