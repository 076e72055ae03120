"""`Run`: the folder of a training run.

```
runs/<name>/
  config.json      everything that determines the run: settings, environment, versions
  metrics.jsonl    one line for each step
  reward.svg, reward.png   the curve of the reward, at the end of the command, where matplotlib is installed
  tensorboard/, wandb/   the same metrics, with these loggers; see `agents.runs.loggers`
  evaluations.jsonl   scores on held-out problems; see `agents.runs.held_out`
  rollouts.jsonl   some completions of each step; see `agents.runs.rollout_log`
  problems.json    problems without a right completion in their last groups, at the end of the command
  verifier_errors.jsonl   why verifiers broke: step, count, cause, and one example with problem and completion; append-only
  checkpoints/     step-000100/ ... , the most recent ones and the best
    model/         files for `from_pretrained`: the model, in the type of the initial model, or its LoRA adapter alone
    state.pt       all else that resuming needs; mostly the optimiser's two float32 numbers for each trained weight
  .lock            held by the process that writes here
```
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from agents.runs.files.hardware import package_versions
from agents.runs.files.integrity import check_checksums
from agents.runs.files.json_files import plain, to_json, write_json
from agents.runs.files.outputs import locked
from agents.runs.held_out import HELD_OUT, HeldOutHistory
from agents.runs.loggers import LoggedRun, MetricLogger, check_loggers, open_loggers
from agents.runs.rollout_log import RolloutLog
from verifiers import CheckpointError, InvalidArgumentError, MissingDataError, redacted

BEST_OVER = 20
"""Number of steps up to a checkpoint over which rewards are averaged to compare checkpoints."""
CONFIG = "config.json"
"""Name of the file with a run's settings."""
METRICS = "metrics.jsonl"
"""Name of the file with a run's metrics."""
VERIFIER_ERRORS = "verifier_errors.jsonl"
"""Name of the file with the causes of a run's verifier errors."""
_STEP = re.compile(r"step-(\d{6,})")


