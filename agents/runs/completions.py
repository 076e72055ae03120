"""Completions that were made elsewhere, read from the files that other tools write.

| format | fields that are read |
|---|---|
| plain rows | `completion` (a text or several) and `problem_id`, `id` or `problem` (an index); otherwise the row's position |
| plain rows of several turns | also `dialogue`: the messages after the prompt, each with `role` and `content` |
| lm-evaluation-harness, `--log_samples` | `doc_id` and `resps` |
| OpenAI's batch output | `custom_id` and `response.body.choices` |
| Inspect's logs, `.eval` and `.json` | `id`, `epoch` and `output.choices` of each sample |

`docs/results.md` shows a line of each format. Rows may be in any file that `rlvr_envs.read_rows` reads: JSON Lines, a JSON
array or CSV, each also compressed by gzip, or Parquet.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rlvr_envs
from agents.runs.evaluation_record import recorded_completion
from verifiers import DataError, unknown_name


@dataclass(frozen=True)
class ExternalCompletion:
    """One completion, and the problem that it answers."""

    problem: int | str
    """The problem's index in the data set, its id, or its question."""
    text: str
    source: str
    """The completion's position in the file, for messages."""
    by_position: bool = False
    """Whether no column names the problem, so that the row's position identifies it."""
    unread: Mapping[str, object] = field(default_factory=dict)
    """The columns of the row that are not read, if `by_position` is True."""


PLAIN_COLUMNS = ("completion", "problem_id")
"""The default names of the columns in plain rows."""
_PROBLEM_COLUMNS = ("problem_id", "id", "problem")
_OWN_COLUMNS = ("completion", "dialogue", *_PROBLEM_COLUMNS)


def read_completions(path: Path, columns: Mapping[str, str] | None = None) -> list[ExternalCompletion]:
    """Read a file of completions; the format is recognised from the contents.

    Args:
        path: The file.
        columns: Other names of the columns in `PLAIN_COLUMNS`, such as `{"completion": "response"}`.

    Raises:
        UnknownNameError: If `columns` has a name that is not in `PLAIN_COLUMNS`.
        DataError: If the file has no known format or holds no completions, or a row has no completion or no problem.
        InvalidArgumentError: If no known format has the file's suffix.
        OSError: If the file can't be read.
    """
    for name in columns or {}:
        if name not in PLAIN_COLUMNS:
            raise unknown_name("column of completions", name, PLAIN_COLUMNS)
    log = _inspect_archive(path) if zipfile.is_zipfile(path) else _inspect_log(path)
    return _from_rows(log or _renamed(rlvr_envs.read_rows(path), columns or {}))


