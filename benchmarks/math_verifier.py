r"""The math verifier beside `math-verify` (PyPI), in one run: accuracy, time per answer, throughput on one and two processes.

Run it where both are installed (`pip install math-verify==0.9.0`); without `math-verify` only ours is measured.

    python benchmarks/math_verifier.py [--data DIR] [--answers 1000]

Accuracy is over the labelled corpus of `tests/math/corpus.toml`: both get the gold and the answer in `\boxed{}`. Throughput
is over gold answers of MATH-500 and GSM8K (`--data` or `RLVR_DATA_DIR`), reformatted and swapped between rows; each pair is
new to the caches. Figures are printed, and nothing is asserted.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from verifiers import Problem
from verifiers.math import PRESETS, MathVerifier

Judge = Callable[[str, str], bool]
CORPUS = Path(__file__).resolve().parent.parent / "tests" / "math" / "math_corpus.py"
_verifier = MathVerifier()


def judge_ours(gold: str, completion: str) -> bool:
    return _verifier(completion, Problem("", "", gold)).score == 1.0


def judge_math_verify(gold: str, completion: str) -> bool:
    from math_verify import parse, verify

    return bool(verify(parse(f"\\boxed{{{gold}}}"), parse(completion)))


@dataclass(frozen=True)
class Timing:
    """Seconds of each call, in order."""

    seconds: tuple[float, ...]

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        median, last = statistics.median(ordered), ordered[int(0.99 * (len(ordered) - 1))]
        return f"median {median * 1e3:8.3f} ms   p99 {last * 1e3:8.2f} ms   worst {ordered[-1] * 1e3:8.1f} ms"


def corpus() -> ModuleType:
    spec = importlib.util.spec_from_file_location("math_corpus", CORPUS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["math_corpus"] = module
    spec.loader.exec_module(module)
    return module


def accuracy(name: str, judge: Judge, pairs: Sequence[object]) -> None:
    """Print false positives and false negatives over labelled pairs; an exception counts as `not equal`."""
    false_positives = false_negatives = raised = 0
    seconds = []
    for pair in pairs:
        started = time.perf_counter()
        try:
            judged = judge(pair.gold, f"\\boxed{{{pair.answer}}}")
        except Exception:  # noqa: BLE001 - counted below
            judged, raised = False, raised + 1
        seconds.append(time.perf_counter() - started)
        false_positives += judged and not pair.correct
        false_negatives += pair.correct and not judged
    positives = sum(pair.correct for pair in pairs)
    negatives = len(pairs) - positives
    print(
        f"  {name:12} accuracy {100 - 100 * (false_positives + false_negatives) / len(pairs):6.2f} %   "
        f"false positives {false_positives:4} of {negatives} ({100 * false_positives / max(negatives, 1):.1f} %)   "
        f"false negatives {false_negatives:4} of {positives} ({100 * false_negatives / max(positives, 1):.1f} %)   "
        f"raised {raised}"
    )
    print(f"  {'':12} {Timing(tuple(seconds))}")


def reformatted(answer: str) -> str:
    """An answer in another typography."""
    return answer.replace("\\frac", "\\dfrac").replace(" ", "").replace("(", "\\left(").replace(")", "\\right)")


def throughput_pairs(folder: Path, name: str, count: int) -> Iterator[tuple[str, str]]:
    """Golds of a data set with their own reformatted answers and, as often, with answers of other rows."""
    rows = [json.loads(line) for line in (folder / name / "test.jsonl").read_text().splitlines()]
    golds = [row["answer"] if name == "math500" else PRESETS["default"](row["answer"]).answer for row in rows]
    generator = random.Random(0)
    for index in range(count):
        gold = golds[index % len(golds)]
        yield gold, f"So it is \\boxed{{{reformatted(gold if index % 2 else generator.choice(golds))}}}."


def run(task: tuple[str, list[tuple[str, str]]]) -> tuple[float, float]:
    """Judge pairs; returns wall and CPU seconds."""
    judge = judge_ours if task[0] == "ours" else judge_math_verify
    judge("1", "\\boxed{1}")  # imports
    wall, processor = time.perf_counter(), time.process_time()
    for gold, completion in task[1]:
        judge(gold, completion)
    return time.perf_counter() - wall, time.process_time() - processor


def throughput(name: str, pairs: list[tuple[str, str]]) -> float:
    """Print answers per second in one process and in two; returns CPU seconds for each answer."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        wall, processor = pool.map(run, [(name, pairs)])[0]
    middle = len(pairs) // 2
    halves = [(name, pairs[:middle]), (name, pairs[middle:])]
    with context.Pool(2) as pool:
        both = max(seconds for seconds, _ in pool.map(run, halves, chunksize=1))
    print(
        f"  {name:12} {processor / len(pairs) * 1e6:9.1f} CPU µs an answer   "
        f"{len(pairs) / wall:9.0f}/s in one process   {len(pairs) / both:9.0f}/s in two"
    )
    return processor / len(pairs)


def batches(size: int = 1000, rounds: int = 3) -> None:
    """Print times of `verify_batch` on sums that need evaluation, in the calling process and in two that run already."""

    def batch(number: int) -> tuple[list[str], list[Problem]]:
        values = range(number * size + 1, (number + 1) * size + 1)
        golds = [Problem("", "", rf"\sin({value})+\frac{{{2 * value}}}{{14}}+\sqrt{{{value}}}") for value in values]
        return [rf"\boxed{{\sqrt{{{value}}}+\frac{{{value}}}{{7}}+\sin({value})}}" for value in values], golds

    best = {1: float("inf"), 2: float("inf")}
    verifiers = {workers: MathVerifier(workers=workers) for workers in best}
    for number in range(rounds + 1):  # the first starts the processes
        for workers, verifier in verifiers.items():
            completions, golds = batch(number)
            began = time.perf_counter()
            verifier.verify_batch(completions, golds)
            best[workers] = min(best[workers], time.perf_counter() - began) if number else best[workers]
    print(
        f"verify_batch of {size} sums: {best[1]:.3f} s in one process, {best[2]:.3f} s in two, "
        f"{best[1] / best[2]:.2f} times as fast"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RLVR_DATA_DIR"), help="folder of the data sets")
    parser.add_argument("--answers", type=int, default=1000, help="answers of each data set in the throughput run")
    parser.add_argument("--pairs", type=int, help="labelled pairs, the first of the corpus; all by default")
    parser.add_argument("--sums", type=int, default=1000, help="sums in a batch of verify_batch")
    options = parser.parse_args()
    judges: dict[str, Judge] = {"ours": judge_ours}
    if importlib.util.find_spec("math_verify"):
        judges["math-verify"] = judge_math_verify
    else:
        print("math-verify is not installed (pip install math-verify==0.9.0): measuring ours alone")
    pairs = corpus().PAIRS[: options.pairs]
    print(f"labelled corpus, {len(pairs)} pairs")
    for name, judge in judges.items():
        judge("1", "\\boxed{1}")  # imports
        accuracy(name, judge, pairs)
    batches(options.sums)
    if not options.data:
        print("no data folder (--data or RLVR_DATA_DIR): no throughput run")
        return
    for dataset in ("math500", "gsm8k"):
        print(f"throughput, {options.answers} answers of {dataset}, half of them right")
        cost = [
            throughput(name, list(throughput_pairs(Path(options.data), dataset, options.answers))) for name in judges
        ]
        if len(cost) == 2:
            print(f"  ours is {cost[1] / cost[0]:.0f} times faster")


if __name__ == "__main__":
    main()
