"""Values of several names, such as `x=2, y=3`: one equation for each name; equations are matched by name."""

from __future__ import annotations

from dataclasses import dataclass

from verifiers.math.compare.context import Comparer
from verifiers.math.compare.names import label, solved
from verifiers.math.compare.shapes import bracket_kind, items, items_in_brackets
from verifiers.math.tree import Bracketed, ListOf, Matrix, Node, Relation, Sentence, SetOf, Symbol, Words, symbols

_CONTAINERS = Bracketed | ListOf | SetOf | Matrix | Relation


@dataclass(frozen=True, slots=True)
class Assignments:
    """The equation of each name, in written order."""

    equations: dict[str, Relation]
    first: frozenset[str]
    """The first name of each equation, such as `x` of `x=y=2`."""
    words: frozenset[str] = frozenset()
    """Words before names, as in `the mode is x=2`, which an answer may omit."""

    @property
    def values(self) -> tuple[Node, ...]:
        """The value of each name."""
        return tuple(_value(equation) for equation in self.equations.values())


def assignments(node: Node) -> Assignments | None:
    """Values of several names: `x=2, y=3`, `x=y=2` or `(x,y)=(2,3)`; None for anything else."""
    listed = isinstance(node, ListOf) and node.joiner != "or"
    if listed or (isinstance(node, Bracketed) and bracket_kind(node) == "()"):
        members = items_in_brackets(node)
        equations = [_equations(item) for item in members if isinstance(item, Relation)]
        return _by_name(equations, len(members))
    if not isinstance(node, Relation) or set(node.operators) != {"="}:
        return None
    if len(node.operands) > 2:
        alike = all(isinstance(side, Symbol) for side in node.operands[:-1]) and not symbols(node.operands[-1])
        return _by_name([_equations(node)]) if alike else None
    names, values = node.operands
    if not all(isinstance(side, Bracketed) and bracket_kind(side) == "()" for side in node.operands):
        return None
    pairs = list(zip(items_in_brackets(names), items_in_brackets(values), strict=False))
    if len(pairs) < len(items_in_brackets(names)) or len(pairs) < len(items_in_brackets(values)):
        return None
    return _by_name(
        [[(name.name, _equal(name, value))] for name, value in pairs if isinstance(name, Symbol)], len(pairs)
    )


def _by_name(chains: list[list[tuple[str, Relation]]], count: int = 0) -> Assignments | None:
    """The equations by name, if every chain has a name. Within one list f(a) and f(b) are two names, otherwise one name."""
    if not chains or not all(chains) or len(chains) < count:
        return None
    pairs = [(name.removesuffix("()"), equation) for chain in chains for name, equation in chain]  # x(t)=t is x=t
    for exactly in (False, True):
        keys = [f"{name} {equation.operands[0]}" if exactly else name for name, equation in pairs]
        if len(set(keys)) == len(keys):
            equations = {key: equation for key, (_, equation) in zip(keys, pairs, strict=True)}
            names = [(key, name) for key, (name, _) in zip(keys, pairs, strict=True)]
            chained = {id(one) for chain in chains if any(not _is_words(name) for name, _ in chain) for _, one in chain}
            words = frozenset(key for key, name in names if _is_words(name) and id(equations[key]) in chained)
            starts = {id(next((one for name, one in chain if not _is_words(name)), chain[0][1])) for chain in chains}
            first = frozenset(key for key, one in equations.items() if id(one) in starts)
            return Assignments(equations, first, words)
    return None


def _is_words(name: str) -> bool:
    return name.startswith("text:") and "(" not in name  # unlike `P(A)`


def _equations(node: Relation) -> list[tuple[str, Relation]]:
    """The names that an equation or a chain states, each with its value; empty if there are none."""
    name, value = solved(node)
    if name is None:
        return []
    if len(node.operands) == 2:
        return [(name, node if node.operators != (":",) else _equal(node.operands[0], value))]
    labels = [label(side) for side in node.operands[:-1]]
    count = max((index + 1 for index, one in enumerate(labels) if one is not None), default=0)
    names = [one for one in labels[:count] if one is not None]
    if len(names) < count or not names or any(one in symbols(value) for one in names):
        return [(name, node)] if len(names) < 2 else []
    return [(one, _equal(node.operands[index], *node.operands[count:])) for index, one in enumerate(names)]


