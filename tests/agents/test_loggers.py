"""Loggers of a run: what they are told, that one which is missing is an error, and that one which fails is not."""

from __future__ import annotations

import json
import math
import re
import sys
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


def stand_in(name: str, monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    """A stand-in for the module of a service, `wandb` or `trackio`; its runs are `init.return_value`."""
    module = mock.Mock(Settings=dict)
    module.__spec__ = ModuleSpec(name, None)  # libraries ask for it to see whether the service is installed
    module.init.side_effect = lambda **_: print("a service says hello") or mock.DEFAULT
    monkeypatch.setitem(sys.modules, name, module)
    return module


@pytest.fixture(params=["wandb", "trackio"])
def service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, mock.Mock]:
    for variable in ("WANDB_PROJECT", "WANDB_NAME", "TRACKIO_PROJECT"):
        monkeypatch.delenv(variable, raising=False)
    return request.param, stand_in(request.param, monkeypatch)


def settings_of(module: mock.Mock) -> list[dict[str, Any]]:
    return [call.kwargs for call in module.init.call_args_list]


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def log_all(run: Run) -> None:
    for step, metrics in STEPS.items():
        run.log(step, metrics)


def test_an_object_is_a_logger_and_the_run_closes_it(tmp_path: Path) -> None:
    mine = mock.Mock(spec=["log", "close"])
    with Run(tmp_path / "run", {}, loggers=[mine]) as run:
        log_all(run)
        mine.close.assert_not_called()
    assert str([call.args for call in mine.log.call_args_list]) == str(list(STEPS.items()))
    mine.close.assert_called_once_with()


def test_a_service_gets_settings_without_secrets_and_every_step(
    service: tuple[str, mock.Mock], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, module = service
    monkeypatch.setenv("KEY", SECRET)
    judge = {"api_key": SECRET, "other": secret("env:KEY")}
    config = {"agent": "grpo", "judge": judge, "url": f"http://me:{SECRET}@host/", "path": tmp_path}
    with Run(tmp_path / "run", config, loggers=[name]) as run:
        log_all(run)
    (settings,) = settings_of(module)
    safe = {"api_key": "<redacted>", "other": "env:KEY"}
    expected = {"judge": safe, "url": "http://<redacted>@host/", "path": str(tmp_path)}
    assert settings["config"] | expected == settings["config"]
    assert SECRET not in str(settings)
    assert settings["project"] == "rlvr-envs"
    first, second = module.init.return_value.log.call_args_list
    assert (first.kwargs, second) == ({"step": 1}, mock.call(STEPS[2], step=2))
    module.init.return_value.finish.assert_called_once_with()
    assert json.loads((tmp_path / "run" / "config.json").read_text())["judge"] == safe


def test_a_resumed_run_goes_on_under_its_name_and_what_a_service_prints_is_not_output(
    service: tuple[str, mock.Mock], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, module = service
    for folder, resume in (("run", False), ("run", True), ("other/run", False)):
        Run(tmp_path / folder, {"a": 1}, loggers=[name], resume=resume).close()
    first, resumed, other = (settings["name"] for settings in settings_of(module))
    assert first == resumed != other
    assert first.startswith("run-")
    assert all((settings["resume"], settings["config"]["a"]) == ("allow", 1) for settings in settings_of(module))
    captured = capsys.readouterr()
    if name == "trackio":  # whose module prints in this process
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


def test_what_is_no_logger_is_refused(tmp_path: Path) -> None:
    for loggers, message in (
        (["wandbb"], "unknown logger 'wandbb'. Did you mean 'wandb'"),
        (["tensorboard"] * 2, "the logger 'tensorboard' was given twice"),
        ([print], r"an object with log\(step, metrics\) and close\(\), got <built-in function"),
    ):
        with pytest.raises((UnknownNameError, InvalidArgumentError), match=message):
            Run(tmp_path / "run", {}, loggers=loggers)
        assert not (tmp_path / "run").exists()


def test_a_logger_that_fails_warns_once_and_the_run_goes_on(tmp_path: Path) -> None:
    failing, sound = (mock.Mock(spec=["log", "close"]) for _ in range(2))
    failing.log.side_effect = [None, ConnectionError(f"no\nway to http://me:{SECRET}@host")]
    sound.close.side_effect = OSError("full")
    run = Run(tmp_path, {}, loggers=[failing, sound])
    run.log(1, {"reward": 0.0})
    with pytest.warns(UserWarning, match="the logger") as warned:
        run.log(2, {"reward": 0.1})
    run.log(3, {"reward": 0.2})  # a second warning would be an error
    with pytest.warns(UserWarning, match=re.escape(f"{sound!r} failed when it was closed: OSError: full")):
        run.close()
    (said,) = (str(warning.message) for warning in warned)
    assert f"the logger {failing!r} failed at step 2 and gets no more metrics: ConnectionError: no way to" in said
    assert said.endswith(f"{tmp_path / 'metrics.jsonl'} has all metrics")
    assert SECRET not in said
    assert [row["step"] for row in lines(tmp_path)] == [1, 2, 3]
    assert (failing.log.call_count, sound.log.call_count) == (2, 3)
    assert failing.close.call_count == sound.close.call_count == 1
    Run(tmp_path, {}, loggers=[], resume=True).close()  # the folder is free


def test_a_logger_that_can_not_be_started_is_an_error_and_the_others_are_closed(
    service: tuple[str, mock.Mock], tmp_path: Path
) -> None:
    name, module = service
    module.init.side_effect = RuntimeError("log in\nfirst")
    mine = mock.Mock(spec=["log", "close"])
    with pytest.raises(InvalidArgumentError, match=f"the logger {name!r} can't be started: RuntimeError: log in first"):
        Run(tmp_path, {}, loggers=[mine, name])
    mine.close.assert_called_once_with()
    Run(tmp_path, {}, loggers=[]).close()


def test_a_command_logs_and_resumes_with_others(rlvr: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, folder = stand_in("wandb", monkeypatch), tmp_path / "run"

    def train(*options: str) -> int:
        env = ("--env", "Addition", "--env-args", "tokenizer=char", "max_new_tokens=3")
        small = ("--num-envs", "2", "--problems-per-step", "1", "--group-size", "2", "--run-folder", str(folder))
        return rlvr("train", "grpo", *env, *small, *options)[0]

    assert train("--steps", "1", "--loggers", "wandb", "tensorboard") == 0
    (call,) = module.init.return_value.log.call_args_list
    assert (call.kwargs, call.args[0]["reward"]) == ({"step": 1}, lines(folder)[0]["reward"])
    assert settings_of(module)[0]["config"]["agent"] == "grpo"
    assert list((folder / "tensorboard").iterdir())
    assert train("--steps", "2", "--resume", "--loggers") == 0
    assert module.init.return_value.log.call_count == 1
    assert len(lines(folder)) == 2
