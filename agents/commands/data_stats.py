"""The command `rlvr data stats`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

import rlvr_envs
from agents.commands.common import env_arguments
from agents.commands.problems import check_data_arguments, make_verifier
from agents.console.counting import counted
from agents.console.progress import progress
from agents.runs.clusters import distinct_note
from agents.runs.dataset_statistics import QUANTILES, DatasetStatistics
from verifiers import AtLeast, MissingDataError, Problem, unknown_name

_CHUNK = 256


@dataclass(frozen=True)
class DataStats:
    """Count the contents of a data set: lengths, levels, references, repetitions, and problems that can't be judged."""

    name: Annotated[str, tyro.conf.Positional]
    """Environment whose data set is counted, such as GSM8K or rlvr/GSM8K-v0."""
    split: str | None = None
    """Split of the data set; by default every split that can be loaded."""
    limit: Annotated[int | None, AtLeast(1)] = None
    """Number of problems to look at in each split, beginning with the first; all of them by default."""
    tokenizer: str | None = None
    """Name or folder of the tokenizer that measures prompts, or "byte"; by default, prompts are measured in characters."""
    json: bool = False
    """Print one JSON object instead of tables."""
    args: tuple[str, ...] = ()
    """Arguments of the data set, each as name=value, such as data_dir=FOLDER, or dataset=FILE and columns={...} for Text."""

    def run(self, console: Console) -> int:
        """Print the statistics of each split; always return 0."""
        task = rlvr_envs.environment_class(self.name).task
        arguments = env_arguments(self.args)
        check_data_arguments(task, arguments)
        measure, unit = _measure(task, self.tokenizer)
        reports: dict[str, dict[str, Any]] = {}
        missing: MissingDataError | None = None
        for split in (self.split,) if self.split else task.splits:
            try:
                dataset = task.problems(split, **arguments)
            except MissingDataError as error:
                missing = error
                continue
            report = self._report(task, split, dataset, measure, unit)
            whole = "dataset" in arguments or task.source.startswith("generated")
            published = None if whole else task.sizes.get(split)
            reports[split] = {"published": published, "limit": self.limit, **report}
        if not reports and missing is not None:
            raise missing
        if self.json:
            print(json.dumps({"name": self.name, "splits": reports}, indent=2))
            return 0
        for split, report in reports.items():
            _print_report(console, f"{self.name} {split}", report)
        return 0

    def _report(
        self,
        task: rlvr_envs.TaskSpec,
        split: str,
        dataset: rlvr_envs.Dataset,
        measure: Callable[[Problem], int],
        unit: str,
    ) -> dict[str, Any]:
        count = len(dataset) if self.limit is None else min(self.limit, len(dataset))
        statistics = DatasetStatistics(measure, unit, make_verifier(task, None, dataset), task.verifier_of(dataset)[0])
        with progress(f"{self.name} {split}", count) as advance:
            for start in range(0, count, _CHUNK):
                stop = min(start + _CHUNK, count)
                statistics.add([dataset[index] for index in range(start, stop)])
                advance(stop)
        return statistics.report()


def _measure(task: rlvr_envs.TaskSpec, tokenizer: str | None) -> tuple[Callable[[Problem], int], str]:
    """Return a function that gives the length of a problem in the environment's prompt, and the unit of this length."""
    prompt = rlvr_envs.get_prompt(task.prompt)
    if tokenizer is None:
        return lambda problem: len(prompt.render(problem)), "characters"
    made = rlvr_envs.get_tokenizer(tokenizer)
    render = rlvr_envs.PromptRenderer(prompt, made)
    return lambda problem: len(rlvr_envs.dialogue.encode_parts(made, render.parts(problem), start=True)), "tokens"


def _print_report(console: Console, title: str, report: Mapping[str, Any]) -> None:
    published = report["published"]
    complete = published in (None, report["problems"]) or report["limit"] is not None
    of = "" if complete else f", of {published} published rows"
    distinct = distinct_note(report["problems"], report["distinct"])
    console.print(f"{title}: {counted(report['problems'], 'problem')}{of}{distinct}")
    table = Table("", *QUANTILES, "mean")
    table.columns[0].no_wrap = True
    table.add_row(f"prompt, {report['prompt_length']['unit']}", *_cells(report["prompt_length"]))
    for name, level in report["levels"].items():
        if "quantiles" in level:
            table.add_row(name, *_cells(level["quantiles"]))
    console.print(table)
    for name, level in report["levels"].items():
        if "counts" in level:
            _print_line(
                console,
                name,
                _counted({**level["counts"], **({"others": level["others"]} if "others" in level else {})}),
            )
    _print_line(console, "references", _counted(report["references"]))
    for label, found in _findings(report):
        _print_line(console, label, found)


def _cells(numbers: Mapping[str, float]) -> list[str]:
    return [f"{numbers[name]:.4g}" if numbers[name] < 1000 else f"{numbers[name]:.0f}" for name in (*QUANTILES, "mean")]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or '(empty)'}: {number}" for name, number in counts.items())


def _findings(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    repeated = report["repeated_prompts"]
    yield "the same prompt as an earlier problem", _ids(repeated["exact"])
    yield "the same but for white space", _ids(repeated["white_space"])
    yield "of these with another reference", _ids(repeated["other_reference"])
    for label, kind in (("unreadable references", "unreadable_references"), ("without tests", "without_tests")):
        found = report[kind]
        reasons = "".join(f"\n    {problem['id']}: {problem['reason']}" for problem in found["first"])
        yield label, f"{found['count']}{reasons}"
    yield "without a gold completion", str(report["without_gold_completion"])


def _ids(found: Mapping[str, Any]) -> str:
    count, first = found["count"], found["first"]
    return f"{count} ({', '.join(first)}{', ...' if count > len(first) else ''})" if first else str(count)


def _print_line(console: Console, label: str, text: str) -> None:
    console.print(f"  {label}: {text}")


class DataCommands(dict[str, str]):
    """The subcommands of `rlvr data`, with their summaries."""

    def load(self, name: str, *arguments: str) -> type[DataStats]:
        """Return the dataclass of a command's options, whatever its arguments."""
        if name not in self:
            raise unknown_name("command of rlvr data", name, self)
        return DataStats


DATA_COMMANDS = DataCommands(stats="count what a data set consists of, and what in it can't be judged")
