"""How much of a slow verifier's time deferred verification hides behind decoding.

A verifier that sleeps, 16 workers, 64 rows that are refilled, completions of 8 to 32 tokens, and a small transformer that
decodes. Three runs of the same episodes: no verifier, verdicts in step with decoding, and deferred. What is hidden is
(T_sync - T_deferred) / (T_sync - T_without).
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from agents import CausalLMPolicy, Episode, rollout, tiny_model
from agents.types import Action
from rlvr_envs import CharTokenizer, Observation, Rules, TokenStreams, TokenVectorEnv
from verifiers import Outcome, Problem, Verdict

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


class SleepyVerifier:
    """Takes its time over each completion, several at once."""

    def __init__(self, seconds: float, workers: int) -> None:
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(workers)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        time.sleep(self._seconds)
        return Verdict.of(Outcome.CORRECT if "a" in completion else Outcome.INCORRECT, completion)

    def verify_batch(self, completions: list[str], problems: list[Problem]) -> list[Verdict]:
        return list(self._pool.map(self, completions, problems))


class LengthsOf(CausalLMPolicy):
    """Decodes like any policy; each episode then ends after 8 to 32 tokens, decided by its seed."""

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        super().begin(rows, seeds)
        if not hasattr(self, "_left"):
            self._left = np.zeros(4096, dtype=np.int64)
        self._left[rows] = 8 + seeds % np.uint64(25)

    def act(self, observation: Observation, *, action_mask: Any = None, rows: Any = None) -> Action:
        action = super().act(observation, action_mask=action_mask, rows=rows)
        chosen = np.flatnonzero(action.counts)
        self._left[chosen] -= 1
        action.tokens[chosen, 0] = np.where(self._left[chosen] <= 0, 0, np.maximum(action.tokens[chosen, 0], 1))
        return action


def measure(args: argparse.Namespace, verifier: Any, verification: Any) -> float:
    """Seconds for all episodes."""
    tokenizer = CharTokenizer(ALPHABET)
    problems = [Problem(str(number), "abcdefgh", None) for number in range(32)]
    rules = Rules(
        tokenizer=tokenizer,
        render_prompt=lambda problem: str(problem.prompt),
        max_prompt_tokens=8,
        max_new_tokens=40,
        verifier=verifier,
        verification=verification,
        verification_workers=args.workers,
    )
    env = TokenVectorEnv(TokenStreams(problems, rules, args.rows), copy=False)
    model = tiny_model(tokenizer.vocab_size, layers=args.layers, hidden_size=args.width)
    policy = LengthsOf(model)
    episodes = [Episode(index % 32, index, seed=index * 7919) for index in range(args.episodes)]
    started = time.perf_counter()
    played = rollout(env, policy, episodes)
    seconds = time.perf_counter() - started
    assert [int(trajectory.policy_mask.sum()) for trajectory in played] == [
        8 + (index * 7919) % 25 for index in range(args.episodes)
    ]
    env.close()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--episodes", type=int, default=512)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--sleep-ms", type=float, default=50.0)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    ways: dict[str, tuple[Any, Any]] = {
        "none": (None, "sync"),
        "sync": (SleepyVerifier(args.sleep_ms / 1000, args.workers), "sync"),
        "deferred": (SleepyVerifier(args.sleep_ms / 1000, args.workers), "deferred"),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, (verifier, verification) in ways.items():
            times[name].append(measure(args, verifier, verification))
    median = {name: float(np.median(seconds)) for name, seconds in times.items()}
    hidden = (median["sync"] - median["deferred"]) / (median["sync"] - median["none"])
    print(f"python {platform.python_version()}, torch {torch.__version__}, {args.threads} thread(s)")
    print(
        json.dumps({"seconds": {name: round(value, 3) for name, value in median.items()}, "hidden": round(hidden, 3)})
    )


if __name__ == "__main__":
    main()
