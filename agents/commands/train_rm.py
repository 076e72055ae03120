"""`rlvr train-rm`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from agents import preferences
from agents.commands.common import on_device
from agents.commands.options import TrainRMOptions
from agents.commands.policies import say_device
from agents.console.progress import progress
from agents.interrupts import sigterm_interrupts
from agents.preferences.pairs import held_out, read_pairs
from agents.preferences.report import PreferenceReport
from agents.preferences.reward_model import RewardModelConfig
from agents.runs.files.json_files import write_json
from agents.runs.files.outputs import check_new_folder, whole_folder
from agents.runs.files.sizes import describe_model
from agents.runs.files.versions import package_versions
from agents.settings.learning_rate import describe_choice

REPORT = "preferences.json"
"""Name of the file with the settings and the report, in the model's folder."""


@dataclass(frozen=True)
class TrainRM(TrainRMOptions):
    """Fit a reward model to pairs of a preferred and a rejected completion, and test it on held-out pairs."""

    config: RewardModelConfig = field(default_factory=RewardModelConfig)
    """Settings of the training."""

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
            f"{len(train)} pairs to learn from, {len(test)} held out; {config.epochs} epochs, {total} steps, {rate}",
            markup=False,
            soft_wrap=True,
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
        console.print(f"{report}; the reward model is in {self.out}", markup=False, soft_wrap=True)
        use = shlex.join(["rlvr", "train", "ppo", "--env", "ENVIRONMENT", "--reward-model", str(self.out)])
        console.print(f"{describe_model(self.out)}; train on it: {use}", markup=False, soft_wrap=True)
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
