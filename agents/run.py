"""`Run`: the folder that a training run leaves behind.

```
runs/<name>/
  config.json      everything that decides the run: settings, environment, versions
  metrics.jsonl    one line for each step
  tensorboard/     the same numbers
  checkpoints/     step-000100/ ...
```
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from verifiers import CheckpointError, InvalidArgumentError

_PACKAGES = ("rlvr-envs", "gymnasium", "numpy", "sympy", "torch", "transformers")


class Run:
    """Writes metrics and says where checkpoints go.

    Args:
        folder: Made if it does not exist.
        config: Plain data that is written to `config.json`, with the versions of packages.
        resume: Go on with the run in this folder: what its metrics say of steps after its last checkpoint is cut off.
        tensorboard: Write TensorBoard files too.

    Raises:
        InvalidArgumentError: If the folder holds a run already and `resume` is False.
        CheckpointError: If it is to be resumed and holds none.
    """

    def __init__(
        self, folder: Path, config: Mapping[str, Any], *, resume: bool = False, tensorboard: bool = True
    ) -> None:
        self.folder = Path(folder)
        self._metrics = self.folder / "metrics.jsonl"
        if resume and not (self.folder / "config.json").is_file():
            raise CheckpointError(f"no run to resume at {self.folder}: expected a folder with config.json")
        if not resume and ((self.folder / "config.json").exists() or self._metrics.exists()):
            raise InvalidArgumentError(f"{self.folder} holds a run already: resume it, or choose another folder")
        (self.folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        if not resume:
            self._write_config(config)
        last = latest_checkpoint(self.folder)
        step = _step_of(last) if last else 0
        self._keep_until(step)
        self._file = self._metrics.open("a", encoding="utf-8")
        self._board = self._open_board(step + 1) if tensorboard else None

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append one step's metrics; numbers that are not finite are written as null."""
        row = {"step": step} | {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        if self._board is not None:
            for name, value in metrics.items():
                self._board.add_scalar(name, value, step)

    def checkpoint_folder(self, step: int) -> Path:
        """The folder of a step's checkpoint."""
        return self.folder / "checkpoints" / f"step-{step:06d}"

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._board is not None:
            self._board.close()

    def _write_config(self, config: Mapping[str, Any]) -> None:
        record = {**config, "versions": {package: _version(package) for package in _PACKAGES}}
        partial = self.folder / ".config.json.partial"
        partial.write_text(json.dumps(record, indent=2, default=str) + "\n", encoding="utf-8")
        os.replace(partial, self.folder / "config.json")

    def _keep_until(self, step: int) -> None:
        """Cut the metrics off after a step, a line that was cut short by a crash included."""
        if not self._metrics.exists():
            return
        lines = self._metrics.read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if line.endswith("}") and json.loads(line)["step"] <= step]
        partial = self.folder / ".metrics.jsonl.partial"
        partial.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
        os.replace(partial, self._metrics)

    def _open_board(self, next_step: int) -> Any:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            from verifiers import missing_dependency

            raise missing_dependency("tensorboard", "train", "a run's TensorBoard log") from error
        return SummaryWriter(str(self.folder / "tensorboard"), purge_step=next_step)


def latest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint of a run's last saved step, None if there is none."""
    return max((Path(folder) / "checkpoints").glob("step-*"), key=_step_of, default=None)


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
