"""The command `rlvr rescore`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

import rlvr_envs
from agents.commands.common import DEVICE, Device, env_arguments, on_device, shown_warnings, verifier_spec
from agents.commands.problems import load_problems, make_verifier
from agents.console.progress import progress
from agents.runs.judging import Flip, rejudge
from agents.runs.reading import RecordedRun
from agents.runs.verdicts import error_cause
from verifiers import AtLeast, DataError, Outcome


@dataclass(frozen=True)
class Rescore:
    """Judge the completions of an evaluation with another verifier, and list the verdicts that differ.

    The exit code is 0 if every completion was judged and no verdict differs; 1 if a verdict differs, a completion could not be
    judged, or the folder can't be judged; and 2 if an argument is wrong.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder written by rlvr eval or rlvr grade; it is not changed."""
    verifier: str | None = None
    """Verifier to use: its name, rewards.py:function, or a file such as my_verifier.toml; by default the current verifier of
    the environment, even if another verifier judged the run."""
    verifier_args: tuple[str, ...] = ()
    """Arguments of the verifier, each as name=value."""
    env_args: tuple[str, ...] = ()
    """Arguments of the data set that the run used, each as name=value, such as data_dir=FOLDER or digits=3; arguments of
    tokenizer, prompt and turns have no effect here."""
    shown: Annotated[int, AtLeast(0)] = 20
    """Number of differing verdicts to print; all are counted."""
    device: Device = DEVICE

    @on_device
    def run(self, console: Console) -> int:
        """Print the differing verdicts and both scores; return 1 if a verdict differs or the verifier broke."""
        recorded = RecordedRun.read(self.folder)
        name, split = recorded.settings.get("env"), recorded.settings.get("split")
        if not isinstance(name, str) or not recorded.rows:
            raise DataError(f"{self.folder} names no environment, or holds no samples: there is nothing to judge")
        spec = verifier_spec(self.verifier, self.verifier_args, None)
        dataset = load_problems(name, split, env_arguments(self.env_args))
        graded = {"chat": True} if "completions" in recorded.settings else None
        prompt = recorded.settings.get("environment", {}).get("prompt", graded)
        verifier = make_verifier(rlvr_envs.environment_class(name).task, spec, dataset, prompt)
        with shown_warnings(), progress(recorded.name, len(recorded.rows)) as advance:
            flips, verdicts = rejudge(recorded, dataset, verifier, advance)
        if not verdicts:
            raise DataError(f"{self.folder} holds no completion, only failed requests: there is nothing to judge")
        for flip in flips[: self.shown]:
            console.print(_sentence(flip))
        if len(flips) > self.shown:
            console.print(f"... and {len(flips) - self.shown} more")
        changes = Counter(f"{flip.row['outcome']} -> {flip.verdict.outcome}" for flip in flips)
        counts = f": {dict(changes.most_common())}" if flips else ""
        console.print(f"{len(flips)} of {len(verdicts)} verdicts differ{counts}")
        before = [row["score"] for row in recorded.rows if row["score"] is not None]
        after = [verdict.score for verdict in verdicts if verdict.outcome is not Outcome.VERIFIER_ERROR]
        console.print(f"mean score of samples: {_mean(before)} recorded, {_mean(after)} now")
        errored = [verdict for verdict in verdicts if verdict.outcome is Outcome.VERIFIER_ERROR]
        if errored:
            said = f"the verifier could not judge {len(errored)} of {len(verdicts)} completions"
            console.print(f"{said}: {error_cause(errored[0].detail)}")
        return 1 if flips or errored else 0


def _mean(scores: list[float]) -> str:
    return f"{sum(scores) / len(scores):.3f}" if scores else "none"


def _sentence(flip: Flip) -> str:
    row, verdict = flip.row, flip.verdict
    reason = verdict.detail.get("reason")
    return (
        f"{row['problem_id']} sample {row['sample']}: {row['outcome']} (answer {row['answer']!r}) -> {verdict.outcome} "
        f"(answer {verdict.answer!r}{'' if reason is None else f', {reason}'}); reference {row['reference']!r}"
    )
