"""Modules of other libraries without what they would bring, and graders whose libraries are loaded before the first verdict."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

from verifiers import Problem, Verdict, make
from verifiers.audit import draw_cases

MANY = 20
READS = "input and output"
"""The kind of programs that not every grader takes."""


def module_of(name: str) -> ModuleType:
    """A module whose packages above it are not run, which would bring torch, ray or a server."""
    parts = name.split(".")
    for count in range(1, len(parts)):
        package = ".".join(parts[:count])
        if package not in sys.modules:
            found = importlib.util.find_spec(package)
            if found is None:
                raise ModuleNotFoundError(
                    f"{parts[0]} is not installed; make court installs what benchmarks/court needs"
                )
            module = ModuleType(package)
            module.__path__ = list(found.submodule_search_locations or ())
            module.__spec__ = found
            sys.modules[package] = module
    return importlib.import_module(name)


class Loaded:
    """A grader by name, which is asked about a drawn case when it is made.

    Otherwise the first verdict would have the import of a library in it, and a busy machine would take it for a hang.

    Args:
        grader: The grader as module:function.
        field: The field of its cases.
    """

    def __init__(self, grader: str, field: str) -> None:
        module, _, name = grader.partition(":")
        self._verifier = make(getattr(importlib.import_module(module), name))
        case = next(case for case in draw_cases(MANY, 0, field=field) if case.kind != READS)
        self._verifier(case.completion, case.problem)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """The grader's verdict."""
        return self._verifier(completion, problem)
