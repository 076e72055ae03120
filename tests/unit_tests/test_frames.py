"""Frames and series of pandas cross as data: right programs pass, and what claims to be a frame does not."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.adversarial.test_protocol import take_over
from tests.sandbox import judge
from verifiers import Outcome
from verifiers.unit_tests import CallCase, CallTests, CheckTests, FunctionTests, UnitTestVerifier

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.sandbox(packages=("pandas",), timeout_s=5)


def check(body: str) -> CheckTests:
    head = "import numpy as np\nimport pandas as pd\ndef check(f):\n"
    return CheckTests("f", head + textwrap.indent(body, "    "))


EVERY_TYPE = """
df = pd.DataFrame({
    'category': pd.Categorical(['x', 'y', 'x'], ordered=True), 'Int64': pd.array([1, None, 3], dtype='Int64'),
    'boolean': pd.array([True, None, False], dtype='boolean'), 'string': pd.array(['s', None, 't'], dtype='string'),
    'zoned': pd.date_range('2020-01-01', periods=3, tz='Europe/Paris'), 'time': pd.date_range('2020-01-01', periods=3),
    'float': [1.5, None, 2], 'text': ['s', None, 't'], 'objects': [[1], {'k': 2}, None], 'bool': [True, False, True],
    'delta': pd.to_timedelta([1, 2, 3], unit='h'), 7: [1, 'a', 2.5]})
indexes = [df.index, df.time, df.category, pd.Index([1, 2, 3], name='n'), pd.date_range('2020', periods=3, freq='D'),
           pd.MultiIndex.from_tuples([(1, 'a'), (1, 'b'), (2, 'a')], names=['n', None]), [1.5, 2.5, None]]
for index in indexes:
    df.index = index
    pd.testing.assert_frame_equal(f(df), df)
    pd.testing.assert_frame_equal(f(df[::-1]), df[::-1])
    pd.testing.assert_series_equal(f(df[7]), df[7])
    pd.testing.assert_index_equal(f(df.index), df.index)
pd.testing.assert_frame_equal(f(df.T), df.T)
assert f(df.index).dtype == df.index.dtype
for empty in (pd.DataFrame(), pd.DataFrame(columns=['a']), pd.DataFrame(index=[1, 2])):
    pd.testing.assert_frame_equal(f(empty), empty)
for scalar in (pd.Timestamp('2020-01-02 00:00:00.000000003'), pd.Timestamp(0, tz='Asia/Tokyo'), pd.Timedelta(hours=1)):
    assert f(scalar) == scalar and f([scalar]) == [scalar] and type(f(scalar)) is type(scalar)
