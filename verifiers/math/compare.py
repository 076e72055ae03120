"""Comparison of an answer's tree with the gold's, driven by what the gold is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeGuard

from verifiers.math import forms
from verifiers.math.exact import rational_or_none, substitute
from verifiers.math.families import families, same_families
from verifiers.math.numeric import real_value
from verifiers.math.rules import Rules
from verifiers.math.sets import NoSetError, real_set
from verifiers.math.tree import (
    Add,
    Bracketed,
    Choice,
    Clock,
    Constant,
    Derivative,
    Integral,
    ListOf,
    Matrix,
    Multiply,
    Negate,
    Node,
    Number,
    Percent,
    Quantity,
    Ratio,
    Relation,
    Sentence,
    SetOf,
    SetOperation,
    Symbol,
    Words,
    bound_name,
    symbols,
    unordered,
    walk,
)
from verifiers.math.units import Unit
from verifiers.math.values import Algebra, Tier, Values
from verifiers.math.vocabulary import NO_NOUNS

_CONTAINERS = Bracketed | ListOf | SetOf | Matrix | Relation
MAX_ITEMS = 100
"""Most items of a list or a set."""
_OPEN_RELATIONS = forms.INEQUALITIES | {"in", "mod", "modulo"}


@dataclass(slots=True)
class Comparer:
    """Compares one answer with one gold.

    Raises (from `same`):
        GoldError: If the gold has no value.
        UndecidedError: If no method can tell.
    """

    rules: Rules
    algebra: Algebra
    choices: dict[str, Node] = field(default_factory=dict)
    """What each letter of a multiple-choice problem stands for."""
    option: Callable[[str], Node | None] = lambda letter: None
    """What the problem writes behind a letter, in its choices or its prompt."""
    in_prompt: Callable[[Node], bool] = lambda node: False
    """Whether an expression occurs in the problem's prompt."""
    without_prompt: bool = True
    """Whether there is no prompt that could say what `m+n` is."""
    about_ratios: bool = False
    """Whether the problem asks for a ratio, so that `1:30` is one and no time of day."""
    values: Values = field(init=False)

    def __post_init__(self) -> None:
        self.values = Values(self.rules, self.algebra)

    def same(self, gold: Node, answer: Node) -> bool:
        """Whether the answer is the gold, under the rules."""
        if gold == answer:
            return True
        ratios = forms.named_ratio(gold), forms.named_ratio(answer)
        if ratios[0] is not None and ratios[1] is not None:
            return self._named_ratios(ratios[0], ratios[1])
        gold, answer = forms.plain(gold), forms.plain(answer)
        if (found := self._families(gold, answer)) is not None:
            return found
        ours, theirs = forms.integer_parameter(gold), forms.integer_parameter(answer)
        if ours is not None and theirs is not None and ours not in symbols(answer):
            answer = forms.renamed(answer, {theirs: ours})
        if forms.without_condition(gold) is gold or forms.without_condition(answer) is answer:
            gold, answer = forms.without_condition(gold), forms.without_condition(answer)
        (name, value), (other, other_value) = forms.named_collection(gold), forms.named_collection(answer)
        if name is not None and other is not None and not forms.names_agree(name, other):
            return False
        if (name is None) != (other is None) and not (self._is_asked(gold) and self._is_asked(answer)):
            return False
        gold, answer = value, other_value
        compare = next((compare for fits, compare in _COMPARISONS if fits(gold) or fits(answer)), Comparer._scalars)
        return compare(self, gold, answer)

    def _is_asked(self, node: Node) -> bool:
        """Whether no operation on sets stands in front of an equals sign, or one of which the prompt speaks."""
        operation = node.operands[0] if isinstance(node, Relation) else None
        return not isinstance(operation, SetOperation) or self.in_prompt(operation)

    def _families(self, gold: Node, answer: Node) -> bool | None:
        """Compare solutions with a free integer where the gold says that it has one; None where they are no such."""
        ours = families(gold)
        theirs = families(answer, said=False) if ours is not None else None
        if ours is None or theirs is None:
            return None
        if ours.label is not None and theirs.label is not None and not forms.names_agree(ours.label, theirs.label):
            return False
        return same_families(ours, theirs, self.values)

    # Words, choices, times, ratios.

    def _sentences(self, gold: Node, answer: Node) -> bool:
        """Words as text; words with formulas among them by both; only an equation may lack the gold's words in front of it."""
        self.values.use(Tier.PROSE)
        if not (isinstance(gold, Sentence) and isinstance(answer, Sentence)):
            equation = _bare_equation(gold)
            return equation is not None and not isinstance(answer, Sentence) and self.same(equation, answer)
        return len(gold.parts) == len(answer.parts) and all(map(self.same, gold.parts, answer.parts))

    def _choices(self, gold: Node, answer: Node) -> bool:
        """Choices by their letters; one beside another answer by what is written behind its letter, or stands for it."""
        ours, theirs = forms.choice_letter(gold), forms.choice_letter(answer)
        if isinstance(gold, Choice) and isinstance(answer, Symbol | Constant) and len(answer.name) == 1:
            theirs = answer.name.upper()
        if ours is not None and theirs is not None:
            return ours == theirs and not self._contradicts(gold, answer)
        letter, choice, other = (theirs, answer, gold) if ours is None else (ours, gold, answer)
        meant = (choice.content if isinstance(choice, Choice) else None) or self.choices.get(str(letter))
        return meant is not None and (self.same(meant, other) if choice is gold else self.same(other, meant))

    def _contradicts(self, gold: Node, answer: Node) -> bool:
        """Whether what stands behind the letter is neither the gold's nor its option's, or words that nothing confirms."""
        content = answer.content if isinstance(answer, Choice) else None
        if not isinstance(answer, Choice) or content is None:
            return False
        known = [gold.content if isinstance(gold, Choice) else None, self.option(answer.letter)]
        meant = [node for node in known if node is not None]
        return not any(self.same(node, content) for node in meant) and (bool(meant) or isinstance(content, Words))

    def _clocks(self, gold: Node, answer: Node) -> bool:
        if self.about_ratios or isinstance(gold, Ratio):
            return self._ratios(gold, answer)
        if isinstance(answer, Clock) and not answer.half and not isinstance(gold, Clock):
            return False  # an hour and minutes, where the gold is a plain number
        ours, theirs = forms.as_clock(gold), forms.as_clock(answer)
        if not (isinstance(ours, Clock) and isinstance(theirs, Clock)):
            return False
        halves = {ours.half, theirs.half} - {""}
        return (ours.hour, ours.minute) == (theirs.hour, theirs.minute) and len(halves) < 2

    def _ratios(self, gold: Node, answer: Node) -> bool:
        ours, theirs = forms.ratio_parts(gold), forms.ratio_parts(answer)
        if ours is None or theirs is None or len(ours) != len(theirs):
            return False
        return all(
            self.values.equal(Multiply((ours[0], theirs[i])), Multiply((theirs[0], ours[i])))
            for i in range(1, len(ours))
        ) and not any(self.values.identical(Number(Fraction(0)), end) for end in (theirs[-1], theirs[0]))

    def _named_ratios(self, gold: dict[str, Node], answer: dict[str, Node]) -> bool:
        ordered = tuple(answer[name] for name in gold) if gold.keys() == answer.keys() else None
        return ordered is not None and self._ratios(Ratio(tuple(gold.values())), Ratio(ordered))

    # Sets of real numbers.

    def _sets(self, gold: Node, answer: Node) -> bool:
        try:
            ours, theirs = real_set(forms.as_set(gold)), real_set(forms.as_set(answer))
        except NoSetError:
            return self._other_sets(gold, answer)
        bound = forms.is_set_builder(gold) or forms.is_set_builder(answer)
        if not bound and ours.variable and theirs.variable and ours.variable != theirs.variable:
            return False
        return len(ours.marks) == len(theirs.marks) and all(
            one.after == two.after
            and (one.at == two.at or self.rules.brackets == "lenient")
            and self.values.equal(one.end.node, two.end.node)
            for one, two in zip(ours.marks, theirs.marks, strict=True)
        )

    def _other_sets(self, gold: Node, answer: Node) -> bool:
        """Sets that are not made of real constants: symbolic ends, tuples, chains of inequalities."""
        if isinstance(gold, Relation) and isinstance(answer, Relation):
            return self._inequalities(gold, answer)
        if isinstance(gold, Bracketed) != isinstance(answer, Bracketed):
            gold, answer = forms.between(gold), forms.between(answer)
            intervals = all(isinstance(node, Bracketed) and forms.is_interval(node) for node in (gold, answer))
            return intervals and self._tuples(gold, answer)
        if isinstance(gold, SetOperation) and isinstance(answer, SetOperation) and gold.kind == answer.kind:
            return (self.same(gold.left, answer.left) and self.same(gold.right, answer.right)) or (
                gold.kind != "difference" and self.same(gold.left, answer.right) and self.same(gold.right, answer.left)
            )
        if isinstance(gold, ListOf | SetOf) and isinstance(answer, ListOf | SetOf):
            return self._unordered(gold.items, answer.items)
        return False

    def _inequalities(self, gold: Relation, answer: Relation) -> bool:
        readings = [(answer.operators, answer.operands)]
        if gold.operators == answer.operators and gold.operators[-1] == "modulo":
            return self._congruences(gold, answer)
        if not {"mod", "modulo"} & set(answer.operators):
            readings.append(forms.reversed_chain(answer))
        for operators, operands in readings:
            if gold.operators == operators:
                if all(self.same(one, two) for one, two in zip(gold.operands, operands, strict=True)):
                    return True
                if (
                    len(operators) == 1
                    and operators[0] in forms.INEQUALITIES
                    and self._proportional(gold, Relation(operators, operands), positive=operators[0] != "!=")
                ):
                    return True
        return False

    def _congruences(self, gold: Relation, answer: Relation) -> bool:
        r"""Whether `x \\equiv 3 \\pmod 7` and `x \\equiv 10 \\pmod 7` say the same."""
        (one, modulus), (two, other) = (map(rational_or_none, node.operands[-2:]) for node in (gold, answer))
        if one is None or two is None or modulus is None or other is None:
            return self._in_order(gold.operands, answer.operands)
        same_residue = modulus == other > 0 and (one - two) % modulus == 0
        return same_residue and self._in_order(gold.operands[:-2], answer.operands[:-2])

    # Lists, sets, assignments.

    def _collections(self, gold: Node, answer: Node) -> bool:
        ours, theirs = forms.assignments(gold), forms.assignments(answer)
        if ours is not None or theirs is not None:
            ours, theirs = ours or forms.named_members(gold), theirs or forms.named_members(answer)
        if ours is None and any(isinstance(item, Relation) and ":" in item.operators for item in forms.items(answer)):
            return False  # a sentence says of what these are the values
        if ours is not None and isinstance(answer, ListOf) and theirs is None:
            return len({name.partition("_")[0] for name in ours}) == 1 and self._unordered(
                tuple(ours.values()), forms.items(answer)
            )
        if ours is not None and theirs is None and isinstance(gold, Relation) and not isinstance(answer, _CONTAINERS):
            return len(gold.operands) > 2 and self.same(gold.operands[-1], answer)  # x = y = 2 has one value
        if ours is not None:
            return self._gold_assignments(ours, answer, theirs)
        if theirs is not None:
            return self._answer_assignments(gold, theirs)
        if self.rules.brackets == "lenient" and (isinstance(gold, Bracketed) or isinstance(answer, Bracketed)):
            return self._in_order(forms.items_in_brackets(gold), forms.items_in_brackets(answer))
        if isinstance(answer, ListOf) and answer.joiner == "or" and not isinstance(gold, ListOf | SetOf):
            return all(self.same(gold, item) for item in answer.items)  # several forms of one answer
        if isinstance(gold, ListOf) and gold.joiner == "or" and not isinstance(answer, ListOf | SetOf):
            first, *others = gold.items
            return all(self.same(first, item) for item in others) and self.same(first, answer)
        left, right = forms.items(gold), forms.items(answer)
        if _are_statements(gold) and _are_statements(answer) and gold.joiner != answer.joiner:
            return False
        if isinstance(answer, ListOf) and answer.joiner == "or" and len(_names(right)) > 1 and not _names(left):
            return False
        names = forms.shared_label(left), forms.shared_label(right)
        if names[0] is not None and names[1] is not None and not forms.names_agree(names[0], names[1]):
            return False
        if isinstance(gold, ListOf | SetOf):
            left = forms.without_labels(left)
        right = forms.without_labels(right)
        if isinstance(gold, SetOf) or isinstance(answer, SetOf):
            left = self._distinct(left) if isinstance(gold, SetOf) else left
            right = self._distinct(right) if isinstance(answer, SetOf) else right
        wordy = any(isinstance(item, Sentence | Words) for item in left)  # verdicts on several parts, or an ellipsis
        if wordy or (self.rules.ordered and isinstance(gold, ListOf)):
            return self._in_order(left, right)
        return self._unordered(left, right)

    def _gold_assignments(self, gold: dict[str, Node], answer: Node, found: dict[str, Node] | None) -> bool:
        if found is not None:
            return gold.keys() == found.keys() and all(self.same(value, found[name]) for name, value in gold.items())
        ordered = isinstance(answer, Bracketed) and (answer.opening, answer.closing) == ("(", ")")
        return (
            ordered
            and list(gold) == sorted(gold)
            and self._in_order(tuple(gold.values()), forms.items_in_brackets(answer))
        )

    def _answer_assignments(self, gold: Node, answer: dict[str, Node]) -> bool:
        values = tuple(answer.values())
        if len({id(value) for value in values}) == 1 and not isinstance(gold, Bracketed | ListOf | SetOf):
            return self.same(gold, values[0])
        if _names(forms.items(gold)):
            return False
        worded = all(name.startswith(("text:", "max(", "min(")) for name in answer)
        if isinstance(gold, Bracketed):
            point = forms.bracket_kind(gold) == "()" and not worded  # words have no order that coordinates could have
            return point and self._in_order(gold.items, [answer[name] for name in sorted(answer)])
        if isinstance(gold, ListOf | SetOf):
            indexed = len({name.partition("_")[0] for name in answer}) == 1
            free = (indexed or worded) and not (self.rules.ordered and isinstance(gold, ListOf))
            return self._unordered(gold.items, values) if free else self._in_order(gold.items, values)
        return False

    def _distinct(self, items: tuple[Node, ...]) -> tuple[Node, ...]:
        distinct: list[Node] = []
        for item in items[:MAX_ITEMS]:
            if not any(self._equal_items(item, other) for other in distinct):
                distinct.append(item)
        return (*distinct, *items[MAX_ITEMS:])

    def _equal_items(self, one: Node, two: Node) -> bool:
        ours, theirs = rational_or_none(one), rational_or_none(two)
        return self.same(one, two) if ours is None or theirs is None else ours == theirs

    def _in_order(self, gold: Sequence[Node], answer: Sequence[Node]) -> bool:
        return len(gold) == len(answer) and all(self._same_item(*pair) for pair in zip(gold, answer, strict=True))

    def _same_item(self, gold: Node, answer: Node) -> bool:
        """As `same`, but inside a container a set of one item is no longer that item, nor words with an equation that."""
        alike = all(isinstance(gold, kind) == isinstance(answer, kind) for kind in (SetOf, Sentence))
        return alike and self.same(gold, answer)

    def _unordered(self, gold: Sequence[Node], answer: Sequence[Node]) -> bool:
        if len(gold) != len(answer) or len(gold) > MAX_ITEMS:
            return False
        left = list(answer)
        for item in gold:
            match = next((place for place, other in enumerate(left) if self._same_item(item, other)), None)
            if match is None:
                return False
            del left[match]
        return True

    # Relations.

    def _relations(self, gold: Node, answer: Node) -> bool:
        if "C" in symbols(gold) - symbols(answer) and "c" not in symbols(gold) and not self.in_prompt(Symbol("C")):
            answer = forms.renamed(answer, {"c": "C"})
        if isinstance(gold, Relation) != isinstance(answer, Relation):
            gold, answer = forms.residue_alone(gold), forms.residue_alone(answer)
        if not isinstance(gold, Relation):
            if not isinstance(answer, Relation):
                return self.same(gold, answer)
            return any(self.same(gold, value) for value in self._stated(answer))
        if not isinstance(answer, Relation):
            name, value = forms.solved(gold)
            if name is not None:
                return self.same(value, answer)
            return any(self.same(value, answer) for value in self._exact_values(gold))
        if _OPEN_RELATIONS & {*gold.operators, *answer.operators}:
            return self._inequalities(gold, answer)
        return self._equations(gold, answer)

    def _stated(self, answer: Relation) -> tuple[Node, ...]:
        """The values in a chain of equalities, if it says what the answer is and every link is true."""
        operators, operands = list(answer.operators), list(answer.operands)
        if set(operators) - {"=", "~"}:
            return ()
        if self._is_name(operands[0]):
            operators, operands = operators[1:], operands[1:]
            formulas = next((place for place, operand in enumerate(operands) if not symbols(operand)), 0)
            operators, operands = operators[formulas:], operands[formulas:]  # area = length times width = 3 times 4
        elif self._is_name(operands[-1]) and len(operands) == 2 and operators == ["="]:
            operators, operands = [], operands[:1]
        exact = [operands[0]]
        for operator, operand in zip(operators, operands[1:], strict=True):
            if operator == "=" and not self._same_value(exact[-1], operand):
                return ()
            if operator == "~" and not self.values.consistent(*map(forms.without_unit, (exact[-1], operand))):
                return ()
            exact += [operand]
        return tuple(exact)

    def _exact_values(self, gold: Relation) -> tuple[Node, ...]:
        """What a gold that is no equation of its own stands for: the constants that it says are equal, or a named value."""
        if set(gold.operators) - {"=", "~"}:
            return ()
        operands = gold.operands[1:] if forms.is_named_thing(gold.operands[0]) else gold.operands
        exact = [operands[0]]
        for operator, operand in zip(gold.operators[len(gold.operands) - len(operands) :], operands[1:], strict=True):
            if operator == "~":
                break
            exact.append(operand)
        named = len(operands) < len(gold.operands)
        return tuple(exact) if named or not any(symbols(value) for value in exact) else ()

    def _is_name(self, node: Node) -> bool:
        names = symbols(node)
        if forms.label(node) is not None or forms.is_named_thing(node) or "..." in names:
            return True
        return forms.is_made_of_parameters(node) if self.without_prompt else bool(names) and self.in_prompt(node)

    def _same_value(self, one: Node, two: Node) -> bool:
        ours, theirs = forms.measured(forms.split_unit(one)[1]), forms.measured(forms.split_unit(two)[1])
        one, two = forms.without_unit(one), forms.without_unit(two)
        if ours is not None and theirs is not None:
            if ours.dimension != theirs.dimension:
                return False
            if ours.factor != theirs.factor:
                one = Multiply((Number(ours.factor / theirs.factor), one))
        return self.values.identical(one, two)

    def _equations(self, gold: Relation, answer: Relation) -> bool:
        name, value = forms.solved(gold)
        answer_name, _ = forms.solved(answer)
        if name is not None and answer_name is not None:
            names = forms.renaming(gold, answer)
            if any(ours in symbols(answer.operands[-1]) or ours not in symbols(value) for ours in names.values()):
                return False  # of another value than the gold's, or at another place
            if forms.names_agree(name, answer_name) or not symbols(value) or symbols(gold) != symbols(answer):
                return forms.names_agree(name, answer_name) and any(
                    self.same(value, forms.renamed(stated, names)) for stated in self._stated(answer)
                )
        if len(gold.operands) != 2 or len(answer.operands) != 2 or not symbols(gold):
            if set(gold.operators) == set(answer.operators) == {"="}:
                return self._unordered(gold.operands, answer.operands)
            return any(
                gold.operators == operators and self._in_order(gold.operands, operands)
                for operators, operands in ((answer.operators, answer.operands), forms.reversed_chain(answer))
            )
        return any(
            self._proportional(*pair, positive=False)
            for pair in itertools.product(*map(forms.forms_of, (gold, answer)))
        )

    def unsolved(self, gold: Node, answer: Node, given: tuple[Relation, ...]) -> bool:
        """Whether an equation is one of those given up to a factor, where the gold solves it for a name."""
        if not (isinstance(gold, Relation) and isinstance(answer, Relation) and len(answer.operands) == 2):
            return False
        if forms.solved(gold)[0] is None or forms.solved(answer)[0] is not None or set(answer.operators) != {"="}:
            return False
        return any(self._proportional(one, answer, positive=False) for one in given)

    def _proportional(self, gold: Relation, answer: Relation, *, positive: bool) -> bool:
        """Whether two equations are one up to a constant factor, which must be positive for inequalities.

        The factor is what they differ by at a point, if neither vanishes there.
        """
        ours, theirs = forms.difference(gold), forms.difference(answer)
        names = sorted(symbols(ours) | symbols(theirs))
        if not (symbols(ours) and symbols(theirs)):
            return False  # any two constants are proportional
        for first in (2, 5, 11):
            above, below = ours, theirs
            for place, name in enumerate(names):
                value = Number(Fraction(first + 3 * place, 7))
                above, below = substitute(above, name, value), substitute(below, name, value)
            sizes = real_value(above), real_value(below)
            if sizes[0] and sizes[1]:
                one_sign = sizes[0] * sizes[1] > 0 or not positive
                return bool(one_sign) and self.values.identical(Multiply((ours, below)), Multiply((theirs, above)))
        return False

    # Matrices and tuples.

    def _matrices(self, gold: Node, answer: Node) -> bool:
        gold, answer = forms.as_matrix(gold), forms.as_matrix(answer)
        if isinstance(gold, Matrix) and isinstance(answer, Matrix):
            shape = [len(row) for row in gold.rows] == [len(row) for row in answer.rows]
            return shape and self._in_order(sum(gold.rows, ()), sum(answer.rows, ()))
        matrix, other = (gold, answer) if isinstance(gold, Matrix) else (answer, gold)
        assert isinstance(matrix, Matrix)
        entries = forms.vector_entries(matrix)
        if entries is None or self.rules.vectors == "strict" or not isinstance(other, Bracketed):
            return False
        if forms.bracket_kind(other) not in ("()", "[]"):
            return False
        coordinates = other.items
        return self._in_order(entries, coordinates) if matrix is gold else self._in_order(coordinates, entries)

    def _tuples(self, gold: Node, answer: Node) -> bool:
        if self.rules.brackets == "lenient":
            return self._in_order(forms.items_in_brackets(gold), forms.items_in_brackets(answer))
        if not (isinstance(gold, Bracketed) and isinstance(answer, Bracketed)):
            return False
        same_brackets = forms.bracket_kind(gold) == forms.bracket_kind(answer)
        return same_brackets and self._in_order(gold.items, answer.items)

    # Scalars.

    def _antiderivatives(self, gold: Node, answer: Node) -> bool:
        """Compare an indefinite integral with an antiderivative that has its constant."""
        integral, other = (gold, answer) if forms.is_indefinite(gold) else (answer, gold)
        assert isinstance(integral, Integral)
        constant = forms.free_constant(other) is not None
        return constant and self.values.identical(integral.body, Derivative(other, integral.variable))

    def _scalars(self, gold: Node, answer: Node) -> bool:
        if forms.is_indefinite(gold) or forms.is_indefinite(answer):
            return self._antiderivatives(gold, answer)
        if any(bound_name(part) for part in walk(gold)) and unordered(gold) == unordered(answer):
            return True
        gold_value, gold_unit = forms.split_unit(gold)
        answer_value, answer_unit = forms.split_unit(answer)
        units = (forms.measured(gold_unit), forms.measured(answer_unit))
        if units != (None, None) and (isinstance(gold, Percent) or isinstance(answer, Percent)):
            return False
        if self.rules.degrees == "unit":
            gold_value, answer_value = forms.with_plain_degrees(gold_value), forms.with_plain_degrees(answer_value)
        if symbols(gold_value) and isinstance(answer, Quantity) and len(answer.unit.label) == 1:
            answer_value, answer_unit = Multiply((answer.value, Symbol(answer.unit.label))), None
        if gold_unit is not None and answer_unit is None and symbols(answer_value) and not symbols(gold_value):
            answer_value, answer_unit = forms.unit_from_letters(answer_value)
        if forms.is_word_of_letters(gold_value) or forms.is_word_of_letters(answer_value):
            return gold_value == answer_value
        if not self._given(gold_value):
            answer_value = forms.with_constants_named(gold_value, answer_value)
        factor = self._unit_factor(gold_unit, answer_unit)
        if factor is None:
            return self._by_radians(gold, answer)
        if factor != 1:
            answer_value = Multiply((Number(factor), answer_value))
        if self._percents(gold_value, answer_value) or self._differ_by_constant(gold_value, answer_value):
            return True
        return forms.DEGREE in (gold_unit, answer_unit) and self._by_radians(gold, answer)

    def _given(self, gold: Node) -> bool:
        """Whether the prompt names what could be an arbitrary constant, which then is none."""
        return any(self.in_prompt(Symbol(name)) for name in forms.arbitrary_constants(gold))

    def _differ_by_constant(self, gold: Node, answer: Node) -> bool:
        r"""Whether two sums with an arbitrary constant differ by as much as they do at a point: `\ln|x|+C`, `\ln|3x|+C`."""
        constant = forms.free_constant(gold)
        names = (symbols(gold) | symbols(answer)) - {constant}
        if constant is None or constant != forms.free_constant(answer) or len(names) != 1 or self._given(gold):
            return False
        (name,) = names
        gold, answer = (substitute(node, constant, Number(Fraction(0))) for node in (gold, answer))
        for place in (2, 9, 30):
            ours, theirs = (substitute(node, name, Number(Fraction(place, 7))) for node in (gold, answer))
            if real_value(ours) is not None and real_value(theirs) is not None:
                return self.values.identical(Add((gold, theirs)), Add((answer, ours)))
        return False

    def _unit_factor(self, gold: Unit | None, answer: Unit | None) -> Fraction | None:
        """What the answer's value is multiplied with before it is compared; None if the units make it wrong."""
        if gold is not None and answer is not None and forms.names_other_thing(gold, answer):
            return None
        gold, answer = forms.measured(gold), forms.measured(answer)
        if gold is None or answer is None:
            return None if self.rules.units == "require" and gold != answer else Fraction(1)
        if gold.dimension != answer.dimension:
            partial = self.rules.units != "require" and forms.prices(gold, answer)
            return Fraction(1) if partial else None
        if gold.factor == answer.factor:
            return Fraction(1)
        return answer.factor / gold.factor if self.rules.units == "convert" else None

    def _by_radians(self, gold: Node, answer: Node) -> bool:
        convert = self.rules.degrees == "convert"
        return convert and self.values.equal(forms.without_unit(gold), forms.without_unit(answer))

    def _percents(self, gold: Node, answer: Node) -> bool:
        """Compare numbers of which either may be a percentage."""
        of_gold, gold_number = forms.without_percent(gold)
        of_answer, answer_number = forms.without_percent(answer)
        if self.rules.percent == "factor":
            return self._by_factor(gold_number, answer_number)
        if of_gold == of_answer:
            return self.values.equal(gold_number, answer_number)
        if self.rules.percent == "require":
            return False
        if self.values.equal(gold, answer):
            return True
        return (
            self.rules.percent == "either"
            and forms.at_least_one(gold_number)
            and self.values.equal(gold_number, answer_number)
        )

    def _by_factor(self, gold: Node, answer: Node) -> bool:
        """Whether a number is the gold, or both are written in digits and it is the hundredth or the hundredfold."""
        if self.values.equal(gold, answer):
            return True
        digits = all(isinstance(node.value if isinstance(node, Negate) else node, Number) for node in (gold, answer))
        factors = (Fraction(1, 100), Fraction(100)) if digits else ()
        return any(self.values.equal(Multiply((Number(factor), gold)), answer) for factor in factors)


