"""Small Python functions, described in words and judged by unit tests."""

from __future__ import annotations

import functools
import itertools
import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.procedural.base import GeneratedProblem, ProblemShape, ProceduralDataset
from verifiers import Between, Problem

_DRAWN_INPUTS = 6
_LETTERS = "abcdefgh"
_INTEGER_RANGE = range(-30, 31)


@dataclass(frozen=True)
class Fragment:
    """A building block of a function, given in words, as Python source, and as a callable."""

    words: str
    code: str
    apply: Callable[[Any], Any]  # takes an int, a character or a list of these, depending on the table
    edge: int = 0
    """The argument at which a condition changes between true and false."""


@dataclass(frozen=True)
class FunctionProblem:
    """A function to write: its description, a correct body, the function itself, and the arguments of the tests."""

    head: str
    words: str
    body: str
    apply: Callable[[Any], Any]
    inputs: Callable[[np.random.Generator], tuple[object, ...]]
    key: object
    """The function's results on sample elements, and a description of its effect on collections."""
    seed: int = 0
    """Seed of the randomly drawn inputs."""


def _affine(a: int, b: int) -> Fragment:
    word, sign = ("plus", "+") if b > 0 else ("minus", "-")
    return Fragment(f"{a} times x {word} {abs(b)}", f"{a} * x {sign} {abs(b)}", lambda x: a * x + b)


def _square(b: int) -> Fragment:
    return Fragment(f"x squared plus {b}", f"x * x + {b}", lambda x: x * x + b)


def _distance(k: int) -> Fragment:
    return Fragment(f"the distance between x and {k}", f"abs(x - {k})", lambda x: abs(x - k))


def _above(k: int) -> Fragment:
    return Fragment(f"greater than {k}", f"x > {k}", lambda x: x > k, edge=k)


def _below(k: int) -> Fragment:
    return Fragment(f"less than {k}", f"x < {k}", lambda x: x < k, edge=k)


def _multiple(m: int) -> Fragment:
    return Fragment(f"divisible by {m}", f"x % {m} == 0", lambda x: x % m == 0, edge=m)


def _no_multiple(m: int) -> Fragment:
    return Fragment(f"not divisible by {m}", f"x % {m} != 0", lambda x: x % m != 0, edge=m)


def _among(letters: str) -> Fragment:
    return Fragment(f"one of {', '.join(letters)}", f'c in "{letters}"', lambda c: c in letters)


def _not_among(letters: str) -> Fragment:
    return Fragment(f"none of {', '.join(letters)}", f'c not in "{letters}"', lambda c: c not in letters)


def _repeated(times: int) -> Fragment:
    return Fragment(f"written {times} times", f"c * {times}", lambda c: c * times)


# Tables of all blocks; an index is drawn from each. The longest words of the tables determine the longest prompt.
_VALUES = (
    *(_affine(a, b) for a in range(2, 10) for b in (*range(-9, 0), *range(1, 10))),
    *map(_square, range(1, 10)),
    *map(_distance, range(10)),
)
_CONDITIONS = (
    *map(_above, range(-9, 10)),
    *map(_below, range(-9, 10)),
    *map(_multiple, range(2, 8)),
    *map(_no_multiple, range(2, 8)),
)
_SUMMARIES = (
    Fragment("the sum of", "sum({})", sum),
    Fragment("the largest (0 if there is none) of", "max(({}), default=0)", lambda values: max(values, default=0)),
    Fragment("the smallest (0 if there is none) of", "min(({}), default=0)", lambda values: min(values, default=0)),
    Fragment("how many different values there are of", "len({{{}}})", lambda values: len(set(values))),
)
_LISTINGS = (
    Fragment("the list of", "[{}]", list),
    Fragment("the list, in reverse order, of", "[{}][::-1]", lambda values: values[::-1]),
    Fragment("the list, sorted, of", "sorted({})", sorted),
)
_CHARACTER_CONDITIONS = tuple(
    condition("".join(letters)) for condition in (_among, _not_among) for letters in itertools.combinations(_LETTERS, 3)
)
_CHARACTER_VALUES = (
    Fragment("unchanged", "c", lambda c: c),
    Fragment("in upper case", "c.upper()", str.upper),
    *map(_repeated, range(2, 6)),
)
_JOININGS = (
    Fragment("in order", '"".join({})', "".join),
    Fragment("in reverse order", '"".join([{}][::-1])', lambda pieces: "".join(pieces[::-1])),
    Fragment("sorted by code point", '"".join(sorted({}))', lambda pieces: "".join(sorted(pieces))),
)

