"""The math verifier: extraction, comparison, and the rules that look at how an answer is written."""

from __future__ import annotations

import contextlib
import functools
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from verifiers.answers import joined_boxes
from verifiers.errors import InvalidArgumentError, unknown_argument
from verifiers.math._stack import with_room
from verifiers.math.assemble import mixed_number
from verifiers.math.batch import MIN_BATCH, check_workers, may_start_processes, shared_processes
from verifiers.math.compare import Comparer
from verifiers.math.exact import begin_work, rational_or_none, rational_value
from verifiers.math.extract import Extraction, extraction_named
from verifiers.math.forms import choice_letter, expand_signs, items, label
from verifiers.math.parse import parse
from verifiers.math.presets import preset_named
from verifiers.math.prompt import equations_in, occurs_in, options_in
from verifiers.math.rules import Rules
from verifiers.math.sympy_worker import AlgebraBrokenError, AlgebraTimeoutError, AlgebraWorker
from verifiers.math.text import folded_words, normal_text
from verifiers.math.tokens import MAX_LENGTH, UnreadableError
from verifiers.math.tree import (
    BasedNumber,
    Bracketed,
    Choice,
    Degrees,
    Derivative,
    Divide,
    Integral,
    Limit,
    ListOf,
    Matrix,
    Mixed,
    Node,
    Number,
    Percent,
    Quantity,
    Ratio,
    Relation,
    Series,
    SetOf,
    Words,
    is_integer_literal,
    is_literal,
    unordered,
    walk,
)
from verifiers.math.values import GoldError, Tier, UndecidedError, has_no_value
from verifiers.math.vectors import aligned, is_marked
from verifiers.types import Outcome, Problem, Verdict

_SHOWN = 200  # characters of a normalised form that a verdict's detail keeps
_CACHED_LENGTH = 1000
_SETTINGS = ("preset", "extraction", "deadline_s", "memory_mib", "workers")


@dataclass(frozen=True, slots=True)
class Read:
    """An answer as it was read."""

    text: str
    normal: str
    tree: Node


@dataclass(frozen=True, slots=True)
class Finding:
    """What a comparison found, before it becomes a verdict."""

    outcome: Outcome
    reason: str
    tier: Tier = Tier.TEXT


def read(text: str, *, thousands: bool = True, decimal_comma: bool = False) -> Read:
    """Read an answer; short ones are cached.

    Raises:
        UnreadableError: If it cannot be read.
    """
    if len(text) > MAX_LENGTH:
        raise UnreadableError(f"{len(text)} characters; at most {MAX_LENGTH} are read")
    return (_read_cached if len(text) <= _CACHED_LENGTH else _read)(text, thousands, decimal_comma)


def _read(text: str, thousands: bool, decimal_comma: bool) -> Read:
    tree = expand_signs(parse(text, thousands=thousands, decimal_comma=decimal_comma))
    return Read(text, normal_text(text), tree)


_read_cached = functools.lru_cache(maxsize=8192)(_read)
_SIGNS_IN_A_ROW = re.compile(r"[-+]\s?[-+]")
_INTEGER = re.compile(r"[+-]?[0-9]{1,300}(?:\.0{1,20})?")
_COMMA_GROUP = re.compile(r"[0-9],[0-9]{3}")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3}){1,90}")


def plain_number(text: str) -> int | None:
    """The value of an integer in digits, perhaps grouped by commas or with zeros after its point; None for anything else."""
    if _INTEGER.fullmatch(text):
        return int(text.partition(".")[0])
    return int(text.replace(",", "")) if _GROUPED.fullmatch(text) else None


