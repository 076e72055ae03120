"""Options shared by all agents that train a policy, and checks of these options before torch loads."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from gymnasium.vector import VectorEnv

import rlvr_envs
from agents.commands.before_loading import check_lora, check_policy, check_reward_model
from agents.commands.common import (
    DEVICE,
    LEVELS,
    Device,
    check_engine,
    env_arguments,
    literal,
    make_any_vec,
    named_arguments,
    verifier_arguments,
    verifier_spec,
    with_options,
)
from agents.commands.problems import with_gold
from agents.commands.run_settings import check_run_folder
from agents.rollouts.action_tokens import shows_vectors
from agents.rollouts.vector_adapter import with_token_info
from agents.runs.held_out import StopWhen
from agents.runs.loggers import check_loggers
from agents.settings.agent import AgentConfig, no_effect
from agents.settings.choices import Checkpointing, Gathering, Precision, SaveDtype
from verifiers import AtLeast, InvalidArgumentError, RLVRError, check_spec, unknown_argument
from verifiers.devices import check_device_name

_OF_EVALUATIONS = ("eval_env", "eval_split", "eval_problems", "eval_samples", "eval_temperature", "stop_when")
"""Options of evaluations during training."""
_FOR_LANGUAGE = ("model", "lora_rank", "engine", "verifier", "reward_model", "verifier_card", "gold_verifier")
"""Options that do not exist for a multilayer perceptron, or for an environment without completions."""


@dataclass(frozen=True)
class TrainOptions:
    """Options shared by the training of all agents."""

    env: str
    """Environment, such as Addition, rlvr/GSM8K-v0, or your own, such as my_envs:MyEnv; several environments, separated by
    commas, form a mixture, in which each problem keeps its own prompt, verifier and limits."""
    mix: str | None = None
    """Weights of the environments of a mixture, such as 3,1,1; by default equal weights."""
    mix_by: Literal["problems", "tokens"] = "problems"
    """Unit of the weights of a mixture: problems, or sampled tokens."""
    adaptive: str | None = None
    """Argument that makes a generated task harder, with its values, such as digits=1,2,3. Training begins with the first value,
    and adds the next value as soon as 90 % of the completions for the hardest value so far are right. Evaluations use the last
    value."""
    steps: Annotated[int, AtLeast(1)] = 100
    """Total number of training steps; schedules end with the last step unless schedule_steps is set."""
    token_budget: Annotated[int | None, AtLeast(1)] = None
    """Number of sampled tokens after which training ends, even before --steps; the step that reaches this number is
    completed."""
    model: str = "tiny"
    """Folder, GGUF file or Hugging Face name of the model; "tiny" creates a small transformer with random weights or, if
    observations are vectors as in CartPole-v1, a multilayer perceptron."""
    hidden: Annotated[tuple[int, ...], AtLeast(1)] = ()
    """Width of each hidden layer of the multilayer perceptron; by default 64 64 with tanh units, or for dqn 256 256 with
    rectified linear units."""
    run_folder: Path | None = None
    """Folder for metrics and checkpoints; by default runs/AGENT-ENVIRONMENT."""
    resume: bool = False
    """Continue from the last intact checkpoint in the run's folder, or from the beginning if there is none yet; the other
    options must be the same as when the run was started."""
    split: str = "train"
    """Split of the data set to learn from."""
    num_envs: Annotated[int, AtLeast(1)] = 128
    """Number of episodes played at once."""
    temperature: Annotated[float, AtLeast(0)] = 1.0
    """Sampling temperature, which also divides the logits whose log-probabilities are trained."""
    lora_rank: Annotated[int | None, AtLeast(1)] = None
    """Rank of the LoRA adapters to train in place of the model's own weights; None trains all weights."""
    device: Device = DEVICE
    precision: Precision = "auto"
    """Precision of matrix products; "auto" is bfloat16 on a GPU that supports it, and for models of at least 50 million weights
    on a CPU that supports it, otherwise float32."""
    checkpointing: Checkpointing = "auto"
    """Whether the backward pass recomputes activations instead of keeping them; "auto" recomputes if activations would
    not fit in free memory. Recomputation takes a third more time; a lower --micro-batch-size costs less time."""
    shared_prefix: bool = True
    """Compute the common prefix of a group's completions once, if that is faster."""
    max_cached_tokens: Annotated[int | None, AtLeast(1)] = None
    """Maximum number of tokens in the KV cache when sampling, which limits how many long episodes are played at once. None
    uses the free memory of a GPU, and sets no limit on a CPU."""
    fast: bool = True
    """Use the optimisations of docs/speed.md; --no-fast disables them for comparison."""
    checkpoint_every: Annotated[int, AtLeast(1)] = 50
    """Number of steps between checkpoints."""
    keep: Annotated[int | None, AtLeast(1)] = 2
    """Number of most recent checkpoints to keep in addition to the one with the best mean reward; None keeps all."""
    save_dtype: SaveDtype = "source"
    """Type of the weights in the model folders of checkpoints: source (the type in --model), float32, bfloat16 or float16. The
    bits that a smaller type drops are saved separately, so that a resumed run continues exactly. Adapters are saved in float32,
    the type in which they are trained."""
    eval_every: Annotated[int | None, AtLeast(1)] = None
    """Number of steps between evaluations on held-out problems, with the first before any training; None for no evaluation.
    Evaluations do not affect training, but the best checkpoint is then the one with the highest score."""
    eval_env: str | None = None
    """Environments to evaluate on, separated by commas, such as Addition,GSM8K; by default the environment in --env. The
    arguments of an environment in --env are used only for that environment."""
    eval_split: str = "test"
    """Split of the data sets to evaluate on."""
    eval_problems: Annotated[int, AtLeast(1)] = 200
    """Number of problems of each environment to evaluate on, at most half of the split. At the end, as many other problems
    confirm the choice of the best checkpoint."""
    eval_samples: Annotated[int, AtLeast(1)] = 1
    """Number of completions for each problem of an evaluation."""
    eval_temperature: Annotated[float, AtLeast(0)] = 0.0
    """Sampling temperature of evaluations; 0 chooses the likeliest token."""
    stop_when: tuple[str, ...] = ()
    """Conditions on the held-out score (the mean over environments); training ends as soon as a condition is met: score=0.9
    when this score is reached, stale=5 after 5 evaluations in a row without a new best score."""
    log_rollouts: Annotated[int, AtLeast(0)] = 8
    """Number of completions of each step to write to rollouts.jsonl in the run's folder, with advantages, and in whole groups
    if the number allows; 0 writes none."""
    loggers: tuple[str, ...] = ("tensorboard",)
    """Loggers that get the metrics in addition to metrics.jsonl: tensorboard, wandb or trackio; without a name, there are no
    loggers."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as max_new_tokens=64 or prompt=boxed_chat; GSM8K.max_new_tokens=64
    is for one environment of a mixture."""
    verifier: str | None = None
    """Verifier to use in place of the environment's own: a name, rewards.py:function, or a file such as my_verifier.toml."""
    verifier_args: tuple[str, ...] = ()
    """Arguments of the verifier, each as name=value."""
    reward_model: str | None = None
    """Folder or Hugging Face name of a reward model to use as the verifier."""
    verifier_card: Path | None = None
    """Card of the verifier, from rlvr audit-verifier --card or --json. With it, the expected errors among the rewards of each
    step are logged, with a warning if most differences within groups are errors."""
    gold_verifier: str | None = None
    """Verifier that also scores completions but is not trained on, to see whether the policy hacks --verifier or
    --reward-model: environment (the environment's own verifier), or a verifier as for --verifier. Its score is logged as
    gold_reward."""
    engine: Literal["torch", "vllm"] = "torch"
    """Engine used for sampling: torch, which runs the trained model itself, or vLLM, which gets the trained model's weights."""
    engine_args: tuple[str, ...] = ()
    """Arguments of vLLM, each as name=value: settings of VLLMConfig, such as server=http://localhost:8000, and arguments of
    vllm.LLM, such as gpu_memory_utilization=0.4."""
    nproc: Annotated[int, AtLeast(1)] = 1
    """Number of processes on this machine that train together, each on its own GPU if there are GPUs; on several machines use
    torchrun -m agents train. See docs/scale.md."""
    max_restarts: Annotated[int, AtLeast(0)] = 0
    """Number of times that all processes are restarted from the last checkpoint after a process has died; with --nproc."""
    gather: Gathering = "auto"
    """The data of each episode that all processes get: trajectories (whole trajectories, so that passes are divided evenly),
    rows (only the numbers of each completion, so that each process trains on the episodes that it played), or auto (rows with
    more than 32 processes)."""
    shard: Literal["none", "fsdp"] = "none"
    """How weights, gradients and the optimiser's state are divided among processes, with --nproc or torchrun: none (each
    process holds all of them), or fsdp, for models that do not fit on one GPU."""
    offload: bool = False
    """Keep the part of the model that --shard fsdp leaves to each process in CPU memory between passes, and make optimiser
    steps on the CPU.
    """
    rank_timeout: Annotated[float, AtLeast(1, infinite=True)] = 1800.0
    """Seconds to wait for a process before it counts as hung; it must be longer than writing a checkpoint takes."""

    def __post_init__(self) -> None:
        given = [name for name in _OF_EVALUATIONS if getattr(self, name) != getattr(TrainOptions, name)]
        if given and self.eval_every is None:
            raise no_effect(given[0], getattr(self, given[0]), "nothing is evaluated: set eval_every")
        self.stop_condition()
        if "," not in self.env and (self.mix is not None or self.mix_by != "problems"):
            option = "mix" if self.mix is not None else "mix_by"
            reason = "there is one environment: name several, such as env=GSM8K,MBPP"
            raise no_effect(option, getattr(self, option), reason)
        self.mix_weights()
        if self.adaptive is not None:
            self.levels()
        if self.max_restarts and self.nproc == 1:
            raise InvalidArgumentError("--max-restarts needs --nproc of at least 2; torchrun has an option of its own")
        if self.offload and self.shard == "none":
            raise InvalidArgumentError(
                "--offload needs --shard fsdp, whose parts of weights it keeps in the CPU's memory"
            )
        check_loggers(self.loggers)

    def mix_weights(self) -> tuple[float, ...] | None:
        """The weights of a mixture; None for equal weights."""
        try:
            return None if self.mix is None else tuple(float(weight) for weight in self.mix.split(","))
        except ValueError as error:
            raise InvalidArgumentError(
                f"--mix takes numbers separated by commas, such as 3,1,1, got {self.mix}"
            ) from error

    def levels(self) -> tuple[str, tuple[Any, ...]]:
        """The argument of `adaptive` and its values."""
        name, _, values = (self.adaptive or "").partition("=")
        each = tuple(literal(value) for value in values.split(","))
        if not name or len(each) < 2 or "," in self.env:
            raise InvalidArgumentError(
                f"--adaptive takes an argument of one environment with two values or more, such as digits=1,2,3, got "
                f"{self.adaptive!r} for {self.env}"
            )
        if name in env_arguments(self.env_args):
            raise InvalidArgumentError(
                f"--adaptive {self.adaptive} chooses the values of {name!r}, and --env-args sets it, too: leave one of both out"
            )
        return name, each

    def stop_condition(self) -> StopWhen | None:
        """The conditions of `stop_when`; None if there are none."""
        given = named_arguments(self.stop_when, "a condition to stop")
        for name in given:
            if name not in ("score", "stale"):
                raise unknown_argument("a condition to stop", name, ["score", "stale"])
        return StopWhen(**given) if given else None

    def eval_names(self) -> list[str]:
        """The ids of the environments to evaluate on."""
        names = [rlvr_envs.environment_id(name) for name in (self.eval_env or self.env).split(",")]
        if len(set(names)) < len(names):
            raise InvalidArgumentError(f"--eval-env names one environment twice: {', '.join(names)}")
        return names

    def launcher(self) -> Callable[[Sequence[str]], int] | None:
        """A function that runs the command's arguments in several processes; None for a single process."""
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


