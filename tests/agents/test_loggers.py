"""Loggers of a run: what they are told, that one which is missing is an error, and that one which fails is not."""

from __future__ import annotations

import json
import math
import sys
import types
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from agents import Run
from agents.runs import loggers as loggers_module
from tests.agents.test_secrets import SECRET
from tests.commands import Command
from verifiers import InvalidArgumentError, MissingDependencyError, UnknownNameError, secret

STEPS: dict[int, dict[str, float]] = {1: {"reward": 0.5, "loss": math.nan}, 2: {"reward": 1.0, "loss": math.inf}}


class Recorder:
    """A logger of the user's own, which may fail."""

    def __init__(self, *, failing: str = "", at: int = 0) -> None:
        self.failing, self.at = failing, at
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.closed = 0

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        if self.failing == "log" and step >= self.at:
            raise ConnectionError(f"no\nway to http://me:{SECRET}@host")
        self.rows.append((step, dict(metrics)))

    def close(self) -> None:
        self.closed += 1
        if self.failing == "close":
            raise OSError("full")

    def __repr__(self) -> str:
        return "Recorder()"


class Service:
    """A stand-in for the module of a service, `wandb` or `trackio`."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.inits: list[dict[str, Any]] = []
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.finished = 0
        module = types.ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)  # libraries ask for it to see whether the service is installed
        module.init = self.init  # type: ignore[attr-defined]
        module.Settings = dict  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)

    def init(self, **settings: Any) -> Any:
        print("a service says hello")
        self.inits.append(settings)
        return self

    def log(self, metrics: dict[str, float], step: int) -> None:
        self.rows.append((step, metrics))

    def finish(self) -> None:
        self.finished += 1


@pytest.fixture(params=["wandb", "trackio"])
def service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Service]:
    for variable in ("WANDB_PROJECT", "WANDB_NAME", "TRACKIO_PROJECT"):
        monkeypatch.delenv(variable, raising=False)
    return request.param, Service(request.param, monkeypatch)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def log_all(run: Run) -> None:
    for step, metrics in STEPS.items():
        run.log(step, metrics)


def test_an_object_is_a_logger_and_the_run_closes_it(tmp_path: Path) -> None:
    mine = Recorder()
    with Run(tmp_path / "run", {}, loggers=[mine]) as run:
        log_all(run)
        assert not mine.closed
    assert str(mine.rows) == str(list(STEPS.items()))
    assert mine.closed == 1


def test_a_service_gets_settings_without_secrets_and_every_step(
    service: tuple[str, Service], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, stand_in = service
    monkeypatch.setenv("KEY", SECRET)
    judge = {"api_key": SECRET, "other": secret("env:KEY")}
    config = {"agent": "grpo", "judge": judge, "url": f"http://me:{SECRET}@host/", "path": tmp_path}
    with Run(tmp_path / "run", config, loggers=[name]) as run:
        log_all(run)
    (settings,) = stand_in.inits
    safe = {"api_key": "<redacted>", "other": "env:KEY"}
    expected = {"judge": safe, "url": "http://<redacted>@host/", "path": str(tmp_path)}
    assert settings["config"] | expected == settings["config"]
    assert SECRET not in str(settings)
    assert settings["project"] == "rlvr-envs"
    assert [step for step, _ in stand_in.rows] == [1, 2]
    assert stand_in.rows[1][1] == STEPS[2]
    assert stand_in.finished == 1
    assert json.loads((tmp_path / "run" / "config.json").read_text())["judge"] == safe


def test_a_resumed_run_goes_on_under_its_name_and_no_other_has_it_and_what_is_printed_is_not_output(
    service: tuple[str, Service], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, stand_in = service
    for folder, resume in (("run", False), ("run", True), ("other/run", False)):
        Run(tmp_path / folder, {"a": 1}, loggers=[name], resume=resume).close()
    first, resumed, other = (settings["name"] for settings in stand_in.inits)
    assert first == resumed != other
    assert first.startswith("run-")
    assert all(settings["resume"] == "allow" for settings in stand_in.inits)
    assert stand_in.inits[1]["config"]["a"] == 1
    captured = capsys.readouterr()
    assert (captured.out, "hello" in captured.err) == ("", True)


@pytest.mark.parametrize("name", ["wandb", "trackio", "tensorboard"])
def test_a_logger_that_is_not_installed_is_named_with_the_remedy_before_any_work(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rlvr: Command
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    extra = "train" if name == "tensorboard" else name
    with pytest.raises(MissingDependencyError, match=rf"the logger '{name}' .* pip install 'rlvr-envs\[{extra}\]'"):
        Run(tmp_path / "run", {}, loggers=[name])
    code, _, errors = rlvr("train", "grpo", "--env", "Addition", "--model", "no/such", "--loggers", name)
    assert (code, f"the logger {name!r}" in errors) == (2, True)
    assert not list(tmp_path.iterdir())


def test_the_folder_that_a_service_leaves_is_not_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`wandb` writes to a folder `wandb`, which Python would import."""
    (tmp_path / "some_service").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert not loggers_module._is_installed("some_service")
    (tmp_path / "some_service" / "__init__.py").touch()
    assert loggers_module._is_installed("some_service")


