"""Cost of one GRPO training step, ours and TRL's, side by side in one run.

A step is: sample a group of completions for each of a few problems, score them, and take one optimiser step on all of them.
Both sides use the same Qwen2-shaped model of unmodified `transformers` modules with the same random weights, in float32, and
AdamW. The end-of-sequence token is outside the model's vocabulary, so every completion has the full length and the work is the
same. Each side is a process of its own; they take turns, a few steps at a time, so that both see the same disturbances.

Sides: `ours` computes every completion; `ours, skipping` leaves groups without spread out of the backward pass, which is its
default (`--flat` says how many groups are made to have none); `TRL tuned` is TRL with bfloat16 and activation checkpointing
off, its fastest setting on a CPU; `TRL defaults` has both as TRL sets them.

Reported, medians over rounds: CPU seconds of all threads per step, wall seconds, sampled tokens per wall second, and the peak
of memory: resident, above what it was after the imports, or allocated by torch on a GPU. The bound is what the matrix products
alone would cost at the rate of one large product on this device, with the prompt of a group computed once in sampling and once
in learning; CPU seconds are compared with it, and on a GPU wall seconds.

On a GPU both sides compute matrix products in bfloat16, which is what either does there by itself.

`--profile` runs our side alone and says where its time goes: the time of each operation by itself, for prefill, decoding,
choosing tokens, the forward pass of training, the backward pass and the optimiser. The profiler slows small operations down, so
its shares say more than its seconds.

TRL's sides need TRL: make test-trl, then .cache/trl/bin/python benchmarks/training_step.py --work P16-C32 P128-C32
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import importlib.util
import json
import multiprocessing
import os
import platform
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

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
    heads: int = 4
    kv_heads: int = 0
    """Heads of keys and values; 0: as many as of queries."""
    mlp: int = 0
    """Width of the feed-forward layers; 0: four times the model's."""
    micro: int = 0
    """Completions in one forward and backward pass; 0: all."""

    @property
    def completions(self) -> int:
        """In one step."""
        return self.problems * self.group

    @property
    def feed_forward(self) -> int:
        """Width of the feed-forward layers."""
        return self.mlp or 4 * self.width

    @property
    def at_once(self) -> int:
        """Completions in one forward and backward pass."""
        return self.micro or self.completions


WORKS = {
    "P16-C32": Work(),
    "P128-C32": Work(prompt=128),
    "P64-C8": Work(prompt=64, completion=8),
    "2x4": Work(problems=2, group=4),
    "L6-d256": Work(layers=6, width=256),
    "V32k": Work(vocab=32_000),
}
LARGE = {
    "Qwen2.5-0.5B": Work(
        layers=24, width=896, heads=14, kv_heads=2, mlp=4864, vocab=151_936, prompt=256, completion=256, micro=16
    ),
}
"""For a GPU: a random model of that one's shape."""


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
        work.vocab,
        layers=work.layers,
        hidden_size=work.width,
        heads=work.heads,
        kv_heads=work.kv_heads or None,
        intermediate_size=work.feed_forward,
        seed=0,
    )


def prompt_of(number: int, work: Work) -> list[int]:
    """Tokens of a problem, different for each."""
    return [(number * 7919 + index * 104_729) % work.vocab for index in range(work.prompt)]


def score_of(tokens: Sequence[int], flat: bool) -> float:
    return 0.0 if flat else float(sum(tokens) % 2)


def is_flat(number: int, work: Work) -> bool:
    return number % work.problems < round(work.flat * work.problems)


# Ours


class Characters:
    """Token i is the i-th character of a large block of Unicode; the end token comes after the model's last."""

    START = 0x20000
    chat_template: Callable[[Any], str] | None = None
    special_tokens: ClassVar[dict[str, int]] = {}

    def __init__(self, vocab: int) -> None:
        self.vocab_size = vocab + 1
        self.eos_token = vocab
        self.fingerprint = f"characters-{vocab}"

    def encode(self, text: str, *, start: bool = False) -> Any:
        import numpy as np

        return np.array([ord(character) - self.START for character in text], dtype=np.int32)

    def token_bytes(self, token: int) -> bytes:
        return b"" if token == self.eos_token else chr(self.START + token).encode()


