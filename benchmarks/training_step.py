"""Cost of one GRPO training step, ours and TRL's, side by side in one run.

A step is: sample a group of completions for each of a few problems, score them, and take one optimiser step on all of them.
Both sides use the same Qwen2-shaped model of unmodified `transformers` modules with the same random weights, in float32, and
AdamW. The end-of-sequence token is outside the model's vocabulary, so every completion has the full length and the work is the
same. Each side is a process of its own; they take turns, a few steps at a time, so that both see the same disturbances.

Sides: `ours` computes every completion; `ours, skipping` leaves groups without spread out of the backward pass, which is its
default (`--flat` says how many groups are made to have none); `TRL tuned` is TRL with bfloat16 and activation checkpointing
off, its fastest setting on a CPU; `TRL defaults` has both as TRL sets them.

Reported, medians over rounds: CPU seconds of all threads per step, wall seconds, and the peak of the resident memory above
what it was after the imports. The bound is what the matrix products alone would cost at the rate of one large product on this
machine, with the prompt of a group computed once in sampling and once in learning.

Needs TRL: make test-trl, then .cache/trl/bin/python benchmarks/training_step.py --work P16-C32 P128-C32
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# Run as a file, Python looks for imports in this folder first, where agents.py hides the package of its name.
sys.path[:] = [each for each in sys.path if Path(each).resolve() != Path(__file__).resolve().parent]

SIDES = ("ours", "ours, skipping", "TRL tuned", "TRL defaults")
WARM_UP = 2
"""Steps before the first that is measured."""


@dataclass(frozen=True)
class Work:
    """What one step has to do."""

    layers: int = 4
    width: int = 128
    vocab: int = 512
    problems: int = 8
    group: int = 8
    prompt: int = 16
    completion: int = 32
    flat: float = 0.0
    """Share of the problems whose completions all score the same."""

    @property
    def completions(self) -> int:
        """In one step."""
        return self.problems * self.group


WORKS = {
    "P16-C32": Work(),
    "P128-C32": Work(prompt=128),
    "P64-C8": Work(prompt=64, completion=8),
    "2x4": Work(problems=2, group=4),
    "L6-d256": Work(layers=6, width=256),
    "V32k": Work(vocab=32_000),
}


@dataclass(frozen=True)
class Cost:
    """Of some steps."""

    cpu_s: float
    wall_s: float
    peak_mib: float


Report = Callable[[], bool]
"""Called after each step; False when there is nothing more to do."""


def new_model(work: Work) -> Any:
    from agents import tiny_model

    return tiny_model(
        work.vocab, layers=work.layers, hidden_size=work.width, heads=4, intermediate_size=4 * work.width, seed=0
    )


def prompt_of(number: int, work: Work) -> list[int]:
    """Tokens of a problem, different for each."""
    return [(number * 7919 + place * 104_729) % work.vocab for place in range(work.prompt)]


def score_of(tokens: Sequence[int], flat: bool) -> float:
    return 0.0 if flat else float(sum(tokens) % 2)


def is_flat(number: int, work: Work) -> bool:
    return number % work.problems < round(work.flat * work.problems)


# Ours


class Characters:
    """Token i is the i-th character of a large block of Unicode; the end token comes after the model's last."""

    START = 0x20000
    chat_template: Callable[[Any], str] | None = None

    def __init__(self, vocab: int) -> None:
        self.vocab_size = vocab + 1
        self.eos_token = vocab
        self.fingerprint = f"characters-{vocab}"

    def encode(self, text: str, *, start: bool = False) -> Any:
        import numpy as np

        return np.array([ord(character) - self.START for character in text], dtype=np.int32)

    def token_bytes(self, token: int) -> bytes:
        return b"" if token == self.eos_token else chr(self.START + token).encode()

    def special_token(self, text: str) -> int | None:
        return None


