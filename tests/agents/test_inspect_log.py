"""Runs as Inspect logs: what the zip holds, whatever a completion holds; `make test-view` lets Inspect itself read it."""

from __future__ import annotations

import errno
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from agents.commands import view
from agents.runs.completions import read_completions
from agents.runs.evaluation_record import MANIFEST, EvaluationRecord
from agents.runs.inspect_log import is_log_of, write_inspect_log
from agents.runs.reading import RecordedRun, read_run
from tests.commands import Command
from tests.recorded import ODD, row, run_of
from verifiers import DataError


def logged(run: RecordedRun) -> dict[str, Any]:
    """The content of a run's log by file."""
    path = run.folder / "inspect.eval"
    write_inspect_log(run, path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == len(set(archive.namelist()))
        return {name: json.loads(archive.read(name), parse_constant=pytest.fail) for name in archive.namelist()}


def sample_of(tmp_path: Path, **columns: Any) -> dict[str, Any]:
    content: dict[str, Any] = logged(run_of(tmp_path / "run", [row(**columns)]))["samples/p0_epoch_1.json"]
    return content


def values(sample: dict[str, Any]) -> dict[str, Any]:
    return {name: score["value"] for name, score in sample["scores"].items()}


ERRORED: dict[str, Any] = {"outcome": "verifier_error", "score": None, "error": "the pool died", "detail": {}}


def test_every_row_is_a_sample_and_a_summary(tmp_path: Path) -> None:
    log = logged(run_of(tmp_path / "run", [row(problem, sample) for problem in range(3) for sample in (0, 2)]))
    names = [f"samples/p{problem}_epoch_{epoch}.json" for problem in range(3) for epoch in (1, 3)]
    assert list(log) == [*names, "summaries.json", "header.json"]
    for name, summary in zip(names, log["summaries.json"], strict=True):
        assert (log[name]["id"], log[name]["epoch"]) == (summary["id"], summary["epoch"])
        assert (summary["completed"], summary["message_count"]) == (True, 2)
        assert values(log[name]) == values(summary) == {"outcome": "incorrect", "score": 0.0, "length": 3}


def test_the_header_says_what_was_evaluated(tmp_path: Path) -> None:
    rows = [row(0, 0, outcome="correct", score=1.0), row(0, 1), row(1, 0), row(1, 1, **ERRORED)]
    header = logged(run_of(tmp_path / "run", rows))["header.json"]
    spec = header["eval"]
    assert (header["status"], header["version"]) == ("success", 2)
    assert (spec["task"], spec["model"], spec["config"]) == ("rlvr/Sort-v0 test", "m", {"epochs": 2})
    assert spec["dataset"] | {"name": "Sort(split='test')"} == spec["dataset"]
    assert (spec["dataset"]["samples"], spec["dataset"]["sample_ids"]) == (2, ["p0", "p1"])
    assert spec["viewer"]["trust_content"] is False
    score, outcomes = header["results"]["scores"]
    metrics = {name: metric["value"] for name, metric in score["metrics"].items()}
    assert metrics["mean"] == 0.25  # of the problems' means 1/2 and 0
    assert metrics["95% low"] < 0.25 < metrics["95% high"]
    assert outcomes["metrics"]["verifier_error"]["value"] == 1
    assert (header["results"]["total_samples"], header["results"]["completed_samples"]) == (4, 3)


def test_a_run_without_any_score_or_end_has_no_metric_and_is_cancelled(tmp_path: Path) -> None:
    header = logged(run_of(tmp_path / "run", [row(**ERRORED)], finished=False))["header.json"]
    assert header["results"]["scores"][0]["metrics"] == {}
    assert header["status"] == "cancelled"


def test_equal_runs_have_equal_logs(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [row(0), row(1)])
    write_inspect_log(run, tmp_path / "a.eval")
    os.utime(run.folder / MANIFEST, (0, 0))
    write_inspect_log(RecordedRun.read(run.folder), tmp_path / "b.eval")
    assert (tmp_path / "a.eval").read_bytes() == (tmp_path / "b.eval").read_bytes()


def test_a_run_without_samples_is_refused(tmp_path: Path) -> None:
    with EvaluationRecord(tmp_path / "run", settings={}) as record:
        record.begin({})
        record.num_samples = 1  # or the folder would go
    with pytest.raises(DataError, match="holds no samples"):
        write_inspect_log(RecordedRun.read(tmp_path / "run"), tmp_path / "log.eval")


def test_a_log_that_can_not_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [row()])
    (tmp_path / "log.eval").write_text("before")
    full = mock.patch.object(zipfile.ZipFile, "open", side_effect=OSError(errno.ENOSPC, "No space left on device"))
    with full, pytest.raises(OSError, match="No space"):
        write_inspect_log(run, tmp_path / "log.eval")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["log.eval", "run"]
    assert (tmp_path / "log.eval").read_text() == "before"


