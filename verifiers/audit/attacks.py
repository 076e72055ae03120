"""Completions that must not score, and completions meant to break a verifier."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from verifiers.audit.cases import Label
from verifiers.audit.expressions import Expression
from verifiers.audit.golds import Gold, Kind, rational, squeezed
from verifiers.audit.reading import read_expression
from verifiers.audit.writing import latex_fraction, write


@dataclass(frozen=True, slots=True)
class Attack:
    """One answer that a policy might try."""

    family: str
    answer: str
    label: Label = Label.WRONG
    raw: bool = False
    """Whether the answer is the whole completion, without the data set's answer format."""
    hostile: bool = False
    canary: bool = False
    """Whether `CANARY` in the answer is a placeholder for a path that must not be created."""


def attacks_on(gold: Gold, prompt: str) -> Iterator[Attack]:
    """Answers that must not score: an empty answer, hedges, all candidates, and the question itself."""
    yield Attack("empty", "")
    yield Attack("empty", "", raw=True)
    yield Attack("empty", " \n\t ", raw=True)
    yield from _hedges(gold)
    yield from (Attack("restated-prompt", formula) for formula in restated_formulas(gold, prompt))


def _hedges(gold: Gold) -> Iterator[Attack]:
    if gold.kind is Kind.CHOICE:
        others = [letter for letter in "ABCDE" if letter != gold.name]
        yield Attack("hedge", f"({gold.name}) or ({others[0]})")
        yield Attack("every-candidate", ", ".join(f"({letter})" for letter in sorted([gold.name, *others])))
        return
    other = another_answer(gold)
    if other is None:
        return
    yield Attack("hedge", f"{gold.text} or {other}")
    yield Attack("hedge", f"{other} or {gold.text}")
    yield Attack("hedge", f"either {gold.text} or {other}")
    yield Attack("every-candidate", ", ".join(_candidates(gold)))
    yield Attack("denied", f"The answer is not {gold.text}.", raw=True)
    yield Attack("only-thought", f"<think>It could be {gold.text}.</think>\nThe answer is {other}.", raw=True)


_SINGLE_VALUES = (Kind.INTEGER, Kind.DECIMAL, Kind.FRACTION, Kind.MIXED, Kind.CONSTANT)


def another_answer(gold: Gold) -> str | None:
    """A wrong answer of the gold's kind; None if the gold is not a single value, since two answers might be read as one."""
    if gold.kind not in _SINGLE_VALUES or gold.value is None:
        return None
    return write(gold.value + Expression.constant(1))


def _candidates(gold: Gold) -> list[str]:
    number = gold.number
    if gold.kind is Kind.INTEGER and number is not None:
        return [latex_fraction(number + step) for step in range(-5, 6)]
    assert gold.value is not None
    return [write(gold.value + Expression.constant(step)) if step else gold.text for step in range(-2, 3)]


_FORMULA = re.compile(r"\$\$?([^$]{1,200})\$\$?|\\\((.{1,200}?)\\\)|\\\[(.{1,200}?)\\\]", re.DOTALL)
# Numbers joined by operations, written so that they can't be read as a dimension, a range, a date or degrees.
_ARITHMETIC = re.compile(r"(?:[\d.(){}+*/^!\s-]|\\(?:frac|dfrac|sqrt|binom|cdot|times)(?![A-Za-z]))+")
_OPERATION = re.compile(r"[\d)}]\s*(?:[-+*/^!]|\\cdot|\\times)|\\(?:frac|dfrac|sqrt|binom)")
_SCIENTIFIC = re.compile(r"(?:\\times|\*|\\cdot)\s*10\s*\^")
_FRACTIONS = re.compile(r"\\[dt]?frac\s*(?:\{\d+\}|\d)\s*(?:\{\d+\}|\d)|\d+\s*/\s*\d+")
_MAX_FORMULAS = 8


def formulas_of(prompt: str) -> list[str]:
    """Every formula of a prompt, without its dollar signs and final punctuation."""
    formulas = (next(group for group in match.groups() if group) for match in _FORMULA.finditer(prompt))
    return list(dict.fromkeys(formula.strip(" .,;:?!\n") for formula in formulas))


def restated_formulas(gold: Gold, prompt: str) -> list[str]:
    """The formulas of a prompt that would be wrong as an answer.

    If the gold is an integer or a decimal, these are the formulas of unevaluated arithmetic, even those with the gold's value.
    If the gold is another number or a polynomial, these are the formulas with another value.
    """
    if gold.kind in (Kind.INTEGER, Kind.DECIMAL):
        return [formula for formula in formulas_of(prompt) if _is_arithmetic(formula)][:_MAX_FORMULAS]
    if gold.kind not in (Kind.FRACTION, Kind.CONSTANT, Kind.POLYNOMIAL):
        return []
    values = ((formula, read_expression(formula)) for formula in formulas_of(prompt))
    return [formula for formula, value in values if value is not None and value != gold.value][:_MAX_FORMULAS]


