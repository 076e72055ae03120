"""`RolloutLog`: records some completions of each training step for inspection.

`rollouts.jsonl` has a line for each completion, with the fields of an evaluation's samples
(`agents.runs.evaluation_record`), where `sample` is the number of the episode within the step, and

| name | meaning |
|---|---|
| `step`, `episode` | training step, from 1, and number of the episode within it |
| `group` | number of the group; its episodes answer the same problem |
| `advantage` | mean advantage of the completion's tokens |
| `token_texts` | text of each token that the policy chose |
| `log_probabilities` | log-probabilities of these tokens under the policy that sampled them |
| `token_advantages`, `token_scores` | advantages and rewards of these tokens |

A closed log is also written as `rollouts.parquet` if pyarrow is installed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import rlvr_envs
from agents.runs.evaluation_record import COLUMNS, Sample, sample_line
from agents.runs.files.json_files import JsonLines
from agents.runs.parquet import can_write, write_parquet
from agents.types import Trajectory, TrajectoryElsewhere
from verifiers import Count, Problem, checked

if TYPE_CHECKING:
    from torch import Tensor

ROLLOUTS = "rollouts.jsonl"
ROLLOUT_COLUMNS = (
    *COLUMNS,
    "step",
    "episode",
    "group",
    "advantage",
    "token_texts",
    "log_probabilities",
    "token_advantages",
    "token_scores",
)


class RolloutLog:
    """Writes some of the completions of each step.

    Args:
        folder: Folder of the run.
        per_step: Number of completions of each step to write, in whole groups if the number allows; at least 1.

    Raises:
        InvalidArgumentError: If `per_step` is less than 1.
    """

    @checked
    def __init__(self, folder: Path, per_step: Count) -> None:
        self.per_step = per_step
        self._lines = JsonLines(folder / ROLLOUTS)

    def keep_until(self, step: int) -> None:
        """Remove a line that a crash cut short, and the completions of later steps, which a resumed run repeats."""
        self._lines.cut(lambda row: isinstance(row, dict) and isinstance(row.get("step"), int) and row["step"] <= step)

    def write(
        self,
        step: int,
        trajectories: Sequence[Trajectory],
        advantages: Tensor,
        tokenizer: rlvr_envs.Tokenizer | None,
        dataset: rlvr_envs.Dataset | None,
        question: Callable[[Problem], Problem] | None = None,
    ) -> None:
        """Write some completions of a step.

        Args:
            step: Number of the step, from 1.
            trajectories: All b episodes of the step; episodes of other ranks, without tokens, are left out.
            advantages: f64[b l], the advantage of each token.
            tokenizer: The tokenizer, for the texts of tokens; None if it is unknown.
            dataset: The problems; None if the environment does not expose them.
            question: Returns a problem in the form in which the policy gets it; None if that is the problem itself.

        Raises:
            OSError: If the file can't be written.
        """
        for index in self._chosen(trajectories):
            trajectory = trajectories[index]
            row = advantages[index, : len(trajectory.tokens)].double().cpu().numpy()
            self._lines.write(_line(step, index, trajectory, row, tokenizer, dataset, question))

    def _chosen(self, trajectories: Sequence[Trajectory]) -> list[int]:
        """The episodes to write, evenly spaced over the step: whole groups, since advantages compare the members of a group."""
        groups: dict[int, list[int]] = {}
        for index, trajectory in enumerate(trajectories):
            if not isinstance(trajectory, TrajectoryElsewhere):
                groups.setdefault(trajectory.group, []).append(index)
        every = list(groups.values())
        if not every:
            return []
        count = min(math.ceil(self.per_step / max(map(len, every))), len(every))
        first = np.linspace(0, len(every) - 1, count).astype(np.int64).tolist()
        others = [number for number in range(len(every)) if number not in first]  # needed if groups differ in size
        return sorted([index for number in first + others for index in every[number]][: self.per_step])

    def close(self) -> None:
        """Close the file, and also write its contents as a table."""
        self._lines.close()
        path = self._lines.path
        if not path.stat().st_size:
            path.unlink()
        elif can_write():
            write_parquet(path.with_suffix(".parquet"), ROLLOUT_COLUMNS, _rows(path))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        yield from map(json.loads, file)


def _line(
    step: int,
    index: int,
    trajectory: Trajectory,
    advantages: np.ndarray,
    tokenizer: rlvr_envs.Tokenizer | None,
    dataset: rlvr_envs.Dataset | None,
    question: Callable[[Problem], Problem] | None,
) -> dict[str, Any]:
    known = dataset is not None and 0 <= trajectory.problem < len(dataset)
    problem = dataset[trajectory.problem] if known and dataset is not None else None
    sample = Sample.of(trajectory, problem=trajectory.problem, sample=index)
    own = trajectory.policy_mask
    texts = None if tokenizer is None else [rlvr_envs.decode(tokenizer, [token]) for token in trajectory.tokens[own]]
    asked = None if problem is None or question is None else question(problem)
    return sample_line(sample, trajectory.completion, trajectory.verdict, problem, asked) | {
        "step": step,
        "episode": index,
        "group": trajectory.group,
        "advantage": float(advantages[own].mean()) if own.any() else 0.0,
        "token_texts": texts,
        "log_probabilities": trajectory.logprobs[own],
        "token_advantages": advantages[own],
        "token_scores": None if trajectory.errored else trajectory.rewards[own],
    }
