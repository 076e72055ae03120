"""The command `rlvr eval`, and the figures that it prints."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console

import rlvr_envs
import verifiers
from agents.commands.before_loading import check_policy, check_reward_model
from agents.commands.common import (
    check_engine,
    endpoint_config,
    env_arguments,
    env_for_endpoint,
    folder_name,
    make_vec,
    named_arguments,
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
from agents.commands.evaluate_options import EvaluateOptions, check_before, saved_agent
from agents.commands.problems import permit_together
from agents.commands.saved_agents import (
    SavedAgent,
    make_plain,
    trained_arguments,
    vectorized,
)
from agents.console.progress import progress
from agents.console.terminal import TerminalConsole
from agents.interrupts import sigterm_interrupts
from agents.rollouts import endpoint
from agents.rollouts.evaluation import evaluate, number_of_problems
from agents.rollouts.search import Search
from agents.rollouts.vector_adapter import num_problems
from agents.runs.evaluation import Evaluation
from agents.runs.evaluation_record import ORACLE_NOTE, SAMPLES, EvaluationRecord, Sample
from agents.runs.files.hardware import package_versions
from agents.runs.files.outputs import free_folder
from agents.search.guides import GUIDES, Guide, GuideName
from agents.types import Policy
from verifiers import InvalidArgumentError, Verifier, unknown_argument

if TYPE_CHECKING:
    from agents.rollouts.endpoint.client import Endpoint
    from agents.tables.agent import TabularAgent

_NO_FOLDER = "--resume needs --out, the folder of the evaluation to continue"


@dataclass(frozen=True)
class Evaluate(EvaluateOptions):
    """Evaluate a model on an environment's problems, and record every completion with its verdict."""

    @on_device
    def run(self, console: Console, *, resumed_as: Path | None = None) -> int:
        """Evaluate, record the samples, and print the score.

        Args:
            console: Where to print.
            resumed_as: The --out with which the user's command continues this evaluation; by default the evaluation's own
                folder.
        """
        if "," in self.env:
            return self._run_several(console)
        if self.resume and self.out is None:
            raise InvalidArgumentError(_NO_FOLDER)
        name = rlvr_envs.environment_id(self.env)
        out = self.out or free_folder(Path("runs/eval"), f"{short_name(self.model)}-{folder_name(name)}")
        with self.opened(console, out, resumed_as) as evaluate_first:
            result = evaluate_first(self.problems)
        report(console, self, name, out, result, resumed_as or out)
        return 1 if result.has_failed(self.max_error_share) else 0

    @contextlib.contextmanager
    def opened(
        self, console: Console, out: Path, resumed_as: Path | None = None
    ) -> Iterator[Callable[[int | None], Evaluation]]:
        """Load the model and the environment, and open the record in a folder.

        Yields:
            A function that evaluates on the given number of problems, from the first, or on all problems. Calls with larger
            numbers extend the record. Only the first call repeats samples that errored.
        """
        name = rlvr_envs.environment_id(self.env)
        search = search_for(self.search, self.search_args, self.guide, self.guide_args)
        settings: dict[str, Any] = {"env": name, "split": self.split, "model": self.model}
        if self.engine != "torch":
            settings["engine"] = self.engine
        if self.engine == "vllm" and self.engine_args:
            settings["engine_args"] = redacted_pairs(self.engine_args)
        if self.guide_args:
            settings["guide"] = {"name": self.guide, "args": redacted_pairs(self.guide_args)}
        arguments = self._env_arguments()
        saved = saved_agent(self)
        with (
            shown_warnings(),
            sigterm_interrupts(),
            EvaluationRecord(out, settings=settings, resume=self.resume, overwrite=self.overwrite) as record,
            self._sampler(name, arguments, saved, record) as (env, policy),
        ):
            if isinstance(env, rlvr_envs.TokenVectorEnv):
                permit_together(env.streams.rules.verifier)
            say_prompt(console, env, as_messages=endpoint.is_endpoint(policy) and policy.config.route == "chat")
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
                        "--resume"
                    )
                raise

    def check_model(self) -> None:
        """Before torch loads, check a language model, the environment, and that the two fit together."""
        name = rlvr_envs.environment_id(self.env)
        rlvr_envs.environment_class(name)
        check_engine(self.engine, self.engine_args)
        check_reward_model(self.reward_model, verifier_arguments(self.verifier_args))
        try:
            checked = check_policy(
                self.model, name, self._env_arguments(), {"split": self.split}, acts=self.engine == "torch"
            )
        except InvalidArgumentError as error:
            raise _with_trained_arguments(self.model, name, self.env_args, error) from error
        if checked is not None:
            number_of_problems(checked.problems, self.problems, self.samples)

    def _env_arguments(self) -> dict[str, Any]:
        spec = verifier_spec(self.verifier, self.verifier_args, self.reward_model)
        return with_options({} if spec is None else {"verifier": spec}, env_arguments(self.env_args))

    def _run_several(self, console: Console) -> int:
        """Evaluate on several environments in turn, each in its own subfolder; return the highest exit code."""
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
        for one in each:  # a fault in any evaluation is reported before any work is done
            check_before(one, folders[one.env])
        return max(one.run(console, resumed_as=out) for one in each)

    @contextlib.contextmanager
    def _sampler(
        self, name: str, arguments: dict[str, Any], saved: SavedAgent | None, record: EvaluationRecord
    ) -> Iterator[tuple[Any, Policy | Endpoint | TabularAgent]]:
        """The environment, and the model, endpoint or agent that answers its problems."""
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
            env = env_for_endpoint(functools.partial(make_vec, name, 1), config, arguments)
            yield env, endpoint.Endpoint(config, temperature=self.temperature)
            return
        self.check_model()
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

            if not endpoint.is_endpoint(policy):  # an endpoint needs no torch
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


