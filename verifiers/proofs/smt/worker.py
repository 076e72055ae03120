"""The solver's process, which may run out of time or memory. Only `serve` imports Z3, not the import of this module."""

from __future__ import annotations

from typing import IO, Any

from verifiers._workers import answer_requests, processor_time

_SHOWN = 300


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer `[declarations, signature, term, goal, seconds]` with `[kind, text]`; each question has its own context.

    The kinds are `proved`, `refuted` with a counterexample, `open` with a reason, `bad_term` and `bad_goal` with an error.
    """
    import z3

    def answer(declarations: str, signature: str, term: str, goal: str, seconds: float) -> list[str]:
        with processor_time(seconds):
            return _decide(z3, declarations, signature, term, goal)

    answer_requests(requests, replies, answer)


def _decide(z3: Any, declarations: str, signature: str, term: str, goal: str) -> list[str]:
    name, _, rest = signature.partition(" ")
    # Parsed as if the function were undefined, to tell whether the goal or the term causes an error.
    unknown = f"(declare-fun {name} {_sorts(rest)})"
    context = z3.Context()
    try:
        z3.parse_smt2_string(f"{declarations}\n{unknown}\n(assert (not {goal}))", ctx=context)
    except z3.Z3Exception as error:
        return ["bad_goal", _message(error)]
    context = z3.Context()
    try:
        defined = f"(define-fun {signature} {term})"
        claims = z3.parse_smt2_string(f"{declarations}\n{defined}\n(assert (not {goal}))", ctx=context)
    except z3.Z3Exception as error:
        return ["bad_term", _message(error)]
    return _checked(z3, context, claims)


def _checked(z3: Any, context: Any, claims: Any) -> list[str]:
    solver = z3.Solver(ctx=context)
    try:
        solver.add(claims)
        decision = solver.check()
        if decision == z3.unsat and len(claims) == 1:
            return ["proved", ""]
        if decision == z3.sat:
            model = solver.model()
            values = sorted(f"{entry.name()} = {model[entry]}" for entry in model.decls() if entry.arity() == 0)
            return ["refuted", ", ".join(values)[:_SHOWN]]
        return ["open", str(solver.reason_unknown())[:_SHOWN]]
    except z3.Z3Exception as error:  # for example, out of memory
        return ["open", _message(error)]


def _sorts(rest: str) -> str:
    """The sorts in `((x Int) (y Int)) Int`, as written in `declare-fun`: `(Int Int) Int`."""
    from verifiers.proofs.smt.terms import read_all, shown

    parameters, sort = read_all(rest)
    return f"({' '.join(shown(parameter[1]) for parameter in parameters)}) {shown(sort)}"


def _message(error: Exception) -> str:
    """The first error that the solver reports."""
    value = error.args[0] if error.args else ""
    said = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return " ".join(said.split("\n")[0].split())[:_SHOWN]
