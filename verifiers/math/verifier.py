"""The math verifier: extraction, comparison, and the rules on the written form of an answer."""

from __future__ import annotations

import contextlib
import copy
import functools
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from verifiers._settings import check_arguments
from verifiers.completion.cut import thought_names
from verifiers.completion.mark import Form
from verifiers.errors import InvalidArgumentError, unknown_argument
from verifiers.math._stack import with_room
from verifiers.math.answer_form import objection
from verifiers.math.batch import MIN_BATCH, check_workers, may_start_processes, shared_processes
from verifiers.math.compare import comparer as comparing
from verifiers.math.compare.choices import choice_letter
from verifiers.math.compare.relations import leaves_unsolved
from verifiers.math.compare.shapes import items
from verifiers.math.extract import Extraction, extraction_named
from verifiers.math.gold import choices_of, gold_text, option_behind, prompt_text
from verifiers.math.options import ComparisonOptions
from verifiers.math.presets import preset_named
from verifiers.math.prompt import equations_in, occurs_in, options_in
from verifiers.math.reading.assemble import mixed_number
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.normalize import folded_words, normal_text
from verifiers.math.reading.read import ParsedAnswer, plain_number, read, tree_or_none
from verifiers.math.reading.vector_marks import aligned, is_marked, ordered_names
from verifiers.math.tree import (
    BasedNumber,
    Choice,
    Derivative,
    Integral,
    Limit,
    ListOf,
    Node,
    Series,
    SetOf,
    Words,
    walk,
)
from verifiers.math.values.algebra import AlgebraBrokenError, AlgebraTimeoutError, AlgebraWorker
from verifiers.math.values.exact import begin_work
from verifiers.math.values.tiers import GoldError, Tier, UndecidedError, has_no_value
from verifiers.types import Outcome, Problem, Verdict

_SHOWN = 200  # characters of a normalised form kept in a verdict's detail
_SETTINGS = ("preset", "extraction", "deadline_s", "memory_mib", "workers", "thoughts")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison, before it becomes a verdict."""

    outcome: Outcome
    reason: str
    tier: Tier = Tier.TEXT
    unreadable_reference: bool = False
    """Whether the gold answer can't be read, or has no value."""
    same: bool = False
    """Whether the values are the same, also where the way in which the answer is written makes it `INCORRECT`."""


_COMMA_GROUP = re.compile(r"[0-9],[0-9]{3}")


