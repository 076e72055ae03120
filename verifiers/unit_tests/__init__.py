"""Verification by unit tests: programs written by a model run in isolation and are judged by another process."""

from typing import TYPE_CHECKING

from verifiers.lazy import lazy_face

if TYPE_CHECKING:
    from verifiers.sandbox import ProgramOutput as ProgramOutput, ProgramRunner as ProgramRunner
    from verifiers.unit_tests.contracts import (
        CONTRACTS as CONTRACTS,
        contract_of as contract_of,
        with_contract as with_contract,
    )
    from verifiers.unit_tests.datasets import (
        from_input_output as from_input_output,
        from_json as from_json,
        from_livecodebench as from_livecodebench,
        from_test_list as from_test_list,
    )
    from verifiers.unit_tests.languages import check_languages as check_languages, language_title as language_title
    from verifiers.unit_tests.tests import (
        AssertTests as AssertTests,
        CallCase as CallCase,
        CallTests as CallTests,
        CheckTests as CheckTests,
        DeferredTests as DeferredTests,
        FunctionTests as FunctionTests,
        StdioCase as StdioCase,
        StdioTests as StdioTests,
        Tests as Tests,
    )
    from verifiers.unit_tests.verifier import UnitTestVerifier as UnitTestVerifier

__getattr__, __dir__, __all__ = lazy_face(__name__)
