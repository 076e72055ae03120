"""Destinations of a run's metrics in addition to `metrics.jsonl`: TensorBoard, Weights & Biases, trackio, or your own logger.

A logger has the two methods of `MetricLogger`. If a logger fails during a run, there is one warning, and it gets no more
metrics; the run continues, and its `metrics.jsonl` has all metrics. The config that loggers get has no secrets.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agents.runs.files.json_files import plain
from verifiers import InvalidArgumentError, RLVRError, missing_dependency, redacted, unknown_name

PROJECT = "rlvr-envs"
"""Project of a run at Weights & Biases and trackio, unless WANDB_PROJECT or TRACKIO_PROJECT names another project."""


class MetricLogger(Protocol):
    """Receives the metrics of a run; the run closes its loggers."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record the metrics of a step, which may be NaN or infinite; a resumed run repeats the steps after its checkpoint."""

    def close(self) -> None:
        """Write the remaining metrics, and release all resources."""


@dataclass(frozen=True)
class LoggedRun:
    """The description of a run for its loggers."""

    folder: Path
    config: Mapping[str, Any]
    """The run's config as plain data, without secrets."""
    first_step: int
    """Number of the first step to be logged."""
    run_id: str
    """Unique name of the run at a service; a resumed run keeps its name."""


class TensorBoardLogger:
    """Writes to `tensorboard/` in the run's folder; steps that a resumed run repeats replace the earlier records."""

    def __init__(self, run: LoggedRun) -> None:
        from torch.utils.tensorboard import SummaryWriter

        try:
            str(run.folder).encode()
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(
                f"TensorBoard needs a folder whose path is UTF-8 text, got {os.fsencode(run.folder)!r}: choose another "
                "run_folder"
            ) from error
        self._writer = SummaryWriter(str(run.folder / "tensorboard"), purge_step=run.first_step)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record the metrics of a step."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write the remaining metrics."""
        self._writer.close()


class WandbLogger:
    """Writes to `wandb/` in the run's folder, and to Weights & Biases unless WANDB_MODE is `offline`.

    A resumed run continues its run at Weights & Biases; if it repeats steps, the records already logged stay. The command's
    arguments, code and output are not sent, since they may contain secrets.
    """

    def __init__(self, run: LoggedRun) -> None:
        import wandb

        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=os.environ.get("WANDB_NAME", run.run_id),
            id=run.run_id,
            resume="allow",
            dir=str(run.folder),
            config=dict(run.config),
            settings=wandb.Settings(
                console="off", disable_code=True, disable_git=True, x_disable_meta=True, x_save_requirements=False
            ),
        )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record the metrics of a step."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """Send the remaining metrics."""
        self._run.finish()


class TrackioLogger:
    """Writes to trackio's local database, in the folder that TRACKIO_DIR names, which `trackio show` reads.

    A resumed run continues its run in the database; steps that it repeats are in it twice.
    """

    def __init__(self, run: LoggedRun) -> None:
        import trackio

        with contextlib.redirect_stdout(sys.stderr):  # standard output is for the command's own output
            self._run = trackio.init(
                project=os.environ.get("TRACKIO_PROJECT", PROJECT),
                name=run.run_id,
                resume="allow",
                config=dict(run.config),
                embed=False,
            )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record the metrics of a step."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """Write the remaining metrics."""
        with contextlib.redirect_stdout(sys.stderr):
            self._run.finish()


@dataclass(frozen=True)
class _Entry:
    package: str
    """The package to import."""
    extra: str
    """The extra of this distribution that installs the package."""
    make: Callable[[LoggedRun], MetricLogger]


LOGGERS = {
    "tensorboard": _Entry("tensorboard", "train", TensorBoardLogger),
    "wandb": _Entry("wandb", "wandb", WandbLogger),
    "trackio": _Entry("trackio", "trackio", TrackioLogger),
}
"""The loggers that have a name."""


def check_loggers(loggers: Sequence[str | MetricLogger]) -> None:
    """Check that loggers exist and are installed, before any work is done."""
    for logger in loggers:
        if not isinstance(logger, str):
            if not callable(getattr(logger, "log", None)) or not callable(getattr(logger, "close", None)):
                raise InvalidArgumentError(
                    f"a logger is a name or an object with log(step, metrics) and close(), got {logger!r}"
                )
        elif logger not in LOGGERS:
            raise unknown_name("logger", logger, LOGGERS)
        elif loggers.count(logger) > 1:
            raise InvalidArgumentError(f"the logger {logger!r} was given twice; give it once")
        elif not _is_installed(LOGGERS[logger].package):
            raise missing_dependency(LOGGERS[logger].package, LOGGERS[logger].extra, f"the logger {logger!r}")


def _is_installed(package: str) -> bool:
    if package in sys.modules:
        return sys.modules[package] is not None
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None  # a folder `wandb` of earlier runs has no origin


def open_loggers(loggers: Sequence[str | MetricLogger], run: LoggedRun) -> list[TolerantLogger]:
    """Open loggers for a run.

    Raises:
        InvalidArgumentError: If a logger can't be started; no logger is then left open.
    """
    safe = LoggedRun(run.folder, redacted(plain(run.config)), run.first_step, run.run_id)
    with contextlib.ExitStack() as opened:
        tolerant = []
        for logger in loggers:
            name, made = (logger, _started(logger, safe)) if isinstance(logger, str) else (repr(logger), logger)
            tolerant.append(TolerantLogger(name, made, run.folder))
            opened.callback(tolerant[-1].close)
        opened.pop_all()
    return tolerant


def _started(name: str, run: LoggedRun) -> MetricLogger:
    try:
        return LOGGERS[name].make(run)
    except RLVRError:
        raise
    except Exception as error:
        raise InvalidArgumentError(
            f"the logger {name!r} can't be started: {_cause(error)}; correct that, or leave the logger out"
        ) from error


class TolerantLogger:
    """Passes metrics on to a logger until the logger fails; a failure is a warning, not an error."""

    def __init__(self, name: str, logger: MetricLogger, folder: Path) -> None:
        self._name = name
        self._logger = logger
        self._folder = folder
        self._failed = False

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record the metrics of a step."""
        if self._failed:
            return
        try:
            self._logger.log(step, metrics)
        except Exception as error:  # noqa: BLE001 - third-party code may raise anything, which must not end the run
            self._warn(f"failed at step {step} and gets no more metrics", error)

    def close(self) -> None:
        """Close the logger."""
        try:
            self._logger.close()
        except Exception as error:  # noqa: BLE001 - as above
            self._warn("failed when it was closed", error)

    def _warn(self, what: str, error: Exception) -> None:
        if not self._failed:
            self._failed = True
            warnings.warn(
                f"the logger {self._name} {what}: {_cause(error)}. {self._folder / 'metrics.jsonl'} has all metrics",
                stacklevel=4,
            )


def _cause(error: Exception) -> str:
    """An error in one line, without secrets in addresses."""
    return f"{type(error).__name__}: {redacted(' '.join(str(error).split()))}"