def _is(*kinds: type[Node]) -> Callable[[Node], bool]:
    return lambda node: isinstance(node, kinds)


# What decides how two answers are compared: the first of these that fits either.
_COMPARISONS: tuple[tuple[Callable[[Node], bool], Callable[[Comparer, Node, Node], bool]], ...] = (
    (_is(Choice), Comparer._choices),
    (_is(Words, Sentence), Comparer._sentences),
    (_is(Clock), Comparer._clocks),
    (_is(Ratio), Comparer._ratios),
    (forms.is_set_like, Comparer._sets),
    (lambda node: isinstance(node, ListOf | SetOf) or bool(forms.assignments(node)), Comparer._collections),
    (_is(Relation), Comparer._relations),
    (_is(Matrix), Comparer._matrices),
    (_is(Bracketed), Comparer._tuples),
)


def _names(nodes: Sequence[Node]) -> set[str | None]:
    """The names that items are said to be values of."""
    return {forms.label(node.operands[0]) for node in nodes if isinstance(node, Relation)}


def _are_statements(node: Node) -> TypeGuard[ListOf]:
    r"""Whether a list is of letters joined by words or signs, as in `p \land q`, where the words matter."""
    joined = isinstance(node, ListOf) and node.joiner in ("and", "or")
    return joined and all(isinstance(item, Symbol) for item in forms.items(node))


def _bare_equation(gold: Node) -> Relation | None:
    r"""The equation of a gold with words in front that say what it is of: `\text{the plane }x+y=5`."""
    words, *rest = gold.parts if isinstance(gold, Sentence) else (gold,)
    equation = rest[0] if len(rest) == 1 else None
    if not isinstance(words, Words) or not isinstance(equation, Relation) or set(equation.operators) - {"=", "~"}:
        return None
    return None if NO_NOUNS.intersection(words.text.split()) else equation
