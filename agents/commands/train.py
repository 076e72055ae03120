"""`rlvr train`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import itertools
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from agents.agent import Agent
from agents.commands.common import (
    DEVICE,
    check_at_least,
    env_arguments,
    folder_name,
    make_any_vec,
    redacted_pairs,
    say_prompt,
    say_stops,
    shown_warnings,
    verifier_spec,
    with_options,
)
from agents.commands.main import value_of
from agents.commands.policies import policy_for, sampler_for, say_device
from agents.commands.problems import with_gold
from agents.config import AgentConfig, no_effect
from agents.console.counting import counted
from agents.console.progress import progress
from agents.console.terminal import TerminalConsole
from agents.distributed.launched import is_restart
from agents.distributed.ranks import Gathering, Ranks, Sharding, active_ranks
from agents.files.json_files import differences, plain
from agents.files.outputs import check_folder
from agents.files.versions import package_versions
from agents.interrupts import sigterm_interrupts
from agents.policies.devices import perceptron_device
from agents.policies.mlp import MLPPolicy
from agents.policies.transformers.config import PolicyConfig, Precision
from agents.policies.transformers.lora import add_lora
from agents.policies.transformers.memory import Checkpointing
from agents.registry import AGENTS, TABULAR_AGENTS, VALUE_AGENTS, agent_classes
from agents.results.plots import TrainingCurve, bands, plot
from agents.rollouts.action_tokens import shows_vectors
from agents.rollouts.vector_adapter import with_token_info
from agents.tabular import TabularAgent
from agents.training.learning_rate import describe_choice
from agents.training.loggers import check_loggers
from agents.training.run import BEST_OVER, CONFIG, Run, read_config
from rlvr_envs import TaskEnv, TokenVectorEnv, environment_id, find_environment
from verifiers import CheckpointError, InvalidArgumentError, RLVRError
from verifiers.devices import using_device

if TYPE_CHECKING:
    from agents.commands.train_tabular import TabularOptions

_FREE_TO_CHANGE = {
    "steps",
    "token_budget",
    "resume",
    "checkpoint_every",
    "keep",
    "log_rollouts",
    "loggers",
    "run_folder",
    "device",
    "nproc",
    "max_restarts",
    "gather",
    "shard",
    "offload",
    "rank_timeout",
}
"""Options that may change when a run is resumed. Only `steps` can affect results, and only through a schedule. (Another
`num_envs`, `device`, `nproc` or `shard` changes rounding.)"""
_POLICY = ("temperature", "precision", "checkpointing", "shared_prefix", "max_cached_tokens", "fast")
"""Options that are settings of the policy."""
_OF_SEVERAL_PROCESSES = ("gather", "rank_timeout")
"""Options that have no effect on one process."""
_FOR_LANGUAGE = ("model", "lora_rank", "engine", "verifier", "reward_model", "gold_verifier")
"""Options that a multilayer perceptron, and an environment without completions, do not have."""


@dataclass(frozen=True)
class TrainOptions:
    """Options shared by the training of all agents."""

    env: str
    """Environment, such as Addition, rlvr/GSM8K-v0, or one of your own, my_envs:MyEnv."""
    steps: int = 100
    """Total number of training steps; schedules end there unless schedule_steps is set."""
    token_budget: int | None = None
    """Number of sampled tokens after which training ends, at the end of the step that reaches it, even before --steps."""
    model: str = "tiny"
    """Folder or Hugging Face name of the model; "tiny" creates a small transformer with random weights, or where observations
    are vectors, as in CartPole-v1, a multilayer perceptron."""
    hidden: tuple[int, ...] = ()
    """Width of each hidden layer of that multilayer perceptron, by default 64 64 with tanh units, and 256 256 with rectifiers
    for dqn."""
    run_folder: Path | None = None
    """Folder for metrics and checkpoints; by default runs/AGENT-ENVIRONMENT."""
    resume: bool = False
    """Continue from the last intact checkpoint in the run's folder, or from the beginning if there is none yet; the other
    options must be those that the run was started with."""
    split: str = "train"
    """Split of the data set to learn from."""
    num_envs: int = 128
    """Number of episodes played at once."""
    temperature: float = 1.0
    """Sampling temperature, which also divides the logits whose log-probabilities are trained."""
    lora_rank: int | None = None
    """Rank of the LoRA adapters to train in place of the model's own weights; None trains all weights."""
    device: str = DEVICE
    """Device for models: cpu, cuda, xpu, mps, or one of several, such as cuda:1; "auto" is that of the variable RLVR_DEVICE, or
    else the first of cuda, xpu and mps that is available."""
    precision: Precision = "auto"
    """Precision of matrix products; "auto" is bfloat16 on a GPU that supports it, and float32 otherwise."""
    checkpointing: Checkpointing = "auto"
    """Whether the backward pass recomputes activations instead of keeping them; "auto" does so if they would not fit in the
    memory of a GPU."""
    shared_prefix: bool = True
    """Compute the common prefix of a group's completions once, where that is faster."""
    max_cached_tokens: int | None = None
    """Maximum number of tokens in the KV cache when sampling, which limits how many long episodes are played at once. None
    uses the free memory of a GPU, and sets no limit on a CPU."""
    fast: bool = True
    """Use the optimisations of docs/speed.md; --no-fast disables them for comparison."""
    checkpoint_every: int = 50
    """Number of steps between checkpoints."""
    keep: int | None = 2
    """Number of most recent checkpoints to keep, besides the one with the best mean reward; None keeps all."""
    log_rollouts: int = 4
    """Number of completions of each step to write to rollouts.jsonl in the run's folder, with advantages; 0 writes none."""
    loggers: tuple[str, ...] = ("tensorboard",)
    """Loggers that get the metrics besides metrics.jsonl: tensorboard, wandb or trackio; without a name there are no others."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as max_new_tokens=64 or prompt=boxed_chat."""
    verifier: str | None = None
    """Verifier to use in place of the environment's own: a name, rewards.py:function, or a file, my_verifier.toml."""
    verifier_args: tuple[str, ...] = ()
    """Arguments of the verifier, each as name=value."""
    reward_model: str | None = None
    """Folder or Hugging Face name of a reward model to use as the verifier."""
    gold_verifier: str | None = None
    """Verifier that is asked but not trained on, to see whether the one in --verifier or --reward-model is hacked:
    environment for the environment's own, or as for --verifier. Its score is logged as gold_reward."""
    engine: Literal["torch", "vllm"] = "torch"
    """Engine used for sampling: torch, with the model being trained, or vLLM with its weights."""
    engine_args: tuple[str, ...] = ()
    """Arguments of vLLM, each as name=value: settings of VLLMConfig, such as server=http://localhost:8000, and arguments of
    vllm.LLM, such as gpu_memory_utilization=0.4."""
    nproc: int = 1
    """Number of processes on this machine that train together, each on a GPU of its own where there are GPUs; on several
    machines use torchrun -m agents train. See docs/scale.md."""
    max_restarts: int = 0
    """Number of times that all processes are started again from the last checkpoint after one has died; with --nproc."""
    gather: Gathering = "auto"
    """What of each episode goes to all processes: whole trajectories, which divides passes evenly; rows, only the numbers of
    each completion, so that each process trains on what it played; or auto, rows with more than 32 processes."""
    shard: Literal["none", "fsdp"] = "none"
    """Division of weights, gradients and the optimiser's state among processes: none, so that each holds all of them, or
    fsdp, for models that do not fit one GPU; with --nproc or torchrun."""
    offload: bool = False
    """Keep the parts that --shard fsdp makes in the CPU's memory between passes, and make optimiser steps there."""
    rank_timeout: float = 1800.0
    """Seconds to wait for a process before it counts as hung; more than writing a checkpoint takes."""

    def __post_init__(self) -> None:
        at_least_one = (
            "steps",
            "token_budget",
            "checkpoint_every",
            "num_envs",
            "keep",
            "lora_rank",
            "max_cached_tokens",
            "nproc",
            "rank_timeout",
        )
        check_at_least(1, **{name: getattr(self, name) for name in at_least_one})
        check_at_least(1, hidden=min(self.hidden, default=None))
        check_at_least(0, temperature=self.temperature, log_rollouts=self.log_rollouts, max_restarts=self.max_restarts)
        if self.max_restarts and self.nproc == 1:
            raise InvalidArgumentError("--max-restarts needs --nproc of at least 2; torchrun has an option of its own")
        if self.offload and self.shard == "none":
            raise InvalidArgumentError(
                "--offload needs --shard fsdp, whose parts of weights it keeps in the CPU's memory"
            )
        if self.shard == "fsdp" and self.engine == "vllm":
            raise InvalidArgumentError(
                "--shard fsdp samples with the torch engine: vLLM takes the weights of one process that has all of them"
            )
        check_loggers(self.loggers)

    def launcher(self) -> Callable[[Sequence[str]], int] | None:
        """What runs the command's arguments in several processes; None for one."""
        if self.nproc == 1:
            return None
        most = _PROCESSES_FOR_A_CPU * (os.cpu_count() or 1)
        if self.nproc > most:
            raise InvalidArgumentError(
                f"--nproc must be at most {most} here, {_PROCESSES_FOR_A_CPU} for each CPU; got {self.nproc}"
            )
        from agents.distributed.launch import launch

        return functools.partial(launch, processes=self.nproc, max_restarts=self.max_restarts)