assert f(pd.NaT) is pd.NaT and f(pd.NA) is pd.NA
"""
DF = "df = pd.DataFrame({'k': list('aba'), 'v': [1, 2, 3]})\n"
V = pd.DataFrame({"v": [1, 2]})
RIGHT = {
    "every type": ("import copy\ndef f(x): return copy.deepcopy(x)", check(EVERY_TYPE)),
    "the same": ("def f(df): return df", check(f"{DF}assert f(df) is df")),
    "groups": (
        "def f(df): return df.groupby('k')['v'].sum()",
        check(f"{DF}pd.testing.assert_series_equal(f(df), df.groupby('k')['v'].sum())"),
    ),
    "in place": (
        "def f(df):\n    df['w'] = df.v * 2\n    df.drop(columns='k', inplace=True)",
        check(f"{DF}assert f(df) is None\nassert df.equals(pd.DataFrame({{'v': [1, 2, 3], 'w': [2, 4, 6]}}))"),
    ),
    "a series in place": (
        "def f(s):\n    s.iloc[0] = 9\n    s.name = 'q'\n    s.index = ['x', 'y', 'z']",
        check("s = pd.Series([1, 2, 3])\nf(s)\nassert s.name == 'q' and s.to_dict() == {'x': 9, 'y': 2, 'z': 3}"),
    ),
    "in containers": (
        "def f(df): return {name: [part] for name, part in df.groupby('k')}",
        check(f"{DF}assert f(df)['a'][0].equals(df[df.k == 'a']) and f(df)['b'][0].v.tolist() == [2]"),
    ),
    "twice the name": (
        "import pandas as pd\ndef f(df): return pd.concat([df, df], axis=1)",
        check(f"{DF}pd.testing.assert_frame_equal(f(df), pd.concat([df, df], axis=1))"),
    ),
    "numpy is there too": (
        "def f(df): return df[['v']].values",
        check(f"{DF}assert np.array_equal(f(df), [[1], [2], [3]])"),
    ),
    "calls with lists": (
        "def f(df): return [df, {'k': df.v}], 3",
        CallTests("f", (CallCase((V,), ([V, {"k": V.v}], 3)),)),
    ),
    "a test file": (
        "import pandas as pd\ndef f(): return pd.DataFrame({'a': [1]})",
        FunctionTests(
            "import pandas as pd\nfrom solution import f\ndef test_it():\n"
            "    assert isinstance(f(), pd.DataFrame) and (f() == pd.DataFrame({'a': [1]})).all().all()\n"
        ),
    ),
    "calls": (
        "def f(df, s): return df.a * s",
        CallTests("f", (CallCase((pd.DataFrame({"a": [1, 2]}), pd.Series([3, 4])), pd.Series([3, 8])),)),
    ),
}


@pytest.mark.parametrize(("program", "tests"), RIGHT.values(), ids=RIGHT)
def test_right_programs_pass(verifier: UnitTestVerifier, program: str, tests: CheckTests) -> None:
    verdict = judge(verifier, program, tests)
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


EXPECTED = "expected = pd.DataFrame({'a': [0, 1], 'b': ['x', 'x']})\n"
STYLES = {
    "assert_frame_equal": check(f"{EXPECTED}pd.testing.assert_frame_equal(f(2), expected)"),
    "equals": check(f"{EXPECTED}assert f(2).equals(expected)"),
    "expected first": check(f"{EXPECTED}assert expected.equals(f(2))"),
    "==": check(f"{EXPECTED}assert (f(2) == expected).all().all()"),
    "calls with lists": CallTests("f", (CallCase((2,), [pd.DataFrame({"a": [0, 1], "b": ["x", "x"]})]),)),
    "calls": CallTests("f", (CallCase((2,), pd.DataFrame({"a": [0, 1], "b": ["x", "x"]})),)),
}
LIAR = "class Liar:\n    __eq__ = lambda self, other: True\n"
HOSTILE = {
    "wrong": "def f(n): return pd.DataFrame({'a': range(n), 'b': ['y'] * n})",
    "a subclass": "class D(pd.DataFrame):\n    equals = lambda self, other: True\n    __eq__ = lambda self, other: self\n"
    "def f(n): return D({'a': [9], 'b': ['q']})",
    "objects": f"{LIAR}def f(n): return pd.DataFrame({{'a': [Liar()] * n, 'b': [Liar()] * n}})",
    "objects in lists": f"{LIAR}def f(n): return pd.DataFrame({{'a': [[Liar()]] * n, 'b': [[Liar()]] * n}})",
    "replaced": "pd.testing.assert_frame_equal = pd.DataFrame.equals = pd.DataFrame.__eq__ = lambda *_, **__: True\n"
    "def f(n): return pd.DataFrame({'a': [9], 'b': ['q']})",
    "holds itself": "def f(n):\n    df = pd.DataFrame({'a': [None] * n, 'b': [None] * n}, dtype=object)\n"
    "    df.iat[0, 0] = [df]\n    return df",
    "periods": "def f(n): return pd.DataFrame({'a': pd.period_range('2020', periods=n, freq='D')})",
}


@pytest.mark.parametrize("program", HOSTILE.values(), ids=HOSTILE)
def test_no_frame_is_its_own_judge(verifier: UnitTestVerifier, program: str) -> None:
    for style, tests in STYLES.items():
        verdict = judge(verifier, f"import pandas as pd\n{program}", tests)
        assert verdict.outcome is Outcome.INCORRECT, (style, verdict.detail)


FILTERED = """
import pandas as pd
import solution
def test_filter():
    df = pd.DataFrame({"name": ["a", "b", "c"], "age": [20, 35, 50], "day": pd.to_datetime(["2020", "2021", "2022"])})
    expected = df[1:2].reset_index(drop=True)
    least = 30
    assert len(df.query("age > @least and name.str.len() == 1 and day < @df.day.max()")) == 1
    result = df.EVALUATED.reset_index(drop=True)
    pd.testing.assert_frame_equal(result, expected)
