"""The goal that a completion's term must satisfy."""

from __future__ import annotations

from dataclasses import dataclass

from verifiers.errors import InvalidArgumentError
from verifiers.proofs.references import check_texts
from verifiers.proofs.smt.terms import INDEXED, OPERATORS, TermError, mentions, read_all, read_signature, shown

_DECLARING = (
    *("declare-const", "declare-datatype", "declare-datatypes", "declare-fun", "declare-sort"),
    *("define-const", "define-fun", "define-fun-rec", "define-funs-rec", "define-sort"),
)


@dataclass(frozen=True)
class SmtGoal:
    """A function that a completion defines by a term, and the properties that it must have, in SMT-LIB. All fields are trusted.

    A witness is a function without parameters. An equivalent term is a function that must equal another function everywhere. An
    invariant is a function of sort `Bool`; its goal states that the invariant holds at the start, is preserved by each step,
    and implies the desired property.

    Raises:
        InvalidArgumentError: If a field has the wrong type or can't be read, or the goal does not mention the function.
    """

    function: str
    """The function's signature, as in `(f ((x Int) (y Int)) Int)`."""
    goal: str
    """A formula that mentions the function. It must hold whatever the declared constants and functions are."""
    declarations: str = ""
    """Commands that declare or define the names in the goal, such as `(declare-const a Int)`."""
    operators: tuple[str, ...] = ()
    """Operators that the term may apply, in place of the default (`verifiers.proofs.smt.terms.OPERATORS` and `INDEXED`); needed
    if the default has too few, or lets a term just repeat the goal. They may include names of declared functions and constants.
    """

    def __post_init__(self) -> None:
        check_texts(self)
        name, _, _ = read_signature(self.function)
        try:
            goals, commands = read_all(self.goal), read_all(self.declarations)
        except TermError as error:
            raise InvalidArgumentError(f"goal or declarations can't be read: {error}") from error
        if len(goals) != 1 or not mentions(goals[0], name):
            raise InvalidArgumentError(f"goal must be one formula that mentions {name!r}, got {self.goal!r:.200}")
        for command in commands:
            if not (isinstance(command, list) and command and command[0] in _DECLARING):
                raise InvalidArgumentError(
                    f"declarations must declare or define, by {', '.join(_DECLARING)}; assumptions belong in the "
                    f"goal, as (=> assumption conclusion); got {shown(command)[:100]!r}"
                )

    @property
    def allowed_operators(self) -> frozenset[str]:
        """The operators that the term may apply."""
        return frozenset(self.operators) or OPERATORS | INDEXED
