"""`rlvr eval`."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console

import rlvr_envs
from agents.commands.before_loading import check_policy, check_reward_model
from agents.commands.common import (
    DEVICE,
    check_at_least,
    check_engine,
    check_is_saved,
    check_share,
    endpoint_config,
    env_arguments,
    folder_name,
    make_vec,
    on_device,
    pairs_of_part,
    print_warning,
    redacted_pairs,
    say_prompt,
    say_stops,
    shown_warnings,
    verifier_arguments,
    verifier_spec,
    with_options,
)
from agents.commands.problems import permit_together
from agents.commands.saved_agents import (
    SavedAgent,
    check_table_temperature,
    make_plain,
    trained_arguments,
    vectorized,
)
from agents.commands.searches import search_for
from agents.console.progress import progress
from agents.console.terminal import TerminalConsole
from agents.interrupts import sigterm_interrupts
from agents.rollouts.endpoint.client import Endpoint
from agents.rollouts.evaluation import evaluate, number_of_problems
from agents.rollouts.search import Search
from agents.rollouts.vector_adapter import num_problems
from agents.runs.at_k import check_draws
from agents.runs.evaluation import MAX_ERROR_SHARE, Evaluation
from agents.runs.evaluation_record import MANIFEST, ORACLE_NOTE, SAMPLES, EvaluationRecord, Sample
from agents.runs.files.outputs import free_folder
from agents.runs.files.versions import package_versions
from agents.types import Policy
from verifiers import InvalidArgumentError, UnknownNameError

if TYPE_CHECKING:
    from agents.tables.agent import TabularAgent

EngineName = Literal["torch", "vllm", "openai"]
SearchName = Literal["best-of-n", "beam", "mcts"]
_NO_FOLDER = "--resume needs --out, the folder of the evaluation to continue"


@dataclass(frozen=True)
class Evaluate:
    """Evaluate a model on an environment's problems, and record every completion with its verdict."""

    env: str
    """Environment, such as Addition, rlvr/GSM8K-v0, or one of your own, my_envs:MyEnv; several are separated by commas."""
    model: str
    """Folder, GGUF file or Hugging Face name of the model: a run's folder, a checkpoint, or any causal language model; with the
    engine openai, the name that the server knows it by. A run may also be one of a table or a multilayer perceptron."""
    split: str = "test"
    """Split of the data set to answer."""
    problems: int | None = None
    """Number of problems to answer, from the beginning of the split; all of them by default."""
    samples: int = 1
    """Number of completions for each problem."""
    pass_at: tuple[int, ...] = ()
    """Numbers k for which to report pass@k, the probability that one of k samples is correct; at most --samples."""
    maj_at: tuple[int, ...] = ()
    """Numbers k for which to report maj@k, the probability that a majority vote of k samples is correct; at most --samples."""
    search: SearchName | None = None
    """Search for each completion instead of sampling once: the best of n samples, beam search, or Monte Carlo tree search."""
    search_args: tuple[str, ...] = ()
    """Settings of the search, each as name=value, such as n=16, width=4 or simulations=256."""
    guide: str | None = None
    """What best-of-n (majority, likelihood, oracle or a verifier) and mcts (oracle or a verifier) choose by. A verifier, such
    as reward_model, is not shown the reference answer; oracle is that of the evaluation: its score is no accuracy."""
    guide_args: tuple[str, ...] = ()
    """Arguments of the guide, where it is a verifier, each as name=value, such as model=MODEL for the guide reward_model."""
    temperature: float = 0.0
    """Sampling temperature; 0 chooses the likeliest token."""
    seed: int = 0
    """Seed of sampling."""
    num_envs: int = 64
    """Number of episodes played at once, or of requests that wait for a server's answer."""
    order_seed: int | None = None
    """Seed of a random order in which problems are drawn, so that the first --problems are a random sample; by default they are
    the first of the split."""
    clusters: str | None = None
    """Column of the data set that is equal for problems which belong together, such as variants of one, for all intervals; by
    default those with equal prompts do."""
    engine: EngineName = "torch"
    """Engine used for sampling: torch, vLLM, or a server that speaks OpenAI's protocol, at --base-url."""
    base_url: str | None = None
    """Address of the server's API, for the engine openai, such as http://localhost:8000/v1."""
    engine_args: tuple[str, ...] = ()
    """Arguments of the engine, each as name=value: settings of VLLMConfig and arguments of vllm.LLM, or settings of
    EndpointConfig, such as api_key=env:OPENAI_API_KEY."""
    price: tuple[float, float] | None = None
    """Money for a million tokens of prompts and for a million of completions, such as 0.15 0.6, with the engine openai: samples
    and results then say what they cost."""
    out: Path | None = None
    """Folder for the results, manifest.json and samples.jsonl; by default a new one, runs/eval/MODEL-ENVIRONMENT-NUMBER.
    Several environments each get a folder in it."""
    resume: bool = False
    """Continue the evaluation in the folder --out, or start it if there is none yet. The other options must be the same, but
    there may be more problems and samples. Samples whose verifier broke, or whose request failed, are repeated."""
    overwrite: bool = False
    """Replace the evaluation in the folder --out."""
    max_error_share: float = MAX_ERROR_SHARE
    """Share of samples without a score above which the command ends with exit code 1; --resume repeats them."""
    verifier: str | None = None
    """Verifier to use in place of the environment's own: a name, rewards.py:function, or a file, my_verifier.toml."""
    verifier_args: tuple[str, ...] = ()
    """Arguments of the verifier, each as name=value."""
    reward_model: str | None = None
    """Folder or Hugging Face name of a reward model to use as the verifier."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as max_new_tokens=64 or prompt=boxed_chat; of one of several
    environments GSM8K.max_new_tokens=64."""
    device: str = DEVICE
    """Device for models: cpu, cuda, xpu, mps, or one of several, such as cuda:1; "auto" is that of the variable RLVR_DEVICE, or
    else the first of cuda, xpu and mps that is available."""

    def __post_init__(self) -> None:
        check_at_least(1, problems=self.problems, samples=self.samples, num_envs=self.num_envs)
        check_at_least(0, seed=self.seed, temperature=self.temperature, order_seed=self.order_seed)
        check_share(max_error_share=self.max_error_share)
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

    @on_device
    def run(self, console: Console, *, resumed_as: Path | None = None) -> int:
        """Evaluate, record the samples, and print the score.

        Args:
            console: Where to print.
            resumed_as: The --out with which the user's command continues this evaluation; by default its own folder.
        """
        if "," in self.env:
            return self._run_several(console)
        if self.resume and self.out is None:
            raise InvalidArgumentError(_NO_FOLDER)
        name = rlvr_envs.environment_id(self.env)
        out = self.out or free_folder(Path("runs/eval"), f"{short_name(self.model)}-{folder_name(name)}")
        with self.opened(console, out, resumed_as) as evaluate_first:
            result = evaluate_first(self.problems)
        self._report(console, name, out, result, resumed_as or out)
        return 1 if result.has_failed(self.max_error_share) else 0

    @contextlib.contextmanager
    def opened(
        self, console: Console, out: Path, resumed_as: Path | None = None
    ) -> Iterator[Callable[[int | None], Evaluation]]:
        """Load the model and the environment, and open the record in a folder.

        Yields:
            What evaluates on the first problems, as many as it is told or all: the more of them it is asked, the longer the
            record. What errored is repeated by its first call alone.
        """
        name = rlvr_envs.environment_id(self.env)
        spec = verifier_spec(self.verifier, self.verifier_args, self.reward_model)
        judged_by = {} if spec is None else {"verifier": spec}
        search = search_for(self.search, self.search_args, self.guide, self.guide_args)
        settings: dict[str, Any] = {"env": name, "split": self.split, "model": self.model}
        if self.engine != "torch":
            settings["engine"] = self.engine
        if self.engine == "vllm" and self.engine_args:
            settings["engine_args"] = redacted_pairs(self.engine_args)
        if self.guide_args:
            settings["guide"] = {"name": self.guide, "args": redacted_pairs(self.guide_args)}
        arguments = with_options(judged_by, env_arguments(self.env_args))
        saved = self._saved_agent()
        with (
            shown_warnings(),
            sigterm_interrupts(),
            EvaluationRecord(out, settings=settings, resume=self.resume, overwrite=self.overwrite) as record,
            self._sampler(name, arguments, saved, record) as (env, policy),
        ):
            if isinstance(env, rlvr_envs.TokenVectorEnv):
                permit_together(env.streams.rules.verifier)
            say_prompt(console, env, as_messages=isinstance(policy, Endpoint) and policy.config.route == "chat")
            if self.engine != "openai" and saved is None:
                say_stops(console, env)
            first = True

            def evaluate_first(problems: int | None) -> Evaluation:
                nonlocal first
                repeat_errored, first = first, False
                return self._evaluate(env, policy, record, search, problems=problems, repeat_errored=repeat_errored)

            try:
                yield evaluate_first
            except InvalidArgumentError as error:
                raise _with_trained_arguments(self.model, name, self.env_args, error) from error
            except BaseException:
                if record.num_samples:
                    TerminalConsole(stderr=True).print(
                        f"the samples so far are in {out}; continue with the same command and --out {resumed_as or out} "
                        "--resume",
                        markup=False,
                        soft_wrap=True,
                    )
                raise

    def _run_several(self, console: Console) -> int:
        """Evaluate on one environment after the other, each in a folder of its own within one; the highest exit code."""
        if self.resume and self.out is None:
            raise InvalidArgumentError(_NO_FOLDER)
        names = [rlvr_envs.environment_id(name) for name in self.env.split(",")]
        if len(set(names)) < len(names):
            raise InvalidArgumentError(f"--env names one environment twice: {', '.join(names)}")
        out = self.out or free_folder(Path("runs/eval"), f"{short_name(self.model)}-{len(names)}-environments")
        folders = {name: out / folder_name(name) for name in names}
        each = [
            replace(self, env=name, out=folder, env_args=pairs_of_part(self.env_args, name, names))
            for name, folder in folders.items()
        ]
        for one in each:  # what is wrong with any is said before any work is done
            one._check(one.env, folders[one.env])
        return max(one.run(console, resumed_as=out) for one in each)

    def _check(self, name: str, folder: Path) -> None:
        """Check all of an evaluation but the model, and a verifier that is given, which the first environment needs too."""
        arguments = env_arguments(self.env_args)
        saved = self._saved_agent()
        try:
            available = (
                make_vec(name, 1, with_options({"split": self.split}, arguments)).num_problems
                if saved is None
                else getattr(make_plain(name, self.split, arguments).unwrapped, "num_problems", None)
            )
        except (InvalidArgumentError, UnknownNameError) as error:
            raise InvalidArgumentError(f"{name}: {error}") from error
        if self.problems is not None and available is not None and self.problems > available:
            raise InvalidArgumentError(f"--problems {self.problems} is too many: {name} {self.split} has {available}")
        if not (self.resume or self.overwrite) and (folder / MANIFEST).exists():
            raise InvalidArgumentError(
                f"{folder} holds an evaluation: continue it (--resume), replace it (--overwrite), or choose another folder"
            )

    def _saved_agent(self) -> SavedAgent | None:
        """The agent to evaluate, where it is no language model.

        Raises:
            InvalidArgumentError: If an option is given that needs a language model.
        """
        saved = SavedAgent.find(self.model) if self.engine == "torch" else None
        if saved is None:
            return None
        refused = ("search", "verifier", "reward_model", "pass_at", "maj_at", "engine_args", "clusters", "order_seed")
        for option in refused:
            if getattr(self, option) not in (None, ()):
                raise InvalidArgumentError(
                    f"--{option.replace('_', '-')} needs completions of a language model, and {self.model} holds "
                    f"{'a table' if saved.is_table else 'a multilayer perceptron'}: leave it out"
                )
        if saved.is_table:
            check_table_temperature(self.temperature)
        return saved

    @contextlib.contextmanager
    def _sampler(
        self, name: str, arguments: dict[str, Any], saved: SavedAgent | None, record: EvaluationRecord
    ) -> Iterator[tuple[Any, Policy | Endpoint | TabularAgent]]:
        """The environment, and what answers its problems."""
        record.check_settings({"seed": self.seed})
        if saved is not None and saved.is_table:
            plain_env = make_plain(name, self.split, arguments)
            yield plain_env, saved.load_table(plain_env)
            return
        if saved is not None:
            make = functools.partial(make_plain, name, self.split, arguments)
            rows = vectorized([make] * self.num_envs)
            yield rows, saved.load_perceptron(rows, temperature=self.temperature, seed=self.seed)
            return
        if self.base_url is not None:
            arguments = with_options({"split": self.split}, arguments)
            given = {
                "base_url": self.base_url,
                "model": self.model,
                "concurrency": self.num_envs,
                "price": self.price,
            }
            config = endpoint_config(given, self.engine_args)
            if config.route == "chat":  # the server has a chat template, which also ends answers
                arguments = {"prompt": "auto_chat", "stop": (), **arguments}
            yield make_vec(name, 1, arguments), Endpoint(config, temperature=self.temperature)
            return
        rlvr_envs.environment_class(name)
        check_engine(self.engine, self.engine_args)
        check_reward_model(self.reward_model, verifier_arguments(self.verifier_args))
        try:
            checked = check_policy(self.model, name, arguments, {"split": self.split}, acts=self.engine == "torch")
        except InvalidArgumentError as error:
            raise _with_trained_arguments(self.model, name, self.env_args, error) from error
        if checked is not None:
            number_of_problems(checked.problems, self.problems, self.samples)
        from agents.commands.policies import sampler_for
        from agents.policies.transformers.config import PolicyConfig
        from agents.policies.transformers.loading import load_policy

        arguments = with_options({"split": self.split}, arguments)
        policy, arguments["tokenizer"] = load_policy(
            self.model,
            PolicyConfig(temperature=self.temperature, seed=self.seed),
            tokenizer=arguments.get("tokenizer"),
        )
        env = make_vec(name, self.num_envs, arguments)
        with sampler_for(policy, env, "vllm" if self.engine == "vllm" else "torch", self.engine_args) as sampler:
            yield env, sampler

    def _evaluate(
        self,
        env: Any,
        policy: Policy | Endpoint | TabularAgent,
        record: EvaluationRecord,
        search: Search | None,
        *,
        problems: int | None,
        repeat_errored: bool,
    ) -> Evaluation:
        known = num_problems(env)
        if known is None and problems is None:
            raise InvalidArgumentError(f"{self.env} draws its problems: say how many to draw, as in --problems 100")
        count = number_of_problems(known, problems, self.samples)
        done, scored, total = 0, 0, 0.0
        with progress(f"{self.env} {self.split}", count * self.samples) as advance:

            def show(sample: Sample) -> None:
                nonlocal done, scored, total
                done += 1
                if sample.score is not None:
                    scored, total = scored + 1, total + sample.score
                advance(done, f"score {total / scored:.3f} so far" if scored else "")

            if not isinstance(policy, Endpoint):  # which needs no torch
                from agents.tables.agent import TabularAgent

                if isinstance(policy, TabularAgent):
                    return policy.evaluate(
                        env,
                        problems=count,
                        samples=self.samples,
                        greedy=self.temperature == 0,
                        seed=self.seed,
                        record=record,
                        on_sample=show,
                    )
            return evaluate(
                env,
                policy,
                problems=count,
                samples=self.samples,
                seed=self.seed,
                pass_at=self.pass_at,
                maj_at=self.maj_at,
                search=search,
                record=record,
                on_sample=show,
                order_seed=self.order_seed,
                clusters=self.clusters,
                repeat_errored=repeat_errored,
            )

    def _report(self, console: Console, name: str, out: Path, result: Evaluation, resumed_as: Path) -> None:
        versions = ", ".join(f"{package} {version}" for package, version in package_versions().items() if version)
        lines = [
            f"{name} {self.split}, model {self.model}, temperature {self.temperature:g}, seed {self.seed}",
            versions,
            f"score {result}",
            f"{f'outcomes {result.outcomes}, ' if result.outcomes else ''}truncated {result.truncated}; written to {out}",
        ]
        if result.rerun_error is not None and self.temperature > 0:
            lines.insert(
                3, f"re-run noise {result.rerun_error:.3f}: standard error of the score over samples of these problems"
            )
        if result.prompt_tokens is not None:
            paid = "" if result.cost is None else f", cost {result.cost:.4g}"
            lines.insert(-1, f"tokens: {result.prompt_tokens} of prompts, {result.tokens} of completions{paid}")
        lines[-1:-1] = [str(estimate) for estimate in (*result.pass_at, *result.maj_at)]
        causes = [f"the verifier broke on {result.verifier_errors} samples"] if result.verifier_errors else []
        causes += [f"{result.failed_requests} requests failed"] if result.failed_requests else []
        if causes:
            lines.append(
                f"{' and '.join(causes)}, for the reasons in {out / SAMPLES}; the same command with --out {resumed_as} "
                "--resume repeats these samples"
            )
        for line in lines:
            console.print(line, markup=False, soft_wrap=True)
        if result.warning is not None:
            print_warning(result.warning)
        if result.oracle:
            print_warning(f"the samples were {ORACLE_NOTE}")


def short_name(model: str) -> str:
    """The last part of a model's name or folder, as part of a folder's name."""
    return re.sub(r"[^\w.-]+", "-", Path(model).resolve().name) or "model"


def _with_trained_arguments(
    model: str, name: str, env_args: Sequence[str], error: InvalidArgumentError
) -> InvalidArgumentError:
    """The error, with the arguments that the model was trained with, if they are others of the same environment."""
    trained = trained_arguments(model, name)
    if trained is None or sorted(trained) == sorted(redacted_pairs(env_args)):
        return error
    given = f"--env-args {' '.join(trained)}" if trained else "no --env-args"
    return InvalidArgumentError(
        f"{error}. The run was trained with {given}, and rlvr eval does not take these over: give the same arguments"
    )
