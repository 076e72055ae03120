"""Transformations, and the table of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, cast

from verifiers.audit.cases import Label
from verifiers.audit.golds import Gold, Kind

Basis = Literal["mathematics", "policy", "option"]
Rewrite = Callable[[Gold], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Transformation:
    """A label-preserving rewriting of golds."""

    name: str
    kinds: frozenset[Kind]
    label: Label
    basis: Basis
    rewrite: Rewrite
    symmetric: bool
    """Whether the label also holds with gold and result exchanged."""
    option: str = ""
    """The setting of the math verifier that accepts the results, if the transformation has no label."""

    def __call__(self, gold: Gold) -> list[str]:
        """Rewrite a gold; empty if the transformation does not apply."""
        return list(self.rewrite(gold)) if gold.kind in self.kinds else []


TRANSFORMATIONS: dict[str, Transformation] = {}
"""Every transformation by name."""


def enter(name: str, label: Label, row: str, rewrite: Rewrite, option: str = "") -> None:
    """Enter a transformation: kinds with commas between them and, after a semicolon, `policy`, `symmetric` or both."""
    kinds, _, remarks = row.partition("; ")
    basis = "option" if option else "policy" if "policy" in remarks else "mathematics"
    TRANSFORMATIONS[name] = Transformation(
        name,
        frozenset(map(Kind, kinds.split(", "))),
        label,
        cast("Basis", basis),
        rewrite,
        symmetric="symmetric" in remarks,
        option=option,
    )


def _register(label: Label, kinds: Iterable[Kind], basis: Basis, symmetric: bool) -> Callable[[Rewrite], Rewrite]:
    def register(rewrite: Rewrite) -> Rewrite:
        row = f"{', '.join(kinds)}; {basis} {'symmetric' if symmetric else ''}"
        enter(rewrite.__name__.strip("_").replace("_", "-"), label, row, rewrite)
        return rewrite

    return register


def equal(*kinds: Kind, basis: Basis = "mathematics", symmetric: bool = False) -> Callable[[Rewrite], Rewrite]:
    """Register a function that rewrites golds of some kinds into equal forms, under its own name."""
    return _register(Label.CORRECT, kinds, basis, symmetric)


def near(*kinds: Kind, basis: Basis = "mathematics", symmetric: bool = False) -> Callable[[Rewrite], Rewrite]:
    """Register a function that rewrites golds of some kinds into wrong answers, under its own name."""
    return _register(Label.WRONG, kinds, basis, symmetric)
