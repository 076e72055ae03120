"""The training runs of `rlvr train`; separate from its options, since this module needs torch."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

import rlvr_envs
from agents.commands.common import at_hardest, make_any_vec, print_warning, say_prompt, say_stops, shown_warnings
from agents.commands.policies import policy_for, sampler_for, say_device
from agents.commands.run_settings import check_same, plain_options, resumes, run_folder
from agents.commands.saved_models import evaluation_command, say_disk, say_saved
from agents.commands.train_options import TrainOptions, check_for_perceptron, run_arguments, vector_env
from agents.console.counting import counted
from agents.console.progress import progress
from agents.console.step_text import Pace, StepText
from agents.console.terminal import TerminalConsole
from agents.distributed.launched import is_restart
from agents.distributed.ranks import Ranks, Sharding, active_ranks
from agents.interrupts import sigterm_interrupts
from agents.learn.agent import Agent
from agents.learn.disk import agent_size
from agents.learn.held_out import HeldOut
from agents.learn.noise import RewardNoise
from agents.policies.devices import perceptron_device
from agents.policies.mlp import MLPPolicy
from agents.policies.transformers.config import PolicyConfig
from agents.policies.transformers.lora import add_lora
from agents.rollouts.problem_samplers import UNSOLVED_GROUPS
from agents.rollouts.vector_adapter import num_problems
from agents.runs.files.hardware import package_versions
from agents.runs.files.json_files import plain, write_json
from agents.runs.files.outputs import check_folder
from agents.runs.plots import TrainingCurve, bands, plot
from agents.runs.run import BEST_OVER, Run, latest_checkpoint
from agents.settings.agent import AgentConfig, no_effect
from agents.settings.learning_rate import describe_choice
from agents.tables.agent import TabularAgent
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from agents.commands.tabular_options import TabularOptions

_POLICY = ("temperature", "precision", "checkpointing", "shared_prefix", "max_cached_tokens", "fast", "save_dtype")
"""Options that are settings of the policy."""
_OF_SEVERAL_PROCESSES = ("gather", "rank_timeout")
"""Options that have no effect with a single process."""
PROBLEMS = "problems.json"
"""Name of the file in a run's folder that lists problems without a recent success."""
_JUDGES = ("env_args", "verifier", "verifier_args", "reward_model")
"""Options of the environment and its verifier that `rlvr eval` takes too."""


