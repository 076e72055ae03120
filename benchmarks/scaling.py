"""Speed of a training step with several processes against one, and what it costs to gather trajectories.

Each number of processes trains the same agent on the same problems through `rlvr train --nproc`, in turns, so that all see the
same disturbances. With P processes each has `cores / P` threads; one process is measured with one thread too, since that is
what the other processes add. Reported, medians over the steps after the first two: seconds of rollouts, which include waiting
for the slowest rank, of the update and of both, and the ratio to one process with the same threads in all and in each.

Then the processes gather trajectories of several sizes as a training step does, and the seconds and bytes are reported.

Measure on a quiet machine: `.venv/bin/python benchmarks/scaling.py --processes 1 2`.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

WARM_UP = 2
"""Steps before the first that is measured."""


def main() -> None:
    options = _options()
    if options.gather_tokens is not None:
        _gather(options.gather_tokens)
        return
    cores = len(os.sched_getaffinity(0))
    setups = sorted({(1, 1), *((count, max(1, cores // count)) for count in options.processes)})
    seconds: dict[tuple[int, int], list[dict[str, float]]] = {setup: [] for setup in setups}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.turns):
            for setup in setups:
                seconds[setup] += _train(Path(folder) / f"{turn}-{setup[0]}-{setup[1]}", *setup, options)
    _report(seconds)
    for count in options.processes:
        if count > 1:
            _run_gather(count, options.tokens)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="numbers of processes")
    parser.add_argument("--steps", type=int, default=8, help="training steps in each turn")
    parser.add_argument("--turns", type=int, default=3, help="turns of each number of processes")
    parser.add_argument("--tokens", type=int, nargs="+", default=[10_000, 1_000_000], help="tokens to gather")
    parser.add_argument("--env-args", nargs="+", default=["digits=6"], help="arguments of Addition")
    parser.add_argument("--problems", type=int, default=32, help="problems in a step, of 8 completions each")
    parser.add_argument("--epochs", type=int, default=4, help="passes over each batch; more make the learner dominate")
    parser.add_argument("--gather-tokens", type=int, nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def _train(folder: Path, processes: int, threads: int, options: argparse.Namespace) -> list[dict[str, float]]:
    """The metrics of the measured steps of one run."""
    command = [sys.executable, "-m", "agents", "train", "ppo", "--env", "Addition", "--env-args", *options.env_args]
    command += ["--nproc", str(processes), "--steps", str(options.steps), "--checkpoint-every", str(options.steps)]
    command += ["--problems-per-step", str(options.problems), "--group-size", "8", "--epochs", str(options.epochs)]
    command += ["--run-folder", str(folder), "--log-rollouts", "0", "--loggers"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": str(threads)})
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[WARM_UP:]]


def _report(seconds: dict[tuple[int, int], list[dict[str, float]]]) -> None:
    print("processes  threads  rollout s  update s  step s")
    medians = {}
    for (processes, threads), rows in seconds.items():
        rollout, update = (statistics.median(row[name] for row in rows) for name in ("rollout_s", "update_s"))
        medians[processes, threads] = rollout, update, rollout + update
        print(f"{processes:9}  {threads:7}  {rollout:9.3f}  {update:8.3f}  {rollout + update:6.3f}")
    for (processes, threads), times in medians.items():
        for other in {(1, threads), (1, processes * threads)} & medians.keys() - {(processes, threads)}:
            rollout, update, step = (before / now for before, now in zip(medians[other], times, strict=True))
            print(
                f"{processes} processes of {threads} threads against 1 of {other[1]}: rollout {rollout:.2f}, "
                f"update {update:.2f}, step {step:.2f} times as fast"
            )


def _run_gather(processes: int, tokens: Sequence[int]) -> None:
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(processes),
        __file__,
    ]
    subprocess.run([*command, "--gather-tokens", *map(str, tokens)], check=True)


def _gather(sizes: Sequence[int]) -> None:
    """On each rank: gather its trajectories, of as many tokens together as asked for."""
    import numpy as np

    from agents import Trajectory
    from agents.distributed.processes import join, leave

    ranks = join()
    for tokens in sizes:
        length = 1000
        made = [
            Trajectory(
                problem_id=str(number),
                group=number,
                prompt_length=1,
                terminated=True,
                truncated=False,
                verdict=None,
                completion="",
                tokens=np.zeros(length, dtype=np.int32),
                policy_mask=np.ones(length, dtype=bool),
                logprobs=np.zeros(length, dtype=np.float32),
                rewards=np.zeros(length),
                policy_version=np.zeros(length, dtype=np.int32),
            )
            for number in range(tokens // length // ranks.size)
        ]
        times = []
        for _ in range(5):
            ranks.gather(None)  # so that all begin together
            started = time.perf_counter()
            ranks.gather(made)
            times.append(time.perf_counter() - started)
        if ranks.is_main:
            sent = len(pickle.dumps(made))
            print(
                f"gathering {tokens} tokens of {ranks.size} ranks: {statistics.median(times):.4f} s, "
                f"{sent * ranks.size / tokens:.1f} bytes a token"
            )
    leave()


if __name__ == "__main__":
    main()
