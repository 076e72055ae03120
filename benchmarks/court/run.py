"""The estimators' court on this package, on TRL and on verl: the tables of docs/court.md.

    make court-estimators                            # all tables, in the environment of make test-adapters
    python benchmarks/court/run.py of_ours published # some, where TRL and verl are not installed
    python benchmarks/court/run.py of_trl --only RLOOTrainer

writes the table between `<!-- court of_ours -->` and `<!-- end court -->`, and those of the others; with `--only` it prints
what is found of estimators whose names contain a text, and a program that shows each fault on its smallest case. Two processes
try one estimator each at a time.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib
import importlib.metadata
import math
import multiprocessing
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from agents.experiments.court import Judgement, judge

PAGE = Path(__file__).parents[2] / "docs" / "court.md"
MODULES = ("of_ours", "of_trl", "of_verl", "of_openrlhf", "published")
PROCESSES = 2
COLUMNS = ("one length", "unequal lengths", "several turns", "two problems", "exact values", "another engine")


def row(judgement: Judgement) -> str:
    """A line of the table: verdicts in the smallest groups, what the KL term is, and the variance."""
    cells = [judgement.estimator.name]
    for name in COLUMNS:
        tried = judgement.of(name)
        cells.append(tried[0].verdict if tried else "-")
    sentences = [finding.sentence for finding in judgement.findings]
    factor = next(
        (text.partition("by the factor ")[2].rstrip(".") for text in sentences if "by the factor" in text), ""
    )
    cells[1] += f": {factor}" if factor else ""
    about_kl = next((text.removesuffix(".") for text in sentences if "KL term" in text), "-")
    cells.append(about_kl.removeprefix("The KL term has ").removeprefix("The coefficient of the KL term is "))
    variances = [one.relative_variance for one in judgement.of("unequal lengths") if one.case.group_size == 4]
    cells.append(f"{variances[0]:.3g}" if variances and math.isfinite(variances[0]) else "-")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def versions(module: str) -> str:
    """The libraries of a run, with their versions, and the day."""
    names = {"of_trl": ["trl", "transformers"], "of_verl": ["verl"], "of_openrlhf": ["openrlhf"]}.get(module, [])
    found = [f"{name} {importlib.metadata.version(name)}" for name in [*names, "torch", "numpy"]]
    return f"{', '.join(found)}; {datetime.date.today().isoformat()}"


def main() -> None:
    """Try the estimators of a module and write their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "modules", nargs="+", choices=MODULES, metavar="module", help=f"one or more of {', '.join(MODULES)}"
    )
    parser.add_argument("--only", default="", help="try estimators whose names contain this, and print what is found")
    arguments = parser.parse_args()
    estimators = {module: importlib.import_module(module).ESTIMATORS for module in arguments.modules}
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        tried = {
            module: [
                pool.submit(try_one, module, index) for index, one in enumerate(listed) if arguments.only in one.name
            ]
            for module, listed in estimators.items()
        }
        total = 0.0
        for module, futures in tried.items():
            lines = []
            for future in futures:
                line, found, seconds = future.result()
                lines.append(line)
                total += seconds
                print(found, flush=True)
            if not arguments.only:
                write(module, lines)
    print(f"{total:.0f} seconds of processor time")


def try_one(module: str, index: int) -> tuple[str, str, float]:
    """The line of an estimator in the table of its module, what is found of it, and the processor time."""
    import torch

    torch.set_num_threads(1)
    estimator = importlib.import_module(module).ESTIMATORS[index]
    began = time.process_time()
    judgement = judge(estimator)
    seconds = time.process_time() - began
    found = [f"{estimator.name} ({seconds:.1f} CPU seconds)", *(f"  {one.sentence}" for one in judgement.findings)]
    return row(judgement), "\n".join([*found, *program(judgement, module, index)]), seconds


def program(judgement: Judgement, module: str, index: int) -> list[str]:
    """The lines of a program that shows every fault on its smallest case, in the folder of this file."""
    named = dataclasses.replace(judgement.estimator, address=module)
    lines = [line for line in dataclasses.replace(judgement, estimator=named).code().splitlines() if "compare(" in line]
    imports = ["from agents.experiments.court import case, compare", f"from {module} import ESTIMATORS", ""]
    return [*imports, f"tried = ESTIMATORS[{index}]", *lines] if lines else []


def write(module: str, lines: Sequence[str]) -> None:
    """Write the table of a module."""
    heads = ("estimator", *COLUMNS, "KL term", "variance")
    table = "\n".join(["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|", *lines])
    start, end = f"<!-- court {module} -->", "<!-- end court -->"
    text = PAGE.read_text(encoding="utf-8")
    if start not in text:
        sys.exit(f"{PAGE} has no {start}")
    made = f"{start}\n{versions(module)}\n\n{table}\n{end}"
    PAGE.write_text(
        re.sub(re.escape(start) + ".*?" + re.escape(end), lambda _: made, text, flags=re.DOTALL), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
