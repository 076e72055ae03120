"""What a lag hides: seconds of a training step with batches sampled ahead, beside the same step without a lag.

GRPO on made sums with a small transformer, once with a verifier that takes no time and once with one that sleeps for each
batch, as one would on other machines. Runs follow each other in turns, and the first steps, of which nothing can be hidden, are
left out. `hidden` is the mean of the metric `sampling/hidden`: the share of sampling and verification during which learning
went on.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import torch

from agents import GRPO, CausalLMPolicy, GRPOConfig, LearnerConfig, tiny_model
from verifiers import Problem, Verdict, make, verify_batch


class SleepyVerifier:
    """Takes its time over each batch that it is given."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._verifier = make("numeric", whole=True)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        return self.verify_batch([completion], [problem])[0]

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        time.sleep(self._seconds)
        return verify_batch(self._verifier, completions, problems)


def run(args: argparse.Namespace, sleep_s: float, lag: int) -> tuple[float, float]:
    """Mean seconds of a step, and the mean share that was hidden, without the first `lag` + 1 steps."""
    torch.manual_seed(0)
    env = gymnasium.make_vec(
        "rlvr/Addition-v0", num_envs=args.rows, max_new_tokens=args.tokens, copy=False, verifier=SleepyVerifier(sleep_s)
    )
    model = tiny_model(int(env.single_action_space.n), layers=args.layers, hidden_size=args.width)  # type: ignore[attr-defined] # Discrete
    config = GRPOConfig(
        problems_per_step=args.rows // 8, group_size=8, lag=lag, epochs=args.epochs, learner=LearnerConfig(learning_rate=1e-4)
    )  # fmt: skip
    ended: list[float] = []
    hidden: list[float] = []

    def after(_: int, metrics: Any) -> None:
        ended.append(time.perf_counter())
        hidden.append(metrics.get("sampling/hidden", 0.0))

    GRPO(CausalLMPolicy(model), config).learn(env, steps=args.steps, callbacks=[after])
    env.close()
    # The last `lag` updates have no sampling beside them.
    counted = slice(lag, args.steps - lag)
    return (ended[counted][-1] - ended[counted][0]) / (len(ended[counted]) - 1), statistics.fmean(hidden[lag + 1 :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=64, help="Completions of a batch.")
    parser.add_argument("--tokens", type=int, default=24, help="Tokens of the longest completion.")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--sleep-ms", type=float, default=50.0, help="For each call of the slow verifier.")
    parser.add_argument("--turns", type=int, default=3, help="Runs of each kind, of which the fastest counts.")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {args.threads} thread(s)")
    print("| verifier | lag | seconds a step | hidden |\n|---|---|---|---|")
    for name, sleep_s in (("none to speak of", 0.0), (f"sleeps {args.sleep_ms:g} ms a call", args.sleep_ms / 1000)):
        turns = [[run(args, sleep_s, lag) for lag in (0, 1)] for _ in range(args.turns)]
        for lag in (0, 1):
            seconds, hidden = min(turn[lag] for turn in turns)
            print(f"| {name} | {lag} | {seconds:.2f} | {hidden:.0%} |")


if __name__ == "__main__":
    main()
