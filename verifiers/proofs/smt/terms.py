"""Reads SMT-LIB: trusted text as nested lists, and a completion's term by a small grammar without commands or binders."""

from __future__ import annotations

import re
from collections.abc import Collection

from verifiers.errors import InvalidArgumentError

MAX_LENGTH = 10_000
"""Longest term that is read, in characters."""
MAX_DEPTH = 100
"""Deepest nesting of parentheses that is read."""
MAX_DIGITS = 400
"""Maximum number of digits of a number."""
MAX_INDEX = 4096
"""Largest index of an operator such as `(_ extract 7 0)`."""

Tree = str | list["Tree"]
"""A token, or a list of trees."""

_CORE = "not and or xor => = distinct ite"
_NUMBERS = "+ - * / div mod abs <= < >= > to_real to_int is_int"
_ARRAYS = "select store"
_BIT_VECTORS = (
    "concat bvnot bvneg bvand bvor bvxor bvnand bvnor bvxnor bvcomp bvadd bvsub bvmul bvudiv bvurem bvsdiv bvsrem bvsmod "
    "bvshl bvlshr bvashr bvult bvule bvugt bvuge bvslt bvsle bvsgt bvsge"
)
OPERATORS = frozenset(f"{_CORE} {_NUMBERS} {_ARRAYS} {_BIT_VECTORS}".split())
"""The operators of the core, and of the theories of integers, reals, arrays and bit vectors."""
INDEXED = frozenset({"extract", "zero_extend", "sign_extend", "rotate_left", "rotate_right"})
"""Operators that are written with indices: `((_ extract 7 0) x)`."""

_TOKEN = re.compile(r"\s*(?:([()]|[^\s()\";|]+)|(?:;[^\n]*))")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|#x[0-9a-fA-F]+|#b[01]+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,3}")
_NAME = re.compile(r"[A-Za-z~!@$%^&*_+=<>.?/-][0-9A-Za-z~!@$%^&*_+=<>.?/-]*")


class TermError(ValueError):
    """A text is not a term of the grammar; the message says why."""


def read_all(text: str) -> list[Tree]:
    """Read every expression of a text, which may have comments, but neither strings nor quoted names.

    Raises:
        TermError: If the text is not well formed, or nested too deeply.
    """
    stack: list[list[Tree]] = [[]]
    position, text = 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise TermError(f"unexpected text {text[position:].strip()[:20]!r}")
        position = match.end()
        token = match[1]
        if token == "(":
            if len(stack) > MAX_DEPTH:
                raise TermError(f"parentheses are nested deeper than {MAX_DEPTH}")
            stack.append([])
        elif token == ")":
            if len(stack) == 1:
                raise TermError("a parenthesis is closed that was not opened")
            inner = stack.pop()
            stack[-1].append(inner)
        elif token is not None:
            stack[-1].append(token)
    if len(stack) > 1:
        raise TermError("a parenthesis is not closed")
    return stack[0]


def read_term(text: str, names: Collection[str], operators: Collection[str]) -> str:
    """Read one term, and return it rewritten for the solver.

    `term = number | true | false | name | (operator term+) | ((_ operator index+) term+)`

    Args:
        text: The completion's text.
        names: The names that may be used as values: the parameters.
        operators: The operators that may be applied; a name among them that takes no arguments may also be used alone.

    Raises:
        TermError: If the text is not such a term.
    """
    if len(text) > MAX_LENGTH:
        raise TermError(f"the term is longer than {MAX_LENGTH} characters")
    trees = read_all(text)
    if len(trees) != 1:
        raise TermError(f"expected one term, got {len(trees)}")
    known = {*names, "true", "false", *({*operators} - OPERATORS)}
    return _written(trees[0], known, {*operators})


def _written(tree: Tree, names: set[str], operators: set[str]) -> str:
    if isinstance(tree, str):
        if tree not in names and not (_NUMBER.fullmatch(tree) and len(tree) <= MAX_DIGITS):
            raise TermError(f"{tree[:40]!r} is neither a number nor a name that may be used here")
        return tree
    if len(tree) < 2:
        raise TermError("expected an operator and its arguments in parentheses")
    head = _operator(tree[0], operators)
    return f"({head} {' '.join(_written(argument, names, operators) for argument in tree[1:])})"


def _operator(head: Tree, operators: set[str]) -> str:
    if isinstance(head, str):
        if head not in operators or head in INDEXED:
            raise TermError(f"{head[:40]!r} is not an operator that may be used here")
        return head
    match head:
        case ["_", str(name), *indices] if name in INDEXED and name in operators and indices:
            numbers = [index for index in indices if isinstance(index, str) and _INDEX.fullmatch(index)]
            if len(numbers) == len(indices) and all(int(number) <= MAX_INDEX for number in numbers):
                return f"(_ {name} {' '.join(numbers)})"
    raise TermError("expected the name of an operator after a parenthesis")


def read_signature(text: str) -> tuple[str, list[str], str]:
    """Read the signature of a function, `(f ((x Int) (y Int)) Int)`.

    Returns:
        The function's name, the names of its parameters, and the signature as written in `define-fun`, without outer
        parentheses.

    Raises:
        InvalidArgumentError: If the text is not a signature.
    """
    try:
        trees = read_all(text)
    except TermError as error:
        raise InvalidArgumentError(f"function can't be read: {error}") from error
    match trees:
        case [[str(name), list(parameters), sort]] if _NAME.fullmatch(name):
            names = [parameter[0] for parameter in parameters if isinstance(parameter, list) and len(parameter) == 2]
            if len(names) == len(parameters) == len({*map(str, names)}) and all(map(_is_name, names)):
                return name, [*map(str, names)], f"{name} {shown(parameters)} {shown(sort)}"
    raise InvalidArgumentError(
        f"function must be a name, its parameters and a sort, such as '(f ((x Int) (y Int)) Int)', got {text!r}"
    )


def _is_name(tree: Tree) -> bool:
    return isinstance(tree, str) and _NAME.fullmatch(tree) is not None


def shown(tree: Tree) -> str:
    """Write a tree as SMT-LIB."""
    return tree if isinstance(tree, str) else f"({' '.join(map(shown, tree))})"


def mentions(tree: Tree, name: str) -> bool:
    """Whether a token occurs in a tree."""
    return tree == name if isinstance(tree, str) else any(mentions(part, name) for part in tree)
