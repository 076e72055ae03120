"""The command `rlvr train-rm`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.table import Table

from agents import preferences
from agents.commands.before_loading import UNTRAINED
from agents.commands.common import DEVICE, Device, on_device
from agents.commands.policies import say_device
from agents.console.progress import progress
from agents.interrupts import sigterm_interrupts
from agents.policies.transformers.model_files import check_model, model_folder
from agents.preferences.pairs import held_out, read_pairs
from agents.preferences.report import PreferenceReport
from agents.preferences.reward_model import RewardModelConfig
from agents.runs.files.hardware import package_versions
from agents.runs.files.json_files import write_json
from agents.runs.files.outputs import check_new_folder, whole_folder
from agents.runs.files.sizes import describe_model
from agents.settings.learning_rate import describe_choice
from verifiers import AtLeast, Between
from verifiers.devices import check_device_name

REPORT = "preferences.json"
"""Name of the file with the settings and the report, in the model's folder."""


@dataclass(frozen=True)
class TrainRM:
    """Fit a reward model to pairs of a preferred and a rejected completion, and test it on held-out pairs."""

    pairs: Path
    """Pairs to learn from: a .jsonl or .parquet file with the columns prompt, chosen and rejected, or a folder of rlvr eval, in
    which completions of the same problem are paired by their scores, such as right with wrong."""
    out: Path
    """Folder for the reward model, which --reward-model can read."""
    model: str = "tiny"
    """Folder, GGUF file or Hugging Face name of the model to start from; "tiny" creates a small transformer with random
    weights."""
    held_out: Annotated[float, Between(0, 1, open_low=True, open_high=True)] = 0.1
    """Share of the prompts whose pairs are held out to test the reward model."""
    per_problem: Annotated[int, AtLeast(1)] = 4
    """Maximum number of pairs that are made for each problem from a folder of rlvr eval."""
    device: Device = DEVICE
    config: RewardModelConfig = field(default_factory=RewardModelConfig)
    """Settings of the training."""

    def check(self) -> None:
        """Refuse invalid options, as far as they can be checked before torch loads."""
        check_device_name(self.device)
        check_new_folder(self.out)
        read_pairs(self.pairs, per_problem=self.per_problem)
        if self.model != UNTRAINED:
            check_model(model_folder(self.model))

    @on_device
    def run(self, console: Console) -> int:
        """Train, save the model, and print its results on held-out pairs."""
        check_new_folder(self.out)
        pairs = read_pairs(self.pairs, per_problem=self.per_problem, seed=self.config.seed)
        train, test = held_out(pairs, self.held_out, self.config.seed)
        reward_model = preferences.new_reward_model(self.model, seed=self.config.seed)
        config = self.config.for_model(reward_model.model, trained=self.model != "tiny")
        assert config.learner.learning_rate is not None
        say_device(console, reward_model.model.device)
        total = preferences.num_steps(len(train), config)
        rate = describe_choice(config.learner.learning_rate, reward_model.model)
        console.print(
            f"{len(train)} pairs to learn from, {len(test)} held out; {config.epochs} epochs, {total} steps, {rate}"
        )
        with sigterm_interrupts(), progress("reward model", total) as advance:
            preferences.train_reward_model(
                reward_model, train, config, on_step=lambda step, loss: advance(step, f"loss {loss:.3f}")
            )
        report = preferences.evaluate_reward_model(reward_model.verifier(), test)
        with whole_folder(self.out) as folder:
            reward_model.save(folder)
            write_json(
                folder / REPORT,
                {
                    "pairs": self.pairs,
                    "model": self.model,
                    "device": reward_model.model.device.type,
                    "train_pairs": len(train),
                    "config": config,
                    "report": report,
                    "versions": package_versions(),
                },
            )
        console.print(_reliability(report))
        console.print(f"{report}; the reward model is in {self.out}")
        use = shlex.join(["rlvr", "train", "ppo", "--env", "ENVIRONMENT", "--reward-model", str(self.out)])
        console.print(f"{describe_model(self.out)}; train on it: {use}")
        return 0


def _reliability(report: PreferenceReport) -> Table:
    table = Table(title="held-out pairs by confidence in the completion with the higher score")
    for column in ("confidence", "pairs", "mean confidence", "accuracy"):
        table.add_column(column, justify="right")
    for one in report.reliability:
        table.add_row(
            f"{one.low:.2f} to {one.high:.2f}", str(one.pairs), f"{one.confidence:.3f}", f"{one.accuracy:.3f}"
        )
    return table