@pytest.mark.parametrize(
    ("loggers", "error", "message"),
    [
        (["wandbb"], UnknownNameError, "unknown logger 'wandbb'. Did you mean 'wandb'"),
        (["tensorboard"] * 2, InvalidArgumentError, "the logger 'tensorboard' was given twice"),
        ([print], InvalidArgumentError, r"an object with log\(step, metrics\) and close\(\), got <built-in function"),
    ],
)
def test_what_is_no_logger_is_refused(loggers: Any, error: type[Exception], message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        Run(tmp_path / "run", {}, loggers=loggers)
    assert not (tmp_path / "run").exists()


def test_a_logger_that_fails_warns_once_and_the_run_goes_on(tmp_path: Path) -> None:
    failing, sound = Recorder(failing="log", at=2), Recorder()
    with Run(tmp_path, {}, loggers=[failing, sound]) as run:
        run.log(1, {"reward": 0.0})
        with pytest.warns(UserWarning, match="the logger") as warned:
            run.log(2, {"reward": 0.1})
        run.log(3, {"reward": 0.2})  # a second warning would be an error
    (said,) = (str(warning.message) for warning in warned)
    assert "the logger Recorder() failed at step 2 and gets no more metrics: ConnectionError: no way to" in said
    assert said.endswith(f"{tmp_path / 'metrics.jsonl'} has all metrics")
    assert SECRET not in said
    assert [row["step"] for row in lines(tmp_path)] == [step for step, _ in sound.rows] == [1, 2, 3]
    assert [step for step, _ in failing.rows] == [1]
    assert failing.closed == sound.closed == 1
    run = Run(tmp_path, {}, loggers=[Recorder(failing="close")], resume=True)
    with pytest.warns(UserWarning, match=r"Recorder\(\) failed when it was closed: OSError: full"):
        run.close()
    Run(tmp_path, {}, loggers=[], resume=True).close()  # the folder is free


def test_a_logger_that_can_not_be_started_is_an_error_and_the_others_are_closed(
    service: tuple[str, Service], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, _ = service

    monkeypatch.setattr(sys.modules[name], "init", mock.Mock(side_effect=RuntimeError("log in\nfirst")))
    mine = Recorder()
    with pytest.raises(InvalidArgumentError, match=f"the logger {name!r} can't be started: RuntimeError: log in first"):
        Run(tmp_path, {}, loggers=[mine, name])
    assert mine.closed == 1
    Run(tmp_path, {}, loggers=[]).close()


def test_a_command_logs_and_resumes_with_others(rlvr: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = Service("wandb", monkeypatch)
    folder = tmp_path / "run"

    small = ("--num-envs", "2", "--problems-per-step", "1", "--group-size", "2", "--run-folder", str(folder))

    def train(*options: str) -> int:
        env = ("--env", "Addition", "--env-args", "tokenizer=char", "max_new_tokens=3")
        return rlvr("train", "grpo", *env, *small, *options)[0]

    assert train("--steps", "1", "--loggers", "wandb", "tensorboard") == 0
    assert [step for step, _ in stand_in.rows] == [1]
    assert stand_in.rows[0][1]["reward"] == lines(folder)[0]["reward"]
    assert stand_in.inits[0]["config"]["agent"] == "grpo"
    assert list((folder / "tensorboard").iterdir())
    assert train("--steps", "2", "--resume", "--loggers") == 0
    assert [step for step, _ in stand_in.rows] == [1]
    assert len(lines(folder)) == 2
