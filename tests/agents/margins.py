"""How far every agent gets in its lesson with each of many seeds: `python -m tests.agents.margins --seeds 20`.

Where every seed passes by a wide margin, a machine that rounds otherwise is not likely to fail: it changes episodes as another
seed does, or less. Prints a table, and fails if a seed stayed below what the test asks for.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch

from agents import AGENTS
from tests.agents.corridor import ENOUGH, STEPS, share_learned


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds, from 0")
    parser.add_argument("--agents", nargs="+", default=list(AGENTS), choices=list(AGENTS), metavar="NAME")
    arguments = parser.parse_args()
    print(f"kernels {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads, {STEPS} steps")
    print("| agent | least | mean | standard deviation | margin |\n|---|---|---|---|---|")
    failed = []
    for name in arguments.agents:
        shares = np.array([share_learned(name, seed) for seed in range(arguments.seeds)])
        spread = shares.std(ddof=1) if len(shares) > 1 else np.nan
        margin = (shares.mean() - ENOUGH) / spread
        print(f"| `{name}` | {shares.min():.2f} | {shares.mean():.2f} | {spread:.2f} | {margin:.0f} |", flush=True)
        failed += [name] * bool(shares.min() <= ENOUGH)
    if failed:
        sys.exit(f"below {ENOUGH} with some seed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