_PROCESSES_FOR_A_CPU = 8


_NAMED = AGENTS | VALUE_AGENTS | TABULAR_AGENTS


class AgentCommands(Mapping[str, str]):
    """The agents with their summaries, and the options of the command that trains each."""

    def __getitem__(self, name: str) -> str:
        return _NAMED[name].summary

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMED)

    def __len__(self) -> int:
        return len(_NAMED)

    def load(self, name: str, *arguments: str) -> type[TrainOptions] | type[TabularOptions]:
        """Return the dataclass of the common options and the agent's own settings.

        Args:
            name: As for `agent_classes`.
            arguments: The rest of the command line, whose environment decides on the defaults: see `AgentConfig.for_control`.

        Raises:
            UnknownNameError: If there is no such agent; the message suggests the nearest.
            InvalidArgumentError: If a custom agent can't be imported.
        """
        if name in TABULAR_AGENTS:
            from agents.commands.train_tabular import tabular_command

            return tabular_command(name)
        cls, config_cls = agent_classes(name)
        make_default = config_cls.for_control if _names_control(arguments) else config_cls
        summary = _NAMED[name].summary if name in _NAMED else f"the custom agent {name}"

        def run(self: Any, console: Console) -> int:
            """Train, and print the folder of the results."""
            with using_device(self.device):
                return _train(cls, self, self.config, console)

        return dataclasses.make_dataclass(
            f"Train{cls.__name__}",
            [("config", config_cls, field(default_factory=make_default))],
            bases=(TrainOptions,),
            namespace={"run": run, "__doc__": f"Train with {cls.__name__}: {summary}."},
            frozen=True,
        )