_TABLES: Mapping[int, tuple[tuple[Fragment, ...], ...]] = {
    1: (_VALUES, _VALUES, _CONDITIONS),
    2: (_VALUES, _CONDITIONS, _SUMMARIES + _LISTINGS),
    3: (_VALUES, _VALUES, _CONDITIONS, _CONDITIONS, _SUMMARIES + _LISTINGS),
}
"""The tables of the parts of each level's functions; for level 2, of the functions of a list."""
_STRING_TABLES = (_CHARACTER_VALUES, _CHARACTER_CONDITIONS, _JOININGS)
_STRING_CODES = math.prod(map(len, _TABLES[2])) // 2
"""Number of codes of level 2 for functions of a string. This is one code in three, although few functions take a string."""


@dataclass(frozen=True)
class Function(ProceduralDataset[FunctionProblem]):
    '''Write the body of a small Python function, given its typed signature and a docstring.

    The prompt is the function's first lines, and the completion continues from there (or is the whole function again). The
    tests call the function with at least 8 arguments, which are edge cases and random values. Functions that do the same to
    each element of their argument belong to the same split, whatever their description.

    A function of level 1 maps a number in one of two ways. A function of level 2 filters, maps and collects a list or a string.
    A function of level 3 filters a list, maps its elements in one of two ways and collects them. A prompt of level 2:

    ```python
    def f(xs: list[int]) -> int:
        """Return the sum of 3 times x plus 2, for each x in xs that is greater than 5."""
    ```

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        level: 1, 2 or 3.
    '''

    name: ClassVar[str] = "function"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("unit_tests", {})

    level: Annotated[int, Between(1, 3)] = 1

    def _describe(self) -> ProblemShape:
        programs = _longest_programs(self.level)
        characters = string.digits + string.ascii_letters + string.punctuation + " \n"
        return ProblemShape(
            difficulty=f"level-{self.level}",
            max_prompt_bytes=max(len(_prompt(program)) for program in programs),
            max_answer_bytes=max(len(program.body) for program in programs),
            prompt_alphabet=characters,
            answer_alphabet=characters,
        )

    @property
    def _space(self) -> int:
        strings = _STRING_CODES if self.level == 2 else 0
        return strings + math.prod(map(len, _TABLES[self.level]))

    def _at(self, code: int) -> FunctionProblem:
        return replace(self._program(code), seed=code)

    def _program(self, code: int) -> FunctionProblem:
        if self.level == 1:
            return _number_program(*_chosen(code, _TABLES[1]))
        if self.level == 2:
            if code < _STRING_CODES:
                return _string_program(*_chosen(code, _STRING_TABLES))
            return _list_program(*_chosen(code - _STRING_CODES, _TABLES[2]))
        value, otherwise, case, condition, collect = _chosen(code, _TABLES[3])
        return _list_program(_either(value, otherwise, case), condition, collect)

    def _question(self, content: FunctionProblem) -> str | None:
        return content.words if self.level == 2 else None

    @property
    def _least_questions(self) -> int:
        return math.prod(map(len, _TABLES[self.level]))

    def _key(self, content: FunctionProblem) -> object:
        return content.key

    def in_words(self, problem: Problem) -> str:
        """The problem's question in words."""
        return f"Complete this Python function:\n\n```python\n{problem.prompt}```"

    def _task(self, content: FunctionProblem) -> GeneratedProblem:
        # Only this family is judged by unit tests; the import is here so that the other families need not wait for it.
        from verifiers.unit_tests import CallCase, CallTests

        prompt = _prompt(content)
        inputs = content.inputs(np.random.default_rng(content.seed))
        cases = tuple(CallCase((argument,), content.apply(argument)) for argument in inputs)
        return GeneratedProblem(prompt, CallTests("f", cases, prefix=prompt), content.body)


def _prompt(program: FunctionProblem) -> str:
    return f'{program.head}\n    """Return {program.words}."""\n'


def _chosen(code: int, tables: tuple[tuple[Fragment, ...], ...]) -> Iterator[Fragment]:
    """The fragment that a code selects from each table. After the last combination, codes start again with the first."""
    for table in tables:
        code, index = divmod(code, len(table))
        yield table[index]


def _either(value: Fragment, otherwise: Fragment, condition: Fragment) -> Fragment:
    return Fragment(
        f"{value.words} if x is {condition.words} and {otherwise.words} if not",
        f"{value.code} if {condition.code} else {otherwise.code}",
        lambda x: value.apply(x) if condition.apply(x) else otherwise.apply(x),
        condition.edge,
    )


