"""Decides whether the assumptions of a proof, as `Print Assumptions` and `coqchk -o` report them, are acceptable."""

from __future__ import annotations

import re
from collections.abc import Collection

CLOSED = "Closed under the global context\n"
_SECTION = re.compile(r"^\* ([^:\n]+):(.*(?:\n(?!\*|\n).*)*)", re.MULTILINE)
_SOUND = ("Axioms", "Theory")
_FULL_NAME = re.compile(r"[^\W\d][\w']*(?:\.[^\W\d][\w']*)+")
_ENTRY = re.compile(r"(\S+)(?:$| :)")


def objection(printed: str, checked: str, own: Collection[str], allowed: Collection[str]) -> str | None:
    """Why the assumptions of a proof are not acceptable; None if they are.

    Two reports must both be acceptable. `Print Assumptions` names the axioms that the proof uses, perhaps by shortened names;
    `coqchk -o` lists all axioms of all modules by their full names, including unused axioms, such as those of the library.

    Args:
        printed: The whole output of a process in which only `Print Assumptions` printed.
        checked: The whole output of `coqchk -o`.
        own: Modules that are not part of Coq's library; they may declare only allowed axioms.
        allowed: Full names of the allowed axioms.
    """
    axioms = _axioms(checked)
    if isinstance(axioms, str):
        return axioms
    declared = [name for name in axioms if name not in allowed and _is_own(name, own)]
    if declared:
        return f"the checker finds the axiom {declared[0]}"
    if printed == CLOSED:
        return None
    for name in _used(printed):
        meant = [axiom for axiom in axioms if f".{axiom}".endswith(f".{name}")]
        if not meant or not {*meant} <= {*allowed}:
            return f"it rests on {name}"
    return None if printed.startswith("Axioms:\n") else "its assumptions can't be read"


def _used(printed: str) -> list[str]:
    """The names in the output of `Print Assumptions`, where a type may continue on indented lines."""
    lines = [line for line in printed.removeprefix("Axioms:\n").splitlines() if not line.startswith(" ")]
    return [match[1] if (match := _ENTRY.match(line)) else line for line in lines]


def _axioms(checked: str) -> list[str] | str:
    """The axioms that the checker lists, or the checker's objection."""
    sections = {match[1]: match[2].split() for match in _SECTION.finditer(checked)}
    if sections.get("Theory") != ["Set", "is", "predicative"] or "Axioms" not in sections or len(sections) < 5:
        return f"the checker's report can't be read: {checked[:300]!r}"
    for title, content in sections.items():
        if title not in _SOUND and content != ["<none>"]:
            return f"the checker finds {title[0].lower()}{title[1:]}: {' '.join(content)}"
    return [] if sections["Axioms"] == ["<none>"] else sections["Axioms"]


def _is_own(name: str, own: Collection[str]) -> bool:
    """Whether an axiom may belong to one of these modules: its name does not clearly belong to another module."""
    return _FULL_NAME.fullmatch(name) is None or name.partition(".")[0] in own
