"""What a completion costs on its way to a Ray task and back, beside judging it where the batch is.

    make test-ray                                  # once: Ray in an environment of its own
    .cache/ray/bin/python benchmarks/ray_tasks.py

Wall microseconds a completion: the least of several turns, in which ways follow each other, so that a busy moment of the
machine spoils neither alone. The difference between two verifiers on Ray is their own time, divided by the cores that judge.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from importlib.metadata import version

import verifiers
from verifiers import Outcome, Problem, Verifier
from verifiers.unit_tests import AssertTests

TEXT = "We add the numbers one by one. " * 20
PROGRAM = "```python\ndef double(x):\n    return 2 * x\n```"
CASES = {
    "exact": ({}, "95", "95"),
    "math": ({"workers": 1}, TEXT + "So it is $\\boxed{\\frac{1}{2}}$.", "0.5"),
    "unit_tests": ({"workers": 1}, PROGRAM, AssertTests(("assert double(2) == 4",))),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--completions", type=int, default=4096, help="Completions of a batch; 64 of unit_tests.")
    parser.add_argument("--chunks", type=int, nargs="+", default=[16, 64, 256], help="Completions of a task.")
    parser.add_argument("--turns", type=int, default=7, help="Turns, of which the least counts.")
    options = parser.parse_args()
    print(f"ray {version('ray')}, Python {platform.python_version()}, {os.cpu_count()} cores")
    print("| verifier | here, µs | " + " | ".join(f"Ray, chunk {chunk}, µs" for chunk in options.chunks) + " |")
    print("|---" * (len(options.chunks) + 2) + "|")
    for name, (settings, completion, reference) in CASES.items():
        count = 64 if name == "unit_tests" else options.completions
        ways = [verifiers.make(name, **settings)]
        ways += [verifiers.make("ray", of=(name, settings), chunk=chunk) for chunk in options.chunks]
        measured = least_microseconds(ways, completion, reference, count, options.turns)
        print(f"| `{name}` | " + " | ".join(f"{microseconds:.0f}" for microseconds in measured) + " |")


def least_microseconds(ways: list[Verifier], completion: str, reference: object, count: int, turns: int) -> list[float]:
    """The least wall time a completion of each way, in microseconds, after one turn that is not counted."""
    problems = [Problem(str(number), TEXT, reference, {"level": "3"}) for number in range(count)]
    least = [float("inf")] * len(ways)
    for turn in range(turns + 1):
        for number, way in enumerate(ways):
            began = time.perf_counter()
            verdicts = verifiers.verify_batch(way, [completion] * count, problems)
            took = (time.perf_counter() - began) / count * 1e6
            assert all(verdict.outcome is Outcome.CORRECT for verdict in verdicts), verdicts[0]
            least[number] = min(least[number], took) if turn else least[number]
    return least


if __name__ == "__main__":
    main()
