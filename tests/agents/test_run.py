"""A run's folder: what stays, who may write, what damage, crashes and signals leave, and that a resumed run is whole."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from agents import Run, load_policy
from agents.commands.main import main
from agents.interrupts import Terminated, interrupts_deferred, sigterm_interrupts
from agents.runs.run import latest_checkpoint, step_checkpoints
from tests.agents.agent_cases import all_weights, make_agent, playing_policy, some_batch, sort_env
from verifiers import CheckpointError, InvalidArgumentError, Problem

OPTIONS = [
    *("--env", "Sort", "--env-args", "tokenizer=char", "max_new_tokens=6", "--problems-per-step", "4"),
    *("--group-size", "4", "--learning-rate", "0.003", "--num-envs", "8", "--checkpoint-every", "3"),
]


def metrics(folder: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if not name.endswith("_s")} for row in rows]


def trained(folder: Path, steps: int) -> None:
    env = sort_env("grpo")
    with Run(folder, {}, loggers=(), keep=2) as run:
        make_agent("grpo", playing_policy(env)).learn(env, steps=steps, run=run, checkpoint_every=1)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


# What stays


def kept(folder: Path, rewards: list[float], every: int, keep: int | None) -> list[int]:
    with Run(folder, {}, loggers=(), keep=keep) as run:
        for step, reward in enumerate(rewards, start=1):
            run.log(step, {"reward": reward})
            if step % every == 0:
                run.keep_checkpoint(step, Path.mkdir)
    return [int(path.name.removeprefix("step-")) for path in step_checkpoints(folder)]


def test_the_last_checkpoints_and_the_best_stay(tmp_path: Path) -> None:
    """The best by the mean over 20 steps: rewards rise to step 60, then collapse; step 61 alone was lucky."""
    rewards = [step / 60 for step in range(60)] + [50.0] + [0.0] * 59
    rewards[60] = 1.0
    assert kept(tmp_path / "run", rewards, every=20, keep=2) == [60, 100, 120]
    assert kept(tmp_path / "one", rewards, every=20, keep=1) == [60, 120]
    assert kept(tmp_path / "all", rewards, every=20, keep=None) == [20, 40, 60, 80, 100, 120]
    assert kept(tmp_path / "rising", [float(step) for step in range(80)], every=20, keep=2) == [60, 80]
    assert kept(tmp_path / "broken", [float("nan")] * 60, every=20, keep=2) == [40, 60]


def test_the_best_is_known_after_a_resume(tmp_path: Path) -> None:
    trained(tmp_path / "run", 2)
    lines = [{"step": 1, "reward": 5.0}, {"step": 2, "reward": -5.0}]
    (tmp_path / "run" / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Run(tmp_path / "run", {}, resume=True, loggers=(), keep=1) as run:
        assert run.best_checkpoint() == run.checkpoint_folder(1)
        for step in (3, 4):
            run.log(step, {"reward": 0.0})
            run.keep_checkpoint(step, Path.mkdir)
    assert names(tmp_path / "run") == ["step-000001", "step-000004"]


# Damage


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES: dict[str, tuple[str, Any, str]] = {
    "weights-cut": ("model/model.safetensors", cut, r"model.safetensors has \d+ bytes, but \d+ were written"),
    "weights-flipped": ("model/model.safetensors", flip, "model.safetensors has changed"),
    "weights-missing": ("model/model.safetensors", Path.unlink, r"model.safetensors can't be read \(No such file"),
    "state-cut": ("state.pt", cut, r"state.pt has \d+ bytes"),
    "config-empty": ("model/config.json", lambda path: path.write_text(""), "config.json has 0 bytes"),
    "checksums-garbage": ("checksums.json", lambda path: path.write_text("[1, 2]"), r"checksums.json can't be read"),
}


@pytest.fixture(scope="module")
def three_steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    trained(folder, 3)
    return folder


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_falls_back_to_the_one_before(damage: str, three_steps: Path, tmp_path: Path) -> None:
    file, spoil, message = DAMAGES[damage]
    folder = tmp_path / "run"
    shutil.copytree(three_steps, folder)
    whole = make_agent("grpo", playing_policy(sort_env("grpo")))
    whole.load(folder / "checkpoints" / "step-000003")
    spoil(folder / "checkpoints" / "step-000003" / file)
    with pytest.warns(UserWarning, match=rf"is damaged: {message}.*; continuing from step-000002"):
        run = Run(folder, {}, resume=True, loggers=())
    assert run.checkpoint == run.checkpoint_folder(2)
    assert [row["step"] for row in metrics(folder)] == [1, 2]
    env = sort_env("grpo")
    agent = make_agent("grpo", playing_policy(env))
    with pytest.raises(CheckpointError, match=r"is damaged|no checkpoint at"):
        agent.load(folder / "checkpoints" / "damaged-step-000003")
    agent.load(run.checkpoint)
    agent.learn(env, steps=3, run=run)
    run.close()
    assert torch.equal(all_weights(agent), all_weights(whole))
    assert latest_checkpoint(folder) == run.checkpoint_folder(3)


def test_without_a_sound_checkpoint_nothing_is_touched_and_it_is_said(three_steps: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(three_steps, folder)
    for checkpoint in step_checkpoints(folder):
        cut(checkpoint / "state.pt")
    before = names(folder), metrics(folder)
    for _ in range(2):  # also that the lock was released
        with pytest.raises(CheckpointError, match=r"step-000003 is damaged: state.pt .* no intact one before it"):
            Run(folder, {}, resume=True, loggers=())
    assert (names(folder), metrics(folder)) == before


def test_settings_that_cannot_be_read_and_those_of_something_else_are_named(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for text, message in (("{", "is not JSON"), ("null", "not a JSON object"), ("", "is not JSON")):
        path.write_text(text)
        with pytest.raises(CheckpointError, match=f"can't be resumed: its config.json .*{message}"):
            Run(tmp_path, {}, resume=True, loggers=())
    Run(tmp_path, {}, loggers=()).close()  # an empty file is that of a run that was cut off, or of nothing
    path.write_text('{"model_type": "qwen2"}')
    with pytest.raises(InvalidArgumentError, match="that is not that of a run"):
        Run(tmp_path, {}, loggers=())
    assert path.read_text() == '{"model_type": "qwen2"}'


def test_other_names_and_lines_that_are_no_metrics_are_left_out_with_a_warning(tmp_path: Path) -> None:
    trained(tmp_path / "run", 2)
    (tmp_path / "run" / "checkpoints" / "step-foo").mkdir()
    for leftover in (".step-000003.partial", ".step-000001.removed", ".step-000002.previous"):
        (tmp_path / "run" / "checkpoints" / leftover / "model").mkdir(parents=True)
    path = tmp_path / "run" / "metrics.jsonl"
    good = path.read_text().splitlines()
    path.write_bytes("\n".join([good[0], "}garbage}", "[1]", '{"loss": 1}', good[1], '{"step": 3']).encode() + b"\xff")
    with pytest.warns(UserWarning, match=r"is not a checkpoint|has invalid lines") as warned:
        run = Run(tmp_path / "run", {}, resume=True, loggers=())
    run.close()
    said = " | ".join(str(warning.message) for warning in warned)
    assert "step-foo is not a checkpoint and is ignored" in said
    assert "has invalid lines, which are removed: [2, 3, 4]" in said
    assert run.checkpoint == run.checkpoint_folder(2)
    assert path.read_text().splitlines() == good
    assert names(tmp_path / "run") == ["step-000001", "step-000002", "step-foo"]  # without what a crash left


# Who may write, and where


def test_a_run_that_finished_no_step_may_be_started_again_or_resumed(tmp_path: Path) -> None:
    Run(tmp_path / "run", {"rate": 1}, loggers=()).close()
    again = Run(tmp_path / "run", {"rate": 2}, loggers=())
    assert json.loads((tmp_path / "run" / "config.json").read_text())["rate"] == 2
    again.close()
    resumed = Run(tmp_path / "run", {}, resume=True, loggers=())
    assert resumed.checkpoint is None
    resumed.log(1, {"reward": 1.0})
    resumed.close()
    with pytest.raises(InvalidArgumentError, match="holds a run already"):
        Run(tmp_path / "run", {}, loggers=())


HOLDER = """
import sys, time
from pathlib import Path
from agents.runs.run import Run
run = Run(Path(sys.argv[1]), {}, loggers=())
print("ready", flush=True)
time.sleep(600)
"""


def test_a_folder_belongs_to_one_process_until_it_dies(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "ready\n"
    try:
        for resume in (True, False):
            with pytest.raises(InvalidArgumentError, match=rf"is in use by process {holder.pid} on .*: wait for it"):
                Run(tmp_path / "run", {}, resume=resume, loggers=())
    finally:
        holder.kill()
        holder.communicate()
    run = Run(tmp_path / "run", {}, resume=True, loggers=())
    with pytest.raises(InvalidArgumentError, match="is in use by process"):
        Run(tmp_path / "run", {}, resume=True, loggers=())
    run.close()
    Run(tmp_path / "run", {}, resume=True, loggers=()).close()


KILLED_BETWEEN_RENAMES = """
import os, signal, sys
from pathlib import Path
from tests.agents.agent_cases import make_agent, some_batch
agent = make_agent("grpo")
agent.save(sys.argv[1])
agent.update(some_batch(agent.policy))
rename = os.replace
def replace(source, target):
    if Path(target).name == "saved":
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target)
os.replace = replace
agent.save(sys.argv[1])
"""


def test_a_kill_between_the_two_renames_of_a_save_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    process = subprocess.run([sys.executable, "-c", KILLED_BETWEEN_RENAMES, str(saved)], timeout=600)
    assert process.returncode == -signal.SIGKILL
    assert not saved.exists()
    agent = make_agent("grpo")
    agent.load(saved)
    assert agent.steps == 0
    agent.update(some_batch(agent.policy))
    agent.save(saved)
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


# From the command line


def rlvr(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["train", "grpo", *OPTIONS, *arguments])
    return int(ended.value.code or 0)


def breaks(completion: str, problem: Problem) -> float:
    raise RuntimeError("not yet")


@pytest.mark.filterwarnings("default:the verifier broke", "default:the checkpoint at")
def test_the_command_restarts_a_failed_run_and_falls_back_from_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    settings = ["--run-folder", str(folder), "--checkpoint-every", "1", "--keep", "1"]
    mistaken = ["--problems-per-step", "8", "--verifier", f"{__name__}:breaks"]
    assert rlvr(*settings, "--steps", "2", "--max-error-share", "0", *mistaken) == 1
    assert rlvr(*settings, "--steps", "4") == 0
    output = capsys.readouterr().out.replace("\n", "")
    assert "the best checkpoint, by mean reward over the preceding 20 steps, is " in output
    assert rlvr(*settings, "--steps", "5") == 2
    assert "holds a run already" in capsys.readouterr().err
    assert 1 <= len(names(folder)) <= 2
    rlvr(*settings, "--steps", "6", "--resume", "--keep", "3")
    cut(folder / "checkpoints" / "step-000006" / "state.pt")
    assert rlvr(*settings, "--steps", "7", "--resume") == 0
    said = capsys.readouterr()
    assert re.search(r"warning: .*step-000006 is damaged: state.pt .* continuing from step-000005", said.err)
    assert "continuing after step 5" in said.out
    assert [row["step"] for row in metrics(folder)] == [1, 2, 3, 4, 5, 6, 7]


def test_a_model_of_a_damaged_checkpoint_is_refused_by_that_name(three_steps: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(three_steps, tmp_path / "run")
    cut(folder / "checkpoints" / "step-000003" / "model" / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"step-000003 is damaged: model.safetensors has \d+ bytes"):
        load_policy(folder)
    load_policy(folder / "checkpoints" / "step-000002", tokenizer="char")


# Signals


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_signals_wait_for_the_end_of_a_block(number: signal.Signals, error: type[BaseException]) -> None:
    done = []

    def work() -> None:
        with interrupts_deferred():
            with interrupts_deferred():
                signal.raise_signal(number)
                done.append("inner")
            done.append("outer")
        done.append("not reached")

    with sigterm_interrupts(), pytest.raises(KeyboardInterrupt) as raised:
        work()
    assert raised.type is error
    assert done == ["inner", "outer"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.usefixtures("ctrl_c")
def test_the_error_of_a_block_is_not_hidden_by_a_signal_that_waited() -> None:
    def work() -> None:
        with interrupts_deferred():
            signal.raise_signal(signal.SIGINT)
            raise ValueError("broke")

    with pytest.raises(ValueError, match="broke"):
        work()


def test_on_other_threads_a_block_is_left_as_it_is() -> None:
    def look() -> Any:
        with interrupts_deferred():
            return signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(look).result() == signal.getsignal(signal.SIGINT)


# Killed and stopped


def checkpoint_of(folder: Path) -> Path:
    checkpoint = latest_checkpoint(folder)
    assert checkpoint is not None
    return checkpoint


def command(folder: Path, *more: str) -> list[str]:
    program = "import torch; torch.set_num_threads(1); from agents.commands.main import main; main()"
    return [sys.executable, "-c", program, "train", "grpo", "--run-folder", str(folder), *OPTIONS, *more]


def wait_for_lines(path: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        assert process.poll() is None, "the run ended before it could be stopped"
        time.sleep(0.01)
    raise AssertionError(f"{path} did not reach {count} lines")


def test_a_run_killed_with_sigkill_and_resumed_is_bit_identical(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(whole, "--steps", "8"), check=True, capture_output=True, timeout=600)
    process = subprocess.Popen(command(killed, "--steps", "1000"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_lines(killed / "metrics.jsonl", 5, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with (killed / "metrics.jsonl").open("a") as file:
        file.write('{"step": 99')  # a line that the kill cut short
    last = max(8, int(checkpoint_of(killed).name.removeprefix("step-")) + 2)
    subprocess.run(command(killed, "--steps", str(last), "--resume"), check=True, capture_output=True, timeout=600)
    rows = metrics(killed)
    assert [row["step"] for row in rows] == list(range(1, last + 1))
    assert rows[:8] == metrics(whole)
    of_whole = (whole / "rollouts.jsonl").read_text().splitlines()
    assert (killed / "rollouts.jsonl").read_text().splitlines()[: len(of_whole)] == of_whole
    assert len(of_whole) == 8 * 8
    weights = "model/model.safetensors"
    assert last > 8 or (checkpoint_of(killed) / weights).read_bytes() == (checkpoint_of(whole) / weights).read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_stop_leaves_a_checkpoint_of_the_last_step(tmp_path: Path, number: int, code: int) -> None:
    words, pipe = command(tmp_path / "run", "--steps", "1000"), subprocess.PIPE
    process = subprocess.Popen(words, stdout=pipe, stderr=pipe)
    wait_for_lines(tmp_path / "run" / "metrics.jsonl", 4, process)
    os.kill(process.pid, number)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == code, errors
    assert b"--resume" in output
    assert checkpoint_of(tmp_path / "run").name == f"step-{metrics(tmp_path / 'run')[-1]['step']:06d}"
