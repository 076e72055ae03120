"""SQL: queries on two small databases, equivalent queries, and queries that give other rows on at least one database."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence

from verifiers.audit.subjects.tasks import Field, Task, fenced, mutants, swaps

_TABLES = """CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, city TEXT, age INTEGER);
CREATE TABLE orders (id INTEGER PRIMARY KEY, person INTEGER REFERENCES people (id), amount INTEGER);
"""
_SWAPS = swaps(
    "< <= >, <= <, > >= <, >= >, = <>, + -, * 1, DESC ASC, AND OR, MAX MIN, SUM COUNT MAX, COUNT MAX, DISTINCT, "
    "LEFT_JOIN JOIN, JOIN LEFT_JOIN, NOT_IN IN, age id, amount person, city name, name city"
) | {str(number): (str(number + 1),) for number in range(60)}
_TRIED = 6
"""Number of mutants that are run to find mutants that give other rows."""


def _script(rng: random.Random) -> str:
    people = [
        (number, f"P{number}", rng.choice(["Oslo", "Rome", "Lima"]), rng.randint(20, 40)) for number in range(1, 9)
    ]
    orders = [(number, rng.randint(1, 6), rng.randint(1, 20)) for number in range(1, 13)]
    rows = [("people", row) for row in people] + [("orders", row) for row in orders]
    return _TABLES + "\n".join(f"INSERT INTO {table} VALUES {row!r};" for table, row in rows)


def _queries(rng: random.Random) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Queries by subject: a question, and equivalent queries, the first of which is the gold."""
    low, few = rng.randint(22, 34), rng.randint(2, 4)
    high = low + 4
    return {
        "filter": (
            f"Name and age of the people from {low} to {high - 1} years.",
            (
                f"SELECT name, age FROM people WHERE age >= {low} AND age < {high}",
                f"SELECT name, age FROM people WHERE age BETWEEN {low} AND {high - 1}",
                f"SELECT p.name, p.age AS years FROM people AS p WHERE NOT (p.age < {low} OR p.age >= {high})",
            ),
        ),
        "distinct": (
            f"The cities with people above {low}, each once.",
            (
                f"SELECT DISTINCT city FROM people WHERE age > {low}",
                f"SELECT city FROM people WHERE age > {low} GROUP BY city",
                f"SELECT city FROM people GROUP BY city HAVING MAX(age) > {low}",
            ),
        ),
        "groups": (
            "Each city with more than one inhabitant, and their number.",
            (
                "SELECT city, COUNT(*) FROM people GROUP BY city HAVING COUNT(*) > 1",
                "SELECT city, n FROM (SELECT city, SUM(1) AS n FROM people GROUP BY city) WHERE n >= 2",
            ),
        ),
        "join": (
            f"Name and total amount of everybody whose orders come to more than {low}.",
            (
                "SELECT p.name, SUM(o.amount) FROM people AS p JOIN orders AS o ON o.person = p.id "
                f"GROUP BY p.id HAVING SUM(o.amount) > {low}",
                "WITH totals AS (SELECT person, SUM(amount) AS total FROM orders GROUP BY person) "
                f"SELECT name, total FROM totals JOIN people ON people.id = totals.person WHERE total > {low}",
            ),
        ),
        "outer join": (
            "The id of every person, with the number of orders, also if there are none.",
            (
                "SELECT p.id, COUNT(o.id) FROM people AS p LEFT JOIN orders AS o ON o.person = p.id GROUP BY p.id",
                "SELECT id, (SELECT COUNT(*) FROM orders WHERE person = people.id) FROM people",
            ),
        ),
        "order": (
            f"Id and amount of the {few} largest orders, the largest first, equal ones by id.",
            (
                f"SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT {few}",
                f"SELECT id, amount FROM orders ORDER BY -amount, id LIMIT {few}",
                "SELECT id, amount FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY amount DESC, id) AS place FROM orders) "
                f"WHERE place <= {few} ORDER BY place",
            ),
        ),
        "without": (
            "The names of people without orders.",
            (
                "SELECT name FROM people WHERE id NOT IN (SELECT person FROM orders)",
                "SELECT name FROM people WHERE NOT EXISTS (SELECT 1 FROM orders WHERE person = people.id)",
                "SELECT name FROM people LEFT JOIN orders ON person = people.id WHERE person IS NULL",
            ),
        ),
    }


def _draw(rng: random.Random) -> Task:
    scripts = [_script(rng) for _ in range(2)]
    drawn = _queries(rng)
    subject = rng.choice(list(drawn))
    question, equal = drawn[subject]
    gold, *others = equal
    ordered = subject == "order"
    rows = [given(script, gold) for script in scripts]
    if not any(rows):
        return _draw(rng)  # every query without rows would be right

    def other(queries: Iterator[str] | Sequence[str]) -> list[str]:
        return [query for query in queries if not same(rows, [given(script, query) for script in scripts], ordered)]

    values = "VALUES " + ", ".join(f"({', '.join(map(repr, row))})" for row in rows[0] or [("none",)])
    within = f"WITH found AS ({gold}) SELECT * FROM found"
    wrong = {
        "mutant": other([rng.choice(mutants(rng.choice(equal), _SWAPS)) for _ in range(_TRIED)]),
        "a row less": other([f"{within} LIMIT (SELECT COUNT(*) - 1 FROM found)"]),
        "rows twice": other([f"{within} UNION ALL SELECT * FROM found"]),
        "a column more": other([within.replace("*", "*, 1")]),
        "rows of one database": other([values]),
        "another order": other([f"{within} ORDER BY 1"]),
        "two statements": [f"{gold}; DROP TABLE people", f"{gold}; {gold}"],
        "no such table": [gold.replace("FROM people", "FROM persons").replace("FROM orders", "FROM sales")],
    }
    right = {
        "itself": [gold],
        "another way": others,
        "in small letters": [query.lower() for query in equal],
        "with comments": [f"-- the answer\n{gold};", f"{gold} /* all of them */"],
        "in lines": [query.replace(" FROM ", "\nFROM ").replace(" WHERE ", "\nWHERE ") + ";" for query in equal],
        **({} if ordered else {"within another": [within, f"{gold} ORDER BY 1"]}),
    }
    prompt = f"{_TABLES}\n{question}"
    reference = {"query": gold, "scripts": scripts}
    return Task(subject, prompt, reference, right, {family: queries for family, queries in wrong.items() if queries})


Rows = list[tuple[object, ...]]


def given(script: str, query: str) -> Rows | None:
    """The rows of a query; None if it fails."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(script)
        return connection.execute(query).fetchall()
    except sqlite3.Error:
        return None
    finally:
        connection.close()


def same(first: Sequence[Rows | None], second: Sequence[Rows | None], ordered: bool) -> bool:
    """Whether two queries give the same rows on every database."""
    if ordered:
        return first == second
    pairs = zip(first, second, strict=True)
    return all(one is not None and two is not None and Counter(one) == Counter(two) for one, two in pairs)


QUERIES = Field(_draw, fenced("sql", bare=True))
