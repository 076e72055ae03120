"""The error of a failed check."""

from __future__ import annotations

from verifiers import InvalidArgumentError


def expect(holds: bool, whose: str, expected: str, came: object, hint: str) -> None:
    """Raise an `InvalidArgumentError` unless a condition holds.

    Args:
        holds: Result of the check.
        whose: The object that was checked, such as "the data set".
        expected: The expected result, as a noun phrase.
        came: The actual result. Text is shown unchanged, and any other object by its repr.
        hint: A sentence on the usual cause.
    """
    if not holds:
        shown = came if isinstance(came, str) else repr(came)
        raise InvalidArgumentError(f"{whose} fails its check. Expected: {expected}; got {shown}. {hint}")
