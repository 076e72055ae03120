"""`EvaluationRecord`: the folder in which an evaluation is recorded, and from which it can be resumed.

```
runs/eval/<name>/
  manifest.json    the settings that determine the samples, package versions, hardware, and finally the summary
  samples.jsonl    a line for each completion, appended as its episode ends
  samples.parquet  the same as a table, at the end, where pyarrow is installed
  .lock            held by the process that writes here
```

The line of a sample has these fields:

| name | meaning |
|---|---|
| `problem`, `problem_id` | the problem's index in the data set, and its id |
| `sample` | number of the completion among those of its problem, from 0 |
| `seed` | seed of the completion's sampling |
| `prompt` | the problem's prompt: text, or messages with `role` and `content`; the manifest has one fully rendered example |
| `reference` | the reference answer that the verifier compares with |
| `completion` | the policy's text |
| `outcome`, `score`, `answer`, `detail` | fields of the verdict; null without a completion (`score`: if the verifier broke) |
| `tokens` | number of tokens the policy generated; 0 if a server does not count them |
| `truncated` | whether the token budget ran out, or the verifier broke |
| `applied` | the part of a `hybrid` or `first` verifier that decided; null for other verifiers |
| `error` | why the verifier broke, or the request for the completion failed; null if neither did |
| `cluster` | equal for problems that belong together, by default if their prompts are equal; null if unknown |
| `prompt_tokens` | number of tokens before each turn, summed over the turns, as a server counts them; null without a server |
| `cost` | a server's charge for the tokens, at the given price; null without a price, or without counts of tokens |
| `search_tokens` | number of tokens that the search sampled, including discarded ones; null without a search |
| `unsupported` | whether the score is 0 because the tests use the program's objects in a way the sandbox does not support |

Lines are in the order in which episodes end. A later line of the same problem and sample replaces an earlier, errored line. See
`agents.runs.files.json_files` for how values without a JSON equivalent are written.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import typing
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from agents.runs.clusters import problem_cluster
from agents.runs.files.hardware import engine_versions, hardware, package_versions
from agents.runs.files.json_files import JsonLines, differences, plain, read_json, read_lines, to_json, write_json
from agents.runs.files.outputs import LOCK, check_folder, locked, missing_folders, remove_empty
from agents.runs.parquet import can_write, write_parquet
from agents.runs.verdicts import applied_part, error_cause, is_unsupported
from agents.types import Trajectory
from verifiers import (
    AssistantMessage,
    Completion,
    DataError,
    InvalidArgumentError,
    MadeCall,
    Message,
    Outcome,
    Problem,
    ToolMessage,
    Verdict,
    dialogue_of,
)

MANIFEST = "manifest.json"
SAMPLES = "samples.jsonl"
TABLE = "samples.parquet"
FORMAT = 1
"""Version of the record's format; every incompatible change raises it."""
ORACLE_NOTE = "chosen by the verdicts that score them: an upper bound like pass@k, not an accuracy"
"""Note on samples whose search was guided by the verifier of the evaluation."""
_MAY_GROW = ("problems", "samples")
_MAY_CHANGE = "engine_args"
"""Setting that may change with only a warning, since another machine or engine may need other values."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The data of one completion that a summary needs; the completion's text is in the record."""

    problem: int
    problem_id: str
    sample: int
    seed: int
    outcome: str | None
    """The verdict's outcome; None if the environment has no verifier, or there is no completion."""
    score: float | None
    """The score; None if the verifier broke, or the request for the completion failed."""
    answer: str | None
    tokens: int
    truncated: bool
    error: str | None
    """The reason why the verifier broke or the request for the completion failed; None if neither happened."""
    unsupported: bool
    """Whether the sample scored 0 because its tests use the program's objects in a way the sandbox does not support."""
    applied: str | None = None
    """The part of a `hybrid` or `first` verifier that decided; None for other verifiers."""
    search_tokens: int | None = None
    """Number of tokens that the search sampled, including discarded ones; None without a search."""
    prompt_tokens: int | None = None
    """Number of tokens before each turn, summed over the turns, as a server counts them; None without a server."""
    cost: float | None = None
    """The server's charge for the sample's tokens; None without a price, or if the server does not count tokens."""
    cluster: str | None = None
    """Equal for samples of problems with equal prompts, see `agents.runs.clusters`; None if the problem is its own cluster."""

    @classmethod
    def of(cls, trajectory: Trajectory, *, problem: int, sample: int) -> Sample:
        """Make the sample of an episode."""
        return cls.judged(
            trajectory.verdict,
            problem=problem,
            problem_id=trajectory.problem_id,
            sample=sample,
            score=trajectory.score,
            seed=trajectory.seed,
            tokens=int(trajectory.policy_mask.sum()),
            truncated=trajectory.truncated,
        )

    @classmethod
    def judged(
        cls,
        verdict: Verdict | None,
        *,
        problem: int,
        problem_id: object,
        sample: int,
        score: float,
        seed: int = 0,
        tokens: int = 0,
        truncated: bool = False,
    ) -> Sample:
        """Make the sample of a completion with a verdict; values that are unknown for completions made elsewhere are 0."""
        errored = verdict is not None and verdict.outcome is Outcome.VERIFIER_ERROR
        return cls(
            problem=problem,
            problem_id=_text(problem_id),
            sample=sample,
            seed=seed,
            outcome=None if verdict is None else str(verdict.outcome),
            score=None if errored else score,
            answer=None if verdict is None or verdict.answer is None else _text(verdict.answer),
            tokens=tokens,
            truncated=truncated,
            error=plain(error_cause(verdict.detail)) if verdict is not None and errored else None,
            unsupported=verdict is not None and is_unsupported(verdict),
            applied=applied_part(verdict),
        )

    @classmethod
    def failed(cls, cause: str, *, problem: int, problem_id: object, sample: int, seed: int) -> Sample:
        """Make the sample of a request that got no completion; it is no evidence about the model."""
        return cls(problem, _text(problem_id), sample, seed, None, None, None, 0, False, _text(cause), False)

    @classmethod
    def read(cls, line: object) -> Sample:
        """Read a sample from a line of a record."""
        named: dict[str, Any] = line if isinstance(line, dict) else {}
        wrong = [
            name
            for name, expected in _FIELD_TYPES.items()
            if name not in named or not isinstance(named[name], expected)
        ]
        if wrong:
            raise DataError(f"not a sample with {wrong[0]} of type {_FIELD_TYPES[wrong[0]]}")
        return cls(**{name: named[name] for name in _FIELD_TYPES})

    def of_problem(
        self, problem: Problem | None, cluster: Callable[[Problem | None], str | None] = problem_cluster
    ) -> Sample:
        """Return this sample with the cluster of its problem."""
        return replace(self, cluster=cluster(problem))

    @property
    def key(self) -> tuple[int, int]:
        """The numbers of the problem and of the sample."""
        return self.problem, self.sample

    @property
    def errored(self) -> bool:
        """Whether the verifier broke, or the request for the completion failed: the sample is no evidence about the model."""
        return self.error is not None

    @property
    def unanswered(self) -> bool:
        """Whether there is no completion because the request failed."""
        return self.errored and self.outcome is None


