"""A verifier that judges SQL queries by their results."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Annotated, Any, cast

from verifiers._settings import checked
from verifiers._workers import Worker, WorkerBrokenError, WorkerTimeoutError
from verifiers.bounds import AtLeast, Between, Count, Seconds
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.words import THOUGHTS
from verifiers.errors import InvalidArgumentError, UnreadableReferenceError
from verifiers.sql.reference import SQLReference, read_reference
from verifiers.sql.rows import REL_TOL
from verifiers.sql.statements import is_ordered, query_text
from verifiers.types import Outcome, Problem, Verdict

_WALL_FACTOR = 10
"""Factor by which a query's wall-clock time may exceed its processor time on a busy machine."""
_START_S = 10.0


class SQLVerifier:
    """A completion is correct when its query gives the same rows as the gold query, on every database of the problem.

    The reference is a `SQLReference`, or a mapping with its fields: the gold query, and SQLite databases as scripts or files.
    The query is in the last tag `<answer>`, or is the last fenced block of the response that begins with SELECT, WITH or
    VALUES, else the whole response if it begins so; otherwise the verdict is `NO_ANSWER`.

    Rows are compared as a multiset, or in order if the gold query has ORDER BY outside of brackets. Columns are compared in
    order; their names are ignored. Two floats are equal if they differ by at most `rel_tol`, which allows for rounding.
    All other values are compared exactly: texts, including dates, and integers, which equal a float of exactly their value. A
    number never equals a text.

    Queries run in their own process, on read-only connections. A second statement, PRAGMA, ATTACH, extensions and random
    numbers are `INCORRECT`, like any error of the query. A query that gives too many rows, or takes too long or too much
    memory, is `TIMEOUT`. If the gold query does any of this, the reference is at fault.

    Different queries may give the same rows on one database by luck. Give several databases, or let `changed_copies` make
    further copies of each database; a copy omits half of the rows at random, such that declared foreign keys still hold. If the
    gold query gives no rows on any database, every query without rows would be right, so the reference is refused.

    Args:
        changed_copies: Number of changed copies of each database that are queried, too.
        timeout_s: Processor time, in seconds, that the queries on one database may take, including the gold query.
        most_rows: Maximum number of rows that a query may return.
        memory_mib: Limit on the address space of the process, in MiB.
        rel_tol: Relative difference up to which two floats are the same, at least 0 and less than 1. The default allows for
            rounding, as in `0.1 + 0.2`; 0 requires equality. A larger value accepts rounded results, and also wrong results
            near them.
        thoughts: Names of the tags that enclose thoughts, which are cut off; a sequence, or text with commas between the names.

    Raises:
        InvalidArgumentError: If an argument is out of range.
    """

    @checked
    def __init__(
        self,
        *,
        changed_copies: Annotated[int, AtLeast(0)] = 0,
        timeout_s: Seconds = 5.0,
        most_rows: Count = 100_000,
        memory_mib: Annotated[int, AtLeast(64)] = 1024,
        rel_tol: Annotated[float, Between(0, 1, open_high=True)] = REL_TOL,
        thoughts: str | Sequence[str] = THOUGHTS,
    ) -> None:
        self._arguments: dict[str, Any] = {
            "changed_copies": changed_copies, "timeout_s": timeout_s, "most_rows": most_rows, "memory_mib": memory_mib,
            "rel_tol": rel_tol, "thoughts": thought_names(thoughts),
        }  # fmt: skip
        self._worker = Worker("verifiers.sql.process", memory_mib=memory_mib)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            UnreadableReferenceError: If the reference has another form, a database can't be opened, or the gold query fails or
                gives no rows on any database.
        """
        try:
            reference = read_reference(problem.reference)
        except InvalidArgumentError as error:
            raise UnreadableReferenceError(f"problem {problem.id!r}: {error}") from error
        databases = self._databases(reference)
        try:
            self._check_gold(reference, databases, problem)
            query = query_text(cut(completion, thoughts=self._arguments["thoughts"]).text)
            return Verdict.of(Outcome.NO_ANSWER) if query is None else self._judge(query, reference, databases)
        except WorkerBrokenError as error:
            return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": f"the process of the databases broke: {error}"})

    def _databases(self, reference: SQLReference) -> list[list[object]]:
        given = [*(("script", script) for script in reference.scripts), *(("file", path) for path in reference.files)]
        copies = range(self._arguments["changed_copies"] + 1)
        return [[kind, content, copy] for kind, content in given for copy in copies]

    def _check_gold(self, reference: SQLReference, databases: list[list[object]], problem: Problem) -> None:
        rows = 0
        for number, database in enumerate(databases):
            try:
                reply = self._ask(database, reference.query, None, ordered=False)
            except WorkerTimeoutError as error:
                reply = {"gold_error": str(error)}
            if "gold_error" in reply:
                raise UnreadableReferenceError(
                    f"the gold query of problem {problem.id!r} fails on database {number}: {reply['gold_error']}"
                )
            rows += reply["rows"]
        if not rows:
            raise UnreadableReferenceError(
                f"the gold query of problem {problem.id!r} gives no rows on any of its {len(databases)} databases, so that any "
                "query without rows would be right; add a database on which it gives some"
            )

    def _judge(self, query: str, reference: SQLReference, databases: list[list[object]]) -> Verdict:
        ordered = is_ordered(reference.query)
        for number, database in enumerate(databases):
            try:
                reply = self._ask(database, reference.query, query, ordered=ordered)
            except WorkerTimeoutError as error:
                return Verdict.of(Outcome.TIMEOUT, query, detail={"database": number, "error": str(error)})
            if "past_limit" in reply:
                return Verdict.of(Outcome.TIMEOUT, query, detail={"database": number, "error": reply["past_limit"]})
            if not reply.get("same"):
                return Verdict.of(Outcome.INCORRECT, query, detail={"database": number, **reply})
        return Verdict.of(Outcome.CORRECT, query, detail={"databases": len(databases), "ordered": ordered})

    def _ask(self, database: list[object], gold: str, query: str | None, *, ordered: bool) -> dict[str, Any]:
        seconds = self._arguments["timeout_s"]
        comparison = {"ordered": ordered, "rel_tol": self._arguments["rel_tol"]}
        request = [database, gold, query, comparison, self._arguments["most_rows"], seconds]
        return cast("dict[str, Any]", self._worker.ask(request, deadline_s=_WALL_FACTOR * seconds + _START_S))

    def close(self) -> None:
        """End the process. A verifier that is used again starts a new one."""
        self._worker.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copied or unpickled verifier has its own process."""
        return functools.partial(type(self), **self._arguments), ()
