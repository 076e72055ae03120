"""The command `rlvr show`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.text import Text

from agents.commands.sections import messages_text, print_section, verdict_text
from agents.console.counting import counted
from agents.console.printable import printable
from agents.console.token_colors import advantage_shares, colored_tokens, log_probability_shares
from agents.runs.files.json_files import as_text
from agents.runs.reading import RecordedRun, RecordLine, read_run
from verifiers import AtLeast, DataError, InvalidArgumentError, unknown_name

_COLUMNS = {"advantage": "token_advantages", "log-probability": "log_probabilities"}
"""For each kind of value, the column of a row that holds each token's value."""
_SHARES = {"advantage": advantage_shares, "log-probability": log_probability_shares}
_MOST_SAMPLES = 10
"""Number of recorded completions that an error names."""
_MOST_PROBLEMS = 20
"""Number of recorded problems that an error names."""
_LEGENDS = {
    "advantage": "green: positive advantage, red: negative",
    "log-probability": "red: the less probable, the stronger",
}


@dataclass(frozen=True)
class Show:
    """Show one recorded completion: its prompt, its tokens, its answer, the reference and the verdict."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder written by rlvr eval, rlvr grade or rlvr train."""
    problem: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ID")]
    """Id of the problem, or its index in the data set."""
    sample: Annotated[int | None, AtLeast(0)] = None
    """Number, from 0, of the completion among the problem's completions or, in a training run, of the episode within its
    step; by default the first recorded completion."""
    step: Annotated[int | None, AtLeast(0)] = None
    """Training step of the completion; by default the first step that is recorded."""
    color: Literal["advantage", "log-probability"] | None = None
    """Value by which tokens are colored; by default the advantage if it differs between tokens, otherwise the log-probability,
    if it is recorded."""

    def run(self, console: Console) -> int:
        """Print the completion."""
        run = read_run(self.folder)
        rows = _rows_of(run, self.problem)
        row = _chosen(rows, self.sample, self.step)
        print_section(console, f"{row['problem_id']}, {_sample_name(row)}", _facts(row))
        print_section(console, "prompt", _rendered(run, row) or messages_text(row.get("prompt")))
        earlier = [message for message in row.get("dialogue") or [] if isinstance(message, dict)]
        if len(earlier) > 1 or any(message.get("reasoning") or message.get("calls") for message in earlier):
            print_section(console, f"dialogue of {counted(len(earlier), 'message')}", messages_text(earlier))
        legend, completion = _completion(row, self.color)
        print_section(console, f"{'last turn' if len(earlier) > 1 else 'completion'}{legend}", completion)
        print_section(console, "verdict", verdict_text(row))
        return 0


def _rows_of(run: RecordedRun, problem: str) -> list[RecordLine]:
    """The rows of a problem, which is named by its id or its index."""
    by_id = [row for row in run.rows if row["problem_id"] == problem]
    rows = by_id or [row for row in run.rows if str(row["problem"]) == problem]
    if not rows and problem.isdecimal():
        indices = {row["problem"] for row in run.rows if isinstance(row["problem"], int)}
        named = ", ".join(map(str, sorted(indices)[:_MOST_PROBLEMS])) + (
            ", ..." if len(indices) > _MOST_PROBLEMS else ""
        )
        raise InvalidArgumentError(
            f"problem {problem} is not recorded: the run has completions of {counted(len(indices), 'problem')}"
            + (f", with the indices {named}" if indices else "")
        )
    if not rows:
        raise unknown_name("problem", problem, {row["problem_id"] for row in run.rows}, _MOST_PROBLEMS)
    return rows


def _chosen(rows: Sequence[RecordLine], sample: int | None, step: int | None) -> RecordLine:
    for row in rows:
        if sample in (None, row["sample"]) and step in (None, row.get("step")):
            return row
    options = {"--sample": sample, "--step": step}
    wanted = " ".join(f"{option} {value}" for option, value in options.items() if value is not None)
    recorded = "; ".join(map(_sample_name, rows[:_MOST_SAMPLES])) + (" and others" if len(rows) > _MOST_SAMPLES else "")
    raise InvalidArgumentError(f"{wanted} is not recorded for {rows[0]['problem_id']!r}, which has {recorded}")


def _sample_name(row: RecordLine) -> str:
    return f"sample {row['sample']}" + (f" of step {row['step']}" if "step" in row else "")


def _facts(row: RecordLine) -> str:
    facts = [counted(row["tokens"], "token")] if row["tokens"] else []
    facts += [f"{row['prompt_tokens']} of prompts"] if row.get("prompt_tokens") else []
    facts += [f"cost {row['cost']:.4g}"] if isinstance(row.get("cost"), int | float) else []
    facts += ["truncated"] if row["truncated"] else []
    facts += [f"{name} {row[name]}" for name in ("advantage", "reward") if row.get(name) is not None]
    facts += [f"seed {row['seed']}"] if row["seed"] else []  # 0 if the seed is unknown
    return ", ".join([f"problem {row['problem']}", *facts])


def _rendered(run: RecordedRun, row: RecordLine) -> str | None:
    """The whole text of the prompt; None if the record does not show it.

    The record has the whole text only for the first problem. In this text, the problem's prompt replaces the first problem's.
    """
    example, asked = run.settings.get("example_prompt"), row.get("prompt")
    first = next((other.get("prompt") for other in run.rows if other["problem"] == 0), None)
    if not (isinstance(example, str) and isinstance(asked, str) and isinstance(first, str)):
        return None
    return example.replace(first, asked) if first and example.count(first) == 1 else None


def _completion(row: RecordLine, color: str | None) -> tuple[str, Text]:
    """A legend for the completion's title, and the completion, colored if the row has its tokens and their values."""
    recorded = [name for name, column in _COLUMNS.items() if row.get(column) is not None and row.get("token_texts")]
    if color is not None and color not in recorded:
        raise InvalidArgumentError(
            f"--color {color} is not possible: the row has no token_texts with {_COLUMNS[color]}"
        )
    if not recorded:
        return "", Text(printable(as_text(row.get("completion"))))
    if color is None:
        varied = "advantage" in recorded and len(set(row[_COLUMNS["advantage"]])) > 1
        color = "advantage" if varied else recorded[-1]
    texts, values = _tokens(row, _COLUMNS[color])
    return f", colored by {color} ({_LEGENDS[color]})", colored_tokens(texts, _SHARES[color](values))


def _tokens(row: RecordLine, column: str) -> tuple[list[str], list[float]]:
    """The texts and values of a row's tokens; values that are not finite are recorded as text."""
    texts, values = row["token_texts"], row[column]
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError) as error:
        raise DataError(f"{row['problem_id']}: {column} must be a list of numbers: {error}") from error
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts) or len(texts) != len(numbers):
        raise DataError(f"{row['problem_id']}: token_texts must be a text for each of {len(numbers)} {column}")
    return texts, numbers
