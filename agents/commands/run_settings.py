"""The folder of a training run, and the settings that must stay the same when the run is resumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from agents.commands.common import (
    folder_name,
    redacted_pairs,
)
from agents.runs.files.json_files import differences, plain
from agents.runs.files.outputs import check_folder, check_unlocked
from agents.runs.run import CONFIG, check_free, has_results, read_config
from verifiers import CheckpointError, InvalidArgumentError


class RunOptions(Protocol):
    """The options of a command that determine a run's folder."""

    @property
    def run_folder(self) -> Path | None:
        """The folder that is given for the run, if any."""

    @property
    def resume(self) -> bool:
        """Whether to continue the run in the folder."""


_FREE_TO_CHANGE = {
    "steps",
    "token_budget",
    "resume",
    "checkpoint_every",
    "keep",
    "save_dtype",
    "log_rollouts",
    "loggers",
    "verifier_card",
    "run_folder",
    "device",
    "nproc",
    "max_restarts",
    "gather",
    "shard",
    "offload",
    "rank_timeout",
}
"""Options that may change when a run is resumed. Only `steps` can affect results, and only through a schedule. (Another
`num_envs`, `device`, `nproc` or `shard` changes rounding.)"""


_ARGUMENTS = ("env_args", "verifier_args", "engine_args")
"""Options whose values are name=value pairs, which may contain secrets."""


def check_run_folder(options: RunOptions, config: object, agent: str, environment: str) -> None:
    """Check that a run can be started, or resumed with the settings `config`, in its folder."""
    folder = run_folder(options, agent, environment)
    check_folder(folder)
    check_unlocked(folder)
    if not resumes(options, folder):
        check_free(folder)
        return
    started = read_config(folder)
    check_same(
        folder, {"agent": agent, **plain_options(options), "config": _chosen(plain(config), started.get("config"))}
    )


def resumes(options: RunOptions, folder: Path) -> bool:
    """Whether to continue a run. With --resume but no run in the folder a run begins, so that a job can repeat its command."""
    return options.resume and ((folder / CONFIG).is_file() or has_results(folder))


def run_folder(options: RunOptions, agent: str, environment: str) -> Path:
    """The folder of a run."""
    return options.run_folder or Path("runs") / f"{agent}-{folder_name(environment)}"


def _chosen(config: Any, recorded: Any) -> Any:
    """Settings in which the recorded value replaces None, since a model that is not loaded yet may determine that value."""
    if isinstance(config, Mapping) and isinstance(recorded, Mapping):
        return {name: _chosen(value, recorded.get(name)) for name, value in config.items()}
    return recorded if config is None else config


def plain_options(options: RunOptions) -> dict[str, Any]:
    """The options without secrets, as plain data; a round trip through JSON returns equal data."""
    settings = dataclasses.asdict(cast(Any, options))
    pairs = {name: redacted_pairs(value) for name, value in settings.items() if name in _ARGUMENTS}
    written: dict[str, Any] = plain({**settings, **pairs})
    return written


def check_same(folder: Path, record: Mapping[str, Any]) -> None:
    """Check that a run is resumed with the same settings."""
    started = read_config(folder)
    for name in ("agent", "env"):  # if these differ, so do all other settings
        if name in started and started[name] != record[name]:
            raise InvalidArgumentError(
                f"the run at {folder} was started with {name} {started[name]!r}, and not {record[name]!r}: resume it with that "
                "one, or start another run"
            )
    missing = record.keys() - started.keys() - _FREE_TO_CHANGE
    if missing:
        lacks = ", ".join(map(repr, sorted(missing)[:3]))
        raise CheckpointError(
            f"the run at {folder} can't be resumed: its config.json is not that of a run, it lacks {lacks}, ..."
        )
    decided = {name: value for name, value in plain(record).items() if name not in _FREE_TO_CHANGE}
    before = {name: started.get(name) for name in decided}
    changed = [f"{name} was {old!r} and is now {new!r}" for name, old, new in differences(before, decided)]
    if changed:
        raise InvalidArgumentError(
            f"the run at {folder} was started with other settings: {'; '.join(changed)}. Use the same settings, or start "
            "another run"
        )
