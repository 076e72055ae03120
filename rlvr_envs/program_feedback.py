"""Code with feedback: the answer to a program that fails a public test describes the failure.

All tests score the last program.
"""

from __future__ import annotations

import ast
import dataclasses
import doctest
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlvr_envs.types import Reply, Turn
from verifiers import Count, InvalidArgumentError, Message, Outcome, Problem, VerifierFailureError, checked
from verifiers.unit_tests import AssertTests, CallTests, CheckTests, DeferredTests, StdioTests, Tests, UnitTestVerifier

_EXCERPT = 500
"""Maximum number of characters shown of a test, of an error and of a program's output."""
_LIMITS = {
    "timeout": "it took too much time",
    "memory": "it took too much memory",
    "output_limit": "it printed too much",
    "forbidden": "it did what the sandbox forbids: there are no files, processes or network",
}


class ProgramFeedback:
    """Answers a program with the first public test that it fails; a program that passes all public tests ends the episode.

    The verifier then judges the last program by all tests of the problem. Only the public tests are run for an answer, so that
    the answer can't depend on other tests. The first `public` asserts, calls or inputs of a problem are public; for a test
    function as in HumanEval, the examples in the prompt's docstring are public (`>>> add(2, 3)`, with the value below). If
    there are no public tests, as for test files, the first turn ends the episode.

    Args:
        public: Number of public tests of a problem, at least 1.
        settings: Settings of `UnitTestVerifier` for the public tests, such as `timeout_s` and `packages`.

    Raises:
        InvalidArgumentError: If a setting is out of range.
    """

    @checked
    def __init__(self, public: Count = 1, **settings: Any) -> None:
        self._public = public
        self._verifier = UnitTestVerifier(**settings)
        self.fingerprint = f"rlvr_envs.program_feedback:ProgramFeedback({public}, {settings})"

    def __call__(self, turns: Sequence[Turn], problem: Problem) -> Reply | None:
        """Run the public tests on the last turn's program.

        Raises:
            VerifierFailureError: If the public tests can't be run; the episode is then excluded.
        """
        tests = public_tests(problem, self._public)
        if tests is None:
            return None
        # The verifier gets nothing else of the problem, so that nothing else can leak into the answer.
        verdict = self._verifier(turns[-1].text, Problem(problem.id, "", tests))
        if verdict.outcome is Outcome.VERIFIER_ERROR:
            raise VerifierFailureError(f"the public tests of {problem.id!r} can't be run: {dict(verdict.detail)}")
        if verdict.outcome is Outcome.CORRECT:
            return None
        return Reply((Message("user", f"\n{_explained(tests, verdict.detail)}\n"),))

    def check_problem(self, problem: Problem) -> None:
        """Check that a problem has unit tests.

        Raises:
            InvalidArgumentError: If the problem has no unit tests.
        """
        if not isinstance(problem.reference, Tests | DeferredTests):
            raise _no_tests(problem, problem.reference)

    def close(self) -> None:
        """End the sandbox's processes."""
        self._verifier.close()


def public_tests(problem: Problem, count: int) -> Tests | None:
    """The first tests of a problem, or the examples in its prompt; None if no test can be run on its own.

    Args:
        problem: A problem for `UnitTestVerifier`.
        count: Maximum number of tests.

    Raises:
        InvalidArgumentError: If the problem is not for `UnitTestVerifier`.
        RLVRError: If deferred tests can't be made.
    """
    reference = problem.reference
    tests = reference.load() if isinstance(reference, DeferredTests) else reference
    if not isinstance(tests, Tests):
        raise _no_tests(problem, tests)
    if isinstance(tests, AssertTests):
        return dataclasses.replace(tests, asserts=tests.asserts[:count]) if tests.asserts else None
    if isinstance(tests, CallTests):
        return dataclasses.replace(tests, cases=tests.cases[:count]) if tests.cases else None
    if isinstance(tests, StdioTests):
        return dataclasses.replace(tests, cases=tests.cases[:count]) if tests.cases else None
    if isinstance(tests, CheckTests):
        asserts = tuple(_examples(tests.prefix))[:count]
        return AssertTests(asserts, prefix=tests.prefix, files=tests.files) if asserts else None
    return None


def _no_tests(problem: Problem, reference: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"feedback is for problems with unit tests (HumanEval, MBPP, APPS, ...), but the reference of problem "
        f"{problem.id!r} is a {type(reference).__name__}"
    )


def _examples(prefix: str) -> Iterator[str]:
    """The docstring examples of a program that show their value, as asserts."""
    try:
        examples = doctest.DocTestParser().get_examples(prefix)
    except ValueError:  # the text looks like examples, but is not
        return
    for example in examples:
        try:
            ast.parse(example.source.strip(), mode="eval")
            ast.literal_eval(example.want.strip())
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        yield f"assert ({example.source.strip()}) == ({example.want.strip()})"


def _explained(tests: Tests, detail: Mapping[str, Any]) -> str:
    """Describe the failure to the policy in words."""
    failure = detail["failure"]
    if failure == "no_program":
        return "There is no program in the answer: write it in a block that begins with ```python."
    cases = detail.get("cases", ())
    failed = next((at for at, case in enumerate(cases) if not case["passed"]), len(cases))
    exception = detail.get("exception")
    lines = []
    if failure != "syntax_error":
        lines.append(f"This test fails:\n{_cut(_shown(tests, failed))}")
    if failure in _LIMITS:
        lines.append(f"The program was ended: {_LIMITS[failure]}.")
    elif exception and (exception["message"] or exception["type"] != "AssertionError"):
        # The message of a syntax error contains its position.
        where = f" (line {exception['line']})" if exception.get("line") and failure != "syntax_error" else ""
        lines.append(_cut(f"{exception['type']}: {exception['message']}{where}"))
    if detail.get("stdout"):
        lines.append(f"The program wrote:\n{_cut(str(detail['stdout']))}")
    return "\n".join(lines)


def _shown(tests: Tests, at: int) -> str:
    """A public test as text."""
    if isinstance(tests, AssertTests):
        return tests.asserts[min(at, len(tests.asserts) - 1)]
    if isinstance(tests, StdioTests):
        case = tests.cases[min(at, len(tests.cases) - 1)]
        return f"input:\n{case.stdin}\nexpected output:\n{case.expected}"
    assert isinstance(tests, CallTests)
    call = tests.cases[min(at, len(tests.cases) - 1)]
    arguments = [*map(repr, call.args), *(f"{name}={value!r}" for name, value in call.kwargs.items())]
    return f"{tests.entry_point}({', '.join(arguments)}) == {call.expected!r}"


def _cut(text: str) -> str:
    text = text.rstrip("\n")
    return (
        text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]} [cut: {len(text) - _EXCERPT} of {len(text)} characters]"
    )