def _names_control(arguments: Sequence[str]) -> bool:
    """Whether a command line names an environment whose observations are vectors."""
    name = value_of("--env", arguments)
    if name is None:
        return False
    later = itertools.dropwhile(lambda word: word != "--env-args", arguments)
    pairs = itertools.takewhile(lambda word: not word.startswith("--"), itertools.islice(later, 1, None))
    return _shows_vectors(name, pairs)


def _shows_vectors(name: str, pairs: Iterable[str]) -> bool:
    try:
        return _vector_env(name, 1, env_arguments(list(pairs))) is not None
    except RLVRError:  # the environment is built again where what is wrong with the command line is reported
        return False


def _vector_env(name: str, rows: int, arguments: dict[str, Any]) -> VectorEnv[Any, Any, Any] | None:
    """Build an environment whose observations are vectors; None if they are something else, such as tokens."""
    environment: Any = find_environment(name)
    if isinstance(environment, type) and issubclass(environment, TaskEnv):
        return None
    env = make_any_vec(name, rows, arguments, {})
    return with_token_info(env) if shows_vectors(env) else None


AGENT_COMMANDS = AgentCommands()


def _train(cls: Any, options: TrainOptions, config: AgentConfig, console: Console) -> int:
    ranks = active_ranks()
    if options.shard == "fsdp" and ranks.size == 1:
        raise InvalidArgumentError("--shard fsdp divides weights among processes: add --nproc with at least 2")
    unused = [name for name in _OF_SEVERAL_PROCESSES if getattr(options, name) != getattr(TrainOptions, name)]
    if unused and ranks.size == 1:
        name = unused[0]
        otherwise = "one process trains alone: add --nproc of at least 2"
        raise no_effect(name, getattr(options, name), otherwise)
    if ranks.size > 1:
        console = _start_rank(ranks, cls, options, console)
    name = environment_id(options.env)
    folder = options.run_folder or Path("runs") / f"{cls.name}-{folder_name(name)}"
    ranks.on_main(lambda: check_folder(folder))
    if is_restart() and ranks.from_main((folder / CONFIG).is_file()):
        options = dataclasses.replace(options, resume=True)
    policy, env = ranks.together(lambda: _policy_and_env(options, name, config))
    resolved = config.for_model(policy.model)
    rate = resolved.learner.learning_rate
    choice = None if rate is None or resolved == config else describe_choice(rate, policy.model)
    manifest = env.manifest if isinstance(env, TokenVectorEnv) else {"class": type(env).__name__}
    record = {
        "agent": cls.name,
        **_plain(options),
        "config": plain(dataclasses.asdict(resolved)),
        "environment": manifest,
    }
    ranks.require_same("the environment", plain(manifest))
    if options.resume:
        ranks.on_main(lambda: check_same(folder, record))
    with ranks.together(lambda: sampler_for(policy, env, options.engine, options.engine_args)) as sampler:
        agent = cls(policy, resolved, sampler=sampler)
        agent.require_env(env)
        say_device(console, policy.device)
        say_prompt(console, env)
        say_stops(console, env)
        if choice is not None:
            console.print(f"{choice}; set --learning-rate to change it", markup=False, soft_wrap=True)
        return train_in(folder, agent, env, options, record, console, log_rollouts=options.log_rollouts)


