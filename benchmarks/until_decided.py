"""Comparisons that stop when they are decided: how often they are wrong, and how many problems they save.

    .venv/bin/python benchmarks/until_decided.py

Two models answer the same problems; there is a look after each problem. Scores are those of one sample of each problem, of four
samples of problems of which most are easy or hard, or differ rarely. The first table counts decisions between equal models in
2,000 problems, and beside them those of a t-test with the same looks, from the tenth problem on. The second gives the median
number of problems until a decision, relative to the fixed sample that finds the smallest difference of the grid with a power of
0.9 in one look, and the third what a margin costs: decisions that two models are practically equal, where they are and where
they are not.
"""

from __future__ import annotations

import argparse
import math
import platform
from collections.abc import Callable, Iterator

import numpy as np

from agents.runs.files.hardware import hardware
from verifiers.confidence_sequences import log_evidence
from verifiers.statistics import LEVEL, Array, normal_quantile

GRID = (0.05, 0.075, 0.1, 0.15, 0.2)
POWER = 0.9
NEEDED = math.log(2 / (1 - LEVEL))
CHUNK = 250
"""Runs that are held in memory together."""


def one_sample(generator: np.random.Generator, shape: tuple[int, int], difference: float) -> Array:
    """Differences of 0 and 1: the models disagree on 30 % of the problems."""
    uniform = generator.random(shape)
    return (uniform < 0.15 + difference / 2).astype(np.float64) - (uniform > 0.85 + difference / 2)


def four_samples(generator: np.random.Generator, shape: tuple[int, int], difference: float) -> Array:
    """Mean scores of four samples each; the better model solves more of what either may solve."""
    hard = generator.beta(0.5, 0.5, size=shape) * (1 - difference)
    return (generator.binomial(4, hard + difference) - generator.binomial(4, hard)) / 4


def rare(generator: np.random.Generator, shape: tuple[int, int], difference: float) -> Array:
    """Models that disagree on 3 % of the problems, or as many as the difference needs."""
    uniform, share = generator.random(shape), max(0.03, 1.2 * difference)
    return (uniform < (share + difference) / 2).astype(np.float64) - (uniform > 1 - (share - difference) / 2)


KINDS: dict[str, Callable[[np.random.Generator, tuple[int, int], float], Array]] = {
    "one sample": one_sample,
    "four samples": four_samples,
    "rare differences": rare,
}


def chunks(kind: str, runs: int, problems: int, difference: float, seed: int) -> Iterator[Array]:
    """The differences of each run's problems, f64[r n], some runs at a time."""
    generator = np.random.default_rng([seed, *kind.encode()])
    for start in range(0, runs, CHUNK):
        yield KINDS[kind](generator, (min(CHUNK, runs - start), problems), difference)


def first_looks(reached: Array) -> Array:
    """The number of problems after which each row of bool[r n] is first true; infinite where it never is."""
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)


def by_t_test(values: Array) -> Array:
    """Whether a t-test at each look from the tenth on finds a difference, bool[r n]; its quantile is that of the normal law."""
    counts = np.arange(1, values.shape[1] + 1)
    means = np.cumsum(values, axis=1) / counts
    squares = np.cumsum(values**2, axis=1) / counts - means**2
    errors = np.sqrt(np.maximum(squares, 1e-300) / np.maximum(counts - 1, 1))
    found: Array = (np.abs(means) > normal_quantile((1 + LEVEL) / 2) * errors) & (counts >= 10)
    return found


def fixed_sample(kind: str, difference: float) -> int:
    """The problems with which one look finds the difference with the power of 0.9, by the variance of simulated problems."""
    deviation = np.std(KINDS[kind](np.random.default_rng(0), (1, 10**6), difference))
    quantiles = normal_quantile((1 + LEVEL) / 2) + normal_quantile(POWER)
    return math.ceil((quantiles * deviation / difference) ** 2)


def false_decisions(runs: int, problems: int) -> None:
    """Print the first table."""
    print(f"\n| scores | decided, of {runs} runs | a t-test at each look |\n|---|---|---|")
    for kind in KINDS:
        false, fooled = 0, 0
        for values in chunks(kind, runs, problems, 0.0, 1):
            above, below = (log_evidence(side, 0.0) >= NEEDED for side in (values, -values))
            false += int((above | below).any(axis=1).sum())
            fooled += int(by_t_test(values).any(axis=1).sum())
        print(f"| {kind} | {false / runs:.2%} | {fooled / runs:.0%} |", flush=True)


def savings(runs: int) -> None:
    """Print the second table."""
    header = " | ".join(f"{difference:g}" for difference in GRID)
    print(f"\n| scores | fixed sample for {GRID[0]:g} | {header} | all | wrong way |\n|{'---|' * (len(GRID) + 4)}")
    for kind in KINDS:
        fixed = fixed_sample(kind, GRID[0])
        used, wrong = [], 0
        for difference in GRID:
            looks = []
            for values in chunks(kind, runs, 4 * fixed, difference, 2):
                above, below = (first_looks(log_evidence(side, 0.0) >= NEEDED) for side in (values, -values))
                looks.append(np.minimum(above, below))
                wrong += int((below < above).sum())
            used.append(np.concatenate(looks) / fixed)
        cells = " | ".join(f"{np.median(ratios):.2f}" for ratios in used)
        whole = np.median(np.concatenate(used))
        print(f"| {kind} | {fixed} | {cells} | {whole:.2f} | {wrong / runs / len(GRID):.2%} |", flush=True)


def margins(runs: int, margin: float = 0.05) -> None:
    """Print the third table."""
    print(
        f"\n| scores | problems until equal within {margin:g} | called equal at a difference of {margin:g} |\n|---|---|---|"
    )
    for kind in KINDS:
        problems = 4 * fixed_sample(kind, margin)
        equal = {}
        for difference in (0.0, margin):
            looks = []
            for values in chunks(kind, runs, problems, difference, 3):
                sides = [first_looks(log_evidence(side, -margin) >= NEEDED) for side in (values, -values)]
                looks.append(np.maximum(*sides))
            equal[difference] = np.concatenate(looks)
        print(f"| {kind} | {np.median(equal[0.0]):.0f} | {np.isfinite(equal[margin]).mean():.2%} |", flush=True)


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000, help="runs without a difference")
    parser.add_argument("--problems", type=int, default=2_000, help="problems of each of these")
    parser.add_argument("--runs-with-a-difference", type=int, default=1_000)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {hardware()}")
    false_decisions(options.runs, options.problems)
    savings(options.runs_with_a_difference)
    margins(options.runs_with_a_difference)


if __name__ == "__main__":
    main()