def train(cls: Any, options: TrainOptions, config: AgentConfig, console: Console) -> int:
    """Train an agent in this process, which may be one of several ranks."""
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
    name = rlvr_envs.environment_id(options.env)
    folder = run_folder(options, cls.name, name)
    ranks.on_main(lambda: check_folder(folder))
    options = dataclasses.replace(options, resume=options.resume or is_restart())
    options = dataclasses.replace(options, resume=ranks.from_main(resumes(options, folder)))
    noise = None if options.verifier_card is None else RewardNoise.of_card(options.verifier_card)
    policy, env = ranks.together(lambda: _policy_and_env(options, name, config))
    held_out = ranks.together(lambda: _held_out(options, name, env))
    resolved = config.for_model(policy.model)
    rate = resolved.learner.learning_rate
    choice = None if rate is None or resolved == config else describe_choice(rate, policy.model)
    manifest = env.manifest if isinstance(env, rlvr_envs.TokenVectorEnv) else {"class": type(env).__name__}
    record = {
        "agent": cls.name,
        **plain_options(options),
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
        if held_out is not None:
            _say_fewer(console, held_out)
            if ranks.is_main and (same := held_out.of_training(env)):
                print_warning(
                    f"evaluations of {' and '.join(same)} use the problems of training, which are not held out: give a folder "
                    "with train.jsonl and test.jsonl in place of one file, or another environment by --eval-env"
                )
        if choice is not None:
            console.print(f"{choice}; set --learning-rate to change it")
        return train_in(
            folder,
            agent,
            env,
            options,
            record,
            console,
            log_rollouts=options.log_rollouts,
            held_out=held_out,
            noise=noise,
        )


def _start_rank(ranks: Ranks, cls: Any, options: TrainOptions, console: Console) -> Console:
    """Check that all ranks were started alike, and return this rank's console: only rank 0 prints."""
    if options.nproc not in (1, ranks.size):
        raise InvalidArgumentError(
            f"--nproc {options.nproc} has no effect on {ranks.size} processes of torchrun: leave it out"
        )
    ranks.require_same("versions", package_versions())
    ranks.require_same("options", {"agent": cls.name, **plain_options(options)})
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
    held_out: HeldOut | None = None,
    noise: RewardNoise | None = None,
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
            console.print(f"continuing after step {agent.steps}")
        if agent.steps >= options.steps or agent.tokens >= (options.token_budget or math.inf):
            console.print(
                f"{folder} is already at step {agent.steps}, after {agent.tokens} tokens: choose a greater --steps or "
                "--token-budget to continue"
            )
            return 0
        if isinstance(agent, Agent) and (size := agent_size(agent)) is not None:
            written = math.ceil((options.steps - agent.steps) / options.checkpoint_every)
            say_disk(console, size, written if options.keep is None else min(written, options.keep + 1), folder)
        try:
            _learn(agent, env, options, run, {"held_out": held_out, "noise": noise})
        except KeyboardInterrupt:
            left = "continue with the same command and --resume" if agent.steps < options.steps else "no step is left"
            console.print(f"stopped after step {agent.steps}; {left}")
            raise
        if run is not None:
            early = agent.steps < options.steps and agent.tokens < (options.token_budget or math.inf)
            _finish(run, agent, console, held_out, early=early)
            if isinstance(agent, Agent):
                _report_problems(run, agent, env, console)
            command = evaluation_command(
                run.folder,
                env,
                options.env,
                **{name: getattr(options, name) for name in _JUDGES if hasattr(options, name)},
            )
            last = latest_checkpoint(run.folder)
            say_saved(console, None if last is None else last / "model", command, of=run.folder)
    return 0


def _finish(run: Run, agent: Agent | TabularAgent, console: Console, held_out: HeldOut | None, *, early: bool) -> None:
    """Draw the curve of a finished run, and print where its results are."""
    if any(row.get("reward") is not None for row in run.rows()) and importlib.util.find_spec("matplotlib") is not None:
        plot(bands([TrainingCurve.read(run.folder)]), run.folder / "reward")
    steps = counted(agent.steps, "step")
    console.print(f"{steps} done; the run is in {run.folder}")
    if idle := sum(bool(row.get("nonfinite_gradients")) for row in run.rows()):
        console.print(f"in {counted(idle, 'step')}, updates changed no weight, because a gradient was not finite")
    if broken := int(sum(row.get("verifier_errors") or 0 for row in run.rows())):
        console.print(
            f"the verifier broke on {counted(broken, 'completion')}, left out of training: see verifier_errors.jsonl"
        )
    when = None if held_out is None else held_out.stop_when
    if early and when is not None and (reason := run.held_out.stop_reason(when)) is not None:
        console.print(f"training ended early: {reason}")
    if (best := run.best_checkpoint()) is None:
        return
    by = (
        "mean score on held-out problems"
        if held_out is not None
        else f"mean reward over the preceding {BEST_OVER} steps"
    )
    equal = 1 if held_out is None else run.held_out.best_steps
    tie = "" if equal == 1 else f", the first of {equal} with the same score"
    console.print(f"the best checkpoint, by {by}, is {best}{tie}")
    if held_out is not None and (step := run.held_out.best_step) is not None:
        for score in run.held_out.of_step(agent.steps, confirms=step):
            console.print(f"on problems that did not choose it: {score}")


def _report_problems(run: Run, agent: Agent, env: Any, console: Console) -> None:
    """List the problems without a recent success, which may have wrong references or be too hard."""
    world, unsolved = env.unwrapped, agent.progress.problems.never_solved
    if not unsolved or not isinstance(world, rlvr_envs.TokenVectorEnv):
        return
    ids = [world.streams.dataset[index].id for index in unsolved]
    write_json(run.folder / PROBLEMS, {"groups": UNSOLVED_GROUPS, "never_solved": ids})
    console.print(
        f"{counted(len(ids), 'problem')} without a right completion in the last {UNSOLVED_GROUPS} groups, too hard or "
        f"with a wrong reference: {', '.join(ids[:3])}{', ...' if len(ids) > 3 else ''}; see {run.folder / PROBLEMS}"
    )


def _policy_and_env(options: TrainOptions, name: str, config: AgentConfig) -> tuple[Any, VectorEnv[Any, Any, Any]]:
    check_for_perceptron(options, name)
    arguments = run_arguments(options)
    if vector_env(name, 1, arguments) is not None:
        # No more rows than episodes: rows without an episode would be stepped too.
        plain_env = vector_env(name, min(options.num_envs, config.problems_per_step * config.group_size), arguments)
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


def _held_out(options: TrainOptions, name: str, env: VectorEnv[Any, Any, Any]) -> HeldOut | None:
    """The evaluations during training, in separate environments with the run's tokenizer; None for no evaluation."""
    if options.eval_every is None:
        return None
    rows = min(options.num_envs, options.eval_problems * options.eval_samples)
    tokenizer = getattr(env.unwrapped, "tokenizer", None)
    tokens = {} if tokenizer is None else {"tokenizer": tokenizer}
    envs = {}
    for each in options.eval_names():
        arguments = rlvr_envs.part_arguments(at_hardest(run_arguments(options)), rlvr_envs.short_name(each))
        arguments = arguments if each in name.split(",") else {}
        others = {key: value for key, value in arguments.items() if key not in tokens}
        made = vector_env(each, rows, arguments) or make_any_vec(
            each, rows, others, {"split": options.eval_split, **tokens}
        )
        envs[rlvr_envs.short_name(each)] = made
    return HeldOut(
        envs,
        every=options.eval_every,
        problems=options.eval_problems,
        samples=options.eval_samples,
        temperature=options.eval_temperature,
        stop_when=options.stop_condition(),
    )


def _say_fewer(console: Console, held_out: HeldOut) -> None:
    """Print which evaluations have fewer problems than requested, since as many must be left to confirm the best checkpoint."""
    for name, env in held_out.envs.items():
        if (count := held_out.problems_of(env)) < held_out.problems:
            console.print(
                f"evaluations of {name} have {counted(count, 'problem')}, not {held_out.problems} (--eval-problems): of "
                f"{num_problems(env)} in the split, the others are kept to confirm the best checkpoint"
            )


def _perceptron(options: TrainOptions, name: str, env: VectorEnv[Any, Any, Any], config: AgentConfig) -> MLPPolicy:
    torch.set_num_threads(1)  # with matrices this small, a second thread only causes waiting
    policy = MLPPolicy.for_env(
        env,
        hidden=options.hidden or ((256, 256) if config.learns_values else (64, 64)),
        activation="relu" if config.learns_values else "tanh",
        temperature=options.temperature,
        seed=config.seed,
    )
    policy.model.to(perceptron_device())
    return policy


def _learn(
    agent: Agent | TabularAgent,
    env: Any,
    options: TrainOptions | TabularOptions,
    run: Run | None,
    of_agents: Mapping[str, Any],
) -> None:
    """Train; arguments in `of_agents`, which only agents that train a policy take, are left out if they are None."""
    budget = options.token_budget
    total = options.steps if budget is None else budget
    with progress(f"{agent.name} {options.env}", total, disable=not agent.ranks.is_main) as advance:
        begun = agent.steps if budget is None else agent.tokens
        pace, text = Pace(begun, total), StepText()
        errors = TerminalConsole(stderr=True, quiet=not agent.ranks.is_main)
        advance(begun)

        def show(step: int, metrics: Mapping[str, float]) -> None:
            done = step if budget is None else agent.tokens
            advance(done, text.after(metrics))
            said = pace.after(done, metrics["step_s"]) if "step_s" in metrics else None
            if said is not None:
                errors.print(said)

        agent.learn(
            env,
            steps=options.steps,
            tokens=budget,
            run=run,
            checkpoint_every=options.checkpoint_every,
            callbacks=[show],
            **{name: value for name, value in of_agents.items() if value is not None},
        )