def sample_clusters(samples: Iterable[Sample]) -> dict[int, Hashable]:
    """The cluster of each problem of some samples, by the problem's index, in order of appearance."""
    clusters: dict[int, Hashable] = {}
    for sample in samples:
        clusters.setdefault(sample.problem, sample.problem if sample.cluster is None else sample.cluster)
    return clusters


class SampledRow(NamedTuple):
    """A new sample, with further data for its record."""

    sample: Sample
    completion: str
    verdict: Verdict | None
    trajectory: Trajectory | None = None
    """The sample's episode, if it was played token by token."""


def _text(value: object) -> str:
    """An id or an answer as text, since some verifiers and data sets use numbers."""
    written = plain(value)
    return written if isinstance(written, str) else to_json(written)


_FIELD_TYPES: dict[str, Any] = typing.get_type_hints(Sample)


def sample_line(
    sample: Sample, completion: str, verdict: Verdict | None, problem: Problem | None, asked: Problem | None = None
) -> dict[str, Any]:
    """The line of a sample in a record.

    Args:
        sample: The sample.
        completion: The policy's last turn.
        verdict: The verdict on the completion.
        problem: The problem; None if the environment does not expose its problems.
        asked: The problem in the form in which the policy got it, such as in words; None if it is the same.
    """
    fields = {field.name: getattr(sample, field.name) for field in dataclasses.fields(sample)}
    return fields | {
        "prompt": asked.prompt if asked else problem.prompt if problem else None,
        "reference": None if problem is None else problem.reference,
        "completion": completion,
        "dialogue": dialogue_of(completion) if isinstance(completion, Completion) else None,
        "detail": None if verdict is None else verdict.detail,
        "cluster": sample.cluster or problem_cluster(problem),
    }