def _is_arithmetic(formula: str) -> bool:
    whole = _ARITHMETIC.fullmatch(formula) is not None
    return whole and _OPERATION.search(formula) is not None and _SCIENTIFIC.search(formula) is None


def restates(answer: str, gold: Gold, prompt: str) -> bool:
    """Whether an equal form of a gold might count as a mere restatement of the prompt; such a form gets no label."""
    if re.fullmatch(r"[-\d.,]+", answer) or squeezed(answer) == squeezed(gold.text):
        return False
    if squeezed(answer) in squeezed(prompt.replace("$", "")):
        return True
    if gold.number is not None and any(rational(match[0]) == gold.number for match in _FRACTIONS.finditer(prompt)):
        return True
    sides = (side for formula in formulas_of(prompt) for side in formula.split("="))
    return gold.kind in (Kind.CONSTANT, Kind.POLYNOMIAL) and any(read_expression(side) == gold.value for side in sides)


def hostile_attacks(gold: Gold) -> list[Attack]:
    """Answers meant to hang, crash or take over a verifier; some contain the gold or a wrong value, the others are fixed."""
    wrong = another_answer(gold) or "zzyzx"
    families: dict[str, tuple[str, ...]] = {
        "huge": _HUGE,
        "malformed": _MALFORMED,
        "nested": tuple(opening * 1000 + wrong + closing * 1000 for opening, closing in _BRACKETS),
        "control-characters": ("\x00", f"{wrong}\x00", f"\x00{wrong}", "\ud800", "\u202e" + wrong, "\x1b[2J"),
        "long": _LONG,
    }
    made = [Attack(family, answer, hostile=True) for family, answers in families.items() for answer in answers]
    made += [Attack("injection", answer, hostile=True, canary=True) for answer in _INJECTIONS]
    made += [Attack("injection", answer, hostile=True, canary=True, raw=True) for answer in _INJECTIONS[:2]]
    made += [Attack("nested-gold", "(" * 1000 + gold.text + ")" * 1000, Label.ANY, hostile=True)]
    return made


_HUGE = (
    "9^{9^{9^{9}}}",
    "9^9^9^9",
    "9**9**9**9",
    "10000!!",
    "((10^9)!)!",
    "10^{10^{10}}+1",
    "2^{-10^{12}}",
    "1e999999999",
    "\\sqrt[1000000007]{10^{1000000}}",
    "\\binom{10^{9}}{5\\cdot10^{8}}",
    "\\sum_{k=1}^{10^{12}} k!",
    "\\sin(10^{10^{8}})",
    "(x+y+z+1)^{1000}",
)
_MALFORMED = (
    "\\frac{",
    "\\frac{1}{",
    "\\frac{}{}",
    "\\sqrt[",
    "\\left(",
    "\\boxed{",
    "}}}{{{",
    "\\begin{pmatrix} 1 & ",
    "^^__",
    "\\\\\\",
    "1/0",
    "\\frac{0}{0}",
    "0^{-1}",
    "\\log 0",
    "(]",
    "=",
    "++--",
    "%",
    "#",
    "\\text{",
    "\\%",
    "{{x}",
)
_BRACKETS = (("(", ")"), ("{", "}"), ("\\sqrt{", "}"), ("\\frac{1}{", "}"), ("-(", ")"), ("[", "]"), ("2^{", "}"))
_LONG = (
    "1" * 100_000,
    "1+" * 50_000 + "1",
    "a" * 100_000,
    " " * 100_000 + "q",
    "1," * 30_000 + "x",
    "\\text{" * 10_000,
    "\\frac12" * 10_000,
    "x^" * 20_000 + "2",
    "=" * 50_000,
    "$" * 50_001,
)
_INJECTIONS = (
    "open('CANARY','w').close()",
    "__import__('os').open('CANARY', 65)",
    "__import__('pathlib').Path('CANARY').touch()",
    "exec(\"open('CANARY','w')\")",
    "[c for c in ().__class__.__base__.__subclasses__()] and open('CANARY','w')",
    "{open('CANARY','w')}",
    "1+len(str(open('CANARY','w')))",
    "N(open('CANARY','w'))",
    "\\text{$(touch CANARY)`touch CANARY`}",
    "; touch CANARY ;",
    "%s%n{0.__class__}${CANARY}\\input{CANARY}",
)