@pytest.mark.parametrize("completion", ODD)
def test_a_completion_is_in_the_log_as_it_is(tmp_path: Path, completion: str) -> None:
    sample = sample_of(tmp_path, completion=completion)
    shown = completion.encode("utf-8", "backslashreplace").decode()
    assert sample["messages"][-1]["content"] == shown
    assert sample["output"]["choices"][0]["message"]["content"] == shown
    assert [shown_sample.text for shown_sample in read_completions(tmp_path / "run" / "inspect.eval")] == [shown]


OUTCOME = {"value": "incorrect", "answer": "four", "explanation": "no number", "metadata": {"reason": "no number"}}
MANY: dict[str, Any] = {"tokens": 0, "step": 20, "advantage": -1.5, "reward": "NaN"}


@pytest.mark.parametrize(
    ("columns", "path", "expected"),
    [
        ({}, "scores.outcome", OUTCOME),
        (ERRORED | {"truncated": True}, "error.message", "the pool died"),
        (ERRORED | {"truncated": True}, "limit", None),
        ({"truncated": True}, "limit", {"type": "token", "limit": 3}),
        ({"truncated": True}, "output.choices.0.stop_reason", "max_tokens"),
        # Whole numbers that JavaScript would round are text.
        ({}, "metadata.seed", str(2**64 - 1)),
        ({"detail": {"l": [2**53, 2**53 + 1, True]}}, "scores.outcome.metadata.l", [2**53, str(2**53 + 1), True]),
        ({"reference": "4"}, "target", "4"),
        ({"reference": None}, "target", ""),
        ({"reference": {"tests": [1]}}, "target", '{"tests": [1]}'),
    ],
)
def test_fields_of_a_row_are_in_the_sample(
    tmp_path: Path, columns: dict[str, Any], path: str, expected: object
) -> None:
    value: Any = sample_of(tmp_path, **columns)
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value.get(name)
    assert value == expected


def test_numbers_of_a_row_are_columns_where_they_are_numbers(tmp_path: Path) -> None:
    assert values(sample_of(tmp_path / "a", **ERRORED)) == {"outcome": "verifier_error", "length": 3}
    numbers = {"outcome": "incorrect", "score": 0.0, "step": 20, "advantage": -1.5}
    assert values(sample_of(tmp_path / "b", **MANY)) == numbers


def test_the_colors_of_an_advantage_meet_at_zero(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [row(0, advantage=-1.5), row(1, advantage=0.5), row(2, advantage="NaN"), row(3)])
    scales = logged(run)["header.json"]["eval"]["viewer"]["task_samples_view"]["score_color_scales"]
    assert scales["advantage"] == {"palette": "diverging", "min": -1.5, "max": 1.5}


