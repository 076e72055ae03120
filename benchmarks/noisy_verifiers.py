"""Effect of a verifier's errors on learning: one environment, several rates, GRPO and PPO, and the affine correction.

A tiny transformer that was taught to add a little goes on by reinforcement learning, with a verifier whose verdicts are flipped
at random: each wrong answer is accepted with the rate of false positives, each right one refused with that of false
negatives. Measured is the share of right samples, by the verifier without errors, over seeds that decide the order of problems,
the samples and the errors; means have 95 % intervals. The correction is the reward (verdict - FP) / (1 - FP - FN) of
arXiv:2510.00915. Agents have their defaults but for the learning rate.

    OMP_NUM_THREADS=1 python benchmarks/noisy_verifiers.py --page docs/how-to/noisy-verifiers.md
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from learning_curves import Task, checkpoint, make_env
from transformers.utils.logging import disable_progress_bar

import verifiers
from agents import LearnerConfig, __version__, agent_classes, load_policy
from agents.runs.files.hardware import hardware
from verifiers import Outcome, Problem, Verdict
from verifiers.statistics import mean_interval

RATES = ((0.0, 0.0), (0.05, 0.05), (0.0, 0.2), (0.2, 0.0))
"""Pairs of the rates of false positives and false negatives."""
LEARNING_RATE = 6e-4
CORRECTED = (0.2, 0.0)
"""The rates at which the correction is tried."""
SETTINGS: dict[str, dict[str, Any]] = {"grpo": {"minibatches": 4}, "ppo": {}}
"""Agents with what is not their default: as many optimiser steps for a batch as PPO makes."""
TASK = Task(
    "rlvr/Addition-v0",
    {"tokenizer": "char", "digits": 1, "max_new_tokens": 3},
    ("numeric", {"whole": True}),
    layers=1,
    warm_start_steps=60,
    tokens=10_000,
    problems=40,
    samples=10,
)
"""Sums of two digits, of which 40 training problems are tried 10 times each for a measurement."""


class Noisy:
    """A verifier with independent errors.

    Args:
        spec: The verifier without errors.
        false_positives: The rate at which wrong answers are accepted.
        false_negatives: The rate at which right answers are refused.
        corrected: Whether the reward has the expectation of a verdict without errors.
        seed: Seed of the errors.
    """

    def __init__(
        self, spec: tuple[str, Any], false_positives: float, false_negatives: float, corrected: bool, seed: int
    ) -> None:
        name, arguments = spec
        self._verifier = verifiers.make(name, **arguments)
        self._rates = (false_positives, false_negatives)
        self._corrected = corrected
        self._rng = np.random.default_rng(seed)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        is_right = self._verifier(completion, problem).outcome is Outcome.CORRECT
        accepted = is_right != (self._rng.random() < self._rates[is_right])
        if self._corrected:
            return Verdict((accepted - self._rates[0]) / (1 - sum(self._rates)), Outcome.SCORED)
        return Verdict.of(Outcome.CORRECT if accepted else Outcome.INCORRECT)


def shares_of_right(agent_name: str, start: Path, noise: Noisy, seed: int, tokens: Sequence[int]) -> list[float]:
    """Shares of right samples after these numbers of sampled tokens."""
    cls, config = agent_classes(agent_name)
    policy, _ = load_policy(start)
    agent = cls(
        policy,
        config(
            seed=seed, learner=LearnerConfig(micro_batch_size=256, learning_rate=LEARNING_RATE), **SETTINGS[agent_name]
        ),
    )
    env, held_out = make_env(TASK, "train", verifier=noise), make_env(TASK, "train")
    shares = []
    for mark in tokens:
        while agent.tokens < mark:
            agent.learn(env, steps=agent.steps + 1)
        shares.append(agent.evaluate(held_out, problems=TASK.problems, samples=TASK.samples).score)
    return shares


def shown(values: Sequence[float]) -> str:
    """A mean over seeds, with its interval if there are several."""
    if len(values) < 2:
        return "".join(f"{value:.2f}" for value in values)
    interval = mean_interval(list(values))
    return f"{np.mean(values):.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def main() -> None:
    """Train, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0 to this, less one")
    parser.add_argument("--tokens", type=int, default=TASK.tokens, help="number of tokens that each agent samples")
    parser.add_argument("--agents", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--out", type=Path, default=Path("runs/noisy-verifiers"), help="folder of the first checkpoint")
    parser.add_argument("--page", type=Path, help="page whose table is replaced")
    options = parser.parse_args()
    disable_progress_bar()
    torch.set_num_threads(1)
    began = time.process_time()
    options.out.mkdir(parents=True, exist_ok=True)
    start = checkpoint(TASK, options.out)
    ways = [(name, rates, False) for name in options.agents for rates in RATES]
    ways += [(name, CORRECTED, True) for name in options.agents]
    lines = ["| agent | false positives / negatives | reward | start | end |", "|---|---|---|---|---|"]
    for name, rates, corrected in ways:
        runs = []
        for seed in range(options.seeds):
            noise = Noisy(TASK.verifier, *rates, corrected, seed)
            runs.append(shares_of_right(name, start, noise, seed, (0, options.tokens)))
        said = " / ".join(f"{100 * rate:.0f} %" for rate in rates)
        cells = [shown(column) for column in zip(*runs, strict=True)]
        lines.append(f"| `{name}` | {said} | {'corrected' if corrected else 'verdict'} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    about = (
        f"{options.seeds} seeds, {options.tokens} tokens each; {hardware()['processor']}, rlvr-envs {__version__}, torch "
        f"{torch.__version__}, {time.process_time() - began:.0f} s of processor time; {datetime.date.today().isoformat()}"
    )
    print(about)
    if options.page is not None:
        mark = re.compile("<!-- noise learning -->.*?<!-- end noise -->", re.DOTALL)
        text, made = options.page.read_text(encoding="utf-8"), "\n".join(lines)
        if not mark.search(text):
            sys.exit(f"{options.page} has no <!-- noise learning -->")
        whole = f"<!-- noise learning -->\n{about}\n\n{made}\n<!-- end noise -->"
        options.page.write_text(mark.sub(lambda _: whole, text), encoding="utf-8")


if __name__ == "__main__":
    main()
