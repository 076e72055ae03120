"""The unit-test verifier: runs a completion's program against a problem's tests, in isolation."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Literal

from verifiers._settings import checked
from verifiers.bounds import Above, AtLeast, Count, Seconds
from verifiers.completion.cut import thought_names
from verifiers.completion.words import THOUGHTS
from verifiers.errors import InvalidArgumentError, MissingDependencyError, RLVRError, VerifierContractError
from verifiers.functions import Problems, paired, verifier_error
from verifiers.sandbox import CommandRunner, LaunchError, Limits, Packages, Pool, Sandbox, WorkerDiedError
from verifiers.types import Outcome, Problem, Verdict
from verifiers.unit_tests.datasets import from_json
from verifiers.unit_tests.extraction.extraction import (
    PYTHON,
    ExtractedProgram,
    ExtractionPolicy,
    extract,
    extract_in,
    is_path,
)
from verifiers.unit_tests.jobs import CONTRACT, Job
from verifiers.unit_tests.languages import check_isolation, check_languages, labels
from verifiers.unit_tests.results import JobResult
from verifiers.unit_tests.separate.entry_points import entry_point_steps
from verifiers.unit_tests.tests import (
    AssertTests,
    CallTests,
    CheckTests,
    DeferredTests,
    FunctionTests,
    StdioTests,
    Tests,
    needed_names,
)
from verifiers.unit_tests.together_job import TogetherJob, packages_with_pytest, pool_of

_CHECKED = 1000
"""Number of problems that are checked for requirements that must be installed."""
_REFUSED = (
    "the tests of problem {problem!r} run together with the program, which can forge their verdict: a policy that is trained "
    "on it learns to. To judge them all the same, pass allow_together=True (`--verifier-args allow_together=True`), or leave "
    "such problems out"
)


class UnitTestVerifier:
    """Scores a completion by running its program, of one file or several, against unit tests in a sandbox.

    `Problem.reference` is a `CheckTests`, `AssertTests`, `CallTests`, `FunctionTests` or `StdioTests`, or a `DeferredTests`
    that makes one of these for each verdict. The score is 1 if every case passes, else 0; with partial credit it is the share
    of cases that pass, in a `SCORED` verdict.

    The verdict's `detail` holds `failure` (None, `wrong_answer`, `exception`, `syntax_error`, `timeout`, `memory`,
    `output_limit`, `forbidden`, `exit`, `crash`, `protocol`, `unsupported`, `no_program`), `passed` and `total`, `cases`,
    `exception`, excerpts of `stdout` and `stderr`, `isolation` (`unknown` if no server could be started), and `packages`, the
    versions of the requested packages. If the tests are broken or need something unsupported, the outcome is `VERIFIER_ERROR`,
    and `reason` says why. The verdict's `cost` holds `seconds`, `cpu_seconds` and `bytes`.

    The sandbox does not protect against side channels, against programs that have memorised the tests' inputs, or against
    bugs in the kernel; `docs/sandbox.md` says what each layer stops.

    Attributes:
        allow_together: Whether tests that run together with the program are judged.

    A verifier may be used from several threads at once, from asyncio through `asyncio.to_thread`, and after a fork. Fork
    servers start with the first program, and end with `close`, with the verifier, or with this process, however that ends.
    """

    @checked
    def __init__(
        self,
        *,
        timeout_s: Seconds = 10.0,
        wall_s: Annotated[float | None, Above(0)] = None,
        memory_mib: Count = 1024,
        output_mib: Count = 8,
        max_threads: Count = 128,
        workers: Annotated[int | None, AtLeast(1)] = None,
        isolation: Literal["auto", "strict", "available", "none"] = "auto",
        partial_credit: bool = False,
        extraction: ExtractionPolicy = "defining_block",
        packages: str | Sequence[str] = (),
        thoughts: str | Sequence[str] = THOUGHTS,
        allow_together: bool = False,
        languages: str | Sequence[str] = (),
    ) -> None:
        """Make a verifier; nothing is started yet.

        Args:
            timeout_s: CPU seconds per program, or per case for stdin/stdout tests that set no limit of their own. The program
                may also be idle for the same time.
            wall_s: Seconds of wall-clock time; the default is generous, so that verdicts don't depend on the load.
            memory_mib: Address space of the program, in MiB.
            output_mib: Maximum of standard output, and of standard error, in MiB.
            max_threads: Maximum number of the program's threads.
            workers: Number of programs that run at the same time, by default the number of CPUs of this process. Servers
                start as they are needed.
            isolation: `"auto"` requires a system-call filter, and Landlock, namespaces or both; `"strict"` requires namespaces.
                `"available"` requires only the system-call filter, under which programs can't open any file; `"none"` sets
                resource limits only, for programs that you trust.
            partial_credit: Score the share of cases that pass, instead of all or nothing; a `check` is one case.
            extraction: How the program is found in the completion, one of `extraction.ExtractionPolicy`.
            packages: Installed packages, such as `"numpy"`, that programs and tests may import besides the standard library, as
                a sequence of names or a comma-separated string. Name modules that are slow to import (`"scipy.stats"`), which
                are then loaded once. Programs and tests can exchange NumPy arrays and scalars.
            thoughts: Names of the tags of thoughts, which are cut off; a sequence, or text with commas between them.
            allow_together: Whether to judge tests that run together with the program. The program can forge their verdict, so
                use this for evaluation, and for training only if the programs do not try to forge it.
            languages: Languages that problems need besides Python: a sequence, or text with commas between them. A language
                that is not installed is an error at once.

        Raises:
            InvalidArgumentError: If an argument is out of range, or a package is not installed.
            UnknownNameError: If there is no such isolation or extraction.
            MissingDependencyError: If a language is not installed.
        """
        if languages:
            check_languages(languages.split(",") if isinstance(languages, str) else languages)
        self._partial_credit = partial_credit
        self._extraction = extraction
        self._thoughts = thought_names(thoughts)
        self._sandbox = Sandbox(
            CONTRACT,
            timeout_s=timeout_s,
            wall_s=wall_s,
            memory_mib=memory_mib,
            output_mib=output_mib,
            max_threads=max_threads,
            workers=workers,
            isolation=isolation,
            packages=packages,
        )
        self._packages = self._sandbox.packages.versions()
        self._outside: Literal["auto", "strict", "none"] = "auto" if isolation == "available" else isolation
        self._commands = CommandRunner(self._outside, self._sandbox.workers)
        self.allow_together = allow_together
        self._requested_packages = packages

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Run one completion's program against its problem's tests.

        The reference is one of the kinds of tests, deferred tests, or a value that `from_json` reads.

        Raises:
            SandboxUnavailableError: If the system provides less isolation than requested.
            VerifierContractError: If the problem's reference is none of these kinds of tests.
            InvalidArgumentError: If the completion is not text, the tests contain values that can't be sent to a program, or a
                package can't be loaded.
            MissingDependencyError: If a language of the tests is not installed.
        """
        if not isinstance(completion, str):
            raise InvalidArgumentError(f"a completion must be a string, got {completion!r} for problem {problem.id!r}")
        try:
            tests = _tests_of(problem)
        except RLVRError as error:
            # A package that is not installed would fail every row.
            deferred = isinstance(problem.reference, DeferredTests | Mapping | list)
            if not deferred or isinstance(error, MissingDependencyError):
                raise
            # One row that can't be read must not stop the judging of a batch.
            return verifier_error(error)
        if isinstance(tests, FunctionTests) and tests.together and not self.allow_together:
            raise InvalidArgumentError(_REFUSED.format(problem=problem.id))
        program = self._extracted(completion, tests)
        if program is None:
            detail = {"failure": "no_program", "isolation": self._isolation()}
            return Verdict.of(Outcome.NO_ANSWER, detail=detail)
        limits = self._sandbox.limits_within(tests.timeout_s if isinstance(tests, StdioTests) else None)
        modules = self._sandbox.packages.modules
        job = Job(program, tests, problem.id, limits, self._partial_credit, self._commands, modules)
        try:
            if isinstance(tests, FunctionTests) and tests.together:
                return self._together(program, tests, problem.id, limits)
            return self._verdict(program, self._sandbox.pool.attempt(job.run))
        except (WorkerDiedError, LaunchError) as error:
            detail = {"error": str(error), "isolation": self._isolation()}
            return Verdict.of(Outcome.VERIFIER_ERROR, str(program), detail=detail)

    def _extracted(self, completion: str, tests: Tests) -> ExtractedProgram | None:
        if isinstance(tests, StdioTests) and tests.languages != (PYTHON,):
            languages = tests.languages
            return extract_in(completion, self._extraction, labels(languages), languages[0], self._thoughts)
        main = tests.module.replace(".", "/") if isinstance(tests, FunctionTests) else "solution"
        return extract(completion, self._extraction, f"{main}.py", needed_names(tests), self._thoughts)

    def check_installed(self, problems: Problems) -> None:
        """Check, before any program is judged, that everything that the problems' tests need is installed.

        Args:
            problems: The problems; the first 1,000 are checked. Deferred tests are read only for the first problem.

        Raises:
            MissingDependencyError: If a language of the tests is not installed, or pytest if the tests run in it.
            SandboxUnavailableError: If the system does not isolate programs in a language of the tests.
        """
        used: set[str] = set()
        for index in range(min(len(problems), _CHECKED)):
            problem = problems[index]
            if isinstance(problem.reference, DeferredTests) and index > 0:
                continue
            try:
                tests = _tests_of(problem)
            except MissingDependencyError:
                raise
            except RLVRError:
                continue  # the problem's own verdict shows the error
            if isinstance(tests, FunctionTests) and tests.together:
                _ = self._whole
            if isinstance(tests, StdioTests):
                used.update(tests.languages)
        check_isolation(sorted(used - {PYTHON}), self._commands, self._outside)

    def program_in(self, completion: str) -> str:
        """The program found in a completion; empty if there is none."""
        program = extract(completion, self._extraction)
        return "" if program is None else program.text

    def _isolation(self) -> str:
        try:
            return self._sandbox.pool.isolation()
        except WorkerDiedError:
            return "unknown"

    @functools.cached_property
    def _whole(self) -> tuple[Pool, Packages, dict[object, JobResult | Mapping[str, str]]]:
        """The fork servers for tests that run together with the program, the servers' packages, and inspections so far."""
        packages = packages_with_pytest(self._requested_packages)
        return pool_of(self._sandbox.workers, packages), packages, {}

    def _together(self, program: ExtractedProgram, tests: FunctionTests, seed: str, limits: Limits) -> Verdict:
        pool, packages, inspections = self._whole
        job = TogetherJob(program, tests, seed, limits, self._outside, packages.paths, inspections)
        return self._verdict(program, pool.attempt(job.run), packages.versions())

    def _verdict(
        self, extracted: ExtractedProgram, result: JobResult, packages: Mapping[str, str] | None = None
    ) -> Verdict:
        detail: dict[str, object] = {
            "failure": result.failure,
            "passed": result.passed,
            "total": result.total,
            **result.detail,
            "isolation": result.detail.get("isolation") or self._isolation(),
            **({"packages": dict(packages or self._packages)} if packages or self._packages else {}),
        }
        program = str(extracted)
        if result.errored:
            return Verdict.of(Outcome.VERIFIER_ERROR, program, detail=detail, cost=result.cost)
        if self._partial_credit:
            score = result.passed / result.total if result.total else 0.0
            return Verdict(score, Outcome.SCORED, program, detail, cost=result.cost)
        return Verdict.of(_outcome(result.failure), program, detail=detail, cost=result.cost)

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i, in parallel on the workers; verdicts are in the same order.

        Raises:
            InvalidArgumentError: If the numbers of completions and problems differ.
        """
        pairs = paired(completions, problems)
        if len(pairs) < 2:
            return [self(*pair) for pair in pairs]
        with ThreadPoolExecutor(min(self._sandbox.workers, len(problems))) as threads:
            return list(threads.map(self, completions, problems))

    @property
    def idle_servers(self) -> tuple[int, ...]:
        """Process ids of the fork servers that wait for a program; empty before the first program."""
        return self._sandbox.pool.idle_pids()

    def close(self) -> None:
        """End the fork servers. A verifier that is used again starts new ones."""
        self._sandbox.pool.close()
        self._commands.close()
        if "_whole" in vars(self):
            self._whole[0].close()


def _outcome(failure: str | None) -> Outcome:
    if failure is None:
        return Outcome.CORRECT
    return Outcome.TIMEOUT if failure == "timeout" else Outcome.INCORRECT


def _tests_of(problem: Problem) -> Tests:
    """The tests of a problem, made if they were deferred.

    Raises:
        VerifierContractError: If the problem's reference is not one of the kinds of tests.
        InvalidArgumentError: If no program could pass the tests, or be run on them.
        RLVRError: If deferred tests can't be made.
    """
    reference = problem.reference
    tests = reference.load() if isinstance(reference, DeferredTests) else reference
    if isinstance(tests, Mapping | list):
        tests = from_json(tests)
    if not isinstance(tests, Tests):
        raise VerifierContractError(
            f"problem {problem.id!r}: expected a reference of type CheckTests, AssertTests, CallTests, FunctionTests, "
            f"StdioTests or DeferredTests (see verifiers.unit_tests), or a mapping of its fields, got {type(tests).__name__}"
        )
    if isinstance(tests, StdioTests):
        check_languages(tests.languages)
    _check_entry_points(problem.id, tests)
    for path in tests.files:
        if not is_path(path):
            raise InvalidArgumentError(f"problem {problem.id!r}: files are named like 'a/b.py', got {path!r}")
    return tests


def _check_entry_points(problem: str, tests: Tests) -> None:
    """Raise InvalidArgumentError if the tests have an invalid entry point, which no program could define."""
    if isinstance(tests, CheckTests | CallTests) and not entry_point_steps(tests.entry_point):
        raise InvalidArgumentError(
            f"problem {problem!r}: entry_point must be a function's name, or an expression for the function, such as "
            f"'Solution().solve', got {tests.entry_point!r}"
        )
    announced = (tests.entry_point,) if isinstance(tests, FunctionTests) and tests.entry_point else ()
    for name in tests.entry_points if isinstance(tests, AssertTests) else announced:
        if len(entry_point_steps(name)) != 1:
            raise InvalidArgumentError(
                f"problem {problem!r}: an entry point of these tests must be a name, got {name!r}"
            )
