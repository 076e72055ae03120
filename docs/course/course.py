"""What the notebooks of the course share: the check of an exercise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def check(yours: Callable[..., Any], right: Callable[..., Any], *cases: tuple[Any, ...]) -> None:
    """Compare a reader's function with the right one, and print the first case in which they differ.

    Args:
        yours: The reader's function.
        right: What it is to compute, with numbers or arrays of numbers as its result.
        cases: The arguments of one call each.
    """
    for case in cases:
        answer, expected = yours(*case), np.asarray(right(*case), dtype=float)
        arguments = ", ".join(str(argument) for argument in case)
        if answer is None:
            print("Not yet: the function returns nothing.")
            return
        given = np.asarray(answer, dtype=float)
        if given.shape != expected.shape or not np.allclose(given, expected, rtol=1e-6, atol=1e-9):
            print(f"Not yet: for {arguments} expected\n{expected}\nand got\n{given}")
            return
    print(f"Right, in all {len(cases)} cases.")
