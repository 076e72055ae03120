"""The command `rlvr grade`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

import rlvr_envs
from agents.commands.common import (
    DEVICE,
    Device,
    env_arguments,
    folder_name,
    named_arguments,
    on_device,
    print_warning,
    shown_warnings,
    verifier_spec,
)
from agents.commands.problems import load_problems, make_verifier
from agents.console.progress import progress
from agents.interrupts import sigterm_interrupts
from agents.runs.at_k import answer_verifier, count_votes
from agents.runs.completions import read_completions
from agents.runs.evaluation import MAX_ERROR_SHARE, summarize_evaluation
from agents.runs.evaluation_record import MANIFEST, EvaluationRecord, Sample
from agents.runs.files.integrity import fingerprint
from agents.runs.files.outputs import free_folder
from agents.runs.judging import judge, match_problems
from verifiers import AtLeast, Between, InvalidArgumentError, MissingDataError, convention_of, verifier_record


@dataclass(frozen=True)
class Grade:
    """Judge completions that were made elsewhere, and record them as rlvr eval does."""

    file: Annotated[Path, tyro.conf.Positional]
    """File of completions: rows with completion and problem_id, in JSON Lines, a JSON array, CSV (also compressed as .gz) or
    Parquet; output of lm-eval's --log_samples; OpenAI's batch output; or an Inspect log."""
    env: str
    """Environment whose problems the completions answer, such as GSM8K."""
    columns: tuple[str, ...] = ()
    """Columns of the file that have other names, each as name=column, such as completion=response problem_id=uid. The column
    for problem_id holds ids, indices or questions."""
    split: str = "test"
    """Split of the data set that the completions answer."""
    pass_at: Annotated[tuple[int, ...], AtLeast(1)] = ()
    """Numbers k for which to report pass@k, the probability that at least one of k samples is correct."""
    maj_at: Annotated[tuple[int, ...], AtLeast(1)] = ()
    """Numbers k for which to report maj@k, the probability that a majority vote of k samples is correct."""
    out: Path | None = None
    """Folder for the results; by default a new folder, runs/eval/FILE-ENVIRONMENT-NUMBER."""
    overwrite: bool = False
    """Replace the evaluation in the folder --out."""
    verifier: str | None = None
    """Verifier to use in place of the environment's own: a name, rewards.py:function, or a file such as my_verifier.toml."""
    verifier_args: tuple[str, ...] = ()
    """Arguments of the verifier, each as name=value."""
    env_args: tuple[str, ...] = ()
    """Arguments of the data set, each as name=value, such as data_dir=FOLDER."""
    max_error_share: Annotated[float, Between(0, 1)] = MAX_ERROR_SHARE
    """Share of completions that the verifier could not judge above which the command ends with exit code 1."""
    device: Device = DEVICE

    @on_device
    def run(self, console: Console) -> int:
        """Judge every completion, write the record, and print the score."""
        if not self.file.is_file():
            said = f"{self.file} is a folder, no file" if self.file.is_dir() else f"there is no file {self.file}"
            raise MissingDataError(
                f"{said} of completions: name one in a format of docs/results.md (rlvr rescore "
                "RUN judges a recorded evaluation again)"
            )
        name = rlvr_envs.environment_id(self.env)
        task = rlvr_envs.environment_class(name).task
        columns = named_arguments(self.columns, "a column")
        given = verifier_spec(self.verifier, self.verifier_args, None)
        dataset = load_problems(name, self.split, env_arguments(self.env_args))
        # Completions are from chat models, or each is an answer and nothing else, which this verifier accepts too.
        spec = task.verifier_of(dataset, chat=True) if given is None else given
        verifier = make_verifier(task, (spec[0], dict(spec[1])), dataset)
        votes_by = answer_verifier(verifier) if self.maj_at else None
        completions = read_completions(self.file, {name: str(column) for name, column in columns.items()})
        placed = match_problems(completions, dataset)
        out = self.out or free_folder(Path("runs/eval"), f"{self.file.stem}-{folder_name(name)}")
        if (out / MANIFEST).exists() and not self.overwrite:
            raise InvalidArgumentError(
                f"{out} holds an evaluation: replace it with --overwrite, or choose another folder"
            )
        settings = {
            "env": name,
            "split": self.split,
            "completions": {"file": self.file.name, **fingerprint(self.file)},
        }
        rows: list[Sample] = []
        with (
            shown_warnings(),
            sigterm_interrupts(),
            EvaluationRecord(out, settings=settings, overwrite=self.overwrite) as record,
            progress(f"{self.env} {self.split}", len(placed)) as advance,
        ):
            call = {} if (convention := convention_of(verifier)) is None else {"verifier_call": convention}
            record.begin({"verifier": verifier_record(*spec), **call})
            for sample, line in judge(placed, dataset, verifier):
                record.add(line)
                rows.append(sample)
                advance(len(rows))
            problems = len({row.problem for row in rows})
            samples = max(row.sample for row in rows) + 1
            votes = [] if votes_by is None else count_votes(rows, dataset, votes_by)
            result = summarize_evaluation(
                rows, problems, samples, pass_at=self.pass_at, maj_at=self.maj_at, votes=votes
            )
            record.finish(result.summary())
        console.print(f"{name} {self.split}, completions of {self.file}, verifier {spec[0]}")
        if any(completion.by_position for completion in completions):
            unread = dict.fromkeys(column for completion in completions for column in completion.unread)
            console.print(
                "no column names problems (problem_id, id or problem): row n answers problem n"
                + (f"; not read: {', '.join(unread)}" if unread else "")
            )
        if problems < len(dataset):
            console.print(f"completions for {problems} of {len(dataset)} problems: the others are left out")
        console.print(f"score {result}")
        for estimate in (*result.pass_at, *result.maj_at):
            console.print(str(estimate))
        if result.warning is not None:
            print_warning(result.warning)
        console.print(f"outcomes {result.outcomes}; written to {out}")
        return 1 if result.has_failed(self.max_error_share) else 0
