"""What partial rollouts save: seconds of sampling per token, beside steps that wait for their longest completions.

GRPO on sorting with a small transformer whose weights are random and hardly learn, so that every token ends a completion with
about the same probability: lengths are geometric, and the longest of 64 completions is some five times as long as the mean.
Every step learns from 64 completions, once all sampled to their end and then with groups that are carried over the update.
Where a pass of the model takes as long for few rows as for many, as on a GPU that waits for memory, passes are time.
"""

from __future__ import annotations

import argparse
import platform
import statistics
from typing import Any

import gymnasium
import torch

from agents import GRPO, CausalLMPolicy, GRPOConfig, LearnerConfig, tiny_model
from agents.types import Action

GROUP = 8


class CountingPolicy(CausalLMPolicy):
    """Counts the passes that choose tokens."""

    passes = 0

    def act(self, *arguments: Any, **keywords: Any) -> Action:
        self.passes += 1
        return super().act(*arguments, **keywords)


def run(args: argparse.Namespace, carried: int) -> tuple[float, float, float]:
    """Seconds of sampling and passes per 1000 tokens, and the mean number of updates over which a batch's oldest group came."""
    torch.manual_seed(0)
    rows = (args.groups + carried) * GROUP
    env = gymnasium.make_vec(
        "rlvr/Sort-v0", num_envs=rows, tokenizer="byte", max_new_tokens=args.tokens, stop=args.stop, copy=False
    )
    model = tiny_model(
        int(env.single_action_space.n), layers=args.layers, hidden_size=args.width, max_tokens=2 * args.tokens + 64
    )  # type: ignore[attr-defined] # Discrete
    config = GRPOConfig(
        problems_per_step=args.groups,
        group_size=GROUP,
        **(
            {"carried_groups": carried, "segment_tokens": args.segment, "max_carried_steps": args.max_steps}
            if carried
            else {}
        ),
        learner=LearnerConfig(learning_rate=1e-12),
    )
    policy = CountingPolicy(model)
    seconds, oldest = list[float](), list[float]()

    def after(_: int, metrics: Any) -> None:
        seconds.append(metrics["rollout_s"])
        oldest.append(metrics.get("sampling/carried_steps", 0.0))

    agent = GRPO(policy, config)
    agent.learn(env, steps=args.steps, callbacks=[after])
    env.close()
    return 1000 * sum(seconds) / agent.tokens, 1000 * policy.passes / agent.tokens, statistics.fmean(oldest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=8, help=f"Groups of a batch, of {GROUP} completions each.")
    parser.add_argument("--tokens", type=int, default=512, help="Tokens of the longest completion.")
    parser.add_argument("--stop", nargs="+", default=["a", "b"], help="Strings that end a completion.")
    parser.add_argument("--segment", type=int, default=64, help="Tokens of a segment.")
    parser.add_argument(
        "--max-steps", type=int, default=4, help="Largest number of updates that a group is carried over."
    )
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--turns", type=int, default=3, help="Runs of each kind, of which the fastest counts.")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {args.threads} thread(s)")
    print(
        "| groups carried | seconds per 1000 tokens | passes per 1000 tokens | age of the oldest group |\n|---|---|---|---|"
    )
    kinds = (0, args.groups // 2, args.groups)
    turns = [[run(args, carried) for carried in kinds] for _ in range(args.turns)]
    for index, carried in enumerate(kinds):
        seconds, passes, oldest = min(turn[index] for turn in turns)
        print(f"| {carried} | {seconds:.2f} | {passes:.0f} | {oldest:.1f} |")


if __name__ == "__main__":
    main()
