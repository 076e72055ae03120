"""Environment steps per second, side by side in one run.

Measured: the native vector environment at 64 and 256 streams, with and without copies of the observation buffers, against
Gymnasium's `SyncVectorEnv` of our own single environment, and against a bare NumPy loop that appends a token to each row,
compares it with the end token and counts the budget; and one `step` through `gym.make`. The buffer is 512 tokens long;
verification and stop strings are off. Each figure is the best of several rounds: the least disturbed by other work.

Run: python benchmarks/env_steps.py
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import rlvr_envs

BUFFER = 512
PROMPT = 12
STEPS = 480  # under the budget, so that no episode ends while it is timed
ROUNDS = 15
OPTIONS: dict[str, Any] = {
    "max_prompt_tokens": PROMPT,
    "max_new_tokens": BUFFER - PROMPT,
    "verifier": lambda completion, problem: 0.0,
}
TOKEN = 65


def best_of(begin: Callable[[], Any], step: Callable[[], Any], steps: int, rounds: int = ROUNDS) -> float:
    """Microseconds of one step."""
    best = float("inf")
    for _ in range(rounds):
        begin()
        started = time.perf_counter()
        for _ in range(steps):
            step()
        best = min(best, (time.perf_counter() - started) / steps)
    return best * 1e6


def single_step() -> float:
    env = gym.make("rlvr/Addition-v0", **OPTIONS)
    return best_of(lambda: env.reset(seed=0), lambda: env.step(TOKEN), STEPS)


def native(num_envs: int, copy: bool) -> float:
    env = gym.make_vec("rlvr/Addition-v0", num_envs=num_envs, copy=copy, **OPTIONS)
    actions = np.full(num_envs, TOKEN)
    return best_of(lambda: env.reset(seed=0), lambda: env.step(actions), STEPS)


def sync(num_envs: int) -> float:
    make = [lambda: gym.make("rlvr/Addition-v0", **OPTIONS)] * num_envs
    env = SyncVectorEnv(make, autoreset_mode=AutoresetMode.DISABLED)
    actions = np.full(num_envs, TOKEN)
    return best_of(lambda: env.reset(seed=0), lambda: env.step(actions), 60, rounds=5)


def bare(num_envs: int) -> float:
    tokens = np.zeros((num_envs, BUFFER), dtype=np.int32)
    length = np.zeros(num_envs, dtype=np.int32)
    rows = np.arange(num_envs)
    actions = np.full(num_envs, TOKEN)

    def begin() -> None:
        length[:] = PROMPT

    def step() -> tuple[Any, ...]:
        tokens[rows, length] = actions
        np.add(length, 1, out=length)
        return np.zeros(num_envs), actions == rlvr_envs.ByteTokenizer.eos_token, length >= BUFFER

    return best_of(begin, step, STEPS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[64, 256])
    options = parser.parse_args()
    packages = ", ".join(f"{name} {version(name)}" for name in ("gymnasium", "numpy"))
    print(
        f"Python {platform.python_version()}, {packages}, {platform.machine()}; microseconds, the best of {ROUNDS} rounds\n"
    )
    print(f"step through gym.make, one stream: {single_step():.2f}\n")
    print(
        "| streams | bare NumPy | native, no copies | native, copies | SyncVectorEnv | copies: x Sync | no copies: x bare |"
    )
    print("|---|---|---|---|---|---|---|")
    for num_envs in options.streams:
        floor, fast, copied, peer = bare(num_envs), native(num_envs, False), native(num_envs, True), sync(num_envs)
        row = f"| {num_envs} | {floor:.1f} | {fast:.1f} | {copied:.1f} | {peer:.0f} "
        print(row + f"| {peer / copied:.1f} faster | {fast / floor:.2f} slower |")
    print(f"\nsteps per second, {num_envs} streams, no copies: {num_envs / fast * 1e6:,.0f}")


if __name__ == "__main__":
    main()
