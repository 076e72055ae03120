"""Transformations of golds, and the table of all transformations."""

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
    """A rewriting of golds, whose results all have the same label."""

    name: str
    kinds: frozenset[Kind]
    label: Label
    basis: Basis
    rewrite: Rewrite
    symmetric: bool
    """Whether the label still holds if gold and result are exchanged."""
    option: str = ""
    """For a transformation without a label, the setting with which the math verifier accepts the results."""

    def __call__(self, gold: Gold) -> list[str]:
        """Rewrite a gold; empty if the transformation does not apply."""
        return list(self.rewrite(gold)) if gold.kind in self.kinds else []


TRANSFORMATIONS: dict[str, Transformation] = {}
"""Every transformation by name."""


def enter(name: str, label: Label, row: str, rewrite: Rewrite, option: str = "") -> None:
    """Add a transformation to the table; `row` has the form `kind, kind` or `kind, kind; policy symmetric`."""
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
    """Register a function, under its own name, that rewrites golds of these kinds into equal forms."""
    return _register(Label.CORRECT, kinds, basis, symmetric)


def near(*kinds: Kind, basis: Basis = "mathematics", symmetric: bool = False) -> Callable[[Rewrite], Rewrite]:
    """Register a function, under its own name, that rewrites golds of these kinds into wrong answers."""
    return _register(Label.WRONG, kinds, basis, symmetric)