def env_shows_vectors(name: str, pairs: Iterable[str]) -> bool:
    """Whether an environment, given by its name and its name=value arguments, shows vectors."""
    try:
        return vector_env(name, 1, env_arguments(list(pairs))) is not None
    except RLVRError:  # the environment is built again later, and errors of the command line are reported then
        return False


def vector_env(name: str, rows: int, arguments: dict[str, Any]) -> VectorEnv[Any, Any, Any] | None:
    """Build an environment whose observations are vectors; None if the observations are something else, such as tokens."""
    environment: Any = rlvr_envs.find_environment(name)
    if isinstance(environment, type) and issubclass(environment, rlvr_envs.TaskEnv):
        return None
    env = make_any_vec(name, rows, arguments, {})
    return with_token_info(env) if shows_vectors(env) else None


def check_training(options: TrainOptions, config: AgentConfig, *, agent: str) -> None:
    """Refuse an invalid training run, as far as it can be checked before torch loads."""
    check_device_name(options.device)
    name = rlvr_envs.environment_id(options.env)
    if options.eval_every is not None:
        options.eval_names()
    check_run_folder(options, config, agent, name)
    check_for_perceptron(options, name)
    arguments = run_arguments(options)
    if options.gold_verifier not in (None, rlvr_envs.OWN_VERIFIER):
        check_spec(options.gold_verifier, {})
    check_reward_model(options.reward_model, verifier_arguments(options.verifier_args))
    if vector_env(name, 1, arguments) is not None:
        return
    check_engine(options.engine, options.engine_args)
    check_lora(options.lora_rank)
    # An agent that learns from a file does not play episodes, and the engine vLLM has its own context.
    acts = getattr(config, "pairs", None) is None and options.engine == "torch"
    check_policy(options.model, name, arguments, {"split": options.split}, acts=acts)


