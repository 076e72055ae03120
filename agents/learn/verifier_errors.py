"""Verifier errors during training: the first error is warned of, too many stop the run, and all are counted by cause.

An episode whose verifier broke says nothing about the policy and is not trained on, so without a limit a run whose verifier
always breaks would finish without any training.
"""

from __future__ import annotations

import warnings
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agents.runs.verdicts import error_cause, is_unsupported, shown
from agents.types import Trajectory
from verifiers import VerifierFailureError

if TYPE_CHECKING:
    from agents.runs.run import Run

WINDOW = 32
"""Minimum number of episodes for the share of errors; a step with fewer episodes is judged together with earlier steps."""
_CAUSES = 5
"""Largest number of causes recorded for one step."""


@dataclass
class SeenEpisodes:
    """The number of episodes of one step, and the episodes whose verifier broke."""

    episodes: int = 0
    """Number of episodes."""
    errored: list[Trajectory] = field(default_factory=list)
    """The episodes whose verifier broke."""

    def see(self, trajectory: Trajectory) -> None:
        """Count an episode."""
        self.episodes += 1
        if trajectory.errored:
            self.errored.append(trajectory)


class VerifierWatch:
    """Counts verifier errors over all episodes of training, including greedy ones used as baselines.

    Args:
        max_share: Largest share of episodes on which the verifier may break; 1 sets no limit.
    """

    def __init__(self, max_share: float) -> None:
        self._max_share = max_share
        self._window: deque[tuple[int, Counter[str]]] = deque()
        self._warned = False
        self._unsupported: set[str] = set()
        """Problems that have been named because the verifier does not support their tests."""

    def warn(self, trajectory: Trajectory) -> None:
        """Warn of an episode on which the verifier broke, if it is the first."""
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"the verifier broke on an episode of problem {trajectory.problem_id!r}, which is excluded from training: "
                f"{shown(_cause(trajectory))}",
                stacklevel=2,
            )

    def unsupported(self, trajectories: Sequence[Trajectory]) -> list[str]:
        """Warnings about problems with several completions in a batch that are all unsupported; each problem is named once."""
        verdicts: dict[str, list[bool]] = {}
        for trajectory in trajectories:
            if trajectory.verdict is not None:
                verdicts.setdefault(trajectory.problem_id, []).append(is_unsupported(trajectory.verdict))
        named = {problem for problem, found in verdicts.items() if len(found) > 1 and all(found)} - self._unsupported
        self._unsupported |= named
        return [
            f"every completion of problem {problem!r} led its tests to what the verifier does not support, and scored 0: "
            "see whether its reference solution does (rlvr check-dataset)"
            for problem in sorted(named)
        ]

    def end_step(self, seen: SeenEpisodes, step: int, run: Run | None) -> None:
        """Count a step's episodes, write the causes of its errors to the run's folder, and stop if there are too many.

        Raises:
            VerifierFailureError: If the verifier broke on more than the allowed share of episodes.
        """
        for trajectory in seen.errored:
            self.warn(trajectory)
        causes = Counter(map(_cause, seen.errored))
        if run is not None:
            for cause, count in causes.most_common(_CAUSES):
                first = next(trajectory for trajectory in seen.errored if _cause(trajectory) == cause)
                example = {"problem_id": first.problem_id, "completion": first.completion}
                run.log_verifier_error({"step": step, "count": count, "cause": cause, **example})
            others = sum(causes.values()) - sum(count for _, count in causes.most_common(_CAUSES))
            if others:
                run.log_verifier_error({"step": step, "count": others, "cause": f"other than the {_CAUSES} above"})
        self._window.append((seen.episodes, causes))
        while sum(episodes for episodes, _ in self._window) - self._window[0][0] >= WINDOW:
            self._window.popleft()
        self.check(run, at_least=WINDOW)

    def check(self, run: Run | None, *, at_least: int = 1) -> None:
        """Stop if the verifier broke on too many of the last steps' episodes, once there are `at_least` such episodes."""
        episodes = sum(count for count, _ in self._window)
        causes = sum((counter for _, counter in self._window), Counter[str]())
        if episodes < at_least or not sum(causes.values()) > self._max_share * episodes:
            return
        self._window.clear()  # so that training can continue with this agent once the verifier is fixed
        (cause, count), *_ = causes.most_common(1)
        where = "" if run is None else f" All causes are in {run.verifier_errors}."
        raise VerifierFailureError(
            f"the verifier broke on {sum(causes.values())} of the last {episodes} episodes, more than "
            f"max_error_share={self._max_share} of them; {count} times: {shown(cause)}.{where} Fix the verifier and resume "
            "the run, or start another with a larger max_error_share"
        )


def _cause(trajectory: Trajectory) -> str:
    assert trajectory.verdict is not None
    return error_cause(trajectory.verdict.detail)