def run_ours(work: Work, skip: bool, report: Report) -> None:
    from agents import GRPO, CausalLMPolicy, GRPOConfig, LearnerConfig
    from rlvr_envs import Rules, TokenStreams, TokenVectorEnv
    from verifiers import Outcome, Problem, Verdict

    tokenizer = Characters(work.vocab)
    problems = [
        Problem(str(number), "".join(chr(tokenizer.START + token) for token in prompt_of(number, work)), number)
        for number in range(work.problems)
    ]

    def verify(completion: str, problem: Problem) -> Verdict:
        tokens = [ord(character) - tokenizer.START for character in completion]
        assert isinstance(problem.reference, int)
        return Verdict(score_of(tokens, is_flat(problem.reference, work)), Outcome.SCORED)

    rules = Rules(
        tokenizer=tokenizer,
        render_prompt=lambda problem: str(problem.prompt),
        max_prompt_tokens=work.prompt,
        max_new_tokens=work.completion,
        verifier=verify,
    )
    env = TokenVectorEnv(TokenStreams(problems, rules, work.completions), copy=False)
    learner = LearnerConfig(learning_rate=1e-6, micro_batch_size=work.completions, skip_zero_advantages=skip)
    config = GRPOConfig(problems_per_step=work.problems, group_size=work.group, learner=learner)
    agent = GRPO(CausalLMPolicy(new_model(work)), config)
    step = 0
    while report():
        step += 1
        agent.learn(env, steps=step)


# TRL


