"""The options of `rlvr eval`, and their checks before a model is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from agents.commands.common import (
    DEVICE,
    Device,
    check_is_saved,
    env_arguments,
    make_vec,
    with_options,
)
from agents.commands.saved_agents import SavedAgent, check_table_temperature, make_plain
from agents.runs.at_k import check_draws
from agents.runs.evaluation import MAX_ERROR_SHARE
from agents.runs.evaluation_record import MANIFEST
from verifiers import AtLeast, Between, InvalidArgumentError, UnknownNameError

EngineName = Literal["torch", "vllm", "openai"]
SearchName = Literal["best-of-n", "beam", "mcts"]


@dataclass(frozen=True)
class EvaluateOptions:
    """Options of `rlvr eval`."""

    env: str
    """Environment, such as Addition, rlvr/GSM8K-v0, or your own, such as my_envs:MyEnv; separate several by commas."""
    model: str
    """Folder, GGUF file or Hugging Face name of the model: a run's folder, a checkpoint, or any causal language model; with the
    engine openai, the model's name on the server. A run may also be the training of a table or a multilayer perceptron."""
    split: str = "test"
    """Split of the data set to answer."""
    problems: Annotated[int | None, AtLeast(1)] = None
    """Number of problems to answer, from the beginning of the split; all of them by default."""
    samples: Annotated[int, AtLeast(1)] = 1
    """Number of completions for each problem."""
    pass_at: tuple[int, ...] = ()
    """Numbers k for which to report pass@k, the probability that at least one of k samples is correct; at most --samples."""
    maj_at: tuple[int, ...] = ()
    """Numbers k for which to report maj@k, the probability that a majority vote of k samples is correct; at most --samples."""
    search: SearchName | None = None
    """Search for each completion instead of sampling once: the best of n samples, beam search, or Monte Carlo tree search."""
    search_args: tuple[str, ...] = ()
    """Settings of the search, each as name=value, such as n=16, width=4 or simulations=256."""
    guide: str | None = None
    """The guide that chooses in best-of-n (majority, likelihood, oracle or a verifier) and mcts (oracle or a verifier). A
    verifier, such as reward_model, is not shown the reference answer. With oracle, the evaluation's own verifier chooses, so
    the score is not an accuracy."""
    guide_args: tuple[str, ...] = ()
    """Arguments of a guide that is a verifier, each as name=value, such as model=MODEL for reward_model."""
    temperature: Annotated[float, AtLeast(0)] = 0.0
    """Sampling temperature; 0 chooses the likeliest token."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Seed of sampling."""
    num_envs: Annotated[int, AtLeast(1)] = 64
    """Number of episodes played at once, or of simultaneous requests to a server."""
    order_seed: Annotated[int | None, AtLeast(0)] = None
    """Seed of a random order in which problems are drawn, so that --problems takes a random sample; by default, --problems
    takes the first problems of the split."""
    clusters: str | None = None
    """Column of the data set whose value is the same for problems that belong together, such as variants of one problem; used
    for all intervals. By default, problems with equal prompts belong together."""
    engine: EngineName = "torch"
    """Engine used for sampling: torch, vLLM, or openai, a server at --base-url with OpenAI's protocol."""
    base_url: str | None = None
    """Address of the server's API, for the engine openai, such as http://localhost:8000/v1."""
    engine_args: tuple[str, ...] = ()
    """Arguments of the engine, each as name=value: settings of VLLMConfig and arguments of vllm.LLM, or settings of
    EndpointConfig, such as api_key=env:OPENAI_API_KEY."""
    price: tuple[float, float] | None = None
    """Prices of a million prompt tokens and of a million completion tokens, such as 0.15 0.6, with the engine openai; samples
    and results then state their cost."""
    out: Path | None = None
    """Folder for the results, manifest.json and samples.jsonl; by default a new folder, runs/eval/MODEL-ENVIRONMENT-NUMBER.
    With several environments, the folder has a subfolder for each."""
    resume: bool = False
    """Continue the evaluation in the folder --out, or start one if there is none yet. The other options must be the same,
    except that there may be more problems and samples. Samples whose verifier broke or whose request failed are repeated."""
    overwrite: bool = False
    """Replace the evaluation in the folder --out."""
    max_error_share: Annotated[float, Between(0, 1)] = MAX_ERROR_SHARE
    """Share of samples without a score above which the command ends with exit code 1; --resume repeats such samples."""
    verifier: str | None = None
    """Verifier to use in place of the environment's own: a name, rewards.py:function, or a file such as my_verifier.toml."""
    verifier_args: tuple[str, ...] = ()
    """Arguments of the verifier, each as name=value."""
    reward_model: str | None = None
    """Folder or Hugging Face name of a reward model to use as the verifier."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as max_new_tokens=64 or prompt=boxed_chat; GSM8K.max_new_tokens=64
    is for one of several environments."""
    device: Device = DEVICE

    def __post_init__(self) -> None:
        check_draws(self.samples, pass_at=self.pass_at, maj_at=self.maj_at)
        if (self.engine == "openai") != (self.base_url is not None):
            raise InvalidArgumentError("--base-url and --engine openai come together: give both or neither")
        if self.price is not None and self.engine != "openai":
            raise InvalidArgumentError("--price is what a server charges: give --engine openai, too, or leave it out")
        if self.search is None and (self.search_args or self.guide or self.guide_args):
            raise InvalidArgumentError("--search-args, --guide and --guide-args belong to a search: give --search, too")
        if self.search is not None and self.engine == "openai":
            raise InvalidArgumentError(
                "--search does not work with --engine openai: take several --samples with --pass-at and --maj-at, or choose "
                "another engine"
            )
        if self.engine != "openai":
            check_is_saved(self.model)


def saved_agent(options: EvaluateOptions) -> SavedAgent | None:
    """The saved table or perceptron to evaluate; None if the model is a language model."""
    saved = SavedAgent.find(options.model) if options.engine == "torch" else None
    if saved is None:
        return None
    refused = ("search", "verifier", "reward_model", "pass_at", "maj_at", "engine_args", "clusters", "order_seed")
    for option in refused:
        if getattr(options, option) not in (None, ()):
            raise InvalidArgumentError(
                f"--{option.replace('_', '-')} needs completions of a language model, and {options.model} holds "
                f"{'a table' if saved.is_table else 'a multilayer perceptron'}: leave it out"
            )
    if saved.is_table:
        check_table_temperature(options.temperature)
    return saved


def check_before(options: EvaluateOptions, folder: Path) -> None:
    """Check the options of an evaluation in one environment, except the model and a user's verifier."""
    arguments, name = env_arguments(options.env_args), options.env
    saved = saved_agent(options)
    try:
        available = (
            make_vec(name, 1, with_options({"split": options.split}, arguments)).num_problems
            if saved is None
            else getattr(make_plain(name, options.split, arguments).unwrapped, "num_problems", None)
        )
    except (InvalidArgumentError, UnknownNameError) as error:
        raise InvalidArgumentError(f"{name}: {error}") from error
    if options.problems is not None and available is not None and options.problems > available:
        raise InvalidArgumentError(f"--problems {options.problems} is too many: {name} {options.split} has {available}")
    if not (options.resume or options.overwrite) and (folder / MANIFEST).exists():
        raise InvalidArgumentError(
            f"{folder} holds an evaluation: continue it (--resume), replace it (--overwrite), or choose another folder"
        )