def _start_rank(ranks: Ranks, cls: Any, options: TrainOptions, console: Console) -> Console:
    """Check that all ranks were started alike, and return the console of this one: only rank 0 prints."""
    if options.nproc not in (1, ranks.size):
        raise InvalidArgumentError(
            f"--nproc {options.nproc} says nothing to {ranks.size} processes of torchrun: leave it out"
        )
    ranks.require_same("versions", package_versions())
    ranks.require_same("options", {"agent": cls.name, **_plain(options)})
    ranks.set_timeout(options.rank_timeout)
    ranks.gathers = options.gather
    ranks.sharding = Sharding(options.offload) if options.shard == "fsdp" else None
    if ranks.is_main:
        return console
    logging.disable(logging.WARNING)
    return TerminalConsole(quiet=True)


def train_in(
    folder: Path,
    agent: Agent | TabularAgent,
    env: Any,
    options: TrainOptions | TabularOptions,
    record: Mapping[str, Any],
    console: Console,
    *,
    log_rollouts: int = 0,
) -> int:
    """Start or resume the run in a folder."""
    ranks = agent.ranks

    def start() -> Run:
        return Run(
            folder,
            record,
            resume=options.resume,
            loggers=options.loggers,
            keep=options.keep,
            log_rollouts=log_rollouts,
        )

    with shown_warnings(quiet=not ranks.is_main), sigterm_interrupts(), contextlib.ExitStack() as opened:
        run = ranks.on_main(lambda: opened.enter_context(contextlib.closing(start())))
        checkpoint = ranks.from_main(None if run is None else run.checkpoint)
        if checkpoint is not None:
            ranks.together(lambda: agent.load(checkpoint))
        if options.resume:
            console.print(f"continuing after step {agent.steps}", markup=False)
        if agent.steps >= options.steps or agent.tokens >= (options.token_budget or math.inf):
            console.print(
                f"{folder} is already at step {agent.steps}, after {agent.tokens} tokens: choose a greater --steps or "
                "--token-budget to continue",
                markup=False,
                soft_wrap=True,
            )
            return 0
        try:
            _learn(agent, env, options, run)
        except KeyboardInterrupt:
            console.print(
                f"stopped after step {agent.steps}; continue with the same command and --resume", markup=False
            )
            raise
        if run is not None:
            _finish(run, agent, console)
    return 0


def _finish(run: Run, agent: Agent | TabularAgent, console: Console) -> None:
    """Draw the curve of a run that is done, and say where its results are."""
    if any(row.get("reward") is not None for row in run.rows()) and importlib.util.find_spec("matplotlib") is not None:
        plot(bands([TrainingCurve.read(run.folder)]), run.folder / "reward")
    steps = counted(agent.steps, "step")
    console.print(f"{steps} done; the run is in {run.folder}", markup=False)
    if (best := run.best_checkpoint()) is not None:
        console.print(
            f"the best checkpoint, by mean reward over the preceding {BEST_OVER} steps, is {best}", markup=False
        )


def _policy_and_env(options: TrainOptions, name: str, config: AgentConfig) -> tuple[Any, VectorEnv[Any, Any, Any]]:
    _check_for_perceptron(options, name)
    spec = verifier_spec(options.verifier, options.verifier_args, options.reward_model)
    arguments = env_arguments(options.env_args)
    if options.gold_verifier is not None:
        spec = with_gold(spec, options.gold_verifier)
    judged_by = {} if spec is None else {"verifier": spec}
    arguments = with_options(judged_by, arguments)
    if _vector_env(name, 1, arguments) is not None:
        # A row without an episode would be stepped too.
        plain_env = _vector_env(name, min(options.num_envs, config.problems_per_step * config.group_size), arguments)
        assert plain_env is not None
        return _perceptron(options, name, plain_env, config), plain_env
    policy, env = policy_for(
        options.model,
        name,
        num_envs=options.num_envs,
        arguments=arguments,
        task_arguments={"split": options.split},
        config=PolicyConfig(**{name: getattr(options, name) for name in _POLICY}),
    )
    if options.lora_rank is not None:
        adapted = add_lora(policy.model, rank=options.lora_rank, alpha=2 * options.lora_rank, seed=config.seed)
        policy = policy.with_model(adapted)
    return policy, env


