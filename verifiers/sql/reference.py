"""The reference for SQL: the gold query, and the databases on which it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from verifiers.errors import InvalidArgumentError
from verifiers.sql.statements import is_query


@dataclass(frozen=True)
class SQLReference:
    """A gold query, and SQLite databases on which every right query gives the same rows.

    Raises:
        InvalidArgumentError: If the text is not a query, or there is no database.
    """

    query: str
    """The gold query."""
    scripts: tuple[str, ...] = ()
    """Databases as SQL: statements that create the tables and insert their rows."""
    files: tuple[str, ...] = ()
    """Databases as paths of SQLite files, which are opened read-only."""

    def __post_init__(self) -> None:
        query: object = self.query
        if not isinstance(query, str) or not is_query(query):
            raise InvalidArgumentError(f"the gold query must begin with SELECT, WITH or VALUES, got {query!r}"[:300])
        for name in ("scripts", "files"):
            given: object = getattr(self, name)
            if (
                not isinstance(given, Sequence)
                or isinstance(given, str)
                or not all(isinstance(one, str) for one in given)
            ):
                raise InvalidArgumentError(f"{name} must be a list of texts, got {given!r}"[:300])
            object.__setattr__(self, name, tuple(given))
        if not (self.scripts or self.files):
            raise InvalidArgumentError("a reference of SQL needs at least one database, in scripts or in files")


def read_reference(reference: object) -> SQLReference:
    """Return a reference unchanged, or make one from a mapping with `query`, and `scripts`, `files` or both.

    Raises:
        InvalidArgumentError: If the reference is neither of these, or a field is invalid.
    """
    if isinstance(reference, SQLReference):
        return reference
    if (
        not isinstance(reference, Mapping)
        or "query" not in reference
        or reference.keys() - {"query", "scripts", "files"}
    ):
        raise InvalidArgumentError(
            f"expected an SQLReference, or a mapping with 'query' and 'scripts' or 'files', got {reference!r}"[:300]
        )
    return SQLReference(**{str(name): value for name, value in reference.items()})
