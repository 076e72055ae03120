"""Cost of sampling: this library's torch engine, `generate` of `transformers`, and vLLM, side by side in one run.

A round samples a group of completions for each of a few problems, with the same Qwen2-shaped random model in float32. The end
token is outside the model's vocabulary, so every completion has the full length. `generate` only samples; the two others play
episodes of a token environment and keep log-probabilities. The sides take turns, so that all see the same disturbances.

Reported, medians over rounds: CPU seconds of all threads, and for vLLM of the engine's process too, wall seconds, sampled
tokens per wall second, and on a GPU (`--device cuda`) the most memory that torch allocates in this process, which is not
vLLM's. There both sides of torch compute matrix products in bfloat16, and options give the model a larger one's shape, such as
Qwen2.5-0.5B's:
`--layers 24 --width 896 --heads 14 --kv-heads 2 --mlp 4864 --vocab 151936`.

`--model FOLDER` takes a published chat model in place of a random one, with questions in its chat template as prompts.
`--precision bfloat16` has weights in bfloat16 on all sides, and `float32` nothing in it; by default weights are float32, and
matrix products as the policy chooses. `--greedy` takes the likeliest tokens.

`--vllm-python .cache/vllm/bin/python` adds vLLM, in the environment that `make test-vllm` makes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig

from agents import CausalLMPolicy, Episode, PolicyConfig, VLLMConfig, VLLMPolicy, load_model, rollout, tiny_model
from agents.policies.vllm.process_engine import ProcessEngine
from benchmarks.common.chat_model import chat_tokenizer, question
from rlvr_envs import ByteTokenizer, Rules, TokenStreams, TokenVectorEnv
from verifiers import Problem

BYTES = ByteTokenizer.eos_token
"""The tokens of prompts: the smallest model has no others, and no end token."""
SHAPE = ("prompt", "layers", "width", "heads", "kv_heads", "mlp", "vocab")
"""Settings that a chat model decides."""
TICKS = os.sysconf("SC_CLK_TCK")
VLLM = "vLLM"


class Bytes(ByteTokenizer):
    """Bytes, and further tokens that stand for nothing, up to the size of a vocabulary; the end token comes behind it."""

    def __init__(self, vocab: int) -> None:
        super().__init__()
        self.vocab_size = vocab + 1
        self.eos_token = vocab
        self.fingerprint = f"bytes-{vocab}"

    def token_bytes(self, token: int) -> bytes:
        return super().token_bytes(token) if token < BYTES else b""


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (
        ("problems", 8),
        ("group", 8),
        ("prompt", 128),
        ("completion", 32),
        ("layers", 4),
        ("width", 128),
        ("heads", 4),
        ("kv-heads", 0),
        ("mlp", 0),
        ("vocab", BYTES),
        ("rounds", 5),
        ("threads", 2),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument(
        "--model", help="folder of a chat model, or of its GGUF file; its shape and prompts are its own"
    )
    parser.add_argument("--precision", default="auto", choices=["auto", "float32", "bfloat16"])
    parser.add_argument("--greedy", action="store_true", help="take the likeliest tokens")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--vllm-python", help="interpreter of an environment with vLLM; without, vLLM is left out")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args(argv)
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch finds no GPU here")
    own = [name for name in SHAPE if options.model and getattr(options, name) != parser.get_default(name)]
    if own:
        parser.error(f"--model has a shape and prompts of its own: leave out --{own[0].replace('_', '-')}")
    if options.vocab < BYTES:
        parser.error(f"--vocab is at least {BYTES}, the bytes of prompts")
    looks = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
    if options.vllm_python and subprocess.run([options.vllm_python, "-c", looks], check=False).returncode:
        parser.error(
            f"--vllm-python {options.vllm_python} has no vLLM: make test-vllm, and take .cache/vllm/bin/python"
        )
    return options


def new_rules(options: argparse.Namespace) -> tuple[list[Problem], Rules]:
    """The problems, and how they become tokens."""
    if options.model:
        chat = chat_tokenizer(options.model)
        problems = [Problem(f"p{number}", question(number), "") for number in range(options.problems)]
        longest = max(len(chat.prompt_tokens(problem)) for problem in problems)
        return problems, Rules(chat, chat.prompt, longest, options.completion)
    problems = [
        Problem(
            f"p{number}", "".join(chr(97 + (number * 7919 + index * 31) % 26) for index in range(options.prompt)), ""
        )
        for number in range(options.problems)
    ]
    return problems, Rules(
        Bytes(options.vocab), lambda problem: str(problem.prompt), options.prompt, options.completion
    )


def new_model(options: argparse.Namespace, length: int) -> Any:
    """A chat model, or a random one for sequences of some length; no token ends a completion of either."""
    if options.model:
        model = load_model(options.model, dtype="float32")
    else:
        model = tiny_model(
            options.vocab,
            layers=options.layers,
            hidden_size=options.width,
            heads=options.heads,
            kv_heads=options.kv_heads or None,
            intermediate_size=options.mlp or 4 * options.width,
            max_tokens=length,
        )
    sampling = {"do_sample": False} if options.greedy else {"do_sample": True, "top_k": 0}
    model.generation_config = GenerationConfig(**sampling, max_new_tokens=options.completion, pad_token_id=0)
    return model.to(options.device, torch.bfloat16 if options.precision == "bfloat16" else torch.float32)


def play(env: TokenVectorEnv, policy: Any, options: argparse.Namespace, number: int) -> None:
    count = options.problems * options.group
    episodes = [
        Episode(index // options.group, index // options.group, number * count + index) for index in range(count)
    ]
    trajectories = rollout(env, policy, episodes)
    assert all(len(trajectory.tokens) - trajectory.prompt_length == options.completion for trajectory in trajectories)


def padded_prompts(env: TokenVectorEnv, options: argparse.Namespace) -> tuple[torch.Tensor, torch.Tensor]:
    """The prompts of all rows, padded on the left, and which of these tokens count."""
    observation, _ = env.reset(options={"problems": torch.arange(env.num_envs).numpy() // options.group})
    lengths = observation["length"].ravel().tolist()
    tokens = torch.zeros(env.num_envs, max(lengths), dtype=torch.int64)
    mask = torch.zeros_like(tokens)
    for row, length in enumerate(lengths):
        tokens[row, -length:] = torch.from_numpy(observation["tokens"][row, :length].astype("int64"))
        mask[row, -length:] = 1
    return tokens.to(options.device), mask.to(options.device)


@torch.no_grad()
def generate(policy: CausalLMPolicy, prompts: torch.Tensor, mask: torch.Tensor, options: argparse.Namespace) -> None:
    with policy.autocast():
        tokens = policy.model.generate(prompts, attention_mask=mask)
    assert tokens.shape[1] == prompts.shape[1] + options.completion


def cpu_seconds(session: int | None) -> float:
    """Of this process, and of those of a session."""
    own = time.process_time()
    if session is None:
        return own
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        if int(fields[3]) == session:
            own += (int(fields[11]) + int(fields[12])) / TICKS
    return own


def measure(
    sides: dict[str, Callable[[int], None]], rounds: int, session: int | None, device: str
) -> dict[str, dict[str, float]]:
    """Let the sides take turns; the first round is not counted."""
    seen: dict[str, list[tuple[float, float, float]]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            if device == "cuda":
                torch.cuda.reset_peak_memory_stats()
            # The engine waits busily while others have their turn, which is none of their cost.
            engine = session if name == VLLM else None
            cpu, wall = cpu_seconds(engine), time.perf_counter()
            side(number)
            if device == "cuda":
                torch.cuda.synchronize()
            peak = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else 0.0
            seen[name].append((cpu_seconds(engine) - cpu, time.perf_counter() - wall, peak))
    return {
        name: {
            "cpu_s": statistics.median(cpu for cpu, _, _ in turns[1:]),
            "wall_s": statistics.median(wall for _, wall, _ in turns[1:]),
            **({"gpu_peak_mib": max(peak for _, _, peak in turns[1:])} if device == "cuda" else {}),
        }
        for name, turns in seen.items()
    }


def main(argv: Sequence[str] | None = None) -> None:
    options = arguments(argv)
    torch.set_num_threads(options.threads)
    problems, rules = new_rules(options)
    env = TokenVectorEnv(TokenStreams(problems, rules, options.problems * options.group), copy=False)
    length = rules.max_prompt_tokens + options.completion
    precision = "auto" if options.precision == "auto" else "float32"  # of what weights in bfloat16 leave
    config = PolicyConfig(precision=precision, vocab_size=rules.tokenizer.eos_token)
    policy = CausalLMPolicy(new_model(options, length), config)
    temperature = 0.0 if options.greedy else 1.0
    acting = policy.at_temperature(temperature)
    prompts, mask = padded_prompts(env, options)
    sides: dict[str, Callable[[int], None]] = {
        "ours": lambda number: play(env, acting, options, number),
        "generate": lambda number: generate(policy, prompts, mask, options),
    }
    sampler, session = None, None
    if options.vllm_python:
        settings = VLLMConfig(
            python=options.vllm_python,
            engine_args={"max_model_len": length},
            environment={
                "OMP_NUM_THREADS": str(options.threads),
                "VLLM_CPU_OMP_THREADS_BIND": "nobind",
                "VLLM_CPU_KVCACHE_SPACE": "1",
            },
        )
        sampler = VLLMPolicy(policy, settings, stop_tokens=[], max_new_tokens=options.completion)
        sampler.sync()
        assert isinstance(sampler.engine, ProcessEngine)
        session = sampler.engine.pid
        asked = sampler.at_temperature(temperature)
        sides[VLLM] = lambda number: play(env, asked, options, number)
    costs = measure(sides, options.rounds, session, options.device)
    if sampler is not None:
        sampler.close()
    report(costs, options, policy.model.config.get_text_config(), round(float(mask.sum(1).float().mean())))


def report(costs: dict[str, dict[str, float]], options: argparse.Namespace, shape: Any, prompt: int) -> None:
    tokens = options.problems * options.group * options.completion
    print(
        f"{options.problems} x {options.group} completions of {options.completion} tokens, prompts of {prompt}, "
        f"{shape.num_hidden_layers} layers of {shape.hidden_size}, {shape.vocab_size} tokens, precision {options.precision}, "
        f"{'greedy, ' if options.greedy else ''}{options.threads} threads; "
        f"torch {version('torch')}, transformers {version('transformers')}; "
        + (torch.cuda.get_device_name() if options.device == "cuda" else "CPU")
    )
    memory = f"{'GPU MiB':>12}" if options.device == "cuda" else ""
    print(f"{'':10}{'CPU s':>10}{'wall s':>10}{'tokens/s':>12}{memory}")
    for name, cost in costs.items():
        peak = f"{cost['gpu_peak_mib']:12.0f}" if "gpu_peak_mib" in cost else ""
        print(f"{name:10}{cost['cpu_s']:10.3f}{cost['wall_s']:10.3f}{tokens / cost['wall_s']:12.0f}{peak}")
    if options.json:
        record = {"work": {name: value for name, value in vars(options).items() if name != "json"}, "sides": costs}
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