def run_arguments(options: TrainOptions) -> dict[str, Any]:
    """The arguments of a run's environment, including the verifier."""
    spec = verifier_spec(options.verifier, options.verifier_args, options.reward_model)
    arguments = env_arguments(options.env_args)
    if options.gold_verifier is not None:
        spec = with_gold(spec, options.gold_verifier)
    mixed: dict[str, Any] = {} if "," not in options.env else {"mix": options.mix_weights(), "mix_by": options.mix_by}
    if options.adaptive is not None:
        mixed = {LEVELS: options.levels()}
    return with_options(mixed | ({} if spec is None else {"verifier": spec}), arguments)


def check_for_perceptron(options: TrainOptions, name: str) -> None:
    """Refuse options of a language model if observations are vectors, and options of a perceptron otherwise."""
    given = [option for option in _FOR_LANGUAGE if getattr(options, option) != getattr(TrainOptions, option)]
    if given and env_shows_vectors(name, options.env_args):
        flags = " and ".join(f"--{option.replace('_', '-')}" for option in given)
        raise InvalidArgumentError(
            f"{name} shows vectors, which a multilayer perceptron reads and no language model: leave out {flags}"
        )
    if options.split != TrainOptions.split and env_shows_vectors(name, options.env_args):
        raise InvalidArgumentError(
            f"--split chooses among the problems of a data set, and {name} shows vectors: leave it out, or where the "
            f"environment itself takes a split, use --env-args split={options.split}"
        )
    if options.hidden and not env_shows_vectors(name, options.env_args):
        raise InvalidArgumentError(
            f"--hidden sets the layers of a multilayer perceptron, and {name} shows tokens, which a language model reads: "
            "leave it out"
        )