def run_ours(work: Work, skip: bool, device: str, report: Report) -> None:
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
    learner = LearnerConfig(learning_rate=1e-6, micro_batch_size=work.at_once, skip_zero_advantages=skip)
    config = GRPOConfig(problems_per_step=work.problems, group_size=work.group, learner=learner)
    agent = GRPO(CausalLMPolicy(new_model(work).to(device)), config)
    step = 0
    while report():
        step += 1
        agent.learn(env, steps=step)


# TRL


def run_trl(work: Work, tuned: bool, device: str, report: Report) -> None:
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
        return [score_of(tokens, flat_prompt) for tokens, flat_prompt in zip(completion_ids, flat, strict=True)]

    class TurnTaking(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            # The first begins by itself; the turns of the others are given at the end of the one before.
            if state.global_step == 0 and not report():
                control.should_training_stop = True

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if not report():
                control.should_training_stop = True

    folder = tempfile.TemporaryDirectory()  # which TRL wants, and writes nothing to
    tuning = {"activation_checkpointing": False} if tuned else {}
    if tuned and device == "cpu":
        tuning["bf16"] = False
    config = GRPOConfig(
        output_dir=folder.name,
        use_cpu=device == "cpu",
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        learning_rate=1e-6,
        lr_scheduler_type="constant",
        per_device_train_batch_size=work.at_once,
        gradient_accumulation_steps=work.completions // work.at_once,
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
    match = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert match is not None
    return int(match.group(1)) / 1024


class Meter:
    """Waits for its turn, and says what the steps of a turn cost."""

    def __init__(self, connection: Connection, device: str) -> None:
        self._connection = connection
        self._device = device
        self._left = 0
        self._started = (0.0, 0.0)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak that the imports left
        self._baseline = memory_mib("VmRSS")

    def report(self) -> bool:
        if self._left:
            self._left -= 1
            if self._left:
                return True
            cpu, wall = (now - before for now, before in zip(self._clock(), self._started, strict=True))
            self._connection.send(Cost(cpu, wall, self._peak_mib()))
        self._left = self._connection.recv()
        self._started = self._clock()
        return self._left > 0

    def _clock(self) -> tuple[float, float]:
        """CPU and wall seconds, once the device has done what it was told to."""
        synchronize(self._device)
        return time.process_time(), time.perf_counter()

    def _peak_mib(self) -> float:
        if self._device == "cpu":
            return memory_mib("VmHWM") - self._baseline
        import torch

        return torch.cuda.max_memory_allocated() / 2**20


def synchronize(device: str) -> None:
    """Wait until the device has done what it was told to."""
    if device != "cpu":
        import torch

        torch.cuda.synchronize()


def run_side(side: str, work: Work, threads: int, device: str, connection: Connection) -> None:
    """What the process of one side does."""
    import torch

    import agents

    torch.set_num_threads(threads)
    agents.GRPO  # noqa: B018 - imported now, and not where memory is counted
    if side.startswith("TRL"):
        from trl import GRPOTrainer  # noqa: F401 - likewise

    meter = Meter(connection, device)
    if side.startswith("TRL"):
        run_trl(work, side == "TRL tuned", device, meter.report)
    else:
        run_ours(work, side == "ours, skipping", device, meter.report)


def measure(work: Work, sides: Sequence[str], *, rounds: int, steps: int, threads: int, device: str) -> dict[str, Cost]:
    """The median cost of one step on each side."""
    context = multiprocessing.get_context("spawn")
    connections: dict[str, Connection] = {}
    processes = []
    for side in sides:
        connections[side], theirs = context.Pipe()
        processes.append(context.Process(target=run_side, args=(side, work, threads, device, theirs), daemon=True))
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
            statistics.median(cost.cpu_s for cost in turns),
            statistics.median(cost.wall_s for cost in turns),
            max(cost.peak_mib for cost in turns),
        )
        for side, turns in costs.items()
    }