class Run:
    """Writes the metrics of a training run and keeps its checkpoints.

    A folder belongs to one process at a time: the folder is locked until `close`, or until the process ends. A folder without a
    finished step, such as that of a run that failed at its first step, may be used for a new run.

    When a run is resumed, `checkpoint` is the last intact checkpoint. Damaged checkpoints after it are renamed to
    `damaged-step-N` with a warning, and metrics of later steps are removed.

    Args:
        folder: Folder of the run, created if missing.
        config: Plain data that is written to `config.json`, without secrets and with the versions of packages.
        resume: Continue the run in this folder.
        loggers: Destinations of metrics besides `metrics.jsonl`: names of `agents.runs.loggers`, or objects with the methods of
            `MetricLogger`. The run closes them.
        keep: Number of most recent checkpoints to keep in addition to the best one (see `best_checkpoint`); None keeps all.
        log_rollouts: Number of completions of each step to write to `rollouts.jsonl`.

    Raises:
        InvalidArgumentError: If the folder already contains a run, or another kind of `config.json`, and `resume` is False;
            another process writes into the folder; `keep` is less than 1; or a logger can't be started.
        UnknownNameError: If there is no logger with a given name.
        MissingDependencyError: If a logger is not installed.
        CheckpointError: If `resume` is True and there is no run, or all its checkpoints are damaged.
    """

    checkpoint: Path | None
    """The checkpoint to continue from; None at the beginning."""
    rollouts: RolloutLog | None
    """The log of completions; None if no completions are written."""
    held_out: HeldOutHistory
    """The evaluations on held-out problems."""

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        *,
        resume: bool = False,
        loggers: Sequence[str | MetricLogger] = ("tensorboard",),
        keep: int | None = 2,
        log_rollouts: int = 0,
    ) -> None:
        check_loggers(loggers)
        if keep is not None and keep < 1:
            raise InvalidArgumentError(f"keep must be at least 1, or None for all checkpoints, got {keep}")
        self.folder = Path(folder)
        self.keep = keep
        self._metrics = self.folder / METRICS
        before = read_config(self.folder) if resume else {}
        self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as opened:
            opened.enter_context(locked(self.folder))
            if not resume:
                check_free(self.folder)
            self._checkpoints.mkdir(exist_ok=True)
            self._clean_up()
            self.checkpoint = self._last_sound_checkpoint() if resume else None
            run_id = str(before.get("run_id") or f"{self.folder.resolve().name}-{uuid.uuid4().hex[:8]}")
            if not resume:
                self._write_config({**config, "run_id": run_id})
            # Without a checkpoint, the evaluation before the first step is repeated, too.
            done = -1 if self.checkpoint is None else _step_of(self.checkpoint)
            step = max(done, 0)
            self._rewards = self._keep_until(done)
            self.held_out = HeldOutHistory(self.folder / HELD_OUT)
            opened.callback(self.held_out.close)
            self.held_out.keep_until(done)
            self._file = opened.enter_context(self._metrics.open("a", encoding="utf-8"))
            self._loggers = open_loggers(loggers, LoggedRun(self.folder, before or config, step + 1, run_id))
            for logger in self._loggers:
                opened.callback(logger.close)
            self.rollouts = RolloutLog(self.folder, log_rollouts) if log_rollouts else None
            if self.rollouts is not None:
                opened.callback(self.rollouts.close)
                self.rollouts.keep_until(step)
            self._opened = opened.pop_all()

    def log(self, step: int, metrics: Mapping[str, float], warned: Sequence[str] = ()) -> None:
        """Append one step's metrics; numbers that are not finite are written as null, and warnings under "warnings"."""
        row: dict[str, Any] = {"step": step}
        row |= {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        if warned:
            row["warnings"] = list(warned)
        self._write(step, row, metrics)
        self._rewards[step] = row.get("reward")

    def log_evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append the metrics of an evaluation after a step, on a separate line."""
        self._write(step, {"step": step, **metrics}, metrics)

    def _write(self, step: int, row: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
        self._file.write(to_json(row) + "\n")
        self._file.flush()
        for logger in self._loggers:
            logger.log(step, metrics)

    @property
    def verifier_errors(self) -> Path:
        """The file with the causes of verifier errors; it exists only if there were any."""
        return self.folder / VERIFIER_ERRORS

    def log_verifier_error(self, line: Mapping[str, Any]) -> None:
        """Append plain data about the reason why a verifier broke."""
        with self.verifier_errors.open("a", encoding="utf-8") as file:
            file.write(to_json(line) + "\n")

    def rows(self) -> Iterator[dict[str, Any]]:
        """The logged metrics, step by step."""
        with self._metrics.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)

    def checkpoint_folder(self, step: int) -> Path:
        """The folder of a step's checkpoint."""
        return self._checkpoints / f"step-{step:06d}"

    def keep_checkpoint(self, step: int, save: Callable[[Path], None]) -> None:
        """Write a step's checkpoint, unless it exists, and remove checkpoints that should not be kept.

        Args:
            step: Number of the last step done.
            save: Function that writes the checkpoint to a folder atomically.
        """
        folder = self.checkpoint_folder(step)
        if folder.exists():
            return
        save(folder)
        if self.keep is None:
            return
        every = step_checkpoints(self.folder)
        kept = {self.best_checkpoint(), *every[-self.keep :]}
        for checkpoint in every:
            if checkpoint not in kept:
                # Renamed first, so that a partially removed folder is never mistaken for a checkpoint.
                removed = checkpoint.with_name(f".{checkpoint.name}.removed")
                os.replace(checkpoint, removed)
                shutil.rmtree(removed)

    def best_checkpoint(self) -> Path | None:
        """The checkpoint with the highest score on held-out problems, the first if several are equal.

        Without evaluations, it is the checkpoint with the highest mean training reward over the `BEST_OVER` steps up to it,
        the last if several are equal. None if there is no checkpoint.
        """
        scores = self.held_out.means

        def measure(checkpoint: Path) -> tuple[float, int]:
            step = _step_of(checkpoint)
            if scores:
                return scores.get(step, -math.inf), -step
            rewards = [self._rewards.get(number) for number in range(step - BEST_OVER + 1, step + 1)]
            known = [reward for reward in rewards if reward is not None]
            return sum(known) / len(known) if known else -math.inf, step

        return max(step_checkpoints(self.folder), key=measure, default=None)

    def close(self) -> None:
        """Close files and loggers, and unlock the folder; the end of a `with` block does the same."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    def _clean_up(self) -> None:
        """Remove the leftovers of interrupted saves and removals, whose names begin with a dot."""
        for path in self._checkpoints.glob(".step-*"):
            shutil.rmtree(path)

    def _last_sound_checkpoint(self) -> Path | None:
        for stray in set(self._checkpoints.glob("step-*")) - set(step_checkpoints(self.folder)):
            warnings.warn(
                f"{stray} is not a checkpoint and is ignored: the name of a checkpoint is like step-000100",
                stacklevel=3,
            )
        damaged: dict[Path, CheckpointError] = {}
        for checkpoint in reversed(step_checkpoints(self.folder)):
            try:
                check_checksums(checkpoint)
            except CheckpointError as error:
                damaged[checkpoint] = error
                continue
            for path, damage in damaged.items():
                aside = path.with_name(f"damaged-{path.name}")
                shutil.rmtree(aside, ignore_errors=True)
                os.replace(path, aside)
                warnings.warn(f"{damage}; continuing from {checkpoint.name}, and {aside} can be removed", stacklevel=3)
            return checkpoint
        for damage in damaged.values():
            raise CheckpointError(
                f"{damage}, and there is no intact one before it: start another run, or remove {self._checkpoints} to start "
                "this one over"
            )
        return None

    def _write_config(self, config: Mapping[str, Any]) -> None:
        write_json(self.folder / CONFIG, redacted(plain({**config, "versions": package_versions()})))

    def _keep_until(self, step: int) -> dict[int, float | None]:
        """Remove metrics after a step and unreadable lines; return the reward of each remaining step."""
        if not self._metrics.exists():
            return {}
        lines = self._metrics.read_text(encoding="utf-8", errors="replace").splitlines()
        rows = {number: row for number, line in enumerate(lines, start=1) if (row := _row(line)) is not None}
        lost = [number for number in range(1, len(lines)) if number not in rows]  # a crash may cut the last line short
        if lost:
            warnings.warn(f"{self._metrics} has invalid lines, which are removed: {lost}", stacklevel=3)
        kept = {number: row for number, row in rows.items() if row["step"] <= step}
        partial = self.folder / ".metrics.jsonl.partial"
        partial.write_text("".join(lines[number - 1] + "\n" for number in kept), encoding="utf-8")
        os.replace(partial, self._metrics)
        return {row["step"]: row["reward"] for row in kept.values() if "reward" in row}


def check_free(folder: Path) -> None:
    """Check that a new run would not overwrite anything in a folder, which need not exist."""
    if has_results(folder):
        raise InvalidArgumentError(
            f"{folder} holds a run already: resume it (--resume, resume=True), or choose another folder (--run-folder)"
        )
    with contextlib.suppress(CheckpointError, MissingDataError):  # there is no config, or it can't be read
        if "versions" not in read_config(folder):
            raise InvalidArgumentError(
                f"{folder} holds a config.json that is not that of a run, but perhaps a model's: choose another folder"
            )


def has_results(folder: Path) -> bool:
    """Whether a folder has checkpoints or metrics of a run."""
    metrics = folder / METRICS
    return bool(step_checkpoints(folder)) or (metrics.exists() and metrics.stat().st_size > 0)


def read_config(folder: Path) -> dict[str, Any]:
    """Read a run's `config.json`."""
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise MissingDataError(f"no run to resume at {folder}: expected a folder with config.json")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"the run at {folder} can't be resumed: its config.json is not JSON ({error})") from error
    if not isinstance(config, dict):
        raise CheckpointError(f"the run at {folder} can't be resumed: its config.json is not a JSON object")
    return config


def step_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run, sorted by step; only folders named step-N count."""
    folders = (Path(folder) / "checkpoints").glob("step-*")
    return sorted((path for path in folders if _STEP.fullmatch(path.name)), key=_step_of)


def latest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint of a run's last saved step; None without a checkpoint."""
    return next(reversed(step_checkpoints(folder)), None)


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def _row(line: str) -> dict[str, Any] | None:
    """Parse a line of metrics; None if it is invalid."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("step"), int) else None
