"""The bodies, the words and the callables of generated functions say the same."""

from itertools import islice

import pytest

from rlvr_envs.tasks import Function
from rlvr_envs.tasks.function import (
    _JOININGS,
    _LISTINGS,
    _SUMMARIES,
    _above,
    _affine,
    _among,
    _below,
    _distance,
    _list_program,
    _multiple,
    _number_program,
    _repeated,
    _square,
    _string_program,
)

LEVELS = (1, 2, 3)


def compiled(problem):
    namespace = {}
    exec(problem.prompt + problem.metadata["gold_completion"], namespace)
    return namespace["f"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_gold_program_gives_the_expected_results(level, split):
    """The source is written apart from the callables that make the expected results."""
    for problem in islice(Function(split, level=level), 150):
        function = compiled(problem)
        for call in problem.reference.cases:
            result = function(*call.args, **call.kwargs)
            assert (result, type(result)) == (call.expected, type(call.expected))


@pytest.mark.parametrize("level", LEVELS)
def test_tests_tell_the_function_from_a_constant(level):
    """A constant, or the argument itself, seldom passes: only where a condition lets nothing through."""
    passing = 0
    for problem in islice(Function(level=level), 300):
        cases = problem.reference.cases
        constant = all(case.expected == cases[0].expected for case in cases)
        passing += constant or all(case.expected == case.args[0] for case in cases)
    assert passing < 10


@pytest.mark.parametrize(
    ("program", "words", "results"),
    [
        (
            _number_program(_affine(3, -2), _distance(4), _multiple(3)),
            "3 times x minus 2 if x is divisible by 3 and the distance between x and 4 if not",
            [(-3, -11), (0, -2), (1, 3), (7, 3)],
        ),
        (
            _list_program(_square(1), _above(0), _SUMMARIES[0]),
            "the sum of x squared plus 1, for each x in xs that is greater than 0",
            [([3, 0, -5, 1], 12), ([], 0)],
        ),
        (
            _list_program(_affine(2, 1), _below(5), _LISTINGS[1]),
            "the list, in reverse order, of 2 times x plus 1, for each x in xs that is less than 5",
            [([5, 4, -1], [-1, 9])],
        ),
        (
            _string_program(_repeated(2), _among("abd"), _JOININGS[1]),
            "the characters of s that are one of a, b, d, each written 2 times, joined in reverse order",
            [("abcAd", "ddbbaa")],
        ),
    ],
)
def test_words_mean_what_the_function_does(program, words, results):
    """Results worked out by hand from the words."""
    assert program.words == words
    assert [program.apply(argument) for argument, _ in results] == [expected for _, expected in results]
