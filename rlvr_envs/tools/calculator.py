"""A calculator for exact arithmetic with numbers, + - * / // % ** and brackets."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from rlvr_envs.tools.tool import Arguments, ToolUseError

_MAX_LENGTH = 500
_MAX_BITS = 4096
"""Maximum number of bits of a numerator or denominator."""
_OPERATORS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_DECIMALS = 12


class Calculator:
    """Evaluates one arithmetic expression exactly. A value that is not an integer is shown as a fraction and as a decimal."""

    name = "calculator"
    description = "Evaluates an arithmetic expression with numbers, + - * / // % ** and brackets."
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"expression": {"type": "string", "description": "such as (3 + 4.5) * 2 ** 10"}},
        "required": ["expression"],
        "additionalProperties": False,
    }
    timeout_s = 10.0
    max_characters = 4000

    def __call__(self, arguments: Arguments, earlier: Sequence[Arguments]) -> str:
        """Evaluate `expression`.

        Raises:
            ToolUseError: If the text is not an arithmetic expression, divides by 0, or has a value that is too large.
        """
        text = str(arguments["expression"]).strip()
        if len(text) > _MAX_LENGTH:
            raise ToolUseError(f"the expression has {len(text)} characters; at most {_MAX_LENGTH} are read")
        try:
            power = text.replace("^", "**")
            value = _value(ast.parse(power, mode="eval").body, power)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ToolUseError(f"{text!r} is no arithmetic expression, such as (3 + 4.5) * 2 ** 10") from None
        if value.denominator == 1:
            return str(value.numerator)
        return f"{value.numerator}/{value.denominator} = {_decimal(value)}"


def _value(node: ast.expr, text: str) -> Fraction:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return _small(Fraction(number))
        case ast.Constant(value=float()):
            return _small(_exact(ast.get_source_segment(text, node) or ""))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, text)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _applied(type(op), _value(left, text), _value(right, text))
    raise ValueError(ast.dump(node))


def _exact(number: str) -> Fraction:
    """The exact value of a decimal number as written."""
    _, _, exponent = number.lower().partition("e")
    if abs(int(exponent or 0)) > _MAX_BITS // 4:  # check before a power of ten is computed
        raise ToolUseError("the value is too large")
    return Fraction(number)


def _applied(op: type[ast.operator], left: Fraction, right: Fraction) -> Fraction:
    if op is ast.Pow:
        if right.denominator != 1:
            raise ToolUseError(f"the exponent {right} is no integer")
        if abs(right) * max(left.numerator.bit_length(), left.denominator.bit_length()) > 2 * _MAX_BITS:
            raise ToolUseError("the value is too large")
    try:
        return _small(Fraction(_OPERATORS[op](left, right)))
    except ZeroDivisionError:
        raise ToolUseError("division by zero") from None


def _small(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise ToolUseError("the value is too large")
    return value


def _decimal(value: Fraction) -> str:
    scaled = round(value * 10**_DECIMALS)
    sign, digits = "-" * (scaled < 0), str(abs(scaled)).rjust(_DECIMALS + 1, "0")
    return f"{sign}{digits[:-_DECIMALS]}.{digits[-_DECIMALS:]}".rstrip("0").rstrip(".")