def _number_program(value: Fragment, otherwise: Fragment, condition: Fragment) -> FunctionProblem:
    either = _either(value, otherwise, condition)
    edges = {0, 1, -1, condition.edge - 1, condition.edge, condition.edge + 1}

    def inputs(rng: np.random.Generator) -> tuple[object, ...]:
        return *sorted(edges), *rng.integers(-100, 100, size=_DRAWN_INPUTS, endpoint=True).tolist()

    return FunctionProblem(
        head="def f(x: int) -> int:",
        words=either.words,
        body=f"    return {either.code}\n",
        apply=either.apply,
        inputs=inputs,
        key=_either_of(_on_integers(value), _on_integers(otherwise), _on_integers(condition)),
    )


@functools.cache
def _on_integers(fragment: Fragment) -> tuple[Any, ...]:
    return tuple(fragment.apply(x) for x in _INTEGER_RANGE)


def _either_of(values: Iterable[Any], others: Iterable[Any], conditions: Iterable[Any]) -> list[Any]:
    return [a if holds else b for a, b, holds in zip(values, others, conditions, strict=True)]


def _list_program(value: Fragment, condition: Fragment, collect: Fragment) -> FunctionProblem:
    near = [condition.edge - 1, condition.edge, condition.edge + 1, condition.edge]

    def inputs(rng: np.random.Generator) -> tuple[object, ...]:
        lengths = rng.integers(1, 8, size=_DRAWN_INPUTS, endpoint=True).tolist()
        return [], [0], near, *(rng.integers(-20, 20, size=length, endpoint=True).tolist() for length in lengths)

    return FunctionProblem(
        head=f"def f(xs: list[int]) -> {'int' if collect in _SUMMARIES else 'list[int]'}:",
        words=f"{collect.words} {value.words}, for each x in xs that is {condition.words}",
        body=f"    return {collect.code.format(f'{value.code} for x in xs if {condition.code}')}\n",
        apply=lambda xs: collect.apply([value.apply(x) for x in xs if condition.apply(x)]),
        inputs=inputs,
        key=[collect.words, *(value.apply(x) if condition.apply(x) else None for x in _INTEGER_RANGE)],
    )


def _string_program(value: Fragment, condition: Fragment, collect: Fragment) -> FunctionProblem:
    written = _LETTERS + _LETTERS.upper() + " "

    def inputs(rng: np.random.Generator) -> tuple[object, ...]:
        lengths = rng.integers(1, 10, size=_DRAWN_INPUTS, endpoint=True).tolist()
        drawn = ("".join(written[at] for at in rng.integers(len(written), size=length).tolist()) for length in lengths)
        return "", _LETTERS[-1], _LETTERS[::-1] + _LETTERS, *drawn

    return FunctionProblem(
        head="def f(s: str) -> str:",
        words=f"the characters of s that are {condition.words}, each {value.words}, joined {collect.words}",
        body=f"    return {collect.code.format(f'{value.code} for c in s if {condition.code}')}\n",
        apply=lambda s: collect.apply([value.apply(c) for c in s if condition.apply(c)]),
        inputs=inputs,
        key=[collect.words, *(value.apply(c) if condition.apply(c) else None for c in written)],
    )


def _longest_programs(level: int) -> list[FunctionProblem]:
    """Programs of the longest parts.

    No prompt or body of the level is longer than the longest prompt or body of these programs.
    """
    value, condition = _longest(_VALUES), _longest(_CONDITIONS)
    if level == 1:
        return [_number_program(value, value, condition)]
    if level == 3:
        value = _either(value, value, condition)
    programs = [_list_program(value, condition, _longest(table)) for table in (_SUMMARIES, _LISTINGS)]
    if level == 2:
        character_value, character_condition = _longest(_CHARACTER_VALUES), _longest(_CHARACTER_CONDITIONS)
        programs.append(_string_program(character_value, character_condition, _longest(_JOININGS)))
    return programs


def _longest(fragments: tuple[Fragment, ...]) -> Fragment:
    """A fragment with the longest words and the longest code in a table; words and code may come from different fragments."""
    words = max((fragment.words for fragment in fragments), key=len)
    return Fragment(words, max((fragment.code for fragment in fragments), key=len), fragments[0].apply)


class FunctionEnv(TaskEnv):
    """Small Python functions.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Write a Python function from a signature and a description in words. Problems are generated: nothing is downloaded,
    and the train and test splits are disjoint.

    ## Starting State
    The signature and the description.

    ## Reward
    1 if the function passes every generated test in the sandbox, else 0.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `level` (1). Defaults:
    `split="train"`, `max_new_tokens=160`.
    """

    task: ClassVar[TaskSpec] = procedural_task(
        Function, sizes={"train": 10_000, "test": 1_000}, max_new_tokens=160, chat_prompt="code_chat"
    )
