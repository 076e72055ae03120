"""Instructions of IFEval by their own words and by the preset `published`, beside verdicts of IFEval's own checkers.

    python -m instruction_following_eval.evaluation_main --input_data=... --input_response_data=... --output_dir=RESULTS
    python benchmarks/ifeval_checkers.py RESULTS/eval_results_strict.jsonl [--mode loose] [--data DIR] [--list 20]

The first line runs in a copy of google-research, which has responses of GPT-4 in `instruction_following_eval/data`. Each line
of the results has a prompt, a response and a verdict for each instruction; the kwargs are those of `ifeval/test.jsonl` in
`--data` or `RLVR_DATA_DIR`. It needs `pip install 'rlvr-envs[ifeval]'` and `python -m nltk.downloader punkt_tab`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from verifiers import Problem
from verifiers.ifeval import IFEvalVerifier


def rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def verdicts(problem: Problem, response: str, mode: str, preset: str | None) -> list[bool]:
    """Whether a response follows each instruction; nothing where there is no response."""
    reports = IFEvalVerifier(preset=preset)(response, problem).detail.get("instructions")
    return [report[mode] for report in reports] if isinstance(reports, list) else []


def compared(
    problems: dict[str, Problem], results: list[dict[str, Any]], mode: str, preset: str | None
) -> Iterator[tuple[str, bool, bool]]:
    """Which instruction of which prompt it is, the published verdict and ours."""
    for row in results:
        problem = problems.get(row["prompt"])
        if problem is None:
            continue  # a prompt that a later version of the data has in other words
        ours = verdicts(problem, row["response"], mode, preset) or [False] * len(row["instruction_id_list"])
        for identifier, theirs, own in zip(
            row["instruction_id_list"], row["follow_instruction_list"], ours, strict=True
        ):
            yield f"{problem.id} {identifier}", theirs, own


def main() -> None:
    """Count, and list what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="what evaluation_main.py wrote")
    parser.add_argument("--mode", choices=("strict", "loose"), default="strict")
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("RLVR_DATA_DIR"), help="the folder of ifeval/test.jsonl"
    )
    parser.add_argument("--list", type=int, default=20, help="how many differences to list")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("name the folder of the data with --data or RLVR_DATA_DIR")
    data = rows(Path(arguments.data, "ifeval", "test.jsonl"))
    problems = {row["prompt"]: Problem(str(row["key"]), row["prompt"], row) for row in data}
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("langdetect", "nltk"))
    print(f"Python {sys.version.split()[0]}, {versions}; {arguments.mode}")
    for preset in (None, "published"):
        found = list(compared(problems, rows(arguments.results), arguments.mode, preset))
        apart = [(name, theirs) for name, theirs, own in found if theirs != own]
        print(f"preset {preset}: {len(found) - len(apart)} of {len(found)} verdicts are as published")
        for name, theirs in apart[: arguments.list]:
            print(f"  {name}: only {'the published checker' if theirs else 'this verifier'} accepts it")


if __name__ == "__main__":
    main()
