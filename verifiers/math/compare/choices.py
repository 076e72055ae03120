"""Comparison of words, of lettered options, of times of day, and of ratios."""

from __future__ import annotations

from fractions import Fraction

from verifiers.math.compare.context import Comparer
from verifiers.math.compare.names import is_named_thing
from verifiers.math.tree import (
    Bracketed,
    Choice,
    Clock,
    Constant,
    ListOf,
    Matrix,
    Multiply,
    NamedSet,
    Node,
    Number,
    Ratio,
    Relation,
    Sentence,
    SetOf,
    SetOperation,
    Symbol,
    Words,
)
from verifiers.math.values.tiers import Tier
from verifiers.math.vocabulary import NO_NOUNS

_SYMMETRIC = frozenset(Words(text) for text in ("parallel", "perp", "cong"))
"""Relations whose sides may be exchanged."""


def same_sentences(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare words as text, and sentences by words and formulas; an answer may omit the gold's words before an equation."""
    comparer.values.use(Tier.PROSE)
    if isinstance(gold, Words) != isinstance(answer, Words):  # a comma within words
        gold, answer = _as_words(gold), _as_words(answer)
        if isinstance(gold, Words) and isinstance(answer, Words):
            return comparer.same(gold, answer)
    if not (isinstance(gold, Sentence) and isinstance(answer, Sentence)):
        equation = _bare_equation(gold)
        return equation is not None and not isinstance(answer, Sentence) and comparer.same(equation, answer)
    symmetric = len(gold.parts) == 3 and gold.parts[1] in _SYMMETRIC
    orders = (answer.parts, answer.parts[::-1]) if symmetric else (answer.parts,)
    return any(len(gold.parts) == len(parts) and all(map(comparer.same, gold.parts, parts)) for parts in orders)


def _as_words(node: Node) -> Node:
    """Words with commas between them as words; anything else unchanged."""
    words = [item.text for item in node.items if isinstance(item, Words)] if isinstance(node, ListOf) else []
    return (
        Words(" ".join(words))
        if isinstance(node, ListOf) and node.joiner == "," and len(words) == len(node.items)
        else node
    )


def _bare_equation(gold: Node) -> Relation | None:
    r"""The equation in a gold that begins with a description in words: `\text{the plane }x+y=5`."""
    words, *rest = gold.parts if isinstance(gold, Sentence) else (gold,)
    equation = rest[0] if len(rest) == 1 else None
    if not isinstance(words, Words) or not isinstance(equation, Relation) or set(equation.operators) - {"=", "~"}:
        return None
    return None if NO_NOUNS.intersection(words.text.split()) else equation


def choice_letter(node: Node) -> str | None:
    """The letter of a choice, with or without its content."""
    if isinstance(node, Choice):
        return node.letter
    if isinstance(node, Symbol) and len(node.name) == 1 and node.name.isupper():
        return node.name
    return node.text.upper() if isinstance(node, Words) and len(node.text) == 1 else None


def chosen_options(comparer: Comparer, node: Node) -> frozenset[str] | None:
    """The letters of several of the problem's options, side by side or in a list; None for anything else."""
    items = node.factors if isinstance(node, Multiply) else node.items if isinstance(node, ListOf) else ()
    letters = [letter for item in items if (letter := choice_letter(item)) and comparer.option(letter) is not None]
    alike = len(items) > 1 and len(letters) == len(items) and getattr(node, "joiner", "") != "or"
    return frozenset(letters) if alike and len({*letters}) == len(letters) else None


def same_choices(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare two choices by their letters, and a choice with another answer by the content of the choice or its option."""
    ours, theirs = choice_letter(gold), choice_letter(answer)
    if isinstance(gold, Choice) and isinstance(answer, Symbol | Constant) and len(answer.name) == 1:
        theirs = answer.name.upper()
    if ours is not None and theirs is not None:
        return ours == theirs and not _contradicts(comparer, gold, answer)
    letter, choice, other = (theirs, answer, gold) if ours is None else (ours, gold, answer)
    content = (choice.content if isinstance(choice, Choice) else None) or comparer.choices.get(str(letter))
    return content is not None and (comparer.same(content, other) if choice is gold else comparer.same(other, content))


def _contradicts(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Whether the answer's content differs from both the gold's and the option's; words differ even if neither has content."""
    content = answer.content if isinstance(answer, Choice) else None
    if not isinstance(answer, Choice) or content is None:
        return False
    known = [gold.content if isinstance(gold, Choice) else None, comparer.option(answer.letter)]
    stated = [node for node in known if node is not None]
    return not any(comparer.same(node, content) for node in stated) and (bool(stated) or isinstance(content, Words))


def as_clock(node: Node) -> Node:
    """Read a whole number as an hour."""
    if isinstance(node, Number) and node.value.denominator == 1 and node.decimals is None and node.value <= 24:
        return Clock(int(node.value), 0, "")
    return node


def same_clocks(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare times of day as written; if the problem is about ratios, `1:30` is a ratio."""
    if "ratios" in comparer.topics or isinstance(gold, Ratio):
        return same_ratios(comparer, gold, answer)
    if isinstance(answer, Clock) and not answer.half and not isinstance(gold, Clock):
        return False  # an hour and minutes, but the gold is a plain number
    ours, theirs = as_clock(gold), as_clock(answer)
    if not (isinstance(ours, Clock) and isinstance(theirs, Clock)):
        return False
    halves = {ours.half, theirs.half} - {""}
    return (ours.hour, ours.minute) == (theirs.hour, theirs.minute) and len(halves) < 2


def named_ratio(node: Node) -> dict[str, Node] | None:
    """The parts of a ratio by their names, as in `a:b=2:3`; None for anything else."""
    if not isinstance(node, Relation) or node.operators != ("=",):
        return None
    ratio, value = node.operands
    if not isinstance(ratio, Ratio) or not isinstance(value, Ratio | Clock):
        return None
    named_parts = [part for part in ratio.parts if isinstance(part, Symbol) or is_named_thing(part)]
    names, parts = [part.name if isinstance(part, Symbol) else repr(part) for part in named_parts], ratio_parts(value)
    named = parts is not None and len(set(names)) == len(ratio.parts) == len(parts)
    return dict(zip(names, parts, strict=True)) if parts is not None and named else None


def ratio_parts(node: Node) -> tuple[Node, ...] | None:
    """The parts of a ratio; a number is read as its ratio to 1, and a time of day without am or pm as a ratio."""
    if isinstance(node, Ratio):
        return node.parts
    if isinstance(node, Clock) and not node.half:
        return Number(Fraction(node.hour)), Number(Fraction(node.minute))
    if isinstance(node, ListOf | SetOf | Bracketed | Relation | Matrix | Words | Clock | SetOperation | NamedSet):
        return None
    return node, Number(Fraction(1))


def same_ratios(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Whether two ratios are equal up to a factor; a number is its ratio to 1."""
    ours, theirs = ratio_parts(gold), ratio_parts(answer)
    if ours is None or theirs is None or len(ours) != len(theirs):
        return False
    return all(
        comparer.values.equal(Multiply((ours[0], theirs[i])), Multiply((theirs[0], ours[i])))
        for i in range(1, len(ours))
    ) and not any(comparer.values.identical(Number(Fraction(0)), end) for end in (theirs[-1], theirs[0]))


def same_named_ratios(comparer: Comparer, gold: dict[str, Node], answer: dict[str, Node]) -> bool:
    """Compare ratios of named quantities, such as `a:b=2:3`, by the name of each part."""
    ordered = tuple(answer[name] for name in gold) if gold.keys() == answer.keys() else None
    return ordered is not None and same_ratios(comparer, Ratio(tuple(gold.values())), Ratio(ordered))
