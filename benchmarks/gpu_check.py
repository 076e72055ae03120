"""What has run on CPUs alone so far, checked on a GPU in ten minutes: each check by itself, with what it found.

The first checks compare the GPU with the CPU in float32, the sampler with the learner in the default precision, and FSDP of one
rank with no FSDP. The others are commands as users start them: training and resuming, FSDP with a rank for each GPU of several,
vLLM with transferred weights, and the times of sampling and of a step beside `generate`, vLLM and TRL.

    .cache/trl/bin/python benchmarks/gpu_check.py [--vllm-python .cache/vllm/bin/python] [--json FILE]

A check that fails does not stop the others, and the exit status is 1. `--device cpu --quick` tries the script without a GPU.
The environments are those of `make test-trl` and `make test-vllm`; figures belong in `benchmarks/gpu.md`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium
import numpy as np
import torch

import rlvr_envs  # noqa: F401 # registers the environments
from agents import GRPO, CausalLMPolicy, Episode, GRPOConfig, LearnerConfig, PolicyConfig, rollout, tiny_model
from agents.distributed.parts import whole
from agents.distributed.processes import join, leave
from agents.distributed.ranks import Sharding
from agents.policies.vllm.weight_transfer import checkpoint_layers, checkpoint_weights

ROOT = Path(__file__).parents[1]
FLOAT32 = 1e-3
"""Largest difference of log-probabilities and of relative gradients in float32 between devices."""
BFLOAT16 = 0.1
"""Largest mean difference of log-probabilities between sampler and learner, or two engines, in bfloat16."""
QWEN = "--layers 24 --width 896 --heads 14 --kv-heads 2 --mlp 4864 --vocab 151936"
"""The shape of Qwen2.5-0.5B for `rollout.py`."""


@dataclasses.dataclass(frozen=True)
class Found:
    """The outcome of a check."""

    name: str
    passed: bool
    seconds: float
    text: str


class CheckError(Exception):
    """Something is not as it should be."""


def require(truth: bool, text: str) -> str:
    """Return a finding that holds.

    Raises:
        CheckError: If it does not.
    """
    if not truth:
        raise CheckError(text)
    return text


# In this process


def random_policy(device: str, config: PolicyConfig) -> CausalLMPolicy:
    """A policy with the same random weights on each device."""
    shape = {"layers": 4, "hidden_size": 256, "heads": 8, "intermediate_size": 1024, "max_tokens": 128}
    model = tiny_model(sums(1).single_action_space.n, **shape, seed=0)
    return CausalLMPolicy(model.to(device), config)


def sums(num_envs: int) -> Any:
    """One-digit sums, of which random weights solve a few by chance."""
    return gymnasium.make_vec("rlvr/Addition-v0", num_envs, tokenizer="char", digits=1, max_new_tokens=1)


def _joined(tensors: Iterable[torch.Tensor | None]) -> torch.Tensor:
    return torch.cat([tensor.detach().ravel().cpu() for tensor in tensors if tensor is not None])


def forward_and_backward(device: str) -> str:
    """Log-probabilities and gradients of the device beside those of the CPU, in float32."""
    tokens = torch.randint(10, (8, 96), generator=torch.Generator().manual_seed(0))
    seen = []
    for name in ("cpu", device):
        policy = random_policy(name, PolicyConfig(precision="float32"))
        logprobs = policy.forward(tokens.to(name), 32).logprobs
        logprobs.sum().backward()
        gradient = _joined(parameter.grad for parameter in policy.parameters())
        seen.append((logprobs.detach().cpu(), gradient))
    (logprobs, gradient), (others, other) = seen
    apart = float((logprobs - others).abs().max())
    relative = float((gradient - other).norm() / gradient.norm())
    return require(
        max(apart, relative) < FLOAT32, f"log-probabilities differ by up to {apart:.1e}, gradients by {relative:.1e}"
    )


def sampling(device: str) -> str:
    """Log-probabilities of sampled tokens with a KV cache, beside those of a pass over the whole completions."""
    policy, env = random_policy(device, PolicyConfig()), sums(32)
    differences = []
    for trajectory in rollout(env, policy, [Episode(index // 4, index // 4, index) for index in range(128)]):
        start = trajectory.prompt_length
        tokens = torch.from_numpy(np.asarray(trajectory.tokens, dtype=np.int64))[None].to(device)
        with torch.no_grad():
            again = policy.forward(tokens, start).logprobs[0].float().cpu().numpy()
        differences.append(np.abs(again - np.asarray(trajectory.logprobs)[start:]).mean())
    mean = float(np.mean(differences))
    return require(
        mean < BFLOAT16, f"{len(differences)} completions, log-probabilities differ by {mean:.1e} at the mean"
    )


def learning(device: str) -> str:
    """How far three steps of GRPO move the weights: about as far as on the CPU, since samples may differ by rounding."""
    moved = []
    for name in ("cpu", device):
        policy = random_policy(name, PolicyConfig(precision="float32", temperature=1.0))
        before = _joined(policy.parameters())
        config = GRPOConfig(problems_per_step=8, group_size=32, learner=LearnerConfig(learning_rate=1e-4))
        GRPO(policy, config).learn(sums(256), steps=3)
        moved.append(float((_joined(policy.parameters()) - before).norm()))
    return require(0.5 < moved[1] / moved[0] < 2, f"weights moved by {moved[1]:.3g}, on the CPU by {moved[0]:.3g}")


def fsdp_of_one_rank(device: str) -> str:
    """Weights that FSDP holds beside the same without: log-probabilities, gradients, and the layers for an engine."""
    tokens = torch.randint(10, (8, 96), generator=torch.Generator().manual_seed(0)).to(device)
    policies = [random_policy(device, PolicyConfig(precision="float32")) for _ in range(2)]
    seen = []
    with only_rank(device):
        policies[1].shard(Sharding())
        for policy in policies:
            logprobs = policy.forward(tokens, 32).logprobs
            logprobs.sum().backward()
            gradients = [parameter.grad for parameter in policy.parameters() if parameter.grad is not None]
            seen.append((logprobs.detach(), _joined(map(whole, gradients))))
        layers = [dict(layer) for layer in checkpoint_layers(policies[1])]
    weights = checkpoint_weights(policies[0].model)
    (logprobs, gradient), (others, other) = seen
    apart = float((logprobs - others).abs().max())
    relative = float((gradient - other).norm() / gradient.norm())
    arrived = {name: weight for layer in layers for name, weight in layer.items()}
    equal = all(torch.equal(arrived[name], weight.cpu()) for name, weight in weights.items())
    text = f"log-probabilities differ by up to {apart:.1e}, gradients by {relative:.1e}; {len(layers)} transfers of weights"
    return require(
        equal and len(layers) > 1 and max(apart, relative) < FLOAT32, text + ("" if equal else ", not equal")
    )


@contextlib.contextmanager
def only_rank(device: str) -> Iterator[None]:
    """Within the block, this process is the only rank of a launcher."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    with mock.patch.dict(os.environ, names):
        join(device)
        try:
            yield
        finally:
            leave()