def _check_for_perceptron(options: TrainOptions, name: str) -> None:
    """Refuse what only a language model has, where observations are vectors, and what only a perceptron has elsewhere."""
    given = [option for option in _FOR_LANGUAGE if getattr(options, option) != getattr(TrainOptions, option)]
    if given and _shows_vectors(name, options.env_args):
        flags = " and ".join(f"--{option.replace('_', '-')}" for option in given)
        raise InvalidArgumentError(
            f"{name} shows vectors, which a multilayer perceptron reads and no language model: leave out {flags}"
        )
    if options.split != TrainOptions.split and _shows_vectors(name, options.env_args):
        raise InvalidArgumentError(
            f"--split chooses among the problems of a data set, and {name} shows vectors: leave it out, or where the "
            f"environment itself takes a split, use --env-args split={options.split}"
        )
    if options.hidden and not _shows_vectors(name, options.env_args):
        raise InvalidArgumentError(
            f"--hidden sets the layers of a multilayer perceptron, and {name} shows tokens, which a language model reads: "
            "leave it out"
        )


def _perceptron(options: TrainOptions, name: str, env: VectorEnv[Any, Any, Any], config: AgentConfig) -> MLPPolicy:
    torch.set_num_threads(1)  # matrices this small only wait for a second thread
    policy = MLPPolicy.for_env(
        env,
        hidden=options.hidden or ((256, 256) if config.learns_values else (64, 64)),
        activation="relu" if config.learns_values else "tanh",
        temperature=options.temperature,
        seed=config.seed,
    )
    policy.model.to(perceptron_device())
    return policy


def _learn(agent: Agent | TabularAgent, env: Any, options: TrainOptions | TabularOptions, run: Run | None) -> None:
    budget = options.token_budget
    total = options.steps if budget is None else budget
    with progress(f"{agent.name} {options.env}", total, disable=not agent.ranks.is_main) as advance:
        advance(agent.steps if budget is None else agent.tokens)

        def show(step: int, metrics: Mapping[str, float]) -> None:
            advance(step if budget is None else agent.tokens, f"reward {metrics['reward']:.3f}")

        agent.learn(
            env,
            steps=options.steps,
            tokens=budget,
            run=run,
            checkpoint_every=options.checkpoint_every,
            callbacks=[show],
        )


def _plain(options: TrainOptions) -> dict[str, Any]:
    """The options as they are read back from JSON, without secrets."""
    pairs = {name: redacted_pairs(getattr(options, name)) for name in ("env_args", "verifier_args", "engine_args")}
    settings: dict[str, Any] = plain({**dataclasses.asdict(options), **pairs})
    return settings


def check_same(folder: Path, record: Mapping[str, Any]) -> None:
    """Check that a run is resumed with the same settings.

    Raises:
        CheckpointError: If there is no run to resume, or its settings can't be read.
        InvalidArgumentError: If settings differ; the message names them.
    """
    started = read_config(folder)
    for name in ("agent", "env"):  # all other settings differ with these
        if name in started and started[name] != record[name]:
            raise InvalidArgumentError(
                f"the run at {folder} was started with {name} {started[name]!r}, and not {record[name]!r}: resume it with that "
                "one, or start another run"
            )
    missing = record.keys() - started.keys() - _FREE_TO_CHANGE
    if missing:
        lacks = ", ".join(map(repr, sorted(missing)[:3]))
        raise CheckpointError(
            f"the run at {folder} can't be resumed: its config.json is not that of a run, it lacks {lacks}, ..."
        )
    decided = {name: value for name, value in plain(record).items() if name not in _FREE_TO_CHANGE}
    before = {name: started.get(name) for name in decided}
    changed = [f"{name} was {old!r} and is now {new!r}" for name, old, new in differences(before, decided)]
    if changed:
        raise InvalidArgumentError(
            f"the run at {folder} was started with other settings: {'; '.join(changed)}. Use the same settings, or start "
            "another run"
        )
