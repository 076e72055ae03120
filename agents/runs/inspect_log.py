"""Writes a recorded run as a log of Inspect (`inspect-ai`), which Inspect's viewer shows and its library reads.

A log is a zip of JSON files. This module writes it with the standard library, so Inspect's 80 packages are not needed, and one
sample at a time, so memory does not grow with the log.

| in the log | from the run |
|---|---|
| `header.json` | environment, split, model, settings and versions of the manifest; the score and its interval, recomputed |
| `samples/ID_epoch_N.json` | a row: prompt, reference, completion, verdict; the epoch is the sample's number, from 1 |
| `summaries.json` | the same rows for the viewer's table, with long texts cut |

Each sample has the scores `outcome` and `score`, and `step`, `length`, `advantage` and `reward` if its row has them, so that
the viewer's filter accepts `step >= 20 and reward < 1`. A sample whose verifier broke is an error without a `score`.

Completions are other people's text: the header tells the viewer to show everything as plain text (`trust_content`), which
Inspect does from version 0.3.275 on. Whole numbers beyond 2^53, such as seeds, are text, since JavaScript would round them.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.console.printable import in_one_line
from agents.runs.evaluation import Evaluation, summarize_evaluation
from agents.runs.files.json_files import as_text, plain, to_json
from agents.runs.reading import RecordedRun, RecordLine
from verifiers import DataError, Outcome

_HEADER = "header.json"
_FORMAT = 2
"""Inspect's own version of its format."""
_WRITER = 1
"""Version of the layout that this module writes."""
_DATE = (1980, 1, 1, 0, 0, 0)
"""Date of every file in the zip, so that equal runs have equal logs."""
_COLUMNS = {"step": "step", "tokens": "length", "advantage": "advantage", "reward": "reward"}
"""Columns of a row that become separate scores, and the scores' names; the viewer itself uses the name `tokens`."""
_METADATA = ("problem", "problem_id", "sample", "seed", "tokens", "truncated", "outcome", "unsupported", "error")
_COLORS = {
    Outcome.CORRECT: "good",
    Outcome.INCORRECT: "bad",
    Outcome.NO_ANSWER: "warn",
    Outcome.TIMEOUT: "info",
    Outcome.VERIFIER_ERROR: "muted",
}
"""The viewer's colors of outcomes; `SCORED` has none, since the color of the score itself is more informative."""
_ROLES = ("system", "user", "assistant", "tool")
_LONGEST_ID = 200
_LONGEST_SUMMARY = 1000
"""Maximum number of characters of a text in the viewer's table."""
_EXACT = 2**53
"""Whole numbers up to this one are exact in JavaScript."""


def write_inspect_log(run: RecordedRun, path: Path) -> None:
    """Write a run as an Inspect log, atomically: the file is either complete or unchanged.

    Raises:
        DataError: If the run has no samples.
        OSError: If the file can't be written.
    """
    if not run.rows:
        raise DataError(f"{run.folder} holds no samples: there is nothing to show")
    keys = _keys(run.rows)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with zipfile.ZipFile(partial, "w") as archive:
            for row, key in zip(run.rows, keys, strict=True):
                _write(archive, f"samples/{key[0]}_epoch_{key[1]}.json", [to_json(_sample(row, key, run))])
            _write(archive, "summaries.json", _json_list(map(_summary, run.rows, keys)))
            _write(archive, _HEADER, [to_json(_header(run, keys))])
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def is_log_of(path: Path, run: RecordedRun) -> bool:
    """Whether a file is the log that `write_inspect_log` made from a run; always False for a run that may still change."""
    if not run.manifest.get("finished") or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read(_HEADER))
        return bool(header["eval"]["metadata"] == _run_metadata(run))
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile):
        return False


def _write(archive: zipfile.ZipFile, name: str, parts: Iterable[str]) -> None:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as file:
        for part in parts:
            file.write(part.encode())


def _json_list(values: Iterable[object]) -> Iterator[str]:
    for number, value in enumerate(values):
        yield ("," if number else "[") + to_json(value)
    yield "]"


def _keys(rows: Iterable[RecordLine]) -> list[tuple[str, int]]:
    """Distinct pairs of id and epoch, one for each row; problems with equal ids are distinguished by their index."""
    names: dict[tuple[int, str], str] = {}
    last: dict[str, int] = {}
    keys = []
    for row in rows:
        problem = row["problem"], row["problem_id"]
        name = names.get(problem)
        if name is None:
            name = in_one_line(row["problem_id"])[:_LONGEST_ID] or "problem"
            name = name if name not in last else f"{name} (problem {row['problem']})"
            while name in last:
                name += "'"
            names[problem] = name
        sample = 0 if "step" in row else row["sample"]  # in training, `sample` counts the episodes of a step
        last[name] = max(sample, last.get(name, 0)) + 1
        keys.append((name, last[name]))
    return keys


