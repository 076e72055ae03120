"""Entry points: how tests name the function under test."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from typing import Any

SOLUTION_CLASS = "Solution"
"""The class that has the function under test as a method, where there is no such function by itself."""
_ENTRY_POINT = re.compile(r"([^\W\d]\w*)((?:\(\)|\.[^\W\d]\w*)*)")


def entry_point_steps(entry_point: str) -> list[str]:
    """The steps to what an entry point stands for: `["Solution", "()", ".solve"]` of `Solution().solve`; none if it is none."""
    match = _ENTRY_POINT.fullmatch(entry_point)
    steps = [match[1], *re.findall(r"\(\)|\.\w+", match[2])] if match else []
    return [] if any(map(keyword.iskeyword, re.findall(r"\w+", entry_point))) else steps


def reach(value: Any, steps: Iterable[str]) -> Any:
    """Go from the value of an entry point's first step to that of its last."""
    for step in steps:
        value = value() if step == "()" else getattr(value, step[1:])
    return value
