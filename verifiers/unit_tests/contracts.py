"""The two contracts of tests: tests run in a process of their own, or in one process together with the program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from verifiers.errors import InvalidArgumentError
from verifiers.unit_tests.datasets import from_json
from verifiers.unit_tests.separate.entry_points import entry_point_steps
from verifiers.unit_tests.tests import CheckTests, FunctionTests

SEPARATE, TOGETHER = "separate", "together"
CONTRACTS = (SEPARATE, TOGETHER)


def contract_of(reference: object) -> str:
    """The contract of a reference, which may be tests, their content as JSON, or deferred tests."""
    tests = from_json(reference) if isinstance(reference, Mapping) else reference
    return TOGETHER if isinstance(tests, FunctionTests) and tests.together else SEPARATE


def with_contract(reference: object, contract: str) -> object:
    """Change the contract of tests.

    Args:
        reference: Tests, their content as JSON, or deferred tests.
        contract: `"separate"` or `"together"`. A function `check` becomes a test file that calls the function.

    Raises:
        InvalidArgumentError: If there is no such contract, or tests of this kind can't run together with the program.
    """
    if contract not in CONTRACTS:
        raise InvalidArgumentError(f"a contract is {' or '.join(map(repr, CONTRACTS))}, got {contract!r}")
    if contract_of(reference) == contract:
        return reference
    tests = from_json(reference) if isinstance(reference, Mapping) else reference
    if isinstance(tests, FunctionTests):
        return dataclasses.replace(tests, together=contract == TOGETHER)
    if not isinstance(tests, CheckTests):
        raise InvalidArgumentError(
            "together with the program run test files (FunctionTests) and functions `check` (CheckTests), got "
            f"{type(tests).__name__}"
        )
    name = (entry_point_steps(tests.entry_point) or [tests.entry_point])[
        0
    ]  # the verifier refuses an invalid entry point
    test = (
        f"from solution import *\nfrom solution import {name}\n{tests.test}\n\n\n"
        f"def test_check():\n    check({tests.entry_point})\n"
    )
    return FunctionTests(test, prefix=tests.prefix, entry_point=name, files=tests.files, together=True)