# Samples


def _sample(row: RecordLine, key: tuple[str, int], run: RecordedRun) -> dict[str, Any]:
    answer = {"role": "assistant", "content": as_text(row.get("completion")), "source": "generate"}
    stop = "max_tokens" if _ran_out(row) else "stop"
    sample: dict[str, Any] = {
        **_common(row, key),
        "messages": [*_messages(row.get("prompt")), *_turns(row, answer)],
        "output": {"model": _model(run), "choices": [{"message": answer, "stop_reason": stop}]},
    }
    if row["error"] is not None:
        sample["error"] = {"message": row["error"], "traceback": row["error"], "traceback_ansi": row["error"]}
    if _ran_out(row):
        sample["limit"] = {"type": "token", "limit": row["tokens"]}
    return sample


def _summary(row: RecordLine, key: tuple[str, int]) -> dict[str, Any]:
    summary: dict[str, Any] = _cut(_common(row, key)) | {
        "completed": True,
        "message_count": len(_messages(row.get("prompt"))) + len(_turns(row, {})),
    }
    if row["error"] is not None:
        summary["error"] = _cut(row["error"])
    return summary | ({"limit": "token"} if _ran_out(row) else {})


def _ran_out(row: RecordLine) -> bool:
    """Whether the token budget ended the completion."""
    return bool(row["truncated"]) and row["error"] is None


def _common(row: RecordLine, key: tuple[str, int]) -> dict[str, Any]:
    """The fields that a sample and its summary share."""
    prompt = row.get("prompt")
    return {
        "id": key[0],
        "epoch": key[1],
        "input": prompt if isinstance(prompt, str) else _messages(prompt),
        "target": as_text(row.get("reference")),
        "scores": _scores(row),
        "metadata": _exact({name: row.get(name) for name in _METADATA}),
    }


def _turns(row: RecordLine, answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The turns after the prompt, as Inspect's messages; in an episode of one turn, only the answer."""
    dialogue = row.get("dialogue")
    if not isinstance(dialogue, list):
        return [answer]
    return [
        message | {"source": "generate"} if message["role"] == "assistant" else message
        for message in _messages(dialogue)
    ]


def _messages(prompt: object) -> list[dict[str, Any]]:
    """Convert a prompt to Inspect's messages; a role unknown to Inspect becomes `user`, with the original as metadata."""
    if prompt is None:
        return []
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt, "source": "input"}]
    messages = []
    for message in prompt if isinstance(prompt, list) else [prompt]:
        role = message.get("role") if isinstance(message, dict) else None
        content = message.get("content") if isinstance(message, dict) else message
        shown = {"role": role if role in _ROLES else "user", "content": as_text(content), "source": "input"}
        messages.append((shown if role in _ROLES else shown | {"metadata": {"role": role}}) | _beside(message))
    return messages


def _beside(message: object) -> dict[str, Any]:
    """The fields of a message besides its text: calls and thoughts of the policy, or the call that a tool answers."""
    if not isinstance(message, dict):
        return {}
    calls = message.get("calls") or []
    thoughts = message.get("reasoning")
    thought = [{"type": "reasoning", "reasoning": thoughts}, {"type": "text", "text": as_text(message.get("content"))}]
    return {
        **({"content": thought} if thoughts else {}),
        **({"tool_calls": list(map(_tool_call, calls))} if calls else {}),
        **({"function": message["name"], "tool_call_id": message.get("call_id")} if message.get("name") else {}),
    }


def _tool_call(call: dict[str, Any]) -> dict[str, Any]:
    """A call in the form that Inspect's viewer shows; arguments that are not an object become a parsing error."""
    try:
        arguments = json.loads(call["arguments"])
    except ValueError:
        arguments = None
    read = isinstance(arguments, dict)
    return {
        "id": call["id"],
        "function": call["name"],
        "arguments": arguments if read else {},
        **({} if read else {"parse_error": as_text(call["arguments"])}),
    }


