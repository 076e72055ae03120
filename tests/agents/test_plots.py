"""Curves of training runs: what is drawn, and that the same runs give the same files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.runs.plots import TrainingCurve, bands, plot, running_mean
from tests.commands import Command
from verifiers import DataError, InvalidArgumentError, MissingDataError, UnknownNameError, statistics


def run_folder(folder: Path, rewards: Sequence[float | None], seed: int = 0, **config: Any) -> Path:
    folder.mkdir()
    settings = {"agent": "grpo", "env": "rlvr/Sort-v0", "config": {"seed": seed, **config}}
    settings |= {"run_folder": str(folder), "run_id": f"{folder.name}-0", "loggers": [str(folder)]}
    (folder / "config.json").write_text(json.dumps(settings))
    lines = [{"step": step, "reward": reward, "warnings": ["x"]} for step, reward in enumerate(rewards, start=1)]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def test_a_running_mean_looks_back_and_leaves_out_what_is_missing() -> None:
    assert running_mean(np.array([1.0, np.nan, 3.0, 5.0]), 2).tolist() == [1.0, 1.0, 3.0, 4.0]
    assert np.isnan(running_mean(np.array([np.nan, 2.0]), 3)[0])
    noise = np.random.default_rng(0).normal(size=50)
    expected = [noise[max(0, index - 6) : index + 1].mean() for index in range(50)]
    np.testing.assert_allclose(running_mean(noise, 7), expected, atol=1e-12)


def test_runs_that_differ_in_their_seed_are_one_curve_with_the_interval_of_their_mean(tmp_path: Path) -> None:
    values = {0: [0.0, 1.0], 1: [1.0, 1.0, 3.0], 2: [2.0, 4.0]}
    curves = [TrainingCurve.read(run_folder(tmp_path / f"s{seed}", rewards, seed)) for seed, rewards in values.items()]
    (band,) = bands(curves, smooth=1)
    assert band.label == "grpo, Sort-v0 (3 seeds)"
    assert band.mean.tolist() == [1.0, 2.0, 3.0]
    assert np.isfinite(band.low).tolist() == [True, True, False]  # where several are
    interval = statistics.mean_interval([1.0, 1.0, 4.0])
    assert (band.low[1], band.high[1]) == (interval.low, interval.high)
    assert not len(band.raw)


def test_runs_of_other_settings_are_curves_of_their_own_named_apart(tmp_path: Path) -> None:
    runs = {"slow": ([0.0, 1.0], 1e-5), "fast": ([1.0, None], 1e-4)}
    folders = [run_folder(tmp_path / name, rewards, learning_rate=rate) for name, (rewards, rate) in runs.items()]
    first, second = bands([TrainingCurve.read(folder) for folder in folders], smooth=1)
    assert (first.label, second.label) == ("slow", "fast")
    assert first.raw.tolist() == [0.0, 1.0]
    assert np.isnan(first.low).all()  # one run says nothing of others
    assert np.isnan(second.mean[1])


def test_the_same_runs_give_the_same_files(tmp_path: Path) -> None:
    curves = [TrainingCurve.read(run_folder(tmp_path / name, [0.1, 0.4, 0.3], seed)) for seed, name in enumerate("ab")]
    contents = []
    for name in ("one", "two"):
        files = plot(bands(curves), tmp_path / name)
        assert [file.name for file in files] == [f"{name}.svg", f"{name}.png"]
        contents.append([file.read_bytes() for file in files])
    assert contents[0] == contents[1]
    svg = contents[0][0].decode()
    assert "grpo, Sort-v0 (2 seeds)" in svg  # text stays text
    assert contents[0][1].startswith(b"\x89PNG")


def test_what_is_no_run_or_has_no_such_metric_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="holds no training run"):
        TrainingCurve.read(tmp_path)
    with pytest.raises(DataError, match="no finished step"):
        TrainingCurve.read(run_folder(tmp_path / "empty", []))
    folder = run_folder(tmp_path / "run", [0.5])
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "rew')
    assert TrainingCurve.read(folder).steps.tolist() == [1]  # of a run that goes on
    with pytest.raises(UnknownNameError, match="reward"):
        TrainingCurve.read(folder, "rewards")
    with pytest.raises(InvalidArgumentError, match="at least one run"):
        bands([])


def test_the_command_overwrites_nothing_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rlvr: Command) -> None:
    monkeypatch.chdir(tmp_path)
    run_folder(tmp_path / "run", [0.5, 0.7])
    assert rlvr("plot", "run")[0] == 0
    code, _, errors = rlvr("plot", "run")
    assert (code, "curves.svg exists already" in errors) == (2, True)
    assert rlvr("plot", "run", "--overwrite")[0] == 0
    hacked_run(tmp_path / "hacked")
    words = ["--metric", "reward", "gold_reward", "--against", "kl", "--out", "both"]
    code, output, _ = rlvr("plot", "hacked", *words)
    assert (code, "both.svg" in output) == (0, True)
    drawn = Path("both.svg").read_text()
    assert all(f">{name}<" in drawn for name in ("gold reward", "reward", "kl"))


# Over another metric


def hacked_run(folder: Path, seed: int = 0) -> Path:
    """A run whose gold score falls while its reward rises."""
    run_folder(folder, [0.0, 1.0, 2.0], seed)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        row |= {"kl": 0.5 * row["step"] + seed, "gold_reward": 1 / row["step"]}
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def test_a_metric_over_another_is_a_path_in_the_order_of_steps(tmp_path: Path) -> None:
    runs = [hacked_run(tmp_path / f"s{seed}", seed) for seed in (0, 1)]
    (band,) = bands([TrainingCurve.read(run, "gold_reward", "kl") for run in runs], smooth=1)
    assert band.against is not None
    assert band.against.tolist() == [1.0, 1.5, 2.0]
    assert band.mean.tolist() == pytest.approx([1, 1 / 2, 1 / 3])
    with pytest.raises(UnknownNameError, match=r"kll.*Did you mean 'kl'"):
        TrainingCurve.read(runs[0], "reward", "kll")
