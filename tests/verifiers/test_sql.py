"""SQL by its results: what is the same, what a query may do, and what one database can't show."""

from __future__ import annotations

import contextlib
import pickle
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

import verifiers
from verifiers import Outcome, Problem, Verdict
from verifiers.sql import SQLReference, SQLVerifier
from verifiers.sql.rows import same_rows
from verifiers.sql.statements import is_ordered, query_text

Judge = Callable[..., Verdict]
SINGERS = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, height REAL);
INSERT INTO singer VALUES (1, 'Ada', 30, 1.7), (2, 'Bo', 20, 1.8), (3, 'Cy', 20, NULL), (4, 'Di', 40, 1.6);
"""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    verifier = SQLVerifier(timeout_s=2, most_rows=1000)

    def ask(completion: str, query: str, *scripts: str) -> Verdict:
        reference = {"query": query, "scripts": list(scripts or [SINGERS])}
        (verdict,) = verifiers.verify_batch(verifier, [completion], [Problem("p", "", reference)])
        return verdict

    yield ask
    verifier.close()


@pytest.mark.parametrize(
    ("completion", "gold", "outcome"),
    [
        ("SELECT name FROM singer", "SELECT name FROM singer", Outcome.CORRECT),
        ("```\nDROP TABLE singer\n```\n```sql\nSELECT 1\n```", "SELECT 1", Outcome.CORRECT),
        ("<think>SELECT 2</think>SELECT 1<|im_end|>", "SELECT 1", Outcome.CORRECT),
        ("-- all\nWITH s AS (SELECT * FROM singer) SELECT name FROM s", "SELECT name FROM singer", Outcome.CORRECT),
        ("SELECT name FROM singer ORDER BY name DESC", "SELECT name FROM singer", Outcome.CORRECT),
        ("SELECT name FROM singer ORDER BY name DESC", "SELECT name FROM singer ORDER BY name", Outcome.INCORRECT),
        ("SELECT age FROM singer", "SELECT DISTINCT age FROM singer", Outcome.INCORRECT),
        ("SELECT 2.0", "SELECT 2", Outcome.CORRECT),
        ("SELECT 0.1 + 0.2", "SELECT 0.3", Outcome.CORRECT),
        ("SELECT sum(height) FROM (SELECT height FROM singer ORDER BY id DESC)", "SELECT 5.1", Outcome.CORRECT),
        ("SELECT julianday('2024-01-01 00:00:01')", "SELECT julianday('2024-01-01')", Outcome.INCORRECT),
        ("SELECT 1e-9", "SELECT 2e-9", Outcome.INCORRECT),
        ("SELECT 9007199254740992.0", "SELECT 9007199254740993", Outcome.INCORRECT),
        ("SELECT '2'", "SELECT 2", Outcome.INCORRECT),
        ("SELECT NULL", "SELECT height FROM singer WHERE id = 3", Outcome.CORRECT),
        ("SELECT age, name FROM singer", "SELECT name, age FROM singer", Outcome.INCORRECT),
        ("SELECT nome FROM singer", "SELECT name FROM singer", Outcome.INCORRECT),
        ("The names are Ada and Bo.", "SELECT name FROM singer", Outcome.NO_ANSWER),
        ("DELETE FROM singer", "SELECT name FROM singer", Outcome.NO_ANSWER),
        ("", "SELECT name FROM singer", Outcome.NO_ANSWER),
        ("<think>SELECT name FROM singer", "SELECT name FROM singer", Outcome.NO_ANSWER),
    ],
)
def test_what_a_completion_is_worth(judge: Judge, completion: str, gold: str, outcome: Outcome) -> None:
    assert judge(completion, gold).outcome is outcome


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT name FROM singer; DELETE FROM singer", "one statement"),
        ("WITH s AS (SELECT 1) DELETE FROM singer", "not authorized"),
        ("SELECT load_extension('evil')", "not authorized"),
        ("SELECT random()", "not authorized"),
        ("SELECT hex(RANDOMBLOB(4))", "not authorized"),
        ("SELECT * FROM pragma_table_info('singer')", "not authorized"),
        ("SELECT zeroblob(2000000)", "too big"),
        ("SELECT writefile('/tmp/x', 'y')", "no such function"),
        ("SELECT name FROM singer WHERE name = ?", "bindings"),
    ],
)
def test_a_query_can_only_read(judge: Judge, query: str, reason: str) -> None:
    verdict = judge(query, "SELECT name FROM singer")
    assert verdict.outcome is Outcome.INCORRECT
    assert reason in str(verdict.detail["error"])
    assert judge("SELECT count(*) FROM singer", "SELECT 4").outcome is Outcome.CORRECT


BOMB = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"


@pytest.mark.parametrize(
    "query", [f"{BOMB} i FROM n", f"{BOMB} group_concat(hex(zeroblob(100000))) FROM n", f"{BOMB} count(*) FROM n"]
)
def test_what_never_ends_or_fills_memory_does_no_harm(query: str) -> None:
    with contextlib.closing(SQLVerifier(timeout_s=0.4, most_rows=1000)) as verifier:
        problem = Problem("p", "", SQLReference("SELECT 1", (SINGERS,)))
        assert verifier(query, problem).outcome is Outcome.TIMEOUT
        assert verifier("SELECT 1", problem).outcome is Outcome.CORRECT
        problem = Problem("p", "", SQLReference(query, (SINGERS,)))  # the gold query itself
        assert verifiers.verify_batch(verifier, ["SELECT 1"], [problem])[0].outcome is Outcome.VERIFIER_ERROR


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ({"query": "SELECT nome FROM singer", "scripts": [SINGERS]}, "fails on database 0: OperationalError: no such"),
        ({"query": "SELECT 1", "scripts": ["CREATE TABLE"]}, "fails on database 0: OperationalError"),
        ({"query": "SELECT 1", "files": ["/no/such/file.sqlite"]}, "unable to open database file"),
        ({"query": "SELECT name FROM singer WHERE age > 99", "scripts": [SINGERS]}, "gives no rows on any of its 1"),
        ({"query": "DELETE FROM singer", "scripts": [SINGERS]}, "must begin with SELECT, WITH or VALUES"),
        ({"query": "WITH s AS (SELECT 1) DELETE FROM singer", "scripts": [SINGERS]}, "not authorized"),
        ({"query": "SELECT 1"}, "needs at least one database"),
        ({"query": "SELECT 1", "scripts": SINGERS}, "scripts must be a list of texts"),
        ({"query": "SELECT 1", "script": [SINGERS]}, "expected an SQLReference, or a mapping"),
        ("SELECT 1", "expected an SQLReference, or a mapping"),
    ],
)
@pytest.mark.parametrize("completion", ["SELECT 1", "nothing"])
def test_a_reference_that_nothing_can_be_judged_by_is_an_error(
    reference: object, complaint: str, completion: str
) -> None:
    with contextlib.closing(SQLVerifier()) as verifier:
        (verdict,) = verifiers.verify_batch(verifier, [completion], [Problem("p", "", reference)])
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert complaint in str(verdict.detail["error"])


def test_changed_copies_show_it_too_and_are_the_same_every_time() -> None:
    problem = Problem("p", "", {"query": "SELECT count(*) FROM singer", "scripts": [SINGERS]})
    verdicts = []
    for _ in range(2):
        with contextlib.closing(SQLVerifier(changed_copies=6)) as verifier:
            verdicts.append(verifier("SELECT 4", problem))
            assert verifier("SELECT count(id) FROM singer", problem).outcome is Outcome.CORRECT
    assert verdicts[0] == verdicts[1]
    assert verdicts[0].outcome is Outcome.INCORRECT


def test_changed_copies_keep_declared_foreign_keys() -> None:
    script = (
        "CREATE TABLE band (id INTEGER PRIMARY KEY); CREATE TABLE member (name TEXT, band INTEGER REFERENCES band);"
    )
    script += "".join(f"INSERT INTO band VALUES ({n}); INSERT INTO member VALUES ('m{n}', {n});" for n in range(30))
    with contextlib.closing(SQLVerifier(changed_copies=3)) as verifier:
        problem = Problem("p", "", {"query": "SELECT name FROM member", "scripts": [script]})
        joined = "SELECT name FROM member JOIN band ON band.id = member.band"
        assert verifier(joined, problem).outcome is Outcome.CORRECT


def test_a_file_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a b?.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(SINGERS)
        connection.execute("INSERT INTO singer (id, name) VALUES (5, CAST(x'ff41' AS TEXT))")
        connection.commit()
    before = path.read_bytes()
    with contextlib.closing(SQLVerifier(changed_copies=1)) as verifier:
        problem = Problem("p", "", SQLReference("SELECT name FROM singer", files=(str(path),)))
        assert verifier("SELECT name FROM singer", problem).outcome is Outcome.CORRECT
        assert verifier("WITH a AS (SELECT 1) DELETE FROM singer", problem).outcome is Outcome.INCORRECT
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("select a from t order\n by a limit 1", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("SELECT row_number() OVER (ORDER BY a) FROM t", False),
        ("SELECT 'ORDER BY' FROM t -- ORDER BY a", False),
        ('SELECT "order by", [order by], `order by` /* ORDER BY */ FROM t', False),
        ("SELECT 'it''s (' FROM t ORDER BY 1", True),
    ],
)
def test_order_counts_where_the_gold_query_asks_for_it(query: str, ordered: bool) -> None:
    assert is_ordered(query) is ordered


def test_the_query_is_the_last_fence_or_everything() -> None:
    assert query_text("a\n```sql\nSELECT 1\n```\nb\n```\nSELECT 2;\n```\n") == "SELECT 2;"
    assert query_text("/* x */ (SELECT 1)") is None
    assert query_text("VALUES (1)") == "VALUES (1)"
    assert query_text("I would SELECT 1") is None
    assert query_text("```sql\nSELECT 1\n```\nSo <answer>SELECT 2</answer>, which counts.") == "SELECT 2"
    assert query_text("<answer>\n```sql\nSELECT 3\n```\n</answer>") == "SELECT 3"
    assert query_text("```\nSELECT 1\n```\n<answer>no idea</answer>") == "SELECT 1"
    assert query_text("SELECT [answer] FROM t") == "SELECT [answer] FROM t"


@pytest.mark.parametrize("part", ["[", "(", "'", '"', "''", "/*", "- -", "```a\n", "a "])
def test_a_query_is_found_in_the_time_of_one_look(part: str) -> None:
    start = time.process_time()
    assert query_text(part * 50_000) is None
    assert query_text(f"SELECT {part * 50_000}") is not None
    assert time.process_time() - start < 4


CELL = st.none() | st.integers(-5, 5) | st.floats(-3, 3) | st.text("ab", max_size=2) | st.binary(max_size=1)
ROWS = st.lists(st.tuples(CELL, CELL), max_size=6)


@settings(max_examples=50)
@given(rows=ROWS, order=st.randoms(use_true_random=False))
def test_a_multiset_has_no_order_and_every_row(rows: list[tuple[object, ...]], order: object) -> None:
    shuffled = list(rows)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert same_rows(rows, shuffled, ordered=False)
    assert same_rows(rows, rows, ordered=True)
    assert not same_rows(rows, [*rows, (1, 2)], ordered=False)


def test_near_numbers_match_across_rows() -> None:
    expected = [(0.1 + 0.2, "a"), (0.3, "b"), (1, None)]
    assert same_rows(expected, [(1.0, None), (0.3, "a"), (0.1 + 0.2, "b")], ordered=False)
    assert not same_rows(expected, [(1.0, None), (0.3, "a"), (0.30000000004, "b")], ordered=False)
    assert not same_rows([(10**17,)], [(10**17 + 1,)], ordered=False)


def test_a_wider_tolerance_is_one_of_floats_alone() -> None:
    assert same_rows([(0.3,)], [(0.30000000004,)], ordered=False, rel_tol=1e-9)
    assert same_rows([(1.0,)] * 2001, [(1.1,)] * 2001, ordered=False, rel_tol=0.2)
    assert not same_rows([(0.3,)], [(0.1 + 0.2,)], ordered=True, rel_tol=0)
    assert not same_rows([(10,)], [(11,)], ordered=True, rel_tol=0.2)
    assert not same_rows([(10,)], [(10.1,)], ordered=True, rel_tol=0.2)
    with contextlib.closing(pickle.loads(pickle.dumps(SQLVerifier(rel_tol=1e-3)))) as verifier:
        problem = Problem("p", "", {"query": "SELECT 1.0 / 3", "scripts": [SINGERS]})
        assert verifier("SELECT 0.3333", problem).outcome is Outcome.CORRECT
        assert verifier("SELECT 0.33", problem).outcome is Outcome.INCORRECT