def _equal(*sides: Node) -> Relation:
    return Relation(("=",) * (len(sides) - 1), sides)


def _value(equation: Relation) -> Node:
    return solved(equation)[1]


def named_members(node: Node) -> Assignments | None:
    """Values after words, as in `Anna 3, Ben 5`, by those words; None for anything else."""
    members: dict[str, Relation] = {}
    for item in node.items if isinstance(node, ListOf) else ():
        words, value = item.parts if isinstance(item, Sentence) and len(item.parts) == 2 else (None, None)
        if isinstance(words, Words) and value is not None:
            letter, stated = solved(value) if isinstance(value, Relation) else (None, value)
            name = f"text:{words.text} {letter or ''}".rstrip()
            members[name] = _equal(Symbol(name), stated if letter else value)
    complete = isinstance(node, ListOf) and len(members) == len(node.items)
    return Assignments(members, frozenset(members)) if complete else None


def same_assignments(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare values of names with values of the same names, or with bare values whose order identifies them."""
    ours, theirs = assignments(gold), assignments(answer)
    ours, theirs = ours or named_members(gold), theirs or named_members(answer)
    if ours is not None and ours.words and theirs is None and isinstance(answer, Relation):
        theirs = _by_name([_equations(answer)])
    if ours is not None and theirs is not None:
        names = ours.equations.keys() - ours.words
        stated = theirs.first | theirs.words <= ours.equations.keys() and names <= theirs.equations.keys()
        return stated and comparer.in_order(*([side.equations[name] for name in names] for side in (ours, theirs)))
    if ours is not None:
        return _has_values(comparer, gold, ours, answer)
    return theirs is not None and _is_assigned(comparer, gold, theirs, answer)


def _has_values(comparer: Comparer, gold: Node, names: Assignments, answer: Node) -> bool:
    """Whether an answer without names states the values of a gold with names."""
    if isinstance(answer, ListOf):
        stems = {name.partition("_")[0] for name in names.equations}
        labels = {_stem(item) for item in answer.items if isinstance(item, Relation)}
        return len(stems) == 1 and labels <= stems and comparer.unordered(names.values, answer.items)
    if isinstance(gold, Relation) and not isinstance(answer, _CONTAINERS):
        return len(gold.operands) > 2 and comparer.same(gold.operands[-1], answer)  # x = y = 2 has one value
    ordered = isinstance(answer, Bracketed) and (answer.opening, answer.closing) == ("(", ")")
    in_order = isinstance(gold, Relation) or list(names.equations) == sorted(names.equations)
    return ordered and in_order and comparer.in_order(names.values, items_in_brackets(answer))


def _stem(item: Relation) -> str | None:
    r"""The name of a value without an index, such as `x` for `x=2`; None for `x_1=2`, as the index identifies the value."""
    name = solved(item)[0]
    return name if name is not None and "_" not in name else None


def _is_assigned(comparer: Comparer, gold: Node, answer: Assignments, written: Node) -> bool:
    """Whether an answer with names states the values of a gold without names."""
    if any(isinstance(item, Relation) and ":" in item.operators for item in items(written)):
        return False  # a sentence names the things with these values
    values = answer.values
    if len({id(value) for value in values}) == 1 and not isinstance(gold, Bracketed | ListOf | SetOf):
        return comparer.same(gold, values[0])
    if any(isinstance(item, Relation) and label(item.operands[0]) is not None for item in items(gold)):
        return False
    worded = all(name.startswith(("text:", "max(", "min(")) for name in answer.equations)
    if isinstance(gold, Bracketed):
        point = bracket_kind(gold) == "()" and not worded  # words have no order, unlike coordinates
        return point and comparer.in_order(
            gold.items, [_value(answer.equations[name]) for name in sorted(answer.equations)]
        )
    if isinstance(gold, ListOf | SetOf):
        indexed = len({name.partition("_")[0] for name in answer.equations}) == 1
        free = (indexed or worded) and not (comparer.options.ordered and isinstance(gold, ListOf))
        return comparer.unordered(gold.items, values) if free else comparer.in_order(gold.items, values)
    return False