class MathVerifier:
    """Judges mathematical answers against a gold answer.

    `problem.reference` is the gold answer as text (LaTeX or plain), an integer, a float or a `Fraction`. A multiple-choice
    problem may carry `metadata["choices"]`: the options in order, or a mapping from letter to option.

    Outcomes: `CORRECT`, `INCORRECT`; `NO_ANSWER` where the completion holds none; `TIMEOUT` where the answer's own
    computer algebra ran past the deadline; `VERIFIER_ERROR` (score NaN) where the gold cannot be read or has no value, or
    the algebra worker broke. `detail` holds `tier`, `gold`, `answer` (normalised forms), `reason` and `extraction`.

    Args:
        preset: The name of a grader whose rule is reproduced, out of `GRADERS`: its extraction and its options are the
            defaults of those below.
        extraction: The name of an extraction preset (`default`, `flexible`, `boxed`, `answer_tag`, `gsm8k_strict`,
            `gsm8k_flexible`, `minerva`) or an `Extraction`; `default` without a preset.
        deadline_s: Seconds of processor time that computer algebra may take for one answer, without the time to start.
        memory_mib: Memory limit of the computer-algebra process.
        workers: Processes that `verify_batch` uses for large batches; None for one on each CPU that is available.
        **options: How answers are compared: the fields of `Rules`.

    Raises:
        InvalidArgumentError: If an option has a value it cannot have.
        UnknownNameError: If no preset or extraction preset has the name, or no choice of an option.
        UnknownArgumentError: If there is no such option.
    """

    def __init__(
        self,
        *,
        preset: str | None = None,
        extraction: str | Extraction | None = None,
        deadline_s: float = 2.0,
        memory_mib: int = 1024,
        workers: int | None = None,
        **options: Any,
    ) -> None:
        known = [rule.name for rule in fields(Rules)]
        for name in options:
            if name not in known:
                raise unknown_argument("the math verifier", name, [*known, *_SETTINGS])
        defaults = preset_named(preset)
        self.extraction = extraction_named(defaults.extraction if extraction is None else extraction)
        self.rules = Rules(**{**defaults.options, **options})
        self._algebra = AlgebraWorker(deadline_s=deadline_s, memory_mib=memory_mib)
        self._processes = shared_processes(check_workers(workers))

    def __repr__(self) -> str:
        return f"MathVerifier(extraction={self.extraction!r}, rules={self.rules!r})"

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Find the answer in a completion and compare it with the problem's reference.

        Raises:
            InvalidArgumentError: If the completion is no text.
        """
        if not isinstance(completion, str):
            raise InvalidArgumentError(f"a completion is text, got {completion!r} for problem {problem.id!r}")
        return with_room(self._judge, completion, problem)

    def _judge(self, completion: str, problem: Problem) -> Verdict:
        started = time.perf_counter()
        extracted = self.extraction(completion)
        gold = gold_text(problem.reference)
        if gold is None:
            finding = Finding(
                Outcome.VERIFIER_ERROR,
                f"the gold answer is a {type(problem.reference).__name__}, not text or a number that can be read",
            )
        elif self.extraction.literal:
            finding = self._compare_strings(extracted.answer, problem.reference)
        else:
            finding = self._compare_or_report(extracted.answer, gold, problem)
        detail = {
            "tier": finding.tier.name.lower(),
            "gold": _shown(gold),
            "answer": _shown(extracted.answer),
            "reason": finding.reason,
            "extraction": extracted.method,
        }
        cost = {"seconds": time.perf_counter() - started}
        return Verdict.of(finding.outcome, extracted.answer, detail=detail, cost=cost)

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i; of a large batch several at a time, in processes of their own.

        Raises:
            InvalidArgumentError: If there are not as many completions as problems, or a completion is no text.
        """
        if len(completions) != len(problems):
            raise InvalidArgumentError(f"{len(completions)} completions came with {len(problems)} problems")
        pairs = list(zip(completions, problems, strict=True))
        if self._processes is None or len(pairs) < MIN_BATCH or not may_start_processes():
            return [self(completion, problem) for completion, problem in pairs]
        return self._processes.judge(self, pairs, patience_s=10 * self._algebra.wall_s)

    def _compare_or_report(self, answer: str | None, gold: str, problem: Problem) -> Finding:
        try:
            return self.compare(answer, gold, problem)
        except RecursionError:
            raise  # the caller's stack had no room; a fresh one has
        except Exception as error:  # noqa: BLE001 - a defect here is reported in the verdict, and never scored
            return Finding(Outcome.VERIFIER_ERROR, f"the verifier broke: {type(error).__name__}: {error}")

    def compare(self, answer: str | None, gold: str, problem: Problem | None = None) -> Finding:
        """Compare an extracted answer with a gold answer, both as text.

        Args:
            answer: The answer, None where the completion held none.
            gold: The gold answer.
            problem: Where the prompt and the choices come from, if they matter.
        """
        return with_room(self._compared, answer, gold, problem)

    def _compared(self, answer: str | None, gold: str, problem: Problem | None) -> Finding:
        begin_work()
        try:
            expected = read(gold)
        except UnreadableError as error:
            if answer is not None and normal_text(answer) == normal_text(gold) != "":
                return Finding(Outcome.CORRECT, "the same text up to typography as a gold answer that cannot be read")
            return Finding(Outcome.VERIFIER_ERROR, f"the gold answer cannot be read: {error}")
        if answer is None:
            return Finding(Outcome.NO_ANSWER, "no answer")
        ours, theirs = plain_number(gold), plain_number(answer)
        if ours is not None and theirs is not None and (ours == theirs or self.rules.are_exact):
            return _finding(ours == theirs, "integers", Tier.EXACT)
        if expected.text == answer:
            return Finding(Outcome.CORRECT, "the same text")
        try:
            found = read(answer, decimal_comma=self.rules.decimal_comma)
        except UnreadableError as error:
            if normal_text(answer) == expected.normal:
                return Finding(Outcome.CORRECT, "the same text up to typography")
            return Finding(Outcome.INCORRECT, f"the answer cannot be read: {error}")
        if expected.normal == found.normal:
            return Finding(Outcome.CORRECT, "the same text up to typography")
        return self._compare_trees(expected, found, problem)

    def _compare_trees(self, gold: Read, answer: Read, problem: Problem | None) -> Finding:
        prompt = prompt_text(problem)
        texts = _choices(problem)
        choices = {letter: tree for letter, text in texts.items() if (tree := _tree_or_none(text)) is not None}
        comparer = Comparer(
            self.rules.for_problem({} if problem is None else problem.metadata),
            self._algebra.for_one_verdict(),
            choices,
            lambda letter: _option(letter, texts or options_in(prompt)),
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
            same = any(comparer.same(*(aligned(expected, tree) if marked else (expected, tree))) for tree in readings)
        except GoldError as error:
            outcome = Outcome.VERIFIER_ERROR if has_no_value(gold.tree) else Outcome.INCORRECT
            return Finding(outcome, str(error), comparer.values.tier)
        except UndecidedError as error:
            return Finding(Outcome.INCORRECT, f"not shown to be equal: {error}", comparer.values.tier)
        except AlgebraTimeoutError as error:
            return self._blame(gold.tree, error)
        except AlgebraBrokenError as error:
            return Finding(Outcome.VERIFIER_ERROR, str(error), Tier.SYMPY)
        if not same:
            return Finding(Outcome.INCORRECT, "different", comparer.values.tier)
        objection = self._objection(gold, answer, prompt)
        if self.rules.echo == "reject" and comparer.unsolved(gold.tree, answer.tree, equations_in(prompt)):
            objection = objection or "restates the question"
        outcome = Outcome.INCORRECT if objection else Outcome.CORRECT
        return Finding(outcome, objection or "equal", comparer.values.tier)

    def _blame(self, gold: Node, error: AlgebraTimeoutError) -> Finding:
        """Say whose fault it is that the comparison took too long: the verifier's only if the gold by itself does."""
        if not any(isinstance(part, Series | Integral | Limit | Derivative) for part in walk(gold)):
            return Finding(Outcome.TIMEOUT, str(error), Tier.SYMPY)  # nothing in the gold takes long
        try:
            ours = any(self._algebra.takes_too_long(part) for part in items(gold))
        except AlgebraBrokenError as broken:
            return Finding(Outcome.VERIFIER_ERROR, str(broken), Tier.SYMPY)
        return Finding(Outcome.VERIFIER_ERROR if ours else Outcome.TIMEOUT, str(error), Tier.SYMPY)

    def _readings(self, gold: Read, answer: Read, choices: Mapping[str, Node]) -> list[Node]:
        """The answer's tree, and what else its text can mean beside this gold."""
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

    def _numerals(self, gold: BasedNumber, answer: Read) -> list[Node]:
        """What an answer is as a numeral: its base may be left out, and its letters may be small."""
        if self.rules.base == "optional" and answer.normal.upper() == gold.digits:
            return [gold]
        return [numeral] if (numeral := _in_capitals(answer)) is not None else []

    def _objection(self, gold: Read, answer: Read, prompt: str) -> str:
        """What is wrong with the way an answer that is equal to the gold is written; empty if nothing."""
        if unordered(gold.tree) == unordered(answer.tree):
            return ""
        if self.rules.reduced and any(not _is_reduced(part) for part in walk(answer.tree)):
            return "a fraction that is not in lowest terms"
        final = _final_value(answer.tree)
        if self.rules.literals_only and any(_is_whole_quotient(part) for part in walk(final)):
            return "a division is left to carry out"
        if self.rules.literals_only and _SIGNS_IN_A_ROW.search(answer.normal):
            return "signs are left to carry out"
        if not is_literal(final):
            if self.rules.literals_only:
                return "an operation is left to carry out"
            if self.rules.evaluated and any(_is_unevaluated(part) for part in _leaves(final)):
                return "arithmetic is left to carry out"
        if not _states_equation(answer.tree) and unordered(_final_value(gold.tree)) == unordered(final):
            return ""
        if self.rules.echo == "reject" and prompt and self._restates(answer, final, prompt):
            return "restates the question"
        return ""

    def _restates(self, answer: Read, final: Node, prompt: str) -> bool:
        """Whether a compound answer, or an equation between compounds, stands in the prompt."""
        if isinstance(answer.tree, Choice):
            return False  # its options stand in the prompt
        if _is_compound(final) and occurs_in(final, prompt=prompt):
            return True
        compound = _is_compound(final) or _states_equation(answer.tree)
        return compound and occurs_in(answer.tree, prompt=prompt, text=answer.normal)

    def _compare_strings(self, answer: str | None, reference: object) -> Finding:
        """Compare as lm-eval's exact match does: delete what is ignored, fold case, compare strings."""
        if answer is None:
            return Finding(Outcome.NO_ANSWER, "no answer")
        ours, theirs = str(reference), answer
        for pattern in self.extraction.ignored:
            ours, theirs = pattern.sub("", ours), pattern.sub("", theirs)
        return _finding(ours.lower() == theirs.lower(), "strings", Tier.TEXT)


def _in_capitals(text: Read) -> BasedNumber | None:
    """A numeral with a base whose digits may be small letters; None for anything else."""
    tree = _tree_or_none(text.normal.upper())
    return tree if isinstance(tree, BasedNumber) else None


def _finding(same: bool, what: str, tier: Tier) -> Finding:
    return Finding(Outcome.CORRECT if same else Outcome.INCORRECT, f"{'equal' if same else 'different'} {what}", tier)


def _shown(text: str | None) -> str | None:
    return None if text is None else normal_text(text[: 5 * _SHOWN])[:_SHOWN]


def gold_text(reference: object) -> str | None:
    """A reference as answer text; of a worked solution, its final answer. None for what holds no answer."""
    if isinstance(reference, bool) or not isinstance(reference, str | int | float | Fraction):
        return None
    if not isinstance(reference, str):
        limit = 10**MAX_LENGTH
        short = reference.denominator < limit if isinstance(reference, Fraction) else True
        return str(reference) if short and abs(reference) < limit else None  # None for NaN, too
    if "\\boxed" in reference or "\\fbox" in reference:
        boxed = joined_boxes(reference)
        return reference if boxed is None else boxed
    return reference.rpartition("####")[2].strip()


def prompt_text(problem: Problem | None) -> str:
    """The problem's prompt as one text."""
    if problem is None:
        return ""
    if isinstance(problem.prompt, str):
        return problem.prompt
    return "\n".join(message.content for message in problem.prompt if message.role != "assistant")


def _choices(problem: Problem | None) -> dict[str, str]:
    """The text of each letter's option, from the problem's metadata."""
    given = problem.metadata.get("choices") if problem is not None else None
    if isinstance(given, Mapping):
        return {str(letter).strip("() .").upper(): str(option) for letter, option in given.items()}
    if isinstance(given, Sequence) and not isinstance(given, str):
        return {chr(ord("A") + place): str(option) for place, option in enumerate(given)}
    return {}


def _tree_or_none(text: str) -> Node | None:
    with contextlib.suppress(UnreadableError):
        return read(text).tree
    return None


def _option(letter: str, texts: Mapping[str, str]) -> Node | None:
    """An option as it is read behind its letter; None if the letter has none."""
    tree = _tree_or_none(f"({letter}) {texts[letter]}") if letter in texts else None
    return tree.content if isinstance(tree, Choice) else Words(folded_words(texts[letter])) if letter in texts else None


def _is_reduced(node: Node) -> bool:
    if isinstance(node, Ratio) and all(is_integer_literal(part) for part in node.parts):
        return math.gcd(*(int(rational_value(part)) for part in node.parts)) == 1
    if isinstance(node, Mixed):
        return math.gcd(node.numerator, node.denominator) == 1
    if not (isinstance(node, Divide) and is_literal(node)):
        return True
    value, top, bottom = rational_or_none(node), rational_value(node.numerator), rational_value(node.denominator)
    if value is None:
        return True
    return abs(value.numerator) == abs(top) and value.denominator > 1 and not (top < 0 and bottom < 0)


def _is_whole_quotient(node: Node) -> bool:
    """Whether a fraction of integers is worth an integer."""
    value = rational_or_none(node) if isinstance(node, Divide) and is_literal(node) else None
    return value is not None and value.denominator == 1


def _is_compound(node: Node) -> bool:
    """Whether a value is put together of others: all but integers, decimals, names, and containers of such."""
    if isinstance(node, Number):
        return node.decimals is None and node.value.denominator != 1  # a repeating decimal
    return not is_literal(node) or any(isinstance(part, Divide | Mixed | Percent | Ratio) for part in walk(node))


def _states_equation(node: Node) -> bool:
    """Whether an answer is an equation that says more than the value of a name."""
    return isinstance(node, Relation) and all(label(operand) is None for operand in node.operands)


def _final_value(node: Node) -> Node:
    """What an answer comes to: of a chain of equalities its literal value, else what stands opposite the name."""
    if not isinstance(node, Relation) or set(node.operators) - {"=", "~"}:
        return node
    values = [operand for operand in node.operands if label(operand) is None] or [node.operands[-1]]
    literal = [value for value in values[1:] if is_literal(value)]
    return literal[-1] if literal else values[-1]


def _leaves(node: Node) -> list[Node]:
    """The expressions inside containers and in front of units."""
    if isinstance(node, Quantity | Percent | Degrees):
        return _leaves(node.value)
    if isinstance(node, ListOf | SetOf | Bracketed):
        return [leaf for item in node.items for leaf in _leaves(item)]
    if isinstance(node, Matrix):
        return [leaf for row in node.rows for entry in row for leaf in _leaves(entry)]
    return [leaf for operand in node.operands for leaf in _leaves(operand)] if isinstance(node, Relation) else [node]


def _is_unevaluated(node: Node) -> bool:
    """Whether arithmetic with a rational result was left standing."""
    return not is_literal(node) and rational_or_none(node) is not None
