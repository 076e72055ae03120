"""Verifiers that break while an agent trains: the first is a warning, too many stop the run, all are counted by cause.

An episode whose verifier broke is no evidence about the policy and teaches nothing. So a run whose verifier always breaks would
go to its end without having learned anything.
"""

from __future__ import annotations

import warnings
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from agents.training.run import Run
from agents.types import Trajectory
from verifiers import Outcome, Verdict, VerifierFailureError

WINDOW = 32
"""Episodes at least over which the share of errors is taken: those of the last step, and of steps before where it has fewer."""
_CAUSES = 5
"""Causes that are written down for one step."""
_SHOWN = 300
"""Characters of a cause in a message."""


def error_cause(detail: Mapping[str, Any]) -> str:
    """Why a verifier broke, as the detail of its verdict says it: that of the part that broke, where the verdict has parts."""
    parts = detail.get("parts")
    for name, part in parts.items() if isinstance(parts, Mapping) else ():
        if isinstance(part, Mapping) and part.get("outcome") == Outcome.VERIFIER_ERROR:
            return f"{name}: {error_cause(part.get('detail') or {})}"
    said = detail.get("error") or detail.get("reason")
    return str(said) if said else f"the verifier gave no reason, only {dict(detail)!r}"


def is_unsupported(verdict: Verdict) -> bool:
    """Whether a completion is scored without its verifier doing all that the problem's tests ask for, in some part of it.

    A completion may choose that, so it scores 0; where right ones do too, the problem is of no use with this verifier.
    """
    if verdict.outcome is Outcome.VERIFIER_ERROR:
        return False
    parts = verdict.detail.get("parts")
    details = (
        [part.get("detail") for part in parts.values() if isinstance(part, Mapping)]
        if isinstance(parts, Mapping)
        else []
    )
    return any(
        isinstance(detail, Mapping) and detail.get("failure") == "unsupported" for detail in (verdict.detail, *details)
    )


def shown(cause: str) -> str:
    """A cause on one line, cut where it is long."""
    line = " ".join(cause.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} ..."


class VerifierWatch:
    """Looks at every episode of a training, greedy ones that others are compared with included.

    Args:
        max_share: The largest share of episodes on which the verifier may break; 1 for any.
    """

    def __init__(self, max_share: float) -> None:
        self._max_share = max_share
        self._episodes = 0
        self._errored: list[Trajectory] = []
        self._window: deque[tuple[int, Counter[str]]] = deque()
        self._warned = False

    def see(self, trajectory: Trajectory) -> None:
        """Take note of one episode; the first on which the verifier broke is a warning."""
        self._episodes += 1
        if not trajectory.errored:
            return
        self._errored.append(trajectory)
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"the verifier broke on an episode of problem {trajectory.problem_id!r}, which is left out of learning: "
                f"{shown(_cause(trajectory))}",
                stacklevel=2,
            )

    def end_step(self, step: int, run: Run | None) -> None:
        """Write the causes of a step to the run's folder, and stop where there are too many.

        Raises:
            VerifierFailureError: If the verifier broke on more than the share.
        """
        causes = Counter(map(_cause, self._errored))
        if run is not None:
            for cause, count in causes.most_common(_CAUSES):
                first = next(trajectory for trajectory in self._errored if _cause(trajectory) == cause)
                example = {"problem_id": first.problem_id, "completion": first.completion}
                run.log_verifier_error({"step": step, "count": count, "cause": cause, **example})
            others = sum(causes.values()) - sum(count for _, count in causes.most_common(_CAUSES))
            if others:
                run.log_verifier_error({"step": step, "count": others, "cause": f"other than the {_CAUSES} above"})
        self._window.append((self._episodes, causes))
        self.forget_step()
        while sum(episodes for episodes, _ in self._window) - self._window[0][0] >= WINDOW:
            self._window.popleft()
        self.check(run, at_least=WINDOW)

    def forget_step(self) -> None:
        """Begin the next step, also where this one could not be played to its end."""
        self._episodes, self._errored = 0, []

    def check(self, run: Run | None, *, at_least: int = 1) -> None:
        """Stop if the verifier broke on too many of the episodes of the last steps, and there were enough of these.

        Raises:
            VerifierFailureError: If so.
        """
        episodes = sum(count for count, _ in self._window)
        causes = sum((counter for _, counter in self._window), Counter[str]())
        if episodes < at_least or not sum(causes.values()) > self._max_share * episodes:
            return
        self._window.clear()  # who mends the verifier and goes on with this agent is not judged by what was
        (cause, count), *_ = causes.most_common(1)
        where = "" if run is None else f" All causes are in {run.verifier_errors}."
        raise VerifierFailureError(
            f"the verifier broke on {sum(causes.values())} of the last {episodes} episodes, more than "
            f"max_error_share={self._max_share} of them; {count} times: {shown(cause)}.{where} Mend the verifier and resume "
            "the run, or start another that allows a larger share"
        )


def _cause(trajectory: Trajectory) -> str:
    assert trajectory.verdict is not None
    return error_cause(trajectory.verdict.detail)
