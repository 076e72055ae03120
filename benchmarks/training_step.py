"""Cost of one GRPO training step, ours and TRL's, side by side in one run.

A step is: sample a group of completions for each of a few problems, score them, and take one optimiser step on all of them.
Both sides use the same Qwen2-shaped model of unmodified `transformers` modules with the same random weights, in float32, and
AdamW. The end-of-sequence token is outside the model's vocabulary, so every completion has the full length and the work is the
same. Each side is a process of its own; they take turns, a few steps at a time, so that both see the same disturbances.

Sides: `ours` computes every completion; `ours, skipping` leaves groups without spread out of the backward pass, which is its
default (`--flat` says how many groups are made to have none); `ours, float32` is `ours` without bfloat16, which it chooses
itself for large models on a CPU with instructions for it; `TRL tuned` is TRL with bfloat16 and activation checkpointing off,
its fastest setting on most CPUs; `TRL tuned, bfloat16` has the latter off alone; `TRL defaults` has both as TRL sets them.

`--model FOLDER` takes a published chat model in place of a random one, with questions in its chat template as prompts: 4
problems with 4 completions of 48 tokens, unless options say otherwise. Weights are float32. Every side holds the weights and
the state of AdamW all the time, so choose `--sides` that fit into memory together.

Reported, medians over rounds: CPU seconds of all threads per step, wall seconds, sampled tokens per wall second, how many times
as much TRL takes, tuned (its fastest such side) and by default, and the peak of memory: resident, above what it was after the
imports, or allocated by torch on a GPU. The bound is what the matrix products alone would cost at the rate of one large product
on this device in the side's precision, with the prompt of a group computed once in sampling and once in learning; CPU seconds
are compared with it, and on a GPU wall seconds.

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
from typing import Any, ClassVar, Literal

from benchmarks.common.chat_model import chat_tokenizer, question
from verifiers import Outcome, Problem, Verdict


@dataclass(frozen=True)
class Side:
    """One of those that are compared."""

    trl: bool = False
    skip: bool = False
    """Of ours: leave groups without spread out of the backward pass."""
    precision: Literal["auto", "float32"] = "auto"
    """Of ours."""
    settings: Mapping[str, bool] = field(default_factory=dict)
    """Of TRL, where they are not its defaults."""


SIDES = {
    "ours": Side(),
    "ours, skipping": Side(skip=True),
    "TRL tuned": Side(trl=True, settings={"activation_checkpointing": False, "bf16": False}),
    "TRL defaults": Side(trl=True),
    "ours, float32": Side(precision="float32"),
    "TRL tuned, bfloat16": Side(trl=True, settings={"activation_checkpointing": False}),
}
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
    model: str = ""
    """Folder of a chat model, whose shape the others are then; empty for a random model."""

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
CHAT = Work(problems=4, group=4, completion=48)
"""With a chat model, unless options say otherwise."""


@dataclass(frozen=True)
class Cost:
    """Of some steps."""

    cpu_s: float
    wall_s: float
    peak_mib: float
    half: bool
    """Whether matrix products are computed in bfloat16."""


Report = Callable[[bool], bool]
"""Called after each step with whether products are in bfloat16; False when there is nothing more to do."""


def new_model(work: Work) -> Any:
    from agents import load_model, tiny_model

    if work.model:
        return load_model(work.model, dtype="float32")
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


def score_of(completion: str, flat: bool) -> float:
    return 0.0 if flat else sum(map(ord, completion)) % 97 / 97


def with_model(work: Work, model: str) -> Work:
    """The work with a chat model, with its shape and the mean length of the questions."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(model).get_text_config()
    tokenizer = chat_tokenizer(model)
    lengths = [len(tokenizer.prompt_tokens(problem)) for problem in questions(work)]
    return dataclasses.replace(
        work,
        model=model,
        layers=config.num_hidden_layers,
        width=config.hidden_size,
        vocab=config.vocab_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        mlp=config.intermediate_size,
        prompt=round(statistics.mean(lengths)),
    )


def questions(work: Work) -> list[Problem]:
    """For a chat model."""
    return [Problem(str(number), question(number), number) for number in range(work.problems)]


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


def rules_of(work: Work) -> tuple[list[Problem], dict[str, Any]]:
    """The problems, and how they become tokens."""
    if work.model:
        problems, chat = questions(work), chat_tokenizer(work.model)
        longest = max(len(chat.prompt_tokens(problem)) for problem in problems)
        return problems, {"tokenizer": chat, "render_prompt": chat.prompt, "max_prompt_tokens": longest}
    tokenizer = Characters(work.vocab)
    problems = [
        Problem(str(number), "".join(chr(tokenizer.START + token) for token in prompt_of(number, work)), number)
        for number in range(work.problems)
    ]
    rules = {
        "tokenizer": tokenizer,
        "render_prompt": lambda problem: str(problem.prompt),
        "max_prompt_tokens": work.prompt,
    }
    return problems, rules