def _renamed(rows: Sequence[rlvr_envs.Row], columns: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """The position and values of each row, with renamed columns under their default names."""
    for row in rows:
        if missing := [column for column in columns.values() if column not in row.values]:
            raise row.error(f"no column {missing[0]!r}; it has {sorted(row.values)}")
    return [
        (row.location, {**row.values, **{name: row.values[column] for name, column in columns.items()}}) for row in rows
    ]


def _from_rows(rows: Sequence[tuple[str, dict[str, Any]]]) -> list[ExternalCompletion]:
    completions: list[tuple[int, ExternalCompletion]] = []
    filters: dict[int | str, object] = {}
    for number, (source, row) in enumerate(rows):
        reader = next((reader for column, reader in _READERS.items() if column in row), None)
        if reader is None:
            raise DataError(
                f"{source} has the columns {sorted(row)}: expected one of {', '.join(map(repr, _READERS))}, or a column that "
                "is named as in --columns completion=response problem_id=uid"
            )
        problem, texts = reader(row, number, source)
        if reader is _lm_eval and filters.setdefault(problem, row.get("filter")) != row.get("filter"):
            continue  # lm-eval writes a document's completions once for each filter of its task
        if not texts:
            raise DataError(f"{source} holds no completion")
        by_position = reader is _own and _naming_column(row) is None
        unread = {name: value for name, value in row.items() if name not in _OWN_COLUMNS} if by_position else {}
        epoch = _epoch(row, source) if reader is _inspect else 1
        completions += [(epoch, ExternalCompletion(problem, text, source, by_position, unread)) for text in texts]
    return [completion for _, completion in sorted(completions, key=lambda item: item[0])]


def _epoch(row: Mapping[str, Any], source: str) -> int:
    epoch = row.get("epoch", 1)
    if not isinstance(epoch, int):
        raise DataError(f"{source} has the 'epoch' {epoch!r}: expected a whole number, as in an Inspect log")
    return epoch


def _naming_column(row: Mapping[str, Any]) -> str | None:
    return next((name for name in _PROBLEM_COLUMNS if row.get(name) is not None), None)


def _own(line: dict[str, Any], number: int, source: str) -> tuple[int | str, list[str]]:
    given = line["completion"]
    texts = given if isinstance(given, list) else [given]
    name = _naming_column(line)
    texts = [_text(text, source) for text in texts]
    if line.get("dialogue") is not None and len(texts) == 1:
        texts = [recorded_completion({"problem_id": source, **line, "completion": texts[0]})]
    return (number if name is None else _key(line[name], source)), texts


def _lm_eval(line: dict[str, Any], number: int, source: str) -> tuple[int | str, list[str]]:
    del number
    if "doc_id" not in line:
        raise DataError(f"{source} has 'resps' and no 'doc_id'")
    texts = [text for response in _list(line["resps"], source) for text in _list(response, source)]
    return _key(line["doc_id"], source), [_text(text, source) for text in texts]


def _openai_batch(line: dict[str, Any], number: int, source: str) -> tuple[int | str, list[str]]:
    del number
    response = line.get("response")
    if not isinstance(response, Mapping) or response.get("status_code", 200) != 200:
        raise DataError(
            f"{source} is a failed request ({line.get('error') or response!r}): remove such lines, or request them again"
        )
    body = response.get("body")
    choices = body.get("choices") if isinstance(body, Mapping) else None
    return _key(line["custom_id"], source), [message_text(choice, source) for choice in _list(choices, source)]


def _inspect(line: dict[str, Any], number: int, source: str) -> tuple[int | str, list[str]]:
    del number
    if "id" not in line or not isinstance(line["output"], Mapping):
        raise DataError(f"{source} has no 'id' and 'output', as the samples of an Inspect log have")
    choices = _list(line["output"].get("choices"), source)
    return _key(line["id"], source), [message_text(choice, source) for choice in choices]


_READERS: dict[str, Callable[[dict[str, Any], int, str], tuple[int | str, list[str]]]] = {
    "completion": _own,
    "resps": _lm_eval,
    "custom_id": _openai_batch,
    "output": _inspect,
}
"""The readers by the column that identifies their format."""


def _inspect_archive(path: Path) -> list[tuple[str, dict[str, Any]]]:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")]
        try:
            samples = [(f"{path}, {name}", json.loads(archive.read(name))) for name in sorted(names)]
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path} is damaged, in one of {sorted(names)}: {error}") from error
    return _samples(path, samples)


def _inspect_log(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The samples of a log that is one JSON object; empty for a file of rows."""
    if path.suffix != ".json":
        return []
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return []  # a file of lines, or a damaged file, which the reader of lines reports
    if not isinstance(content, Mapping) or any(column in content for column in _READERS):
        return []
    if not isinstance(samples := content.get("samples"), list):
        raise DataError(
            f"{path} has no list of 'samples': expected an Inspect log, or rows as an array or lines of JSON"
        )
    return _samples(path, [(f"{path}, sample {number}", sample) for number, sample in enumerate(samples, start=1)])


def _samples(path: Path, samples: list[tuple[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    if not samples:
        raise DataError(f"{path} holds no completions")
    for source, sample in samples:
        if not isinstance(sample, dict):
            raise DataError(f"{source} is {type(sample).__name__}, not an object")
    return samples


def message_text(choice: object, source: str) -> str:
    """The text of the message in a choice of OpenAI's protocol.

    Raises:
        DataError: If the choice has no text.
    """
    message = choice.get("message") if isinstance(choice, Mapping) else None
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):  # a list of parts; their texts are the answer
        content = "".join(part["text"] for part in content if isinstance(part, Mapping) and part.get("type") == "text")
    return _text(content, source)


def _key(value: object, source: str) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise DataError(f"{source}: a problem must be named by its id or index, got {value!r}")
    return value


def _list(value: object, source: str) -> list[Any]:
    if not isinstance(value, list):
        raise DataError(f"{source}: expected a list of completions, got {value!r}")
    return value


def _text(value: object, source: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{source}: a completion must be text, got {value!r}")
    return value
