"""Problems made by programs: no download, any number of them, disjoint train and test splits.

`FAMILIES` maps the name of each family to its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlvr_envs.procedural.base import ProceduralDataset
from rlvr_envs.procedural.polynomial import Polynomial, PolynomialVerifier
from rlvr_envs.tasks.addition import Addition
from rlvr_envs.tasks.arithmetic import Arithmetic
from rlvr_envs.tasks.countdown import Countdown
from rlvr_envs.tasks.function import Function
from rlvr_envs.tasks.linear_equation import LinearEquation
from rlvr_envs.tasks.reverse import Reverse
from rlvr_envs.tasks.sort import Sort

FAMILIES: Mapping[str, type[ProceduralDataset[Any]]] = {
    family.name: family
    for family in (Addition, Arithmetic, Countdown, Sort, Reverse, LinearEquation, Polynomial, Function)
}

__all__ = [
    "FAMILIES",
    "Addition",
    "Arithmetic",
    "Countdown",
    "Function",
    "LinearEquation",
    "Polynomial",
    "PolynomialVerifier",
    "ProceduralDataset",
    "Reverse",
    "Sort",
]
