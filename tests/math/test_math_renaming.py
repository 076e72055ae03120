"""Renaming the letters of an answer and of its gold together changes no verdict.

Letters are drawn from classes, because `docs/math.md` gives some a meaning: `n` in a floor is an integer, `z` beside a
modulus is complex, `y` is the value of a function. Where a pair holds nothing that a letter could give a meaning to, any
letter becomes any other. Left out are `e`, `i`, `d`, units, the constants of integration and capitals, which name choices and
things.
"""

import random
from dataclasses import replace

import pytest
from math_corpus import PAIRS

from verifiers.math import ComparisonOptions, UnreadableError
from verifiers.math.compare.assigned import assignments
from verifiers.math.compare.comparer import comparer
from verifiers.math.reading.read import read
from verifiers.math.reading.vector_marks import aligned
from verifiers.math.tree import (
    Add,
    Apply,
    Bracketed,
    Derivative,
    Divide,
    Integral,
    Limit,
    Multiply,
    Negate,
    Node,
    Number,
    Power,
    Series,
    Symbol,
    Unknown,
    rewrite,
    walk,
)
from verifiers.math.values.exact import begin_work
from verifiers.math.values.tiers import GoldError, UndecidedError

CLASSES = ("abrsuv", "pqtl", "nkj", "zw", "x", "y")
ANY = "".join(CLASSES)
READ_BY_LETTER = (Unknown, Integral, Limit, Derivative, Series)
FUNCTIONS_READ_BY_LETTER = ("floor", "ceil", "abs", "conj")


def mapping_of(trees, generator):
    """A random bijection of letters: within the classes, or of all letters where no letter has a meaning."""
    parts = [part for tree in trees for part in walk(tree)]
    intended = any(
        isinstance(part, READ_BY_LETTER)
        or (isinstance(part, Apply) and part.name in FUNCTIONS_READ_BY_LETTER)
        or not isinstance(part, Number | Symbol | Add | Multiply | Divide | Power | Negate | Apply)
        for part in parts
    )
    mapping = {}
    for letters in CLASSES if intended else (ANY,):
        mapping |= dict(zip(letters, generator.sample(letters, len(letters)), strict=True))
    return mapping


def renamed(tree, mapping):
    """A tree with the letters of its names changed, and an index that is one letter."""

    def new(name):
        letter, mark, index = name[0], name[1:2], name[2:]
        return mapping.get(letter, letter) + mark + mapping.get(index, index) if mark in ("", "_", "'") else name

    def rename(part):
        if isinstance(part, Symbol):
            return Symbol(new(part.name))
        if isinstance(part, Series):
            bounds = renamed(part.lower, mapping), renamed(part.upper, mapping)
            return Series(part.kind, new(part.index), *bounds, renamed(part.body, mapping))
        if isinstance(part, Integral | Limit | Derivative) and new(part.variable) != part.variable:
            return rename_rest(replace(part, variable=new(part.variable)))
        return None

    def rename_rest(part):
        fields = {name: getattr(part, name) for name in part.__dataclass_fields__}
        return type(part)(
            **{name: renamed(value, mapping) if isinstance(value, Node) else value for name, value in fields.items()}
        )

    return rewrite(tree, rename)


def no_algebra(gold, answer):
    raise UndecidedError("computer algebra is not asked")


def verdict(gold, answer):
    """Whether the answer is the gold, or which error says why that is not known."""
    begin_work()
    try:
        return comparer(ComparisonOptions(), no_algebra).same(*aligned(gold, answer))
    except (GoldError, UndecidedError) as error:
        return type(error).__name__


def has_order_of_names(tree):
    """Whether names stand for coordinates by their order in the alphabet."""
    return any(isinstance(part, Bracketed) or assignments(part) for part in walk(tree))


def pairs_of_corpus():
    for pair in PAIRS:
        try:
            trees = read(pair.gold).tree, read(pair.answer).tree
        except UnreadableError:
            continue
        if any(isinstance(part, Symbol) for tree in trees for part in walk(tree)):
            yield trees


@pytest.mark.parametrize("seed", range(3))
def test_the_corpus_with_other_letters(seed):
    generator = random.Random(seed)
    changed = []
    for trees in pairs_of_corpus():
        if any(map(has_order_of_names, trees)):
            continue
        mapping = mapping_of(trees, generator)
        before, after = verdict(*trees), verdict(*(renamed(tree, mapping) for tree in trees))
        if before != after:
            changed.append((before, after, trees, mapping))
    assert changed == []