# What matrix products alone cost


def floating_point_operations(work: Work) -> float:
    """Of the matrix products of a step that computes each prompt once in sampling and once in learning."""
    shared = (work.kv_heads or work.heads) / work.heads  # of keys and values, beside those of queries and outputs
    weights = work.layers * work.width * ((2 + 2 * shared) * work.width + 3 * work.feed_forward)
    head = work.vocab * work.width
    own = work.completions * work.completion
    read = work.problems * work.prompt + own
    past = work.prompt + (work.completion + 1) / 2  # what a completion's token looks at, on average
    attention = 2 * work.layers * work.width * (own * past + work.problems * work.prompt**2 / 2)
    forward = 2 * (read * weights + own * head + attention)
    return 4 * forward  # once in sampling; forward, and twice as much backward, in learning


def seconds_per_operation(device: str) -> float:
    """Of one large product, the best of several: CPU seconds in float32, on a GPU wall seconds in bfloat16."""
    import torch

    size, dtype, clock = (1024, torch.float32, time.process_time)
    if device != "cpu":
        size, dtype, clock = (8192, torch.bfloat16, time.perf_counter)
    left, right = (torch.randn(size, size, dtype=dtype, device=device) for _ in range(2))
    best = float("inf")
    for _ in range(20):
        synchronize(device)
        started = clock()
        left @ right
        synchronize(device)
        best = min(best, clock() - started)
    return best / (2 * size**3)


# Where our time goes

PHASES = ("prefill", "decode", "choose", "training forward", "backward", "optimiser")
OPERATIONS_SHOWN = 8


@dataclass
class Phase:
    """One phase of all profiled steps; times in seconds."""

    wall_s: float = 0.0
    operations: dict[str, list[float]] = field(default_factory=dict)
    """For each operation: calls, seconds of the CPU and of the GPU in it and in no other that it called."""

    def in_operations_s(self) -> float:
        """Of the CPU; what is left of the wall time is Python between the operations, and waiting for the GPU."""
        return sum(cpu for _, cpu, _ in self.operations.values())

    def on_device_s(self) -> float:
        """Of the GPU."""
        return sum(gpu for _, _, gpu in self.operations.values())