def short_name(model: str) -> str:
    """The last part of a model's name or folder, as part of a folder's name."""
    return re.sub(r"[^\w.-]+", "-", Path(model).resolve().name) or "model"


def _with_trained_arguments(
    model: str, name: str, env_args: Sequence[str], error: InvalidArgumentError
) -> InvalidArgumentError:
    """Add to an error the arguments of training, if the model was trained in the same environment with other arguments."""
    trained = trained_arguments(model, name)
    if trained is None or sorted(trained) == sorted(redacted_pairs(env_args)):
        return error
    given = f"--env-args {' '.join(trained)}" if trained else "no --env-args"
    return InvalidArgumentError(
        f"{error}. The run was trained with {given}, and rlvr eval does not take these over: give the same arguments"
    )


def report(
    console: Console, options: EvaluateOptions, name: str, out: Path, result: Evaluation, resumed_as: Path
) -> None:
    """Print the score of an evaluation, with the settings that determined the score and the next commands.

    Args:
        console: Where to print.
        options: Options of the command.
        name: Id of the environment.
        out: Folder of the evaluation.
        result: The evaluation.
        resumed_as: The --out with which the user's command continues this evaluation.
    """
    versions = ", ".join(f"{package} {version}" for package, version in package_versions().items() if version)
    lines = [
        f"{name} {options.split}, model {options.model}, temperature {options.temperature:g}, seed {options.seed}",
        versions,
        f"score {result}",
        f"{f'outcomes {result.outcomes}, ' if result.outcomes else ''}truncated {result.truncated}; written to {out}",
    ]
    if result.rerun_error is not None and options.temperature > 0:
        lines.insert(
            3, f"re-run noise {result.rerun_error:.3f}: standard error of the score over samples of these problems"
        )
    if result.prompt_tokens is not None:
        paid = "" if result.cost is None else f", cost {result.cost:.4g}"
        lines.insert(-1, f"tokens: {result.prompt_tokens} of prompts, {result.tokens} of completions{paid}")
    elif options.engine == "openai":
        cost = "" if options.price is None else " and cost"
        lines.insert(-1, f"tokens{cost} unknown: the server's answers don't count them (usage.prompt_tokens)")
    lines[-1:-1] = [str(estimate) for estimate in (*result.pass_at, *result.maj_at)]
    causes = [f"the verifier broke on {result.verifier_errors} samples"] if result.verifier_errors else []
    causes += [f"{result.failed_requests} requests failed"] if result.failed_requests else []
    if causes:
        lines.append(
            f"{' and '.join(causes)}, for the reasons in {out / SAMPLES}; the same command with --out {resumed_as} "
            "--resume repeats these samples"
        )
    for line in lines:
        console.print(line)
    if result.warning is not None:
        print_warning(result.warning)
    if result.oracle:
        print_warning(f"the samples were {ORACLE_NOTE}")


def search_for(name: str | None, pairs: Sequence[str], guide: str | None, guide_pairs: Sequence[str]) -> Search | None:
    """The search that a command's options select; None without a search."""
    if name is None:
        return None
    from agents.search import MCTS, Beam, BestOfN

    cls: Any = {"best-of-n": BestOfN, "beam": Beam, "mcts": MCTS}[name]
    fields = {field.name: field for field in dataclasses.fields(cls)}
    settings = named_arguments(pairs, "a search")
    for setting in settings:
        if setting not in fields or setting == "guide":
            raise unknown_argument(f"the search {name}", setting, [known for known in fields if known != "guide"])
    required = {known for known, field in fields.items() if field.default is dataclasses.MISSING}
    for missing in sorted(required - settings.keys() - {"guide"}):
        raise InvalidArgumentError(f"--search {name} needs {missing}: give --search-args {missing}=NUMBER")
    if "guide" in required:
        settings["guide"] = _guide(name, guide, guide_pairs)
    elif guide is not None or guide_pairs:
        raise InvalidArgumentError(f"--search {name} takes no guide: it goes by the probabilities of the policy")
    search: Search = cls(**settings)
    return search


def _guide(name: str, guide: str | None, pairs: Sequence[str]) -> Guide:
    if guide is None:
        raise InvalidArgumentError(
            f"--search {name} chooses by a guide: give --guide {', '.join(GUIDES)}, or a verifier such as reward_model"
        )
    if guide not in GUIDES:
        verifier: Verifier = verifiers.make(guide, **verifier_arguments(pairs))
        return verifier
    if pairs:
        raise InvalidArgumentError(f"the guide {guide} takes no arguments, got {list(pairs)}")
    return cast("GuideName", guide)
