"""Compares an answer with a gold, both given as text: reads them, and compares their values and written forms."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass

from verifiers.math.answer_form import objection
from verifiers.math.compare.comparer import comparer as make_comparer
from verifiers.math.compare.context import Comparer
from verifiers.math.compare.relations import leaves_unsolved
from verifiers.math.gold import choices_of, option_behind, prompt_text
from verifiers.math.options import ComparisonOptions
from verifiers.math.prompt import equations_in, occurs_in, options_in, topics
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.normalize import normal_text
from verifiers.math.reading.read import ParsedAnswer, plain_number, read, tree_or_none
from verifiers.math.reading.vector_marks import ordered_names
from verifiers.math.readings import pairs_of_trees, without_letter_as_base
from verifiers.math.tree import Derivative, Integral, Limit, Node, Series, walk
from verifiers.math.values.algebra import AlgebraBrokenError, AlgebraTimeoutError, AlgebraWorker
from verifiers.math.values.exact import begin_work
from verifiers.math.values.tiers import GoldError, Tier, UndecidedError, has_no_value
from verifiers.types import Outcome, Problem


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison, before it becomes a verdict."""

    outcome: Outcome
    reason: str
    tier: Tier = Tier.TEXT
    unreadable_reference: bool = False
    """Whether the gold answer can't be read, or has no value."""
    same: bool = False
    """Whether the values are the same, even if the written form of the answer makes it `INCORRECT`."""


def equality(same: bool, what: str, tier: Tier) -> Comparison:
    """The result of a comparison of strings or integers."""
    outcome = Outcome.CORRECT if same else Outcome.INCORRECT
    return Comparison(outcome, f"{'equal' if same else 'different'} {what}", tier)


def compare_answers(
    answer: str | None, gold: str, problem: Problem | None, options: ComparisonOptions, algebra: AlgebraWorker
) -> Comparison:
    """Compare an extracted answer (None if there is none) with a gold answer."""
    begin_work()
    try:
        expected = read(gold)
    except UnreadableError as error:
        return _without_gold(answer, gold, error)
    if answer is None:
        return Comparison(Outcome.NO_ANSWER, "no answer")
    if "_" in answer and options.base == "optional":
        answer = without_letter_as_base(answer, prompt_text(problem))
    ours, theirs = plain_number(gold), plain_number(answer)
    if ours is not None and theirs is not None and (ours == theirs or options.are_exact):
        return equality(ours == theirs, "integers", Tier.EXACT)
    if gold == answer:
        return Comparison(Outcome.CORRECT, "the same text")
    try:
        actual = read(answer, decimal_comma=options.decimal_comma)
    except UnreadableError as error:
        if normal_text(answer) == expected.normal:
            return Comparison(Outcome.CORRECT, "the same text, up to typography")
        return Comparison(Outcome.INCORRECT, f"the answer cannot be read: {error}")
    if expected.normal == actual.normal:
        return Comparison(Outcome.CORRECT, "the same text, up to typography")
    if names := ordered_names(expected.tree) | ordered_names(actual.tree):
        with contextlib.suppress(UnreadableError):  # then the reading without vectors is kept
            expected, actual = read(gold, vectors=names), read(answer, vectors=names)
    return _compare_trees(expected, actual, problem, options, algebra)


def _without_gold(answer: str | None, gold: str, error: UnreadableError) -> Comparison:
    """The result for a gold that cannot be read, so that only its text can be compared."""
    if answer is not None and normal_text(answer) == normal_text(gold) != "":
        return Comparison(Outcome.CORRECT, "the same text, up to typography, as the gold answer, which cannot be read")
    reason = f"the gold answer cannot be read: {error}"
    return Comparison(Outcome.VERIFIER_ERROR, reason, unreadable_reference=True)


def _compare_trees(
    gold: ParsedAnswer,
    answer: ParsedAnswer,
    problem: Problem | None,
    options: ComparisonOptions,
    algebra: AlgebraWorker,
) -> Comparison:
    if "\\" in gold.text and any(isinstance(node, _FOR_ALGEBRA) for node in walk(gold.tree)):
        algebra.prepare()
    prompt = prompt_text(problem)
    comparer = _comparer(problem, prompt, options, algebra)
    try:
        pairs = pairs_of_trees(gold, answer, comparer.choices, base_optional=options.base == "optional")
        same = any(comparer.same(*pair) for pair in pairs)
    except GoldError as error:
        worthless = has_no_value(gold.tree)
        outcome = Outcome.VERIFIER_ERROR if worthless else Outcome.INCORRECT
        return Comparison(outcome, str(error), comparer.values.tier, unreadable_reference=worthless)
    except UndecidedError as error:
        return Comparison(Outcome.INCORRECT, f"not shown to be equal: {error}", comparer.values.tier)
    except AlgebraTimeoutError as error:
        return Comparison(Outcome.VERIFIER_ERROR if error.of_gold else Outcome.TIMEOUT, str(error), Tier.SYMPY)
    except AlgebraBrokenError as error:
        return Comparison(Outcome.VERIFIER_ERROR, str(error), Tier.SYMPY)
    if not same:
        return Comparison(Outcome.INCORRECT, "different", comparer.values.tier)
    fault = objection(options, gold, answer, prompt)
    if options.echo == "reject" and leaves_unsolved(comparer, gold.tree, answer.tree, equations_in(prompt)):
        fault = fault or "restates the question"
    outcome = Outcome.INCORRECT if fault else Outcome.CORRECT
    return Comparison(outcome, fault or "equal", comparer.values.tier, same=True)


_FOR_ALGEBRA: tuple[type[Node], ...] = (Series, Integral, Limit, Derivative)
"""The kinds of nodes for which only computer algebra can show equality."""


def _comparer(problem: Problem | None, prompt: str, options: ComparisonOptions, algebra: AlgebraWorker) -> Comparer:
    texts = choices_of(problem)
    return make_comparer(
        options.for_problem({} if problem is None else problem.metadata),
        algebra.for_one_verdict(),
        {letter: tree for letter, text in texts.items() if (tree := tree_or_none(text)) is not None},
        lambda letter: option_behind(letter, texts or options_in(prompt)),
        functools.partial(occurs_in, prompt=prompt),
        without_prompt=not prompt,
        topics=topics(prompt),
    )
