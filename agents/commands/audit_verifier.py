"""The command `rlvr audit-verifier`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

import rlvr_envs
import verifiers
from agents.commands.common import DEVICE, Device, env_arguments, on_device, verifier_spec
from agents.console.progress import progress
from agents.runs.files.json_files import write_json
from agents.runs.files.outputs import check_new_file
from verifiers import AtLeast, InvalidArgumentError, check_spec


@dataclass(frozen=True)
class AuditVerifier:
    """Test a verifier for errors with rewritten gold answers, near misses, attacks, threads and deadlines."""

    name: Annotated[str | None, tyro.conf.Positional] = None
    """Verifier to audit: its name, rewards.py:function, or a file such as my_verifier.toml."""
    dataset: str | None = field(default=None, kw_only=True)
    """Environment whose gold answers are used, such as GSM8K, rlvr/MATH500-v0 or my_envs:MyEnv; by default the gold
    answers of a few built-in problems, if the verifier accepts these."""
    verifier: str | None = None
    """Verifier to audit, if it is not the first argument."""
    reward_model: str | None = None
    """Folder or Hugging Face name of a reward model to audit, in place of a verifier."""
    split: str | None = None
    """Split of the data set; by default the last split, which is the test split if there is one."""
    limit: Annotated[int | None, AtLeast(1)] = None
    """Number of gold answers to sample; all of them by default."""
    drawn: Annotated[int | None, AtLeast(1)] = None
    """Number of cases to draw, instead of rewriting gold answers: right and wrong answers, in the style of models, to problems
    of mathematics, or to the kind of problem that choice, unit_tests, sql, json_schema or ifeval judges."""
    against: str | None = None
    """Verifier to audit in place of the first, but with the cases drawn for the first: a name, rewards.py:function, or the
    address of a `rlvr serve-verifier`, such as http://localhost:8000."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Seed of the sample of gold answers, of the drawn cases, and of the order in which the verifier is asked."""
    args: Annotated[tuple[str, ...], tyro.conf.arg(aliases=("--verifier-args",))] = ()
    """Arguments of the verifier, each as name=value."""
    data_args: tuple[str, ...] = ()
    """Arguments of the data set, each as name=value."""
    answer_format: str | None = None
    """Template of the completions, with ANSWER in place of the answer; by default answers are presented as in the data set."""
    skip: tuple[str, ...] = ()
    """Transformations and attacks to leave out, by their names in the report."""
    deadline_s: float = 5.0
    """Maximum number of seconds for a verdict."""
    json: Path | None = None
    """File for the full report, as JSON."""
    card: Path | None = None
    """File for a card of error rates, times, failures and smallest examples, as .md or .html."""
    overwrite: bool = False
    """Replace the files of `json` and `card` if they exist."""
    device: Device = DEVICE

    def __post_init__(self) -> None:
        if self.against is not None and self.drawn is None:
            raise InvalidArgumentError("--against needs --drawn, the number of cases to draw for the first verifier")

    @on_device
    def run(self, console: Console) -> int:
        """Print the report card; return 0 if no error was found, else 1."""
        if self.json is not None:
            check_new_file(self.json, overwrite=self.overwrite)
        from verifiers.audit import check_card, field_of, write_card  # these modules take long to load

        if self.card is not None:
            check_card(self.card)
            check_new_file(self.card, overwrite=self.overwrite)
        if self.name is not None and self.verifier is not None:
            raise InvalidArgumentError(f"two verifiers: {self.name!r} and {self.verifier!r}; give one of them")
        spec = verifier_spec(self.name or self.verifier, self.args, self.reward_model)
        if spec is None:
            raise InvalidArgumentError("no verifier to audit: give its name, module:attribute, or --reward-model")
        judging, arguments = spec
        if self.against is not None:
            check_spec(judging, {})  # the verifier judges nothing: its name selects the cases
        dataset = self._problems()
        field = field_of(judging)
        name = judging if self.against is None else self.against
        with progress(f"audit of {name}", 1.0) as advance:
            report = verifiers.audit_verifier(
                name,
                dataset,
                verifier_args=arguments,
                limit=self.limit,
                drawn=self.drawn,
                field=field,
                seed=self.seed,
                answer_format=self.answer_format,
                skip=self.skip,
                deadline_s=self.deadline_s,
                progress=lambda done, total: advance(done / total, f"{done} of {total} cases"),
            )
        if self.json is not None:
            self.json.parent.mkdir(parents=True, exist_ok=True)
            write_json(self.json, report.to_dict())
        if self.card is not None:
            write_card(report, self.card)
        console.print(str(report))
        return 0 if report.clean else 1

    def _problems(self) -> rlvr_envs.Dataset | None:
        if self.dataset is None:
            if self.split is not None or self.data_args:
                raise InvalidArgumentError("--split and --data-args belong to a data set: name it with --dataset")
            return None
        task = rlvr_envs.environment_class(self.dataset).task
        return task.problems(self.split or task.splits[-1], **env_arguments(self.data_args))
