"""Inspect's own library and command read our logs."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
from inspect_ai.log import (
    EvalLog,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    read_eval_log_samples,
)

from agents.commands.view import OLDEST
from agents.runs.inspect_log import write_inspect_log
from agents.runs.reading import RecordedRun
from tests.recorded import ODD, row, run_of
from tests.view.conftest import SAMPLES, sample_row


@pytest.fixture(scope="module")
def log(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "run.eval"
    write_inspect_log(RecordedRun.read(run_folder), path)
    return path


@pytest.fixture(scope="module")
def content(log: Path) -> EvalLog:
    return read_eval_log(str(log))


def test_this_version_is_supported() -> None:
    assert tuple(map(int, version("inspect-ai").split("."))) >= tuple(map(int, OLDEST.split(".")))


def test_the_whole_log_is_read(content: EvalLog) -> None:
    assert (content.status, content.version, content.eval.task) == ("success", 2, "rlvr/Sort-v0 test")
    assert content.eval.viewer.trust_content is False
    assert content.results.total_samples == SAMPLES
    assert content.results.scores[0].metrics["mean"].value == pytest.approx(
        0.3, abs=0.001
    )  # 1.5 of 5 that have a score
    assert len({(sample.id, sample.epoch) for sample in content.samples}) == SAMPLES


def test_samples_are_read_one_by_one(tmp_path: Path) -> None:
    """Of a smaller log: Inspect opens it anew for each."""
    write_inspect_log(run_of(tmp_path / "run", map(sample_row, range(20))), tmp_path / "log.eval")
    samples = list(read_eval_log_samples(str(tmp_path / "log.eval")))
    assert len(samples) == 20
    for number, text in enumerate(ODD):
        assert samples[number].output.completion == text.encode("utf-8", "backslashreplace").decode()
    errored = samples[5]
    assert errored.error.message == "the pool died"
    assert {name: score.value for name, score in errored.scores.items()} == {
        "outcome": "verifier_error",
        "step": 0,
        "length": 3,
        "advantage": 0.25,
    }


def test_one_sample_and_the_summaries_are_read(log: Path) -> None:
    sample = read_eval_log_sample(str(log), id="a/b c?d#e%41&é<b>", epoch=3)
    assert sample.metadata["problem"] == 1
    summaries = read_eval_log_sample_summaries(str(log))
    assert sum(summary.error is not None for summary in summaries) == SAMPLES // 6
    assert sum(summary.limit == "token" for summary in summaries) == sum(
        number % 11 == 0 and number % 6 != 5 for number in range(SAMPLES)
    )


def test_a_run_that_did_not_finish_is_read(tmp_path: Path) -> None:
    write_inspect_log(run_of(tmp_path / "run", [row(0, 2)], finished=False), tmp_path / "log.eval")
    (sample,) = read_eval_log_samples(str(tmp_path / "log.eval"), all_samples_required=False)
    assert (sample.id, sample.epoch) == ("p0", 3)
