"""The estimators' court on this package, on TRL and on verl: the tables of docs/court.md.

    python benchmarks/court/run.py of_ours           # or of_trl, of_verl, published, where these are installed
    python benchmarks/court/run.py of_trl --only RLOOTrainer

writes the table between `<!-- court of_ours -->` and `<!-- end court -->`; with `--only` it prints what is found of estimators
whose names contain a text. Pins: trl 1.16.0 with what `make test-trl` installs; verl 0.9.1 (on a CPU: `pip install --no-deps
verl==0.9.1` and what its import then asks for).
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.metadata
import math
import re
import sys
import time
from pathlib import Path

from agents.experiments.court import Judgement, judge

PAGE = Path(__file__).parents[2] / "docs" / "court.md"
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
    names = {"of_trl": ["trl", "transformers"], "of_verl": ["verl"]}.get(module, [])
    found = [f"{name} {importlib.metadata.version(name)}" for name in [*names, "torch", "numpy"]]
    return f"{', '.join(found)}; {datetime.date.today().isoformat()}"


def main() -> None:
    """Try the estimators of a module and write their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", choices=("of_ours", "of_trl", "of_verl", "published"))
    parser.add_argument("--only", default="", help="try estimators whose names contain this, and print what is found")
    arguments = parser.parse_args()
    estimators = importlib.import_module(arguments.module).ESTIMATORS
    lines = []
    for estimator in estimators:
        if arguments.only not in estimator.name:
            continue
        began = time.process_time()
        judgement = judge(estimator)
        lines.append(row(judgement))
        print(f"{estimator.name} ({time.process_time() - began:.1f} CPU seconds)", flush=True)
        for finding in judgement.findings:
            print(f"  {finding.sentence}", flush=True)
    if arguments.only:
        return
    heads = ("estimator", *COLUMNS, "KL term", "variance")
    table = "\n".join(["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|", *lines])
    start, end = f"<!-- court {arguments.module} -->", "<!-- end court -->"
    text = PAGE.read_text(encoding="utf-8")
    if start not in text:
        sys.exit(f"{PAGE} has no {start}")
    made = f"{start}\n{versions(arguments.module)}\n\n{table}\n{end}"
    PAGE.write_text(
        re.sub(re.escape(start) + ".*?" + re.escape(end), lambda _: made, text, flags=re.DOTALL), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
