"""Over-optimisation of a learned reward: PPO on a reward model, with what the environment's verifier says beside it.

A small transformer is taught sums until it answers some of them. Its right and wrong answers are paired, reward models are
fitted to the pairs, and PPO goes on from the same start in three ways: on one reward model, without a penalty and with a KL
penalty, and on the minimum of three reward models. Each seed has pairs, reward models and runs of its own. The table has means
over seeds with 95 % intervals; the figure draws reward and gold reward over the KL divergence.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents import CausalLMPolicy, tiny_model
from agents.experiments.rlhf import (
    RLHFConfig,
    Task,
    fit_reward_model,
    reward_of,
    sample_pairs,
    train_ppo,
    warm_start,
)
from agents.runs.files.json_files import read_json, read_lines, write_json
from agents.runs.plots import TrainingCurve, bands, plot_panels
from verifiers.statistics import mean_interval

MEMBERS = 3
REPORT = "report.json"
WINDOW = 10
"""Steps at the start, at the end and around the best step that are averaged."""
WAYS = {
    "one reward model": (1, 0.0),
    "KL penalty 0.3": (1, 0.3),
    "minimum of three": (MEMBERS, 0.0),
}
"""Number of reward models, and weight of the KL divergence."""


def task_of(args: argparse.Namespace) -> Task:
    return Task("rlvr/Addition-v0", {"tokenizer": "char", "digits": args.digits, "max_new_tokens": args.tokens})


def config_of(args: argparse.Namespace, seed: int) -> RLHFConfig:
    return RLHFConfig(
        warm_start_steps=args.warm_start,
        problems=args.problems,
        samples=args.samples,
        reward_model_epochs=args.epochs,
        members=MEMBERS,
        steps=args.steps,
        completions=args.completions,
        seed=seed,
    )


def make_start(args: argparse.Namespace) -> Path:
    """The warm start that all runs share, unless it is there."""
    folder: Path = args.out / "start"
    if not (folder / "config.json").is_file():
        streams = task_of(args).vec("train", "char", 1).streams
        model = tiny_model(streams.vocab_size, layers=2, hidden_size=64, heads=2, intermediate_size=128, max_tokens=64)
        warm_start(config_of(args, 0), folder, CausalLMPolicy(model), streams)
    return folder


def run_seed(args: argparse.Namespace, seed: int) -> None:
    """Pairs, reward models and the runs of one seed, each unless it is there."""
    start, task, config = make_start(args), task_of(args), config_of(args, seed)
    folder = args.out / f"seed-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    pairs = folder / "pairs.jsonl"
    if not pairs.is_file():
        sample_pairs(task, config, start, pairs)
    for name in args.ways:
        members, kl_coefficient = WAYS[name]
        models = [reward_model(pairs, start, folder, config, member) for member in range(members)]
        run = run_folder(folder, name)
        if not (run / "done.json").is_file():
            reward = task.proxy(reward_of(models), "char")
            ppo = dataclasses.replace(config.ppo(), kl_coefficient=kl_coefficient)
            write_json(run / "done.json", train_ppo(task, ppo, start, run, reward, args.steps))


def reward_model(pairs: Path, start: Path, folder: Path, config: RLHFConfig, member: int) -> Path:
    """The folder of a reward model, which is fitted unless it is there."""
    model = folder / f"reward-model-{member}"
    if not (model / REPORT).is_file():
        report = fit_reward_model(pairs, start, model, config, member)
        write_json(model / REPORT, {"accuracy": report.accuracy})
    return model


def run_folder(folder: Path, name: str) -> Path:
    return folder / name.replace(" ", "-")


def column(folder: Path, metric: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    rows: list[dict[str, Any]] = read_lines(folder / "metrics.jsonl", dict)
    return np.array([np.nan if row.get(metric) is None else row[metric] for row in rows], dtype=np.float64)


def shown(values: list[float]) -> str:
    """A mean over seeds, with its interval where there are several."""
    if len(values) < 2:
        return "".join(f"{value:.2f}" for value in values)
    interval = mean_interval(values)
    return f"{np.mean(values):.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def summary(args: argparse.Namespace) -> list[str]:
    """The rows of the table."""
    names = ("gold at the start", "best gold", "gold at the end", "reward at the end", "correlation", "KL")
    lines = [f"| trained on | {' | '.join(names)} |", f"|---{'|---' * len(names)}|"]
    for name in args.ways:
        cells: dict[str, list[float]] = {cell: [] for cell in names}
        for seed in args.seeds:
            run = run_folder(args.out / f"seed-{seed}", name)
            gold = np.convolve(column(run, "gold_reward"), np.ones(WINDOW) / WINDOW, mode="valid")
            cells["gold at the start"].append(float(gold[0]))
            cells["best gold"].append(float(gold.max()))
            cells["gold at the end"].append(float(gold[-1]))
            cells["reward at the end"].append(float(column(run, "reward")[-WINDOW:].mean()))
            cells["KL"].append(float(column(run, "kl")[-WINDOW:].mean()))
            # A batch in which all completions are wrong has no correlation, and such a seed is left out of that mean.
            known = column(run, "gold_correlation")[-WINDOW:]
            cells["correlation"] += [float(known[np.isfinite(known)].mean())] if np.isfinite(known).any() else []
        lines.append(f"| {name} | {' | '.join(shown(values) for values in cells.values())} |")
    return lines


def draw(args: argparse.Namespace) -> None:
    """Reward and gold reward over the KL divergence, one above the other."""
    panels = []
    for metric in ("reward", "gold_reward"):
        curves = []
        for name in args.ways:
            for seed in args.seeds:
                folder = run_folder(args.out / f"seed-{seed}", name)
                curve = TrainingCurve.read(folder, metric, "kl")
                curves.append(dataclasses.replace(curve, setting=name, label=name))
        drawn = bands(curves, smooth=WINDOW)
        panels.append((metric, [dataclasses.replace(band, label=band.label.partition(" (")[0]) for band in drawn]))
    for path in plot_panels(panels, args.figure, against="kl"):
        print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/reward-hacking"), help="What is there is not repeated.")
    parser.add_argument(
        "--figure", type=Path, default=None, help="Path without suffix; by default OUT/over-optimisation."
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS), metavar="WAY")
    parser.add_argument("--digits", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=5, help="Most tokens of a completion.")
    parser.add_argument("--warm-start", type=int, default=100, help="Supervised steps.")
    parser.add_argument("--problems", type=int, default=1500, help="Problems whose completions are paired.")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=6, help="Passes of the reward models over the pairs.")
    parser.add_argument("--steps", type=int, default=60, help="Steps of PPO.")
    parser.add_argument("--completions", type=int, default=128, help="Completions in a step of PPO.")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    args.figure = args.figure or args.out / "over-optimisation"
    torch.set_num_threads(args.threads)
    started, used = time.perf_counter(), time.process_time()
    for seed in args.seeds:
        run_seed(args, seed)
    reports = [path for seed in args.seeds for path in args.out.glob(f"seed-{seed}/*/{REPORT}")]
    accuracy = [read_json(path)["accuracy"] for path in reports]
    print(
        f"Python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} CPUs, {args.threads} thread(s), "
        f"{time.perf_counter() - started:.0f} s, {time.process_time() - used:.0f} s of processor time"
    )
    print(f"reward models: accuracy {min(accuracy):.2f} to {max(accuracy):.2f} on pairs of held-out prompts")
    print("\n".join(summary(args)))
    draw(args)


if __name__ == "__main__":
    main()
