"""The demonstration: GRPO teaches a tiny transformer to add, beginning with an early supervised checkpoint.

Nothing is downloaded. As a control, supervised learning continues from the same checkpoint for the same number of seconds.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import torch
from rich.console import Console
from rich.table import Table

from agents.algorithms.grpo import GRPO, GRPOConfig
from agents.console.progress import progress
from agents.experiments.supervised import SupervisedConfig, train_supervised
from agents.policies.devices import policy_device
from agents.policies.transformers.loading import load_policy, save_model, tiny_model
from agents.policies.transformers.policy import CausalLMPolicy
from agents.rollouts.evaluation import evaluate
from agents.runs.evaluation import Evaluation
from agents.runs.files.outputs import check_folder, free_folder, whole_folder
from agents.runs.run import Run
from agents.settings.learner import LearnerConfig
from verifiers import AtLeast, check_types

ENV = "rlvr/Addition-v0"
WARM_START = SupervisedConfig(
    steps=330, batch_size=128, learner=LearnerConfig(learning_rate=1e-3, micro_batch_size=512)
)
"""Settings with which supervised training stops early, when about a quarter of the sampled answers to held-out sums are
right."""


@dataclass(frozen=True)
class DemoConfig:
    """Settings of the demonstration."""

    folder: Path = Path("runs/demo")
    """Folder for the warm start and the runs. An existing warm start is reused; each run gets a new subfolder."""
    steps: Annotated[int, AtLeast(1)] = 160
    test_problems: Annotated[int, AtLeast(1)] = 500
    samples: Annotated[int, AtLeast(1)] = 4
    """Number of sampled completions for each test problem."""
    grpo: GRPOConfig = field(
        default_factory=lambda: GRPOConfig(
            problems_per_step=64,
            group_size=4,
            learner=LearnerConfig(learning_rate=1e-4, micro_batch_size=256),
        )
    )

    def __post_init__(self) -> None:
        check_types(self)


def make_warm_start(folder: Path, config: SupervisedConfig = WARM_START) -> None:
    """Train the early checkpoint, and save it with its tokenizer, unless it exists. The same settings give the same weights."""
    if (folder / "config.json").is_file():
        return
    env = make_env("train", num_envs=1)
    tokenizer = env.streams.rules.tokenizer
    policy = CausalLMPolicy(tiny_model(tokenizer.vocab_size).to(policy_device()))
    assert config.steps is not None
    with progress("Supervised warm start", config.steps) as advance:
        train_supervised(policy, env.streams, config, on_step=lambda step, loss: advance(step, f"loss {loss:.3f}"))
    with whole_folder(folder) as partial:
        save_model(partial, policy.model, tokenizer)


def make_env(split: str, num_envs: int = 256) -> Any:
    """Build the demonstration's environment: two-digit sums with character tokens."""
    return gymnasium.make_vec(ENV, num_envs=num_envs, split=split, tokenizer="char", max_new_tokens=5, copy=False)


def run_demo(config: DemoConfig, console: Console) -> dict[str, Evaluation]:
    """Run the demonstration, print its results and return them by name."""
    check_folder(config.folder)
    started = time.perf_counter()
    # For such a small model, a second thread gains little, and costs much if the machine is busy.
    torch.set_num_threads(1)
    warm_start = config.folder / "warm-start"
    make_warm_start(warm_start)
    test = make_env("test")
    results: dict[str, Evaluation] = {}

    def score(name: str, policy: CausalLMPolicy) -> None:
        for way, temperature, samples in (("sampled", 1.0, config.samples), ("greedy", 0.0, 1)):
            chosen = policy.at_temperature(temperature)
            results[f"{name}, {way}"] = evaluate(test, chosen, problems=config.test_problems, samples=samples)

    policy, _ = load_policy(warm_start)
    score("start", policy)
    console.print(f"start: sampled reward {results['start, sampled']}, greedy accuracy {results['start, greedy']}")
    folder = free_folder(config.folder, "grpo")
    seconds = _train(policy, config, folder)
    score("GRPO", policy)
    control, _ = load_policy(warm_start)
    control_steps = _train_control(control, seconds)
    score("supervised", control)
    _report(console, results, f"{config.steps} steps, {seconds:.0f} s", f"{control_steps} more steps, {seconds:.0f} s")
    console.print(f"{time.perf_counter() - started:.0f} s in all. The GRPO run is in {folder}")
    return results


def _train(policy: CausalLMPolicy, config: DemoConfig, folder: Path) -> float:
    """Train with GRPO and return the duration in seconds."""
    agent = GRPO(policy, config.grpo)
    env = make_env("train")
    run = Run(folder, {"demo": dataclasses.asdict(config), "environment": env.manifest})
    started = time.perf_counter()
    with progress("GRPO", config.steps) as advance:

        def show(step: int, metrics: Mapping[str, float]) -> None:
            advance(step, f"reward {metrics['reward']:.2f}")

        agent.learn(env, steps=config.steps, run=run, callbacks=[show])
    run.close()
    return time.perf_counter() - started


def _train_control(policy: CausalLMPolicy, seconds: float) -> int:
    """Continue supervised learning for a number of seconds, and return the number of steps."""
    started = time.perf_counter()
    with progress("Control: supervised", round(seconds)) as advance:

        def show(step: int, loss: float) -> None:
            advance(time.perf_counter() - started, f"loss {loss:.3f}")

        return train_supervised(
            policy, make_env("train", num_envs=1).streams, WARM_START, seconds=seconds, on_step=show
        )


def _report(console: Console, results: Mapping[str, Evaluation], grpo: str, control: str) -> None:
    table = Table(title=f"{ENV}, held-out problems, mean and 95 % interval")
    for column in ("", "training", "sampled reward", "greedy accuracy"):
        table.add_column(column)
    rows = {"start": "supervised, stopped early", "GRPO": f"start + {grpo}", "supervised": f"start + {control}"}
    for name, training in rows.items():
        cells = [results[f"{name}, {way}"] for way in ("sampled", "greedy")]
        table.add_row(
            name, training, *(f"{cell.score:.3f} [{cell.interval[0]:.3f}, {cell.interval[1]:.3f}]" for cell in cells)
        )
    console.print(table)
    console.print(
        "GRPO only learns whether an answer is right. The control learns from the right answers, for the same number of "
        "seconds: where such answers exist, this is the baseline for GRPO."
    )