@pytest.mark.parametrize(
    ("prompt", "input_", "messages"),
    [
        ("2+2=", "2+2=", [("user", None)]),
        (
            [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
            None,
            [("system", None), ("user", None)],
        ),
        ([{"role": "judge", "content": "u"}], None, [("user", {"role": "judge"})]),
        (None, None, []),
    ],
)
def test_prompts_are_text_or_messages(tmp_path: Path, prompt: Any, input_: Any, messages: list[Any]) -> None:
    sample = sample_of(tmp_path, prompt=prompt)
    before = sample["messages"][:-1]
    assert sample["input"] == (input_ or before)
    assert [(message["role"], message.get("metadata")) for message in before] == messages


def test_ids_are_unique_and_names_of_files(tmp_path: Path) -> None:
    names = ["a", "a", "a (problem 1)", "", "a\x00b\nc", "y" * 70_000, "y" * 70_000 + "z"]
    run = run_of(tmp_path / "run", [row(problem, problem_id=name) for problem, name in enumerate(names)])
    summaries = logged(run)["summaries.json"]
    ids = [summary["id"] for summary in summaries]
    assert ids[:5] == ["a", "a (problem 1)", "a (problem 1) (problem 2)", "problem", r"a\x00b | c"]
    assert len(set(ids)) == len(ids)
    assert summaries[4]["metadata"]["problem_id"] == "a\x00b\nc"


def test_summaries_cut_long_texts(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [row(prompt="q" * 5000, detail={"log": ["w" * 5000]})])
    (summary,) = logged(run)["summaries.json"]
    assert summary["input"] == "q" * 1000 + "…"
    assert summary["scores"]["outcome"]["metadata"] == {"log": ["w" * 1000 + "…"]}


def test_completions_of_training_are_samples_with_their_steps(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"env": "Sort", "model": "tiny", "versions": {"a": "1", "b": null}}')
    rows = [row(-1, 5, step=step, problem_id=name, advantage=0.5) for step in (1, 2) for name in ("p", "q")]
    (tmp_path / "rollouts.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in rows))
    run = read_run(tmp_path)
    log = logged(run)
    samples = [(sample["id"], sample["epoch"], values(sample)["step"]) for sample in log["summaries.json"]]
    assert samples == [("p", 1, 1), ("q", 1, 1), ("p", 2, 2), ("q", 2, 2)]
    header = log["header.json"]
    assert (header["status"], header["eval"]["task"], header["eval"]["model"]) == ("success", "Sort", tmp_path.name)
    assert header["eval"]["packages"] == {"a": "1"}
    assert list(header["results"]["scores"][0]["metrics"]) == ["mean"]
    assert is_log_of(tmp_path / "inspect.eval", run)
    os.utime(tmp_path / "rollouts.jsonl", (0, 0))  # as a step more would
    assert not is_log_of(tmp_path / "inspect.eval", read_run(tmp_path))


@pytest.mark.parametrize("config", ["[]", "{}", "{"])
def test_completions_of_training_without_its_settings_are_damage(tmp_path: Path, config: str) -> None:
    (tmp_path / "rollouts.jsonl").touch()
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(DataError, match=r"config\.json"):
        read_run(tmp_path)


# The command


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedRun:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(view.sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", "")
    return run_of(Path("run"), [row(0), row(1)])


def test_without_inspect_the_log_is_written_and_the_next_step_said(run: RecordedRun, rlvr: Command) -> None:
    _, said, _ = rlvr("view", "run")
    assert "2 samples written to run/inspect.eval" in said
    assert f"uv tool install 'inspect-ai>={view.OLDEST}'" in said
    assert "inspect view start --log-dir run --host 127.0.0.1 --port 7575 --no-trust-content" in said
    assert is_log_of(Path("run/inspect.eval"), run)


def test_the_log_of_this_run_is_kept_and_another_file_is_not_replaced_unasked(run: RecordedRun, rlvr: Command) -> None:
    assert rlvr("view", "run", "--no-start")[0] == 0
    before = Path("run/inspect.eval").stat()
    code, said, _ = rlvr("view", "run", "--no-start")
    assert (code, "run/inspect.eval is the log of this run" in said) == (0, True)
    assert Path("run/inspect.eval").stat() == before
    run_of(Path("other"), [row(0)], model="n")
    Path("other/inspect.eval").write_bytes(Path("run/inspect.eval").read_bytes())
    code, _, errors = rlvr("view", "other", "--no-start")
    assert (code, "other/inspect.eval exists already" in errors) == (2, True)
    assert rlvr("view", "other", "--no-start", "--overwrite")[0] == 0
    assert is_log_of(Path("other/inspect.eval"), RecordedRun.read("other"))


@pytest.mark.parametrize("content", [b"", b"no zip", None, b"{}", b"[]"])
def test_what_is_no_log_of_the_run_is_not_taken_for_it(run: RecordedRun, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w") as archive:
        if content is not None:
            archive.writestr("header.json", content)
    if content in (b"", b"no zip"):
        path.write_bytes(content)
    assert not is_log_of(path, run)
    assert not is_log_of(tmp_path / "missing.eval", run)
    going_on = run_of(Path("going-on"), [row(0)], finished=False)
    write_inspect_log(going_on, path)
    assert not is_log_of(path, going_on)  # it is written anew


@pytest.mark.parametrize("home", ["bin", "path"])
def test_the_viewer_is_started_from_this_environment_or_the_path(
    run: RecordedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rlvr: Command, home: str
) -> None:
    program = tmp_path / home / "inspect"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    started: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(view.os, "execv", lambda path, arguments: started.append((path, arguments)))
    assert rlvr("view", "run", "--log", "logs/a.eval", "--port", "8000")[0] == 0
    options = ["--log-dir", "logs", "--host", "127.0.0.1", "--port", "8000", "--no-trust-content"]
    assert started == [(str(program), [str(program), "view", "start", *options])]


def test_the_versions_of_inspect_are_those_that_are_tested() -> None:
    root = Path(__file__).parents[2]
    page, makefile, constraints = (
        (root / name).read_text(encoding="utf-8") for name in ("docs/results.md", "Makefile", "constraints/view.txt")
    )
    newest = re.findall(r"^inspect-ai==(.*)$", constraints, re.MULTILINE)
    assert re.findall(r"^OLDEST_INSPECT := (.*)$", makefile, re.MULTILINE) == [view.OLDEST]
    assert re.findall(r"`make test-view` tests (\S+) and (\S+)\.\n", page) == [(view.OLDEST, *newest)]
    assert set(re.findall(r"inspect-ai>=([\d.]+\d)", page)) == {view.OLDEST}