class MathVerifier:
    """Judges mathematical answers against a gold answer.

    `problem.reference` is the gold answer as text (LaTeX or plain), an integer, a float or a `Fraction`. A multiple-choice
    problem may carry `metadata["choices"]`: the options in order, or a mapping from letter to option.

    Outcomes: `CORRECT`, `INCORRECT`; `NO_ANSWER` if the completion has none; `TIMEOUT` if computer algebra exceeded the
    deadline because of the answer; `VERIFIER_ERROR` (score NaN) if the gold cannot be read or has no value, or the algebra
    worker broke. `detail` holds `tier`, `gold`, `answer` (normalised forms), `reason` and `extraction`, and
    `unreadable_reference` if the gold is at fault.

    Args:
        preset: The name of a grader in `GRADERS` to reproduce: its extraction and options are the defaults of those below.
        extraction: The name of an extraction preset (`default`, `flexible`, `boxed`, `answer_tag`, `gsm8k_strict`,
            `gsm8k_flexible`, `minerva`) or an `Extraction`; without a preset, `default`.
        deadline_s: Seconds of processor time that computer algebra may take for one answer, excluding its start.
        memory_mib: Memory limit of the computer-algebra process.
        workers: Number of processes that `verify_batch` uses for large batches; None for one on each available CPU.
        thoughts: Names of the tags of thoughts, which are cut off; by default those of the extraction.
        **options: Options for comparing answers: the fields of `ComparisonOptions`.

    Raises:
        InvalidArgumentError: If the value of an option is invalid.
        UnknownNameError: If there is no such preset, extraction preset, or choice of an option.
        UnknownArgumentError: If there is no such option.
    """

    def __init__(
        self,
        *,
        preset: str | None = None,
        extraction: str | Extraction | None = None,
        deadline_s: float = 5.0,
        memory_mib: int = 1024,
        workers: int | None = None,
        thoughts: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        known = [option.name for option in fields(ComparisonOptions)]
        for name in options:
            if name not in known:
                raise unknown_argument("the math verifier", name, [*known, *_SETTINGS])
        check_arguments(str | None, preset=preset)
        defaults = preset_named(preset)
        self.extraction = extraction_named(defaults.extraction if extraction is None else extraction)
        if thoughts is not None:
            self.extraction = replace(self.extraction, thoughts=thought_names(thoughts))
        self.options = ComparisonOptions(**{**defaults.options, **options})
        self._algebra = AlgebraWorker(deadline_s=deadline_s, memory_mib=memory_mib)
        self._processes = shared_processes(check_workers(workers))

    def preferring(self, form: Form) -> MathVerifier:
        """This verifier, preferring answers in the form that a prompt asks for, unless its extraction names one."""
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
                f"the gold answer is a {type(problem.reference).__name__}, not text or a number that can be read",
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
        if len(completions) != len(problems):
            raise InvalidArgumentError(f"{len(completions)} completions came with {len(problems)} problems")
        pairs = list(zip(completions, problems, strict=True))
        if self._processes is None or len(pairs) < MIN_BATCH or not may_start_processes():
            return [self(completion, problem) for completion, problem in pairs]
        return self._processes.judge(self, pairs, patience_s=10 * self._algebra.wall_s)

    def same_answer(self, first: str, second: str, problem: Problem) -> bool:
        """Whether two answers are equal, in whichever form they are written; False where that is not decided."""
        return with_room(self._same_answer, first, second, problem)

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
            raise  # the caller's stack was too deep; a fresh one is not
        except Exception as error:  # noqa: BLE001 - a bug here is reported in the verdict, and never scored
            return Comparison(Outcome.VERIFIER_ERROR, f"the verifier broke: {type(error).__name__}: {error}")

    def compare(self, answer: str | None, gold: str, problem: Problem | None = None) -> Comparison:
        """Compare an extracted answer with a gold answer, both as strings.

        Args:
            answer: The answer, None if the completion has none.
            gold: The gold answer.
            problem: The problem, for its prompt and choices, if they matter.
        """
        return with_room(self._compared, answer, gold, problem)

    def _compared(self, answer: str | None, gold: str, problem: Problem | None) -> Comparison:
        begin_work()
        try:
            expected = read(gold)
        except UnreadableError as error:
            if answer is not None and normal_text(answer) == normal_text(gold) != "":
                return Comparison(
                    Outcome.CORRECT, "the same text, up to typography, as the gold answer, which cannot be read"
                )
            reason = f"the gold answer cannot be read: {error}"
            return Comparison(Outcome.VERIFIER_ERROR, reason, unreadable_reference=True)
        if answer is None:
            return Comparison(Outcome.NO_ANSWER, "no answer")
        ours, theirs = plain_number(gold), plain_number(answer)
        if ours is not None and theirs is not None and (ours == theirs or self.options.are_exact):
            return _equality(ours == theirs, "integers", Tier.EXACT)
        if expected.text == answer:
            return Comparison(Outcome.CORRECT, "the same text")
        try:
            actual = read(answer, decimal_comma=self.options.decimal_comma)
        except UnreadableError as error:
            if normal_text(answer) == expected.normal:
                return Comparison(Outcome.CORRECT, "the same text, up to typography")
            return Comparison(Outcome.INCORRECT, f"the answer cannot be read: {error}")
        if expected.normal == actual.normal:
            return Comparison(Outcome.CORRECT, "the same text, up to typography")
        if names := ordered_names(expected.tree) | ordered_names(actual.tree):
            with contextlib.suppress(UnreadableError):  # then the reading without them stands
                expected, actual = read(gold, vectors=names), read(answer, vectors=names)
        return self._compare_trees(expected, actual, problem)

    def _compare_trees(self, gold: ParsedAnswer, answer: ParsedAnswer, problem: Problem | None) -> Comparison:
        prompt = prompt_text(problem)
        texts = choices_of(problem)
        choices = {letter: tree for letter, text in texts.items() if (tree := tree_or_none(text)) is not None}
        comparer = comparing.comparer(
            self.options.for_problem({} if problem is None else problem.metadata),
            self._algebra.for_one_verdict(),
            choices,
            lambda letter: option_behind(letter, texts or options_in(prompt)),
            functools.partial(occurs_in, prompt=prompt),
            without_prompt=not prompt,
            about_ratios=re.search(r"\bratios?\b", prompt) is not None,
        )
        try:
            expected = Choice(str(choice_letter(gold.tree))) if choice_letter(gold.tree) in choices else gold.tree
            if isinstance(answer.tree, BasedNumber):
                expected = _in_capitals(gold) or expected
            readings = self._readings(gold, answer, choices)
            marked = is_marked(gold.normal) or is_marked(answer.normal)
            pairs = (aligned(expected, tree) if marked else (expected, tree) for tree in readings)
            same = any(comparer.same(*pair) for pair in pairs)
        except GoldError as error:
            worthless = has_no_value(gold.tree)
            outcome = Outcome.VERIFIER_ERROR if worthless else Outcome.INCORRECT
            return Comparison(outcome, str(error), comparer.values.tier, unreadable_reference=worthless)
        except UndecidedError as error:
            return Comparison(Outcome.INCORRECT, f"not shown to be equal: {error}", comparer.values.tier)
        except AlgebraTimeoutError as error:
            return self._blame(gold.tree, error)
        except AlgebraBrokenError as error:
            return Comparison(Outcome.VERIFIER_ERROR, str(error), Tier.SYMPY)
        if not same:
            return Comparison(Outcome.INCORRECT, "different", comparer.values.tier)
        fault = objection(self.options, gold, answer, prompt)
        if self.options.echo == "reject" and leaves_unsolved(comparer, gold.tree, answer.tree, equations_in(prompt)):
            fault = fault or "restates the question"
        outcome = Outcome.INCORRECT if fault else Outcome.CORRECT
        return Comparison(outcome, fault or "equal", comparer.values.tier, same=True)

    def _blame(self, gold: Node, error: AlgebraTimeoutError) -> Comparison:
        """Decide who is to blame for a comparison that took too long: the verifier only if the gold alone takes too long."""
        if not any(isinstance(node, Series | Integral | Limit | Derivative) for node in walk(gold)):
            return Comparison(Outcome.TIMEOUT, str(error), Tier.SYMPY)  # nothing in the gold takes long
        try:
            ours = any(self._algebra.takes_too_long(item) for item in items(gold))
        except AlgebraBrokenError as failure:
            return Comparison(Outcome.VERIFIER_ERROR, str(failure), Tier.SYMPY)
        return Comparison(Outcome.VERIFIER_ERROR if ours else Outcome.TIMEOUT, str(error), Tier.SYMPY)

    def _readings(self, gold: ParsedAnswer, answer: ParsedAnswer, choices: Mapping[str, Node]) -> list[Node]:
        """The answer's tree, and the other readings of its text that this gold makes possible."""
        readings = [answer.tree]
        if isinstance(gold.tree, ListOf | SetOf) and _COMMA_GROUP.search(answer.text):
            with contextlib.suppress(UnreadableError):  # then the first reading stands alone
                readings.append(read(answer.text, thousands=False).tree)
        letters = answer.normal.replace(" ", "").isalpha()
        if isinstance(gold.tree, Words) and letters and folded_words(answer.normal) == gold.tree.text:
            readings.insert(0, gold.tree)  # letters that were read as a product
        if isinstance(gold.tree, BasedNumber):
            readings += self._numerals(gold.tree, answer)
        if (mixed := mixed_number(answer.tree)) is not None and not isinstance(gold.tree, ListOf | SetOf):
            readings.append(mixed)
        bare = not (isinstance(answer.tree, Choice) and answer.tree.content is not None)
        if bare and (letter := choice_letter(answer.tree)) in choices:
            readings.append(Choice(str(letter)))
        return readings

    def _numerals(self, gold: BasedNumber, answer: ParsedAnswer) -> list[Node]:
        """The answer read as a numeral: its base may be left out, and its letters may be in lower case."""
        if self.options.base == "optional" and answer.normal.upper() == gold.digits:
            return [gold]
        return [numeral] if (numeral := _in_capitals(answer)) is not None else []

    def _compare_strings(self, answer: str | None, reference: object) -> Comparison:
        """Compare as lm-eval's exact match does: delete ignored strings, fold case, compare."""
        if answer is None:
            return Comparison(Outcome.NO_ANSWER, "no answer")
        ours, theirs = str(reference), answer
        for pattern in self.extraction.ignored:
            ours, theirs = pattern.sub("", ours), pattern.sub("", theirs)
        return _equality(ours.lower() == theirs.lower(), "strings", Tier.TEXT)


def _in_capitals(text: ParsedAnswer) -> BasedNumber | None:
    """A numeral with a base whose digits may be lower-case letters; None for anything else."""
    tree = tree_or_none(text.normal.upper())
    return tree if isinstance(tree, BasedNumber) else None


def _equality(same: bool, what: str, tier: Tier) -> Comparison:
    return Comparison(
        Outcome.CORRECT if same else Outcome.INCORRECT, f"{'equal' if same else 'different'} {what}", tier
    )


def _shown(text: str | None) -> str | None:
    return None if text is None else normal_text(text[: 5 * _SHOWN])[:_SHOWN]
