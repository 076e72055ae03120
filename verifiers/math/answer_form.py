"""Checks the form of an answer that equals the gold: rejects mere restatements, and forms that the options exclude."""

from __future__ import annotations

import math
import re

from verifiers.math.carried_out import operations, without_neutral
from verifiers.math.compare.names import label
from verifiers.math.forms import is_integer_literal, is_literal, unordered
from verifiers.math.options import ComparisonOptions
from verifiers.math.prompt import occurs_in
from verifiers.math.reading.read import ParsedAnswer
from verifiers.math.tree import (
    Bracketed,
    Choice,
    Degrees,
    Divide,
    ListOf,
    Matrix,
    Mixed,
    Node,
    Number,
    Percent,
    Quantity,
    Ratio,
    Relation,
    SetOf,
    walk,
)
from verifiers.math.values.exact import rational_or_none, rational_value

_SIGNS_IN_A_ROW = re.compile(r"[-+]\s?[-+]")


def objection(options: ComparisonOptions, gold: ParsedAnswer, answer: ParsedAnswer, prompt: str) -> str:
    """The objection to the written form of an answer whose value is right; empty if there is none."""
    if unordered(gold.tree) == unordered(answer.tree):
        return ""
    if options.reduced and any(not _is_reduced(node) for node in walk(answer.tree)):
        return "a fraction that is not in lowest terms"
    final = _final_value(answer.tree)
    if options.literals_only and any(_is_whole_quotient(node) for node in walk(final)):
        return "a division that is not carried out"
    if options.literals_only and _SIGNS_IN_A_ROW.search(answer.normal):
        return "signs that are not combined"
    if not is_literal(final):
        if options.literals_only:
            return "an operation that is not carried out"
        if options.evaluated and any(_is_unevaluated(leaf) for leaf in _leaves(final)):
            return "arithmetic that is not carried out"
    if options.echo == "allow":
        return ""
    final, expected = without_neutral(final), without_neutral(_final_value(gold.tree))
    same_form = not _states_equation(answer.tree) and unordered(expected) == unordered(final)
    if prompt and not same_form and _restates(answer, final, prompt):
        return "restates the question"
    if not isinstance(final, Choice) and operations(final, answer) - operations(gold.tree, gold):
        return "an operation that is not carried out"
    return ""


def _restates(answer: ParsedAnswer, final: Node, prompt: str) -> bool:
    """Whether an answer that is compound, or an equation between compounds, is copied from the prompt."""
    if isinstance(answer.tree, Choice):
        return False  # the options of a choice are part of the prompt
    if _is_compound(final) and occurs_in(final, prompt=prompt):
        return True
    compound = _is_compound(final) or _states_equation(answer.tree)
    return compound and occurs_in(answer.tree, prompt=prompt, text=answer.normal)


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
    """Whether a fraction of integers has an integer value."""
    value = rational_or_none(node) if isinstance(node, Divide) and is_literal(node) else None
    return value is not None and value.denominator == 1


def _is_compound(node: Node) -> bool:
    """Whether a value is composed of other values: anything but integers, decimals, names, and containers of these."""
    if isinstance(node, Number):
        return node.decimals is None and node.value.denominator != 1  # a repeating decimal
    return not is_literal(node) or any(isinstance(subtree, Divide | Mixed | Percent | Ratio) for subtree in walk(node))


def _states_equation(node: Node) -> bool:
    """Whether an answer is an equation that states more than the value of a name."""
    return isinstance(node, Relation) and all(label(operand) is None for operand in node.operands)


def _final_value(node: Node) -> Node:
    """The value that an answer ends with: the literal value of a chain of equalities, else the side opposite the name."""
    if not isinstance(node, Relation) or set(node.operators) - {"=", "~"}:
        return node
    values = [operand for operand in node.operands if label(operand) is None] or [node.operands[-1]]
    literal = [value for value in values[1:] if is_literal(value)]
    return literal[-1] if literal else values[-1]


def _leaves(node: Node) -> list[Node]:
    """The expressions of an answer, taken out of containers and without units."""
    if isinstance(node, Quantity | Percent | Degrees):
        return _leaves(node.value)
    if isinstance(node, ListOf | SetOf | Bracketed):
        return [leaf for item in node.items for leaf in _leaves(item)]
    if isinstance(node, Matrix):
        return [leaf for row in node.rows for entry in row for leaf in _leaves(entry)]
    return [leaf for operand in node.operands for leaf in _leaves(operand)] if isinstance(node, Relation) else [node]


def _is_unevaluated(node: Node) -> bool:
    """Whether an answer contains arithmetic with a rational result that was not carried out."""
    return not is_literal(node) and rational_or_none(node) is not None
