"""Reads pairs of a preferred and a rejected completion of one prompt from files, or makes pairs from scored completions.

A file of pairs is JSON Lines or Parquet, with the columns of TRL's preference data sets:

| column | meaning |
|---|---|
| `prompt` | the prompt: text, or messages with `role` and `content` |
| `chosen`, `rejected` | the preferred and the rejected completion: text, or a list with one message of the assistant |
| `problem_id` | optional: id of the problem |
| `chosen_ended`, `rejected_ended` | optional: whether the completion ended by itself (true by default) |

A folder from `rlvr eval`, `rlvr grade` or `rlvr train` can be read, too. Among the completions of one problem, a completion
with a higher score is preferred to a completion with a lower score. With a verifier's scores of 0 and 1, right completions are
preferred to wrong completions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rlvr_envs
from agents.runs.files.json_files import JsonLines
from agents.runs.reading import RecordLine, read_run
from agents.types import Trajectory
from verifiers import Count, DataError, InvalidArgumentError, Message, Problem, checked

Prompt = str | tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Two completions of one prompt."""

    prompt: Prompt
    chosen: str
    """The preferred completion."""
    rejected: str
    problem_id: str | None = None
    chosen_ended: bool = True
    """Whether the preferred completion ended by itself; False if its token budget ran out."""
    rejected_ended: bool = True

    @property
    def problem(self) -> Problem:
        """The prompt as a problem without a reference, for verifiers that don't need one."""
        return Problem(self.problem_id or "", self.prompt, None)


@dataclass(frozen=True, slots=True)
class ScoredCompletion:
    """One completion of a problem, with its score."""

    problem: int
    """Index of the problem, or any other number that identifies it."""
    problem_id: str
    prompt: Prompt
    text: str
    score: float
    ended: bool


def read_pairs(path: str | Path, *, per_problem: int = 4, seed: int = 0) -> list[PreferencePair]:
    """Read a file of pairs, or make pairs from a folder of recorded completions.

    Args:
        path: A `.jsonl` or `.parquet` file, or a folder that `rlvr eval`, `rlvr grade` or `rlvr train` has written.
        per_problem: Maximum number of pairs of one problem from a folder. All pairs of a file are read.
        seed: Seed of the choice if a problem has more pairs.

    Raises:
        InvalidArgumentError: If the path is neither such a file nor a folder.
        DataError: If there is no pair, or a pair can't be read; the message names the line.
        MissingDataError: If the folder holds no completions.
    """
    path = Path(path)
    if path.is_dir():
        pairs = pairs_of(map(_recorded, filter(_is_scored, read_run(path).rows)), per_problem=per_problem, seed=seed)
        if not pairs:
            raise DataError(
                f"{path} has no two different completions of one problem with different scores: sample several of each, at a "
                "temperature above 0, such as rlvr eval --samples 8 --temperature 1"
            )
        return pairs
    if not path.is_file():
        raise InvalidArgumentError(
            f"{path} does not exist: expected a .jsonl or .parquet file of pairs, or a folder that rlvr eval has written"
        )
    return [_read(row) for row in rlvr_envs.read_rows(path)]


_COLUMNS = ("prompt", "chosen", "rejected")


def _read(row: rlvr_envs.Row) -> PreferencePair:
    if missing := [column for column in _COLUMNS if column not in row.values]:
        raise row.error(
            f"no column {' or '.join(map(repr, missing))}. Columns found: {', '.join(map(repr, row.values)) or 'none'}; a pair "
            f"needs {', '.join(map(repr, _COLUMNS))}: rename those of the file"
        )
    identity = row.values.get("problem_id")
    return PreferencePair(
        prompt=_prompt(row.value("prompt"), row),
        chosen=_completion("chosen", row),
        rejected=_completion("rejected", row),
        problem_id=None if identity is None else str(identity),
        chosen_ended=_ended("chosen_ended", row),
        rejected_ended=_ended("rejected_ended", row),
    )


def _ended(column: str, row: rlvr_envs.Row) -> bool:
    value = row.values.get(column)
    if value is not None and not isinstance(value, bool):
        raise row.wrong_type("true or false", value, column)
    return value is not False


def _prompt(value: Any, row: rlvr_envs.Row) -> Prompt:
    if not isinstance(value, str) and not _are_messages(value):
        raise row.wrong_type("text, or messages with role and content", value, "prompt")
    prompt = value if isinstance(value, str) else messages_of(value)
    row.check_prompt(prompt, "prompt")
    return prompt


def _completion(column: str, row: rlvr_envs.Row) -> str:
    value: Any = row.value(column)
    row.check_characters(value, column)
    if isinstance(value, str):
        return value
    if _are_messages(value) and len(value) == 1 and value[0]["role"] == "assistant":
        return str(value[0]["content"])
    raise row.wrong_type("text, or a list with one message of the assistant", value, column)