def run_trl(work: Work, tuned: bool, report: Report) -> None:
    import torch
    from datasets import Dataset
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast, PrinterCallback, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    letters = [chr(Characters.START + token) for token in range(work.vocab)]
    inner = Tokenizer(WordLevel({letter: token for token, letter in enumerate([*letters, "<end>"])}, unk_token="<end>"))
    inner.pre_tokenizer = Split(Regex("."), "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>", pad_token=letters[0])
    numbers = range(work.problems)
    prompts = ["".join(letters[token] for token in prompt_of(number, work)) for number in numbers]
    flat = [is_flat(number, work) for number in numbers]

    def reward(completion_ids: list[list[int]], flat: list[bool], **_: Any) -> list[float]:
        assert all(len(tokens) == work.completion for tokens in completion_ids)
        return [score_of(tokens, each) for tokens, each in zip(completion_ids, flat, strict=True)]

    class TurnTaking(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            # The first begins by itself; the turns of the others are given at the end of the one before.
            if state.global_step == 0 and not report():
                control.should_training_stop = True

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if not report():
                control.should_training_stop = True

    folder = tempfile.TemporaryDirectory()  # which TRL wants, and writes nothing to
    tuning = {"bf16": False, "activation_checkpointing": False} if tuned else {}
    config = GRPOConfig(
        output_dir=folder.name,
        use_cpu=not torch.cuda.is_available(),
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        learning_rate=1e-6,
        lr_scheduler_type="constant",
        per_device_train_batch_size=work.completions,
        num_generations=work.group,
        max_completion_length=work.completion,
        max_steps=1_000_000,
        **tuning,
    )
    trainer = GRPOTrainer(
        model=new_model(work),
        reward_funcs=reward,
        args=config,
        train_dataset=Dataset.from_dict({"prompt": prompts, "flat": flat}),
        processing_class=tokenizer,
        callbacks=[TurnTaking()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()


# Taking turns


def memory_mib(field: str) -> float:
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found.group(1)) / 1024


class Meter:
    """Waits for its turn, and says what the steps of a turn cost."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._left = 0
        self._started = (0.0, 0.0)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak that the imports left
        self._baseline = memory_mib("VmRSS")

    def report(self) -> bool:
        if self._left:
            self._left -= 1
            if self._left:
                return True
            cpu, wall = time.process_time() - self._started[0], time.perf_counter() - self._started[1]
            self._connection.send(Cost(cpu, wall, memory_mib("VmHWM") - self._baseline))
        self._left = self._connection.recv()
        self._started = (time.process_time(), time.perf_counter())
        return self._left > 0


def run_side(side: str, work: Work, threads: int, connection: Connection) -> None:
    """What the process of one side does."""
    import torch

    import agents

    torch.set_num_threads(threads)
    agents.GRPO  # noqa: B018 - imported now, and not where memory is counted
    if side.startswith("TRL"):
        from trl import GRPOTrainer  # noqa: F401 - likewise

    meter = Meter(connection)
    if side.startswith("TRL"):
        run_trl(work, side == "TRL tuned", meter.report)
    else:
        run_ours(work, side == "ours, skipping", meter.report)


def measure(work: Work, sides: Sequence[str], *, rounds: int, steps: int, threads: int) -> dict[str, Cost]:
    """The median cost of one step on each side."""
    context = multiprocessing.get_context("spawn")
    connections: dict[str, Connection] = {}
    processes = []
    for side in sides:
        connections[side], theirs = context.Pipe()
        processes.append(context.Process(target=run_side, args=(side, work, threads, theirs), daemon=True))
        processes[-1].start()
        theirs.close()  # so that a side that dies ends the run
    costs: dict[str, list[Cost]] = {side: [] for side in sides}
    for turn in range(rounds + 1):
        for side, connection in connections.items():
            connection.send(steps if turn else WARM_UP)
            cost = connection.recv()
            if turn:
                costs[side].append(Cost(cost.cpu_s / steps, cost.wall_s / steps, cost.peak_mib))
    for connection, process in zip(connections.values(), processes, strict=True):
        connection.send(0)
        process.join()
    return {
        side: Cost(
            statistics.median(cost.cpu_s for cost in found),
            statistics.median(cost.wall_s for cost in found),
            max(cost.peak_mib for cost in found),
        )
        for side, found in costs.items()
    }


# What matrix products alone cost


def floating_point_operations(work: Work) -> float:
    """Of the matrix products of a step that computes each prompt once in sampling and once in learning."""
    weights = work.layers * (4 + 3 * 4) * work.width**2  # four of attention, three of the feed-forward layers
    head = work.vocab * work.width
    own = work.completions * work.completion
    read = work.problems * work.prompt + own
    past = work.prompt + (work.completion + 1) / 2  # what a completion's token looks at, on average
    attention = 2 * work.layers * work.width * (own * past + work.problems * work.prompt**2 / 2)
    forward = 2 * (read * weights + own * head + attention)
    return 4 * forward  # once in sampling; forward, and twice as much backward, in learning


def cpu_seconds_per_operation() -> float:
    """Of one large product in float32, the best of several."""
    import torch

    size = 1024
    left, right = torch.randn(size, size), torch.randn(size, size)
    best = float("inf")
    for _ in range(20):
        started = time.process_time()
        left @ right
        best = min(best, time.process_time() - started)
    return best / (2 * size**3)


# The report


COLUMNS = ("work", "side", "CPU s / step", "TRL tuned / this", "wall s / step", "peak MiB", "CPU s / bound")


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def rows(name: str, result: dict[str, Any]) -> list[str]:
    """A line of the table for each side."""
    reference = result["sides"].get("TRL tuned")
    return [
        row(
            name,
            side,
            f"{cost['cpu_s']:.3f}",
            f"{reference['cpu_s'] / cost['cpu_s']:.2f}" if reference else "",
            f"{cost['wall_s']:.3f}",
            f"{cost['peak_mib']:.0f}",
            f"{cost['cpu_s'] / result['bound_s']:.1f}",
        )
        for side, cost in result["sides"].items()
    ]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", nargs="+", default=list(WORKS), choices=list(WORKS), help="named sizes")
    for field in dataclasses.fields(Work):
        kind = type(field.default)
        parser.add_argument(f"--{field.name}", type=kind, help="in place of that of the named sizes")
    parser.add_argument("--sides", nargs="+", default=list(SIDES[:3]), choices=SIDES)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side")
    parser.add_argument("--steps", type=int, default=3, help="optimiser steps in a turn")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="a file for all figures")
    return parser.parse_args()


def main() -> None:
    args = parse()
    changed = {field.name: getattr(args, field.name) for field in dataclasses.fields(Work)}
    changed = {name: value for name, value in changed.items() if value is not None}
    rate = cpu_seconds_per_operation()
    versions = {package: version(package) for package in ("torch", "transformers", "trl")}
    about = {"python": platform.python_version(), **versions, "threads": args.threads, "load": os.getloadavg()[0]}
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    print(row(*COLUMNS), row(*["---"] * len(COLUMNS)), sep="\n")
    results: dict[str, dict[str, Any]] = {}
    for name in args.work:
        work = dataclasses.replace(WORKS[name], **changed)
        costs = measure(work, args.sides, rounds=args.rounds, steps=args.steps, threads=args.threads)
        results[name] = {
            "work": dataclasses.asdict(work),
            "bound_s": floating_point_operations(work) * rate,
            "sides": {side: dataclasses.asdict(cost) for side, cost in costs.items()},
        }
        print("\n".join(rows(name, results[name])), flush=True)
        if args.json is not None:
            args.json.write_text(json.dumps({"about": about, "results": results}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
