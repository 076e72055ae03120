"""The math verifier: finds the answer of a completion, compares it with the gold, and returns a verdict."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Annotated, Any

from verifiers._settings import checked
from verifiers.bounds import AtLeast, Seconds
from verifiers.completion.cut import thought_names
from verifiers.completion.mark import Form
from verifiers.errors import InvalidArgumentError, unknown_argument
from verifiers.functions import paired
from verifiers.math._stack import with_room
from verifiers.math.batch import MIN_BATCH, available_cpus, may_start_processes, shared_processes
from verifiers.math.comparison import Comparison, compare_answers, equality
from verifiers.math.extract import Extraction, extraction_named
from verifiers.math.gold import gold_text
from verifiers.math.options import DEFAULT_ROUNDING_DIGITS, ComparisonOptions
from verifiers.math.presets import preset_named
from verifiers.math.reading.normalize import normal_text
from verifiers.math.reading.read import tree_or_none
from verifiers.math.values.algebra import AlgebraWorker
from verifiers.math.values.exact import rational_or_none
from verifiers.math.values.tiers import Tier
from verifiers.types import Outcome, Problem, Verdict

_SHOWN = 200  # characters of a normalised form kept in a verdict's detail
_SETTINGS = ("preset", "extraction", "deadline_s", "memory_mib", "workers", "thoughts")


class MathVerifier:
    """Judges mathematical answers against a gold answer.

    The reference is the gold answer as text (LaTeX or plain), an integer, a float or a `Fraction`. A multiple-choice problem
    may carry `metadata["choices"]`: the options in order, or a mapping from letter to option.

    Outcomes: `CORRECT`, `INCORRECT`; `NO_ANSWER` if the completion has no answer; `TIMEOUT` if computer algebra exceeded the
    deadline because of the answer; `VERIFIER_ERROR` (score NaN) if the gold cannot be read or has no value, or the algebra
    worker broke. `detail` holds `tier`, `gold`, `answer` (normalised forms), `reason` and `extraction`, and
    `unreadable_reference` if the gold is at fault.

    Args:
        preset: The name of a grader in `GRADERS` to reproduce: its extraction and options become the defaults of the arguments
            below.
        extraction: The name of an extraction preset (`default`, `flexible`, `boxed`, `answer_tag`, `gsm8k_strict`,
            `gsm8k_flexible`, `minerva`) or an `Extraction`; without a preset, `default`.
        deadline_s: Seconds of processor time that computer algebra may take for one answer, excluding its start.
        memory_mib: Memory limit of the computer-algebra process, in MiB.
        workers: Number of processes that `verify_batch` uses for large batches; None for one on each available CPU.
        thoughts: Names of the tags that enclose thoughts, which are cut off; by default, the names that the extraction sets.
        **options: Options for comparing answers: the fields of `ComparisonOptions`.

    Raises:
        InvalidArgumentError: If the value of an option is invalid.
        UnknownNameError: If there is no such preset, extraction preset, or choice of an option.
        UnknownArgumentError: If there is no such option.
    """

    @checked
    def __init__(
        self,
        *,
        preset: str | None = None,
        extraction: str | Extraction | None = None,
        deadline_s: Seconds = 2.0,
        memory_mib: Annotated[int, AtLeast(256)] = 1024,
        workers: Annotated[int | None, AtLeast(1)] = None,
        thoughts: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        known = [option.name for option in fields(ComparisonOptions)]
        for name in options:
            if name not in known:
                raise unknown_argument("the math verifier", name, [*known, *_SETTINGS])
        defaults = preset_named(preset)
        self.extraction = extraction_named(defaults.extraction if extraction is None else extraction)
        if thoughts is not None:
            self.extraction = replace(self.extraction, thoughts=thought_names(thoughts))
        self.options = ComparisonOptions(**{**defaults.options, **options})
        self._algebra = AlgebraWorker(deadline_s=deadline_s, memory_mib=memory_mib)
        self._processes = shared_processes(workers or available_cpus())

    def preferring(self, form: Form) -> MathVerifier:
        """Return a verifier that prefers answers in the form that a prompt asks for, unless the extraction names a form."""
        if self.extraction.asked is not None or self.extraction.pattern is not None:
            return self
        verifier = copy.copy(self)
        verifier.extraction = replace(self.extraction, asked=form)
        return verifier

    def __repr__(self) -> str:
        return f"MathVerifier(extraction={self.extraction!r}, options={self.options!r})"

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Find the answer in a completion and compare it with the problem's reference.

        Raises:
            InvalidArgumentError: If the completion is not a string.
        """
        if not isinstance(completion, str):
            raise InvalidArgumentError(f"a completion must be a string, got {completion!r} for problem {problem.id!r}")
        return with_room(self._judge, completion, problem)

    def _judge(self, completion: str, problem: Problem) -> Verdict:
        started = time.perf_counter()
        extracted = self.extraction(completion, lambda first, second: self._same_answer(first, second, problem))
        gold = gold_text(problem.reference)
        if gold is None:
            comparison = Comparison(
                Outcome.VERIFIER_ERROR,
                f"the gold answer is a {type(problem.reference).__name__}, not text or a finite number that can be read",
                unreadable_reference=True,
            )
        elif extracted.second is not None:
            comparison = Comparison(Outcome.INCORRECT, f"two answers; the other is {_shown(extracted.second)}")
        elif self.extraction.literal:
            comparison = self._compare_strings(extracted.answer, problem.reference)
        else:
            comparison = self._compare_or_report(extracted.answer, gold, problem)
        detail = {
            "tier": comparison.tier.name.lower(),
            "gold": _shown(gold),
            "answer": _shown(extracted.answer),
            "reason": comparison.reason,
            "extraction": extracted.method,
            **({"unreadable_reference": True} if comparison.unreadable_reference else {}),
        }
        cost = {"seconds": time.perf_counter() - started}
        return Verdict.of(comparison.outcome, extracted.answer, detail=detail, cost=cost)

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i, with several processes for a large batch.

        Raises:
            InvalidArgumentError: If the numbers of completions and problems differ, or a completion is not a string.
        """
        pairs = paired(completions, problems)
        if self._processes is None or len(pairs) < MIN_BATCH or not may_start_processes():
            return [self(completion, problem) for completion, problem in pairs]
        return self._processes.judge(self, pairs, patience_s=10 * self._algebra.wall_s)

    def same_answer(self, first: str, second: str, problem: Problem) -> bool:
        """Whether two answers are equal, in whichever form they are written; False if this can't be decided."""
        return with_room(self._same_answer, first, second, problem)

    def answer_key(self, answer: str) -> Fraction | None:
        r"""The value of an answer that is a short plain number, such as `-7`, `0.5` or `\frac{1}{2}`; None for other answers.

        Two answers with a key are the same exactly if their keys are equal; comparing keys is faster than `same_answer`.
        """
        exact = self.options.are_exact and not self.extraction.literal
        # Longer numbers may be roundings of each other.
        short = sum(map(str.isdigit, answer)) < (self.options.rounding_digits or DEFAULT_ROUNDING_DIGITS)
        tree = tree_or_none(answer) if exact and short and _PLAIN_DIGITS.fullmatch(answer) else None
        return None if tree is None else rational_or_none(tree)

    def _same_answer(self, first: str, second: str, problem: Problem) -> bool:
        for answer, gold in ((first, second), (second, first)):
            if self.extraction.literal:
                comparison = self._compare_strings(answer, gold)
            else:
                comparison = self._compare_or_report(answer, gold, problem)
            if comparison.same or comparison.outcome is Outcome.CORRECT:
                return True
        return False

    def _compare_or_report(self, answer: str | None, gold: str, problem: Problem) -> Comparison:
        try:
            return self._compared(answer, gold, problem)
        except RecursionError:
            raise  # the caller's stack was too deep; a new thread's stack is not
        except Exception as error:  # noqa: BLE001 - a bug here is reported in the verdict, and never scored
            return Comparison(Outcome.VERIFIER_ERROR, f"the verifier broke: {type(error).__name__}: {error}")

    def compare(self, answer: str | None, gold: str, problem: Problem | None = None) -> Comparison:
        """Compare an extracted answer with a gold answer, both as strings.

        Args:
            answer: The answer; None if the completion has no answer.
            gold: The gold answer.
            problem: The problem, whose prompt and choices may matter.
        """
        return with_room(self._compared, answer, gold, problem)

    def _compared(self, answer: str | None, gold: str, problem: Problem | None) -> Comparison:
        return compare_answers(answer, gold, problem, self.options, self._algebra)

    def _compare_strings(self, answer: str | None, reference: object) -> Comparison:
        """Compare strings as lm-eval's exact match does: delete the ignored strings, and fold case."""
        if answer is None:
            return Comparison(Outcome.NO_ANSWER, "no answer")
        ours, theirs = str(reference), answer
        for pattern in self.extraction.ignored:
            ours, theirs = pattern.sub("", ours), pattern.sub("", theirs)
        return equality(ours.lower() == theirs.lower(), "strings", Tier.TEXT)


_PLAIN_DIGITS = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+|/[0-9]+)?|\\[dt]?frac\{[0-9]+\}\{[0-9]+\})")


def _shown(text: str | None) -> str | None:
    return None if text is None else normal_text(text[: 5 * _SHOWN])[:_SHOWN]