def _are_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(item, Mapping) and all(isinstance(item.get(key), str) for key in ("role", "content"))
            for item in value
        )
    )


def messages_of(value: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
    """A prompt's messages, from their form in JSON."""
    return tuple(Message(item["role"], item["content"]) for item in value)


def write_pairs(path: Path, pairs: Sequence[PreferencePair]) -> None:
    """Write a `.jsonl` file of pairs for `read_pairs`.

    Raises:
        OSError: If the file can't be written.
    """
    lines = JsonLines(path)
    try:
        for pair in pairs:
            ended = {name: False for name in ("chosen_ended", "rejected_ended") if not getattr(pair, name)}
            lines.write(
                {"prompt": pair.prompt, "chosen": pair.chosen, "rejected": pair.rejected}
                | ({} if pair.problem_id is None else {"problem_id": pair.problem_id})
                | ended
            )
    finally:
        lines.close()


# Pairs from scores


def _is_scored(row: RecordLine) -> bool:
    return row["score"] is not None and isinstance(row.get("completion"), str)


def _recorded(row: RecordLine) -> ScoredCompletion:
    prompt: Any = row.get("prompt")
    if not isinstance(prompt, str) and not _are_messages(prompt):
        raise DataError(f"the completion of problem {row['problem_id']!r} is recorded without its prompt")
    return ScoredCompletion(
        problem=row["problem"],
        problem_id=row["problem_id"],
        prompt=prompt if isinstance(prompt, str) else messages_of(prompt),
        text=row["completion"],
        score=float(row["score"]),
        ended=not row["truncated"],
    )


def scored_completions(trajectories: Iterable[Trajectory], dataset: rlvr_envs.Dataset) -> Iterator[ScoredCompletion]:
    """The completions for `pairs_of`; episodes on which the verifier broke are left out."""
    for trajectory in trajectories:
        if not trajectory.errored:
            yield ScoredCompletion(
                trajectory.problem,
                trajectory.problem_id,
                dataset[trajectory.problem].prompt,
                trajectory.completion,
                trajectory.score,
                not trajectory.truncated,
            )


@checked
def pairs_of(
    completions: Iterable[ScoredCompletion], *, per_problem: Count = 4, seed: int = 0, least_gap: float = 0.0
) -> list[PreferencePair]:
    """Pair the completions of each problem. A higher score is preferred to a lower score.

    Among equal texts of one problem, only the first counts. The pairs of a problem do not depend on the other problems.

    Args:
        completions: The completions, in any order.
        per_problem: Maximum number of pairs of one problem. If there are more pairs, some are drawn at random.
        seed: Seed of these draws.
        least_gap: The scores of a pair must differ by more than this number.

    Raises:
        InvalidArgumentError: If `per_problem` is less than 1.
    """
    by_problem: dict[int, dict[tuple[str, bool], ScoredCompletion]] = {}
    for one in completions:
        by_problem.setdefault(one.problem, {}).setdefault((one.text, one.ended), one)
    pairs: list[PreferencePair] = []
    for problem, texts in by_problem.items():
        members = list(texts.values())
        both = [(a, b) for a in members for b in members if a.score - b.score > least_gap]
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(problem % 2**32,)))
        kept = sorted(generator.choice(len(both), size=min(per_problem, len(both)), replace=False)) if both else []
        pairs += [_pair(*both[index]) for index in kept]
    return pairs


def _pair(better: ScoredCompletion, worse: ScoredCompletion) -> PreferencePair:
    return PreferencePair(better.prompt, better.text, worse.text, better.problem_id, better.ended, worse.ended)


def held_out(
    pairs: Sequence[PreferencePair], share: float, seed: int = 0
) -> tuple[list[PreferencePair], list[PreferencePair]]:
    """Divide pairs into training pairs and held-out pairs. Pairs of one prompt stay together.

    Args:
        pairs: Pairs of at least two prompts.
        share: Share of the prompts whose pairs are held out. At least one prompt is held out.
        seed: Seed of the choice.

    Raises:
        InvalidArgumentError: If the share is not between 0 and 1.
        DataError: If all pairs have the same prompt.
    """
    if not 0 < share < 1:
        raise InvalidArgumentError(f"the share of held-out prompts must be between 0 and 1, got {share}")
    keys = list(dict.fromkeys(pair.prompt for pair in pairs))
    if len(keys) < 2:
        raise DataError(f"{len(pairs)} pairs of {len(keys)} prompts can't be divided into training and held-out pairs")
    count = min(max(1, round(share * len(keys))), len(keys) - 1)
    chosen = np.random.default_rng(np.random.SeedSequence(seed)).permutation(len(keys))[:count]
    test = {keys[index] for index in chosen.tolist()}
    return [pair for pair in pairs if pair.prompt not in test], [pair for pair in pairs if pair.prompt in test]