@contextlib.contextmanager
def phases_marked() -> Iterator[None]:
    """Inside, the profiler sees when each phase begins and ends."""
    import torch

    from agents.policies.transformers.acting import Actor
    from agents.policies.transformers.kv_cache import RowCache
    from agents.policies.transformers.policy import CausalLMPolicy

    marked: list[tuple[Any, str, str]] = [
        (RowCache, "prefill", "prefill"),
        (RowCache, "append", "decode"),
        (Actor, "_choose", "choose"),
        (CausalLMPolicy, "read", "training forward"),
        (torch.Tensor, "backward", "backward"),
        (torch.optim.AdamW, "step", "optimiser"),
    ]

    def marking(function: Callable[..., Any], phase: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with torch.profiler.record_function(phase):
                return function(*args, **kwargs)

        return call

    before = [getattr(owner, name) for owner, name, _ in marked]
    for (owner, name, phase), function in zip(marked, before, strict=True):
        setattr(owner, name, marking(function, phase))
    try:
        yield
    finally:
        for (owner, name, _), function in zip(marked, before, strict=True):
            setattr(owner, name, function)


def profile(work: Work, steps: int, device: str) -> tuple[dict[str, Phase], float]:
    """What the phases of our steps cost, and the wall seconds of the steps in all."""
    from torch.profiler import ProfilerActivity, profile as recording

    recorder = recording(
        activities=[ProfilerActivity.CPU, *([] if device == "cpu" else [ProfilerActivity.CUDA])], acc_events=True
    )
    times: list[float] = []

    def report() -> bool:
        synchronize(device)
        times.append(time.perf_counter())
        done = len(times) - 1 - WARM_UP
        if done == 0:
            recorder.start()
            times[-1] = time.perf_counter()
        if done == steps:
            recorder.stop()
        return done < steps

    with phases_marked():
        run_ours(work, False, device, report)
    return by_phase(recorder.events()), times[-1] - times[WARM_UP]


def by_phase(events: Sequence[Any]) -> dict[str, Phase]:
    """Events of the profiler, each in the phase in which it began: the backward pass has threads of its own."""
    from torch.autograd import DeviceType

    phases = {name: Phase() for name in PHASES}
    ours = sorted(
        (item for item in events if item.device_type == DeviceType.CPU),
        key=lambda recorded: recorded.time_range.start,
    )
    current, end = "", -1.0
    for event in ours:
        if event.name in phases and event.time_range.start >= end:
            current, end = event.name, event.time_range.end
            phases[current].wall_s += (end - event.time_range.start) / 1e6
        elif event.time_range.start < end and not event.is_user_annotation:
            totals = phases[current].operations.setdefault(event.name, [0, 0.0, 0.0])
            totals[0] += 1
            totals[1] += event.self_cpu_time_total / 1e6
            totals[2] += event.self_device_time_total / 1e6
    return phases


def profile_table(phases: Mapping[str, Phase], wall_s: float, steps: int) -> list[str]:
    """A line for each phase, and below it one for each of its dearest operations; times of one step."""
    lines = [row("phase", "operation", "calls", "CPU ms", "GPU ms", "share"), row(*["---"] * 6)]
    for name, phase in phases.items():
        operations = sorted(phase.operations.items(), key=lambda entry: -max(entry[1][1:]))
        between = phase.wall_s - phase.in_operations_s()
        lines.append(
            profile_row(f"**{name}**", "", "", phase.wall_s, phase.on_device_s(), phase.wall_s / wall_s, steps)
        )
        for operation, (calls, cpu, gpu) in operations[:OPERATIONS_SHOWN]:
            lines.append(profile_row("", f"`{operation}`", f"{calls / steps:.0f}", cpu, gpu, cpu / wall_s, steps))
        rest = operations[OPERATIONS_SHOWN:]
        cpu, gpu = (sum(entry[1][which] for entry in rest) for which in (1, 2))
        lines.append(profile_row("", "other operations", "", cpu, gpu, cpu / wall_s, steps))
        lines.append(profile_row("", "between operations", "", between, 0.0, between / wall_s, steps))
    left = wall_s - sum(phase.wall_s for phase in phases.values())
    lines.append(profile_row("**everything else**", "", "", left, 0.0, left / wall_s, steps))
    return lines


def profile_row(name: str, operation: str, calls: str, cpu: float, gpu: float, share: float, steps: int) -> str:
    return row(name, operation, calls, f"{1e3 * cpu / steps:.2f}", f"{1e3 * gpu / steps:.2f}", f"{share:.1%}")


# The report


COLUMNS = (
    "work",
    "side",
    "CPU s / step",
    "wall s / step",
    "tokens / s",
    "TRL tuned / this",
    "peak MiB",
    "over the bound",
)


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def rows(name: str, result: dict[str, Any], device: str) -> list[str]:
    """A line of the table for each side; sides are compared by CPU seconds, on a GPU by wall seconds."""
    compared = "cpu_s" if device == "cpu" else "wall_s"
    reference = result["sides"].get("TRL tuned")
    return [
        row(
            name,
            side,
            f"{cost['cpu_s']:.3f}",
            f"{cost['wall_s']:.3f}",
            f"{result['tokens'] / cost['wall_s']:.0f}",
            f"{reference[compared] / cost[compared]:.2f}" if reference else "",
            f"{cost['peak_mib']:.0f}",
            f"{cost[compared] / result['bound_s']:.1f}",
        )
        for side, cost in result["sides"].items()
    ]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", nargs="+", default=list(WORKS), choices=[*WORKS, *LARGE], help="named sizes")
    for setting in dataclasses.fields(Work):
        parser.add_argument(
            f"--{setting.name.replace('_', '-')}",
            type=type(setting.default),
            help="in place of that of the named sizes",
        )
    parser.add_argument("--sides", nargs="+", default=list(SIDES[:3]), choices=SIDES)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side")
    parser.add_argument("--steps", type=int, default=3, help="optimiser steps in a turn")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--profile", action="store_true", help="say where the time of our side goes, and no more")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    args = parser.parse_args(arguments)
    if args.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            parser.error("--device cuda: torch finds no GPU here")
    if not args.profile and importlib.util.find_spec("trl") is None:
        args.sides = [side for side in args.sides if not side.startswith("TRL")]
        if not args.sides:
            parser.error("TRL is not installed: make test-trl, and take the Python in .cache/trl/bin")
        print("TRL is not installed (make test-trl): measuring ours alone")
    return args


def described(args: argparse.Namespace) -> dict[str, Any]:
    """What the figures depend on beside the sizes."""
    packages = ["torch", "transformers"]
    if not args.profile and any(side.startswith("TRL") for side in args.sides):
        packages.append("trl")
    about = {"python": platform.python_version(), **{package: version(package) for package in packages}}
    about |= {"device": args.device, "threads": args.threads, "load": os.getloadavg()[0]}
    if args.device == "cuda":
        import torch

        about["device"] = torch.cuda.get_device_name()
    return about


Results = Iterator[tuple[str, dict[str, Any]]]
"""The name of each work and its figures, which have been printed."""


def profile_works(works: Mapping[str, Work], args: argparse.Namespace) -> Results:
    """Print where the time of our side goes."""
    import torch

    torch.set_num_threads(args.threads)
    for name, work in works.items():
        phases, wall_s = profile(work, args.steps, args.device)
        print(f"\n{name}: {1e3 * wall_s / args.steps:.1f} ms of wall time per step, under the profiler\n")
        print("\n".join(profile_table(phases, wall_s, args.steps)), flush=True)
        figures = {phase: dataclasses.asdict(measured) for phase, measured in phases.items()}
        yield name, {"work": dataclasses.asdict(work), "steps": args.steps, "wall_s": wall_s, "phases": figures}


def measure_works(works: Mapping[str, Work], args: argparse.Namespace) -> Results:
    """Print what a step costs on each side."""
    rate = seconds_per_operation(args.device)
    print(row(*COLUMNS), row(*["---"] * len(COLUMNS)), sep="\n")
    for name, work in works.items():
        costs = measure(
            work, args.sides, rounds=args.rounds, steps=args.steps, threads=args.threads, device=args.device
        )
        result = {
            "work": dataclasses.asdict(work),
            "tokens": work.completions * work.completion,
            "bound_s": floating_point_operations(work) * rate,
            "sides": {side: dataclasses.asdict(cost) for side, cost in costs.items()},
        }
        print("\n".join(rows(name, result, args.device)), flush=True)
        yield name, result


def main(arguments: Sequence[str] | None = None) -> None:
    args = parse(arguments)
    changed = {field.name: getattr(args, field.name) for field in dataclasses.fields(Work)}
    changed = {name: value for name, value in changed.items() if value is not None}
    works = {name: dataclasses.replace({**WORKS, **LARGE}[name], **changed) for name in args.work}
    about = described(args)
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    results = {}
    for name, result in (profile_works if args.profile else measure_works)(works, args):
        results[name] = result
        if args.json is not None:
            args.json.write_text(json.dumps({"about": about, "results": results}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