def recorded_completion(line: Mapping[str, Any]) -> str:
    """The completion in a sample's line, with the earlier turns of an episode of several turns."""
    text, dialogue = str(line["completion"]), line.get("dialogue")
    if dialogue is None:
        return text
    try:
        return Completion(text, tuple(map(_message, dialogue)))
    except (TypeError, KeyError) as error:
        raise DataError(
            f"the dialogue of problem {line.get('problem_id')!r} must be a list of messages, got {dialogue!r}"
        ) from error


def _message(said: Mapping[str, Any]) -> Message:
    if "name" in said:
        return ToolMessage(said["role"], said["content"], said["name"], said.get("call_id", ""))
    if "calls" in said:
        calls = tuple(MadeCall(**call) for call in said["calls"])
        return AssistantMessage(said["role"], said["content"], calls, said.get("reasoning", ""))
    return Message(said["role"], said["content"])


COLUMNS = tuple(sample_line(Sample(0, "", 0, 0, None, None, None, 0, False, None, False), "", None, None))
"""The names in a sample's line."""


def latest_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of samples, read one by one, without lines that a later line of the same sample replaces.

    Raises:
        DataError: If a line is damaged.
    """
    last: dict[tuple[int, int], int] = {}
    for number, key in enumerate(read_lines(path, lambda line: Sample.read(line).key)):
        last[key] = number
    kept = set(last.values())
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if number in kept:
                yield json.loads(line)


class EvaluationRecord:
    """Records an evaluation as it runs: `evaluate(env, policy, record=EvaluationRecord(folder))`.

    Samples are written as their episodes end, so an interrupted evaluation can be continued with `resume=True`. Its samples
    then equal those of an uninterrupted evaluation, up to rounding, since each sample has its own seed. Errored samples are
    repeated.

    Args:
        folder: Folder of the record, created if missing.
        settings: Plain data to add to the manifest, such as the model's name. A record can only be resumed with equal
            settings.
        resume: Continue the evaluation in the folder, or start one if there is none.
        overwrite: Replace the evaluation in the folder as soon as the new one begins.

    Raises:
        InvalidArgumentError: If the folder is not empty and neither `resume` nor `overwrite` is set, the folder is not
            writable, or another process writes this record.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        settings: Mapping[str, Any] | None = None,
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self.num_samples = 0
        """Number of samples in the record, including earlier ones."""
        self._settings = dict(settings or {})
        self._resume = resume
        if resume and overwrite:
            raise InvalidArgumentError("an evaluation can be resumed or overwritten, not both: choose one")
        check_folder(self.folder)
        self._made = missing_folders(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._check_content(free=resume or overwrite)
        self._lock = locked(self.folder)
        self._lines = JsonLines(self.folder / SAMPLES)
        self._manifest: dict[str, Any] = {}

    def _check_content(self, *, free: bool) -> None:
        if (self.folder / MANIFEST).exists() and not _is_empty(self.folder / SAMPLES):
            if not free:
                raise InvalidArgumentError(
                    f"{self.folder} holds an evaluation: continue it (--resume, resume=True), replace it "
                    "(--overwrite, overwrite=True), or choose another folder"
                )
            return
        # Files left by an evaluation that ended before its first sample.
        early = [LOCK, f".{MANIFEST}.partial", *([SAMPLES, MANIFEST] if _is_empty(self.folder / SAMPLES) else [])]
        others = [path.name for path in self.folder.iterdir() if path.name not in early]
        if others:
            raise InvalidArgumentError(f"{self.folder} contains {min(others)} but no evaluation: choose another folder")

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Check some settings of a resumed record before the others are known, since those may need a loaded model.

        Raises:
            InvalidArgumentError: If the record has other settings; the message names one of them.
            DataError: If the record is damaged.
        """
        path = self.folder / MANIFEST
        if self._resume and path.exists():
            wanted = plain({**self._settings, **settings})
            before = read_manifest(path)["settings"]
            _check_settings(self.folder, {name: before.get(name) for name in wanted}, wanted)

    def begin(self, settings: Mapping[str, Any]) -> dict[tuple[int, int], Sample]:
        """Write the manifest, and return the existing samples by the numbers of problem and sample; called by `evaluate`.

        Args:
            settings: Settings that determine the samples, including the numbers of `problems` and `samples`, which may grow.

        Raises:
            InvalidArgumentError: If the record has other settings; the message names one of them.
            DataError: If the record is damaged.
        """
        path = self.folder / MANIFEST
        wanted = plain({**self._settings, **settings})
        versions = package_versions() | (engine_versions() if "engine" in wanted else {})
        samples: dict[tuple[int, int], Sample] = {}
        self._manifest = {
            "format": FORMAT,
            "settings": wanted,
            "versions": versions,
            "hardware": hardware(),
            "started": _now(),
            "finished": None,
        }
        if self._resume and path.exists():
            before = read_manifest(path)
            _check_settings(self.folder, before["settings"], wanted)
            _warn_of_changes(self.folder, before, self._manifest)
            samples = {sample.key: sample for sample in self._lines.read(Sample.read)}
            self._manifest |= {name: before[name] for name in ("versions", "hardware", "started")}
        else:
            self._lines.clear()
        write_json(path, {**self._manifest, "summary": None})
        self.num_samples = len(samples)
        return samples

    def add(self, line: Mapping[str, Any]) -> None:
        """Append a sample's line.

        Raises:
            OSError: If the line can't be written, as on a full disk; the record then holds all earlier samples.
        """
        self._lines.write(line)
        self.num_samples += 1

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary."""
        write_json(self.folder / MANIFEST, {**self._manifest, "finished": _now(), "summary": summary})
        if can_write():
            write_parquet(self.folder / TABLE, COLUMNS, latest_lines(self.folder / SAMPLES))

    def close(self) -> None:
        """Close the files, and remove a folder that has no samples and was created for this record."""
        self._lines.close()
        if not self.num_samples and self._made:
            (self.folder / MANIFEST).unlink(missing_ok=True)
            (self.folder / SAMPLES).unlink()
            (self.folder / LOCK).unlink()
            remove_empty(self._made)
        self._lock.close()

    def __enter__(self) -> EvaluationRecord:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_empty(path: Path) -> bool:
    return path.is_file() and not path.stat().st_size


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a record's manifest."""
    content = read_json(path)
    manifest: dict[str, Any] = content if isinstance(content, dict) else {}
    form = manifest.get("format")
    if form != FORMAT:
        raise DataError(
            f"{path} has format {form!r}, but this release reads {FORMAT}: use the release that wrote it, or evaluate "
            "anew into another folder"
        )
    for name, cls in {"settings": dict, "versions": dict, "hardware": dict, "started": str}.items():
        if not isinstance(manifest.get(name), cls):
            raise DataError(f"{path} has no {name}: it is not the manifest of an evaluation, or is damaged")
    return manifest


def _check_settings(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    for name, old, new in differences(before, now):
        if name.partition(".")[0] == _MAY_CHANGE or (name in _MAY_GROW and isinstance(old, int) and old <= new):
            continue
        raise InvalidArgumentError(
            f"the evaluation at {folder} was started with {name}={old!r} and can't be continued with {new!r}: use the same "
            "setting, or evaluate into another folder"
        )


def _warn_of_changes(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Warn if versions, hardware or engine arguments have changed."""
    changes = [change for name in ("versions", "hardware") for change in differences(before[name], now[name])]
    old, new = (manifest["settings"].get(_MAY_CHANGE) for manifest in (before, now))
    changes += differences(old, new, _MAY_CHANGE)
    changed = [f"{name} {one} and now {other}" for name, one, other in changes]
    if changed:
        warnings.warn(
            f"the evaluation at {folder} was started with {', '.join(changed)}: this may change its remaining samples",
            stacklevel=4,
        )