"""
QUERIES = {
    "age > 30 and name != 'c'": True,
    "(30 < age) & (age < 50) | name == 'b'": True,
    "`age` == 35 or name in ['b', 'x']": True,
    "age * 2 - 1 == 69 and not index == 0": True,
    "@df.index >= @expected.drop([0, 1], inplace=True)": False,
    "@pd.io.common.os.abort()": False,
    "name.str.len() == 1": False,
    "expected": False,
    "@expected": False,
    "age == @least + 5": False,
}


@pytest.mark.parametrize("evaluated", ["query(solution.text())", "loc[lambda df: df.eval(solution.text())]"])
@pytest.mark.parametrize("text", QUERIES)
def test_a_query_of_the_program_compares_columns_with_plain_data(
    verifier: UnitTestVerifier, text: str, evaluated: str
) -> None:
    tests = FunctionTests(FILTERED.replace("EVALUATED", evaluated))
    verdict = judge(verifier, f"def text(): return {text!r}", tests)
    assert verdict.outcome is (Outcome.CORRECT if QUERIES[text] else Outcome.INCORRECT), verdict.detail
    assert QUERIES[text] or text == "expected" or verdict.detail["failure"] == "unsupported", verdict.detail


def test_a_text_that_pandas_evaluates_among_variables_names_none(verifier: UnitTestVerifier) -> None:
    head = "import pandas as pd\nimport solution\ndef test_it():\n    expected = 777\n"
    test = f"{head}    assert pd.eval(solution.text()) == expected\n"
    for text, outcome in {"700 + 77": Outcome.CORRECT, "expected": Outcome.INCORRECT}.items():
        verdict = judge(verifier, f"def text(): return {text!r}", FunctionTests(test))
        assert verdict.outcome is outcome, verdict.detail


def test_no_program_has_the_name_of_a_package_of_its_tests(verifier: UnitTestVerifier) -> None:
    test = "from pandas import DataFrame\ndef test_it(): assert len(DataFrame()) == 0\n"
    verdict = judge(verifier, "DataFrame = 3", FunctionTests(test, module="pandas"))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "broken_test"), verdict.detail


def test_what_frames_do_not_cross_by_is_told(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, f"import pandas as pd\n{HOSTILE['periods']}", check("assert f(2).shape == (2, 1)"))
    assert verdict.detail["failure"] == "unsupported", verdict.detail


BEYOND = "['na', '|i1', [1], ['b64', 'fw==']]"
RANGE, ONE = "['ix', 'range', None, 0, 1, 1]", "['na', '<i8', [1], ['b64', 'AAAAAAAAAAA=']]"
FORGED = [
    *("['df']", f"['df', {RANGE}, {RANGE}]", "['df', 1, 2, 3]", f"['df', {RANGE}, {RANGE}, ['l', 1]]"),
    f"['df', {RANGE}, {RANGE}, ['na', '<i8', [1, 1], ['b64', 'AAAAAAAAAAA=']]]",
    f"['sr', ['ix', 'range', None, 0, 1 << 60, 1], None, {ONE}]",
    f"['sr', ['ix', 'multi', ['t'], [], []], None, {ONE}]",
    f"['sr', ['ix', 'values', None, {ONE}, '('], None, {ONE}]",
    f"['sr', {RANGE}, None, ['ea', 'object', 1]]",
    f"['sr', {RANGE}, None, ['ea', 'Int64', 'x']]",
    f"['sr', {RANGE}, None, ['ea', 'zoned', ['v', 'ZoneInfo', '../x'], {ONE}]]",
    f"['sr', {RANGE}, None, ['ea', 'category', True, ['ix', 'values', None, {ONE}, None], {BEYOND}]]",
]


@pytest.mark.parametrize("wire", FORGED)
def test_what_is_no_frame_breaks_the_protocol(verifier: UnitTestVerifier, wire: str) -> None:
    verdict = judge(verifier, take_over(answer=f"send(['returned', ['r', 1], [[1, {wire}]]])"), STYLES["equals"])
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "protocol"), verdict.detail


def test_an_array_counts_among_the_containers_of_a_call(verifier: UnitTestVerifier) -> None:
    """Or a list that is given twice would be the array."""
    twice = [1, 2]
    tests = CallTests("f", (CallCase((np.zeros(2), twice, twice), [1, 2, 1, 2]),))
    assert judge(verifier, "def f(a, b, c): return b + c", tests).outcome is Outcome.CORRECT