def run_ours(work: Work, side: Side, device: str, report: Report) -> None:
    from agents import GRPO, CausalLMPolicy, GRPOConfig, LearnerConfig, PolicyConfig
    from rlvr_envs import Rules, TokenStreams, TokenVectorEnv

    def verify(completion: str, problem: Problem) -> Verdict:
        assert isinstance(problem.reference, int)
        return Verdict(score_of(completion, is_flat(problem.reference, work)), Outcome.SCORED)

    problems, encoding = rules_of(work)
    rules = Rules(**encoding, max_new_tokens=work.completion, verifier=verify)
    env = TokenVectorEnv(TokenStreams(problems, rules, work.completions), copy=False)
    learner = LearnerConfig(learning_rate=1e-6, micro_batch_size=work.at_once, skip_zero_advantages=side.skip)
    config = GRPOConfig(problems_per_step=work.problems, group_size=work.group, learner=learner)
    policy = CausalLMPolicy(new_model(work).to(device), PolicyConfig(precision=side.precision))
    agent = GRPO(policy, config)
    step = 0
    while report(policy.is_half):
        step += 1
        agent.learn(env, steps=step)


# TRL


def chats_of(work: Work) -> tuple[Any, list[Any]]:
    """A chat model's tokenizer with another end token, which is outside the model's vocabulary, and the questions."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(work.model)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    tokenizer.add_special_tokens({"eos_token": "<never>"})
    chats = [[{"role": said.role, "content": said.content} for said in problem.prompt] for problem in questions(work)]
    return tokenizer, chats


def texts_of(work: Work) -> tuple[Any, list[Any]]:
    """A tokenizer of as many characters as a random model has tokens, with the end token behind them, and prompts."""
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast

    letters = [chr(Characters.START + token) for token in range(work.vocab)]
    inner = Tokenizer(WordLevel({letter: token for token, letter in enumerate([*letters, "<end>"])}, unk_token="<end>"))
    inner.pre_tokenizer = Split(Regex("."), "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>", pad_token=letters[0])
    prompts = ["".join(letters[token] for token in prompt_of(number, work)) for number in range(work.problems)]
    return tokenizer, prompts


def run_trl(work: Work, side: Side, device: str, report: Report) -> None:
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    tokenizer, prompts = (chats_of if work.model else texts_of)(work)
    flat = [is_flat(number, work) for number in range(work.problems)]

    def reward(completions: list[Any], completion_ids: list[list[int]], flat: list[bool], **_: Any) -> list[float]:
        assert all(len(tokens) == work.completion for tokens in completion_ids)
        texts = [said if isinstance(said, str) else said[0]["content"] for said in completions]
        return [score_of(text, flat_prompt) for text, flat_prompt in zip(texts, flat, strict=True)]

    class TurnTaking(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            # The first begins by itself; the turns of the others are given at the end of the one before.
            if state.global_step == 0 and not report(config.bf16):
                control.should_training_stop = True

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if not report(config.bf16):
                control.should_training_stop = True

    folder = tempfile.TemporaryDirectory()  # which TRL wants, and writes nothing to
    settings = dict(side.settings)
    if device != "cpu":
        settings.pop("bf16", None)
    model = new_model(work)
    model.generation_config.eos_token_id = None  # what a chat model ends with
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
        **settings,
    )
    trainer = GRPOTrainer(
        model=model,
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

    def report(self, half: bool) -> bool:
        if self._left:
            self._left -= 1
            if self._left:
                return True
            cpu, wall = (now - before for now, before in zip(self._clock(), self._started, strict=True))
            self._connection.send(Cost(cpu, wall, self._peak_mib(), half))
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
    if SIDES[side].trl:
        from trl import GRPOTrainer  # noqa: F401 - likewise

    meter = Meter(connection, device)
    (run_trl if SIDES[side].trl else run_ours)(work, SIDES[side], device, meter.report)


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
                costs[side].append(Cost(cost.cpu_s / steps, cost.wall_s / steps, cost.peak_mib, cost.half))
    for connection, process in zip(connections.values(), processes, strict=True):
        connection.send(0)
        process.join()
    return {
        side: Cost(
            statistics.median(cost.cpu_s for cost in turns),
            statistics.median(cost.wall_s for cost in turns),
            max(cost.peak_mib for cost in turns),
            turns[0].half,
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


@functools.cache
def seconds_per_operation(device: str, half: bool) -> float:
    """Of one large product, the best of several, in bfloat16 or float32: CPU seconds, on a GPU wall seconds."""
    import torch

    size, clock = (1024, time.process_time) if device == "cpu" else (8192, time.perf_counter)
    dtype = torch.bfloat16 if half else torch.float32
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

    def report(half: bool) -> bool:
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
        run_ours(work, SIDES["ours"], device, report)
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
    "TRL defaults / this",
    "peak MiB",
    "over the bound",
)


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def rows(name: str, result: dict[str, Any], device: str) -> list[str]:
    """A line of the table for each side; sides are compared by CPU seconds, on a GPU by wall seconds."""
    compared = "cpu_s" if device == "cpu" else "wall_s"
    tuned, defaults = (
        min((cost[compared] for side, cost in result["sides"].items() if side.startswith(start)), default=None)
        for start in ("TRL tuned", "TRL defaults")
    )
    return [
        row(
            name,
            side,
            f"{cost['cpu_s']:.3f}",
            f"{cost['wall_s']:.3f}",
            f"{result['tokens'] / cost['wall_s']:.0f}",
            f"{tuned / cost[compared]:.2f}" if tuned else "",
            f"{defaults / cost[compared]:.2f}" if defaults else "",
            f"{cost['peak_mib']:.0f}",
            f"{cost[compared] / cost['bound_s']:.1f}",
        )
        for side, cost in result["sides"].items()
    ]


SHAPE = ("layers", "width", "vocab", "prompt", "heads", "kv_heads", "mlp")
"""Settings that a chat model decides."""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", nargs="+", default=list(WORKS), choices=[*WORKS, *LARGE], help="named sizes")
    for setting in dataclasses.fields(Work):
        parser.add_argument(
            f"--{setting.name.replace('_', '-')}",
            type=type(setting.default),
            help="in place of that of the named sizes",
        )
    parser.add_argument("--sides", nargs="+", default=list(SIDES)[:3], choices=SIDES)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side")
    parser.add_argument("--steps", type=int, default=3, help="optimiser steps in a turn")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--profile", action="store_true", help="say where the time of our side goes, and no more")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    args = parser.parse_args(arguments)
    own = [name for name in SHAPE if args.model and getattr(args, name) is not None]
    if own:
        parser.error(f"--model has a shape and prompts of its own: leave out --{own[0].replace('_', '-')}")
    if args.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            parser.error("--device cuda: torch finds no GPU here")
    if not args.profile and importlib.util.find_spec("trl") is None:
        args.sides = [side for side in args.sides if not SIDES[side].trl]
        if not args.sides:
            parser.error("TRL is not installed: make test-trl, and take the Python in .cache/trl/bin")
        print("TRL is not installed (make test-trl): measuring ours alone")
    return args


def described(args: argparse.Namespace) -> dict[str, Any]:
    """What the figures depend on beside the sizes."""
    packages = ["torch", "transformers"]
    if not args.profile and any(SIDES[side].trl for side in args.sides):
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
    print(row(*COLUMNS), row(*["---"] * len(COLUMNS)), sep="\n")
    for name, work in works.items():
        costs = measure(
            work, args.sides, rounds=args.rounds, steps=args.steps, threads=args.threads, device=args.device
        )
        result = {
            "work": dataclasses.asdict(work),
            "tokens": work.completions * work.completion,
            "sides": {
                side: dataclasses.asdict(cost)
                | {"bound_s": floating_point_operations(work) * seconds_per_operation(args.device, cost.half)}
                for side, cost in costs.items()
            },
        }
        print("\n".join(rows(name, result, args.device)), flush=True)
        yield name, result


def works_of(args: argparse.Namespace, model: str) -> dict[str, Work]:
    """The named sizes with what options change, or those of a chat model."""
    changed = {field.name: getattr(args, field.name) for field in dataclasses.fields(Work) if field.name != "model"}
    changed = {name: value for name, value in changed.items() if value is not None}
    if model:
        return {"chat model": with_model(dataclasses.replace(CHAT, **changed), model)}
    return {name: dataclasses.replace({**WORKS, **LARGE}[name], **changed) for name in args.work}


@contextlib.contextmanager
def model_folder(model: str | None) -> Iterator[str]:
    """The folder of a model as `from_pretrained` reads it, also of one in a GGUF file; empty for none."""
    if model is None:
        yield ""
        return
    from agents.policies.transformers.loading import whole_model_folder

    with whole_model_folder(model) as folder:
        yield str(folder)


def main(arguments: Sequence[str] | None = None) -> None:
    args = parse(arguments)
    about = described(args)
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    results = {}
    with model_folder(args.model) as model:
        for name, result in (profile_works if args.profile else measure_works)(works_of(args, model), args):
            results[name] = result
            if args.json is not None:
                args.json.write_text(
                    json.dumps({"about": about, "results": results}, indent=2) + "\n", encoding="utf-8"
                )


if __name__ == "__main__":
    main()