def _scores(row: RecordLine) -> dict[str, Any]:
    """The scores by name; the first score, from which the viewer takes the answer, also has the rest of the verdict."""
    scores = {} if row["outcome"] is None else {"outcome": row["outcome"]}
    scores |= {"score": row["score"]} if _is_number(row["score"]) else {}
    for column, name in _COLUMNS.items():
        known = column != "tokens" or row["tokens"]  # 0 if the completion was made elsewhere
        scores |= {name: row[column]} if known and _is_number(row.get(column)) else {}
    values: dict[str, Any] = {name: {"value": value} for name, value in scores.items()}
    if values:
        detail = row.get("detail")
        detail = detail if isinstance(detail, dict) else {}
        first = next(iter(values.values()))
        reason = detail.get("reason", row["error"])
        first |= {"answer": row["answer"], "explanation": None if reason is None else as_text(reason)}
        first["metadata"] = _exact(detail)
    return values


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _exact(value: Any) -> Any:
    """Plain data in which whole numbers that JavaScript would round have become text."""
    if isinstance(value, dict):
        return {name: _exact(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    return str(value) if isinstance(value, int) and abs(value) > _EXACT else value


def _cut(value: Any) -> Any:
    """Plain data in which long texts are cut."""
    if isinstance(value, dict):
        return {name: _cut(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return f"{value[:_LONGEST_SUMMARY]}…" if isinstance(value, str) and len(value) > _LONGEST_SUMMARY else value


# The header


def _header(run: RecordedRun, keys: list[tuple[str, int]]) -> dict[str, Any]:
    finished = run.manifest.get("finished")
    problems, epochs = list(dict.fromkeys(name for name, _ in keys)), max(epoch for _, epoch in keys)
    result = summarize_evaluation(run.samples(), len(problems), epochs)
    return {
        "version": _FORMAT,
        "status": "success" if finished else "cancelled",
        "eval": _spec(run, problems, epochs),
        "plan": {"steps": [{"solver": "generate", "params": {}}]},
        "results": {
            "total_samples": len(run.rows),
            "completed_samples": len(run.rows) - result.verifier_errors,
            "scores": _results(result, training="step" in run.rows[0]),
        },
        "stats": {"started_at": run.manifest["started"], "completed_at": finished or ""},
    }


def _spec(run: RecordedRun, problems: list[str], epochs: int) -> dict[str, Any]:
    metadata = _run_metadata(run)
    identity = hashlib.sha256(to_json([run.name, metadata]).encode()).hexdigest()[:22]
    environment = run.settings.get("environment")
    dataset = environment.get("dataset") if isinstance(environment, dict) else None
    return {
        "eval_id": identity,
        "run_id": identity,
        "task_id": identity,
        "created": run.manifest["started"],
        "task": " ".join(str(run.settings[name]) for name in ("env", "split") if run.settings.get(name))
        or "evaluation",
        "dataset": {
            "name": None if dataset is None else as_text(dataset),
            "samples": len(problems),
            "sample_ids": problems,
            "shuffled": False,
        },
        "model": _model(run),
        "config": {"epochs": epochs},
        "packages": {name: version for name, version in run.manifest["versions"].items() if isinstance(version, str)},
        "metadata": metadata,
        "scorers": [{"name": "outcome"}, {"name": "score"}],
        "viewer": _viewer(run.rows),
    }


def _run_metadata(run: RecordedRun) -> dict[str, Any]:
    """The manifest and the log's format; two logs belong to equal runs if both are equal."""
    metadata: dict[str, Any] = _exact(plain({"log": _WRITER, "run": run.name, **run.manifest}))
    return metadata


def _model(run: RecordedRun) -> str:
    """The model's name, or the file of completions that were made elsewhere."""
    completions = run.settings.get("completions")
    file = completions.get("file") if isinstance(completions, dict) else None
    return as_text(run.settings.get("model") or file) or "unknown"


def _results(result: Evaluation, *, training: bool) -> list[dict[str, Any]]:
    low, high = result.interval
    interval = {} if training else {"95% low": low, "95% high": high}  # the policies of many steps have no common score
    score = {"mean": result.score, **interval}
    outcomes = {name: float(count) for name, count in result.outcomes.items()}
    return [
        {
            "name": name,
            "scorer": name,
            "scored_samples": len(result.rows) - result.verifier_errors,
            "unscored_samples": result.verifier_errors,
            "metrics": {
                metric: {"name": metric, "value": value} for metric, value in metrics.items() if math.isfinite(value)
            },
        }
        for name, metrics in (("score", score), ("outcome", outcomes))
        if metrics
    ]


def _viewer(rows: Iterable[RecordLine]) -> dict[str, Any]:
    advantages = [abs(row["advantage"]) for row in rows if _is_number(row.get("advantage"))]
    most = max(advantages, default=0)  # the colors of an advantage meet at 0
    columns = ("sampleId", "epoch", "input", "target", "answer")
    scores = ("outcome", "score", *_COLUMNS.values())
    return {
        "trust_content": False,
        "task_samples_view": {
            "name": "rlvr",
            "columns": [
                *({"id": name, "visible": True} for name in columns),
                *({"id": f"score__{name}__{name}", "visible": True} for name in scores),
                {"id": "limit", "visible": True},
                {"id": "error", "visible": True},
            ],
            "multiline": False,
            "score_color_scales": {
                "outcome": _COLORS,
                "score": "good-high",
                "advantage": {"palette": "diverging", "min": -most, "max": most},
            },
            "color_scales_enabled": True,
        },
    }
