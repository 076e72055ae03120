"""Every benchmark starts as a user starts it, as a file, and prints its table at tiny sizes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import training_step
from tests.tiny_models import chat_model

ROOT = Path(__file__).parent.parent.parent
HELP = "--help"
FILES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))
TINY_MODEL = "--layers 1 --width 16 --heads 2 --problems 2 --group 2 --prompt 5 --completion 3"
ARGUMENTS = {
    "bandits": HELP,  # it draws into the documentation; the regret has tests of its own
    "cartpole": HELP,  # one agent takes a minute
    "env_steps": "--streams 2",
    "ifeval_checkers": HELP,  # it reads what the published checkers wrote
    "lag": "--rows 8 --tokens 3 --steps 4 --epochs 1 --layers 1 --width 16 --sleep-ms 1 --turns 1",
    "learning_curves": HELP,  # its supervised start alone takes longer; test_learning_curves.py runs its functions
    "math_graders": "--golds 1 --presets olympiadbench",
    "math_verifier": "--answers 2 --pairs 200 --sums 2",
    "mutants": "--each 1 --only composition",
    "noisy_verifiers": HELP,  # its supervised start takes longer; test_noisy_verifiers.py runs its functions
    "overlap": "--rows 2 --episodes 2 --workers 2 --sleep-ms 1 --layers 1 --width 16 --rounds 1",
    "partial_rollouts": "--groups 2 --tokens 4 --segment 2 --steps 2 --layers 1 --width 16 --turns 1",
    "ray_tasks": HELP,  # Ray is not among what the tests install
    "gpu_check": "--device cpu --quick --only forward_and_backward sampling fsdp_of_one_rank",
    "reward_hacking": HELP,  # its runs take minutes; test_rlhf.py runs its parts
    "rollout": f"{TINY_MODEL} --rounds 1 --threads 1",
    "scaling": HELP,  # it starts many processes; `make test-distributed` runs it
    "several_turns": "--digits 2 --warm-up 1 --steps 1 --game-steps 1 --note-steps 1 --problems 2 --problems-per-step 1 "
    "--seeds 1",
    "sandbox": "--programs 1 --workers 1 --repeats 1",
    "sandbox_ablation": "--programs 1 --rounds 1 --only kept_containers cpu_affinity",
    "startup": "--rounds 1 --only compare",
    "streaming": "--completions 4 --slots 2 --median 2 --longest 4 --token-ms 0.1 --verify-ms 0.1 --rounds 1",
    "until_decided": "--runs 4 --problems 20 --runs-with-a-difference 4",
    "training_step": f"--work 2x4 {TINY_MODEL} --rounds 1 --steps 1 --threads 1",
}
SAYS_WHAT_IS_MISSING = {"math_verifier": "math-verify is not installed", "training_step": "TRL is not installed"}
"""What a benchmark prints where the package that it is compared with is not there, as it is not in `make test`."""


ALL_HELP = """
import contextlib, io, runpy, sys
sys.path.insert(0, "benchmarks")  # as for a file that is started
for name in sys.argv[1:]:
    sys.argv, said = [name, "--help"], io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        runpy.run_path(f"benchmarks/{name}.py", run_name="__main__")
    print(name, "usage:" in said.getvalue())
"""


def start(name: str, arguments: str) -> subprocess.CompletedProcess[str]:
    return run(f"benchmarks/{name}.py", *arguments.split())


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_bound_of_a_step_counts_the_matrices_as_they_are() -> None:
    """One layer of width 16: two heads of queries, one of keys and values, 24 wide in between; a vocabulary of 512."""
    sizes = {"layers": 1, "width": 16, "heads": 2, "problems": 2, "group": 2, "prompt": 5, "completion": 3}
    work = training_step.Work(**sizes, kv_heads=1, mlp=24)
    layer = 16 * 16 + 16 * 16 + 2 * 16 * 8 + 3 * 16 * 24
    own, prompts = 4 * 3, 2 * 5
    attention = 2 * 16 * (own * (5 + 2) + 2 * 5**2 / 2)
    assert training_step.floating_point_operations(work) == 8 * ((own + prompts) * layer + own * 512 * 16 + attention)


def test_every_file_has_tiny_settings() -> None:
    assert sorted(ARGUMENTS) == FILES


def test_those_that_take_long_say_how_they_are_used() -> None:
    """In one process, since torch takes seconds to load."""
    names = [name for name in FILES if ARGUMENTS[name] == HELP]
    done = run("-c", ALL_HELP, *names)
    assert done.stdout.splitlines() == [f"{name} True" for name in names], done.stderr


@pytest.mark.parametrize("name", [name for name in FILES if ARGUMENTS[name] != HELP])
def test_it_runs(name: str, local_data: Path) -> None:
    done = start(name, ARGUMENTS[name])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert SAYS_WHAT_IS_MISSING.get(name, "") in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["rollout", "training_step"])
def test_a_chat_model(name: str, tmp_path: Path) -> None:
    sizes = "--problems 2 --group 2 --completion 3 --rounds 1 --threads 1"
    done = start(name, f"--model {chat_model(tmp_path)} {sizes}")
    assert done.returncode == 0, done.stderr
    assert "ours" in done.stdout


def test_an_interpreter_without_vllm_is_named() -> None:
    done = start("rollout", f"{ARGUMENTS['rollout']} --vllm-python {sys.executable}")
    assert done.returncode == 2
    assert "has no vLLM: make test-vllm" in done.stderr.splitlines()[-1]