# Commands


def run(*command: str, seconds: int) -> str:
    """Run a command from the root, and return what it printed.

    Raises:
        CheckError: If it fails or does not end.
    """
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise CheckError(f"{' '.join(command)} did not end in {seconds} s") from None
    if done.returncode:
        raise CheckError(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def train(folder: Path, device: str, *options: str, python: str = sys.executable) -> list[dict[str, float]]:
    """Train a tiny model by the command, and return the metrics of its steps."""
    common = ["--env", "Addition", "--env-args", "digits=1", "max_new_tokens=1", "--device", device]
    sizes = ["--problems-per-step", "8", "--group-size", "32", "--checkpoint-every", "2", "--run-folder", str(folder)]
    starter = "from agents.commands.main import main; main()"
    run(python, "-c", starter, "train", "grpo", *common, *sizes, *options, seconds=180)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if "reward" in row]


def training(device: str) -> str:
    """Four steps in one go, and in two runs of which the second resumes the first."""
    with scratch() as folder:
        whole = train(folder / "whole", device, "--steps", "4")
        train(folder / "halves", device, "--steps", "4", "--token-budget", "1")  # ends after the first step
        resumed = train(folder / "halves", device, "--steps", "4", "--resume")
    rewards = [[row["reward"] for row in rows] for rows in (whole, resumed)]
    text = f"mean rewards {rewards[0]}, resumed after the first step {rewards[1]}"
    return require(list(map(len, rewards)) == [4, 4] and all(map(math.isfinite, (*rewards[0], *rewards[1]))), text)


