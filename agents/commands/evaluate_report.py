"""The report that `rlvr eval` prints about an evaluation."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from agents.commands.common import print_warning
from agents.commands.evaluate_options import EvaluateOptions
from agents.runs.evaluation import Evaluation
from agents.runs.evaluation_record import ORACLE_NOTE, SAMPLES
from agents.runs.files.versions import package_versions


def report(
    console: Console, options: EvaluateOptions, name: str, out: Path, result: Evaluation, resumed_as: Path
) -> None:
    """Print the score of an evaluation, with the settings that determined the score and the next commands.

    Args:
        console: Where to print.
        options: Options of the command.
        name: Id of the environment.
        out: Folder of the evaluation.
        result: The evaluation.
        resumed_as: The --out with which the user's command continues this evaluation.
    """
    versions = ", ".join(f"{package} {version}" for package, version in package_versions().items() if version)
    lines = [
        f"{name} {options.split}, model {options.model}, temperature {options.temperature:g}, seed {options.seed}",
        versions,
        f"score {result}",
        f"{f'outcomes {result.outcomes}, ' if result.outcomes else ''}truncated {result.truncated}; written to {out}",
    ]
    if result.rerun_error is not None and options.temperature > 0:
        lines.insert(
            3, f"re-run noise {result.rerun_error:.3f}: standard error of the score over samples of these problems"
        )
    if result.prompt_tokens is not None:
        paid = "" if result.cost is None else f", cost {result.cost:.4g}"
        lines.insert(-1, f"tokens: {result.prompt_tokens} of prompts, {result.tokens} of completions{paid}")
    elif options.engine == "openai":
        cost = "" if options.price is None else " and cost"
        lines.insert(-1, f"tokens{cost} unknown: the server's answers don't count them (usage.prompt_tokens)")
    lines[-1:-1] = [str(estimate) for estimate in (*result.pass_at, *result.maj_at)]
    causes = [f"the verifier broke on {result.verifier_errors} samples"] if result.verifier_errors else []
    causes += [f"{result.failed_requests} requests failed"] if result.failed_requests else []
    if causes:
        lines.append(
            f"{' and '.join(causes)}, for the reasons in {out / SAMPLES}; the same command with --out {resumed_as} "
            "--resume repeats these samples"
        )
    for line in lines:
        console.print(line)
    if result.warning is not None:
        print_warning(result.warning)
    if result.oracle:
        print_warning(f"the samples were {ORACLE_NOTE}")
