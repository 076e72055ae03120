"""The process that runs queries on databases; `serve` speaks the protocol of `verifiers._workers`."""

from __future__ import annotations

import functools
import hashlib
import json
import random
import sqlite3
from pathlib import Path
from typing import IO, Any

from verifiers._workers import answer_requests, processor_time
from verifiers.sql.rows import Row, same_rows

_HEAP_BYTES = 256 << 20
_LONGEST_VALUE = 1 << 20
_DROPPED = 0.5
"""Share of the rows that a changed database leaves out."""
# Reading, and calls that a query may make; random numbers would make repeated verdicts on one question differ.
_ALLOWED = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE))
_FORBIDDEN = frozenset(("load_extension", "random", "randomblob", "fts3_tokenizer", "readfile", "writefile", "edit"))


class PastLimitError(Exception):
    """A query exceeded a limit; the argument says which."""


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer each request with a query's result; a request has a database, the gold query, a query or None, and settings."""
    answer_requests(requests, replies, _limited)


def _limited(database: object, *asked: Any) -> dict[str, Any]:
    with processor_time(asked[-1]):
        return _answer(json.dumps(database), *asked[:-1])


def _answer(database: str, gold: str, query: str | None, comparison: dict[str, Any], most_rows: int) -> dict[str, Any]:
    try:
        expected = _gold_rows(database, gold, most_rows)
    except (sqlite3.Error, sqlite3.Warning, PastLimitError, MemoryError, OSError, ValueError) as error:
        return {"gold_error": f"{type(error).__name__}: {error}"[:300]}
    if query is None:
        return {"rows": len(expected)}
    try:
        found = _rows(_open(database), query, most_rows)
    except (PastLimitError, MemoryError) as error:
        return {"past_limit": str(error) or "memory"}
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"same": same_rows(expected, found, **comparison), "rows": len(found), "expected_rows": len(expected)}


@functools.lru_cache(maxsize=16)
def _gold_rows(database: str, gold: str, most_rows: int) -> list[Row]:
    return _rows(_open(database), gold, most_rows)


def _rows(connection: sqlite3.Connection, query: str, most_rows: int) -> list[Row]:
    cursor = connection.execute(query)
    try:
        found = cursor.fetchmany(most_rows + 1)
    finally:
        cursor.close()
    if len(found) > most_rows:
        raise PastLimitError(f"more than {most_rows} rows")
    return found


@functools.lru_cache(maxsize=16)
def _open(database: str) -> sqlite3.Connection:
    """A read-only connection to a database, or a connection to a changed copy if the request asks for one."""
    kind, content, change = json.loads(database)
    if kind == "file":
        connection = sqlite3.connect(f"{Path(content).absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    else:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript(content)
    if change:
        connection = _changed(connection, f"{change}:{content}")
    connection.text_factory = lambda text: text.decode(errors="surrogateescape")
    connection.execute(f"PRAGMA hard_heap_limit={_HEAP_BYTES}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_authorizer(_authorize)
    return connection


def _changed(connection: sqlite3.Connection, seed: str) -> sqlite3.Connection:
    """A copy in memory from which some rows are deleted, such that declared foreign keys still hold."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    connection.backup(copy)
    connection.close()
    draw = random.Random(hashlib.sha256(seed.encode()).digest())
    copy.execute("PRAGMA foreign_keys=ON")
    tables = copy.execute(
        "SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    )
    for (table,) in tables.fetchall():
        name = '"' + table.replace('"', '""') + '"'
        try:
            numbers = [number for (number,) in copy.execute(f"SELECT rowid FROM {name} ORDER BY rowid")]
        except sqlite3.Error:  # a table without row ids, or a virtual one, stays as it is
            continue
        for number in numbers:
            if draw.random() < _DROPPED:
                _delete(copy, name, number)
    return copy


def _delete(copy: sqlite3.Connection, name: str, number: int) -> None:
    try:
        copy.execute(f"DELETE FROM {name} WHERE rowid = ?", (number,))
    except sqlite3.Error:
        return  # another row refers to this row, or a trigger keeps it


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    allowed = action in _ALLOWED and not (action == sqlite3.SQLITE_FUNCTION and str(second).lower() in _FORBIDDEN)
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
