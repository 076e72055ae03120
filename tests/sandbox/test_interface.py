"""The jail by itself: it knows nothing of its use, others use its face alone, and code of one's own runs by a contract."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import verifiers.sandbox

HOME = Path(verifiers.sandbox.__file__).parent
ROOT = HOME.parents[1]
IN_JAIL = [ROOT / "verifiers" / "unit_tests" / "sandbox"]
"""Packages that the fork server loads: they find the jail's modules, and not its face."""
USE = re.compile(r"\b(tests?|tested|testers?|candidates?|reports?|verdicts?)\b", re.IGNORECASE)
NAMES = {"test", ".test", ".tests", "numpy.testing"}


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


def test_the_jail_knows_nothing_of_its_use() -> None:
    for path in HOME.rglob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not USE.search(line) or any(name in line for name in NAMES), f"{path}:{number}: {line}"
        for name in imported(path):
            allowed = name in ("verifiers.errors", "verifiers._settings") or name.startswith("verifiers.sandbox")
            assert allowed or not name.startswith(("verifiers", "rlvr_envs", "agents")), f"{path} imports {name}"


@pytest.mark.parametrize("package", ["verifiers", "rlvr_envs", "agents"])
def test_others_use_its_face_alone(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        if HOME not in path.parents and not any(home in path.parents for home in IN_JAIL):
            inside = [name for name in imported(path) if name.startswith("verifiers.sandbox.")]
            assert not inside, f"{path} reaches into {inside}"