def ranks_of(device: str) -> int:
    """Number of ranks among which weights can be divided here."""
    return torch.cuda.device_count() if device == "cuda" else 2


def fsdp(device: str) -> str:
    """Divided weights with a rank for each GPU, beside one process with all of them."""
    ranks = ranks_of(device)
    with scratch() as folder:
        one = train(folder / "one", device, "--steps", "2", "--precision", "float32")
        divided = ["--nproc", str(ranks), "--shard", "fsdp", "--steps", "2", "--precision", "float32"]
        several = train(folder / "several", device, *divided)
    norms = [rows[0]["grad_norm"] for rows in (one, several)]
    equal = norms[0] > 0 and math.isclose(*norms, rel_tol=0.01)
    return require(equal, f"{ranks} ranks, gradient norm {norms[1]:.6g} beside {norms[0]:.6g}")


def vllm(device: str, python: str) -> str:
    """Three steps with vLLM, whose log-probabilities after a transfer are compared with the learner's."""
    with scratch() as folder:
        options = ["--engine", "vllm", "--engine-args", "max_model_len=256", "enforce_eager=True"]
        options += ["gpu_memory_utilization=0.3"] if device == "cuda" else []
        rows = train(folder / "vllm", device, "--steps", "3", *options, python=python)
    differences = [row["sampling/sampling_logp_difference/mean"] for row in rows]
    return require(max(differences) < BFLOAT16, f"log-probabilities differ by {max(differences):.1e} at the mean")


def benchmark(name: str, *options: str) -> str:
    """Run a benchmark, and return its table."""
    printed = run(sys.executable, f"benchmarks/{name}.py", *options, seconds=300)
    return "\n" + "\n".join(line for line in printed.splitlines() if line.startswith("|"))


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def checks_of(options: argparse.Namespace) -> dict[str, Callable[[], str]]:
    """The checks by name, in order."""
    device = options.device
    checks: dict[str, Callable[[], str]] = {
        check.__name__: functools.partial(check, device)
        for check in (forward_and_backward, sampling, learning, fsdp_of_one_rank, training, fsdp)
        if check is not fsdp or ranks_of(device) > 1
    }
    if options.vllm_python:
        checks["vllm"] = functools.partial(vllm, device, options.vllm_python)
    beside = ["--vllm-python", options.vllm_python] if options.vllm_python else []
    sizes = [] if options.quick else [*QWEN.split(), "--prompt", "256", "--completion", "256"]
    rounds = ["--device", device, "--rounds", "1" if options.quick else "2"]
    work = ["--work", "2x4" if options.quick else "Qwen2.5-0.5B"]
    checks["times of sampling"] = functools.partial(benchmark, "rollout", *rounds, *sizes, *beside)
    checks["times of a step"] = functools.partial(benchmark, "training_step", *rounds, *work)
    return checks


def outcome(name: str, check: Callable[[], str]) -> Found:
    """Run a check; whatever it raises is its finding."""
    started = time.perf_counter()
    try:
        passed, text = True, check()
    except CheckError as error:
        passed, text = False, str(error)
    except Exception:  # noqa: BLE001 # a finding, whatever it is
        passed, text = False, traceback.format_exc()
    return Found(name, passed, time.perf_counter() - started, text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks, print what each found, and return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--vllm-python", help="interpreter of an environment with vLLM; without, vLLM is left out")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script itself")
    parser.add_argument("--only", nargs="*", help="names of checks to run, in place of all")
    parser.add_argument("--json", type=Path, help="file for what was found")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch finds no GPU here")
    checks = checks_of(options)
    unknown = sorted(set(options.only or ()) - set(checks))
    if unknown:
        parser.error(f"--only: there is no check {unknown[0]!r}, but {', '.join(checks)}")
    gpu = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    print(f"{gpu}, torch {torch.__version__}, Python {sys.version.split()[0]}")
    found = []
    for name in options.only or checks:
        found.append(outcome(name, checks[name]))
        print(
            f"{'passed' if found[-1].passed else 'FAILED'} {name} ({found[-1].seconds:.0f} s): {found[-1].text}",
            flush=True,
        )
    if options.json:
        report = {"gpu": gpu, "torch": torch.__version__, "found": [dataclasses.asdict(one) for one in found]}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0 if all(one.passed for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
