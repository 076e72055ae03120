"""Entry points: how tests name the function under test."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from typing import Any

SOLUTION_CLASS = "Solution"
"""The class whose method is the function under test, if there is no global function of that name."""
_ENTRY_POINT = re.compile(r"([^\W\d]\w*)((?:\(\)|\.[^\W\d]\w*)*)")


def entry_point_steps(entry_point: str) -> list[str]:
    """The steps of an entry point: `["Solution", "()", ".solve"]` for `Solution().solve`; empty if it is not valid."""
    match = _ENTRY_POINT.fullmatch(entry_point)
    steps = [match[1], *re.findall(r"\(\)|\.\w+", match[2])] if match else []
    return [] if any(map(keyword.iskeyword, re.findall(r"\w+", entry_point))) else steps


def reach(value: Any, steps: Iterable[str]) -> Any:
    """Follow the remaining steps of an entry point from the value of its first step."""
    for step in steps:
        value = value() if step == "()" else getattr(value, step[1:])
    return value
