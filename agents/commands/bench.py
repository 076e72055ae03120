"""The command `rlvr bench`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console

import rlvr_envs
from agents.commands.command_line import check_before_loading, parse_command
from agents.commands.common import DEVICE, Device, check_engine, env_arguments, on_device
from agents.commands.evaluate import Evaluate, short_name
from agents.commands.evaluate_options import EngineName
from agents.commands.problems import load_problems
from agents.commands.saved_agents import SavedAgent, make_plain
from agents.rollouts.drawing import Drawing, Entrant, draw_until_decided
from agents.runs.decisions import PairDecision, Rules
from agents.runs.drawing_order import dataset_order
from agents.runs.evaluation import MAX_ERROR_SHARE
from agents.runs.evaluation_record import MANIFEST, read_manifest
from agents.runs.files.json_files import write_json
from agents.runs.files.outputs import check_folder, check_new_folder, free_folder
from agents.runs.leaderboard import Leaderboard, LeaderboardCell
from agents.runs.leaderboard_page import leaderboard_page
from agents.runs.reading import RecordedRun
from agents.suites import Suite, SuiteEnvironment, SuiteTraining, read_suite
from verifiers import AtLeast, Between, InvalidArgumentError

LEADERBOARD = "leaderboard"
_UNTRAINED = "tiny"
"""The default model of `rlvr train` and of suites; agents without a language model have no model option."""
_MOST_STEPS = 1_000_000
"""Upper limit of training steps; the token budget ends training long before this limit."""


@dataclass(frozen=True)
class Bench:
    """Evaluate models, or agents that are trained first, on the environments of a suite, and write a leaderboard."""

    suite: str
    """Name of a suite, such as core or tiny, or the path of a file that ends in .toml."""
    model: tuple[str, ...] = ()
    """Models to evaluate, as for rlvr eval; a suite that trains agents does not need any."""
    price: tuple[float, float] | None = None
    """Prices of a million prompt tokens and of a million completion tokens, such as 0.15 0.6, with the engine openai; samples
    and results then state their cost."""
    out: Path | None = None
    """Folder for evaluations, training runs and the leaderboard (Markdown, HTML and JSON); by default a new folder,
    runs/bench/SUITE-NUMBER."""
    resume: bool = False
    """Continue the bench in the folder --out, or start one if there is none yet; finished evaluations are kept."""
    num_envs: Annotated[int, AtLeast(1)] = 64
    """Number of episodes played at once in evaluations, or of simultaneous requests to a server."""
    engine: EngineName = "torch"
    """Engine used for sampling in evaluations: torch, vLLM, or openai, a server at --base-url with OpenAI's protocol."""
    base_url: str | None = None
    """Address of the server's API, for the engine openai, such as http://localhost:8000/v1."""
    engine_args: tuple[str, ...] = ()
    """Arguments of the engine, each as name=value, as for rlvr eval."""
    until_decided: bool = False
    """Draw problems in a random order until it is decided, on each environment and for each pair of models, which model is
    better; all models of an environment are loaded at once. Scores have to be from 0 to 1."""
    margin: Annotated[float, Between(0, 1)] = 0.0
    """Difference below which two models are practically equal, with --until-decided; 0 for no such margin."""
    budget: Annotated[int | None, AtLeast(1)] = None
    """Maximum number of samples of all models together on an environment, with --until-decided; by default only the number of
    the suite's problems is a limit."""
    max_error_share: Annotated[float, Between(0, 1)] = MAX_ERROR_SHARE
    """Share of samples without a score above which the command ends with exit code 1, and --until-decided decides nothing."""
    order_seed: Annotated[int | None, AtLeast(0)] = None
    """Seed of the order in which problems are drawn; by default the data set's own order, or seed 0 with --until-decided."""
    clusters: str | None = None
    """Column of the data sets whose value is the same for problems that belong together; by default, problems with equal
    prompts belong together."""
    device: Device = DEVICE

    def __post_init__(self) -> None:
        if (self.margin or self.budget is not None) and not self.until_decided:
            raise InvalidArgumentError("--margin and --budget belong to --until-decided: give it, too")
        if len(set(self.model)) < len(self.model):
            raise InvalidArgumentError("a model is named twice in --model: name different models")
        if self.resume and self.out is None:
            raise InvalidArgumentError("--resume needs --out, the folder of the bench to continue")

    @on_device
    def run(self, console: Console) -> int:
        """Train, evaluate, and print the leaderboard."""
        suite = read_suite(self.suite)
        if not self.model and suite.train is None:
            raise InvalidArgumentError(f"the suite {self.suite!r} trains no agents: name models with --model")
        if self.engine == "openai" and suite.train is not None:
            raise InvalidArgumentError(
                f"the suite {self.suite!r} trains the agents itself, so they are not on a server: leave --engine out"
            )
        if self.until_decided and (suite.train is not None or len(self.model) < 2):
            raise InvalidArgumentError(
                "--until-decided compares models, at least two: name them with --model, and a suite that trains no agents"
            )
        out = self.out or free_folder(Path("runs/bench"), suite.name)
        check_folder(out) if self.resume else check_new_folder(out, resumable=True)
        entrants = _entrants(self.model, suite.train, out)
        _check_complete(entrants, out)
        evaluations = list(self._evaluations(suite, entrants, out))
        lines = [] if suite.train is None else list(_training_lines(suite.train, out))
        trainings = [_training(agent, line) for agent, line in lines]
        self._check_models([one for _, _, one in evaluations])
        for training in trainings:
            training.run(console)
        decisions = {}
        codes = [0]
        if self.until_decided:
            for environment in suite.environments:
                together = {cell[0]: one for cell, _, one in evaluations if cell[1] == environment.column}
                decisions[environment.column] = self._decide(console, together, out)
        else:
            codes += [evaluation.run(console, resumed_as=out) for _, _, evaluation in evaluations]
        runs: dict[tuple[str, str], list[RecordedRun]] = {}
        for cell, folder, _ in evaluations:
            runs.setdefault(cell, []).append(RecordedRun.read(folder))
        cells = [LeaderboardCell(*cell, tuple(of_cell)) for cell, of_cell in runs.items()]
        board = Leaderboard(suite.title, cells, decisions)
        codes += [decision.too_many_errors for of_environment in decisions.values() for decision in of_environment]
        models = {entrant.name: [model for _, model in entrant.models] for entrant in entrants}
        text = board.markdown()
        (out / f"{LEADERBOARD}.md").write_text(text, encoding="utf-8")
        (out / f"{LEADERBOARD}.html").write_text(leaderboard_page(board), encoding="utf-8")
        write_json(out / f"{LEADERBOARD}.json", {"suite": suite.name, "models": models, **board.summary()})
        console.print(text)
        console.print(f"written to {out / LEADERBOARD}.md, .html and .json")
        return max(codes)

    def _decide(self, console: Console, evaluations: Mapping[str, Evaluate], out: Path) -> list[PairDecision]:
        """Evaluate all models of an environment until each pair is decided, or the problems or the budget are spent."""
        rules = Rules(self.margin, self.max_error_share, self.order_seed or 0)
        with contextlib.ExitStack() as stack:
            entrants = [
                Entrant(
                    name,
                    folder,
                    one.samples,
                    stack.enter_context(one.opened(console, folder, out)),
                    _recorded_problems(folder),
                )
                for name, one in evaluations.items()
                if (folder := one.out) is not None
            ]
            first = next(iter(evaluations.values()))
            dataset = load_problems(first.env, first.split, _data_arguments(first.env, env_arguments(first.env_args)))
            _, clusters = dataset_order(dataset, rules.order_seed, self.clusters)
            drawing = Drawing(clusters, first.problems or len(clusters), self.num_envs, self.budget)
            return draw_until_decided(entrants, drawing, rules, lambda said: console.print(said))

    def _check_models(self, evaluations: Sequence[Evaluate]) -> None:
        """Before torch loads, check the models that are not trained here on every environment."""
        if self.engine == "openai":
            return
        check_engine(self.engine, self.engine_args)
        for evaluation in evaluations:
            if evaluation.model in self.model and SavedAgent.find(evaluation.model) is None:
                evaluation.check_model()

    def _evaluations(
        self, suite: Suite, entrants: Sequence[_Entrant], out: Path
    ) -> Iterator[tuple[tuple[str, str], Path, Evaluate]]:
        """The evaluations to run, each with its leaderboard cell (name and environment) and its folder."""
        for environment in suite.environments:
            available = _num_problems(environment)
            problems = available if environment.problems is None else environment.problems
            if problems > available:  # report this before minutes of training
                raise InvalidArgumentError(
                    f"the suite {suite.name!r} asks for problems = {problems} of {environment.column}, which has "
                    f"{available}: ask for fewer, or leave the key out for all"
                )
            budget = environment.max_new_tokens or suite.max_new_tokens
            arguments = {**environment.arguments} | ({} if budget is None else {"max_new_tokens": budget})
            for entrant in entrants:
                for label, model in entrant.models:
                    folder = out / "evaluations" / environment.folder / label
                    yield (
                        (entrant.name, environment.column),
                        folder,
                        Evaluate(
                            env=environment.name,
                            model=model,
                            split=environment.split,
                            problems=problems,
                            samples=environment.samples_of(problems, suite.temperature),
                            temperature=suite.temperature,
                            seed=suite.seed,
                            num_envs=self.num_envs,
                            engine=self.engine,
                            base_url=self.base_url,
                            engine_args=self.engine_args,
                            max_error_share=self.max_error_share,
                            order_seed=self.order_seed or 0 if self.until_decided else self.order_seed,
                            clusters=self.clusters,
                            price=self.price,
                            out=folder,
                            resume=True,
                            env_args=tuple(f"{name}={value!r}" for name, value in arguments.items()),
                        ),
                    )


@dataclass(frozen=True)
class _Entrant:
    """A row of the leaderboard: its name, and its models with the names of their folders."""

    name: str
    models: tuple[tuple[str, str], ...]


def _entrants(models: Sequence[str], train: SuiteTraining | None, out: Path) -> list[_Entrant]:
    """The agents, and the models by the last part of their names, with numbers if several models share that part."""
    entrants: dict[str, _Entrant] = {}
    if train is not None:
        for agent in train.agents:
            name = short_name(agent)
            trained = [(f"{name}-seed-{seed}", str(_run_folder(out, agent, seed))) for seed in train.seeds]
            entrants[name] = _Entrant(name, tuple(trained))
    for model in models:
        name, number = short_name(model), 2
        while name in entrants:
            name, number = f"{short_name(model)}-{number}", number + 1
        entrants[name] = _Entrant(name, ((name, model),))
    return list(entrants.values())


def _check_complete(entrants: Sequence[_Entrant], out: Path) -> None:
    """Refuse to continue a bench with evaluations of a model not named now, since the leaderboard would lose this model."""
    named = {label for entrant in entrants for label, _ in entrant.models}
    others = {folder.name for folder in (out / "evaluations").glob("*/*") if folder.is_dir()} - named
    if others:
        raise InvalidArgumentError(
            f"{out} also holds evaluations of {', '.join(sorted(others))}: name the models of the bench again, all of them, of "
            "which finished evaluations are kept, or choose another folder"
        )


def _num_problems(environment: SuiteEnvironment) -> int:
    """The number of an environment's problems; missing data or packages are reported before any work is done."""
    found: Any = rlvr_envs.find_environment(environment.name)
    if not (isinstance(found, type) and issubclass(found, rlvr_envs.TaskEnv)):
        return _num_plain_problems(environment)
    options = _data_arguments(environment.name, environment.arguments)
    return len(load_problems(environment.name, environment.split, options))


def _data_arguments(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Select the arguments of an environment that its data set takes."""
    options = rlvr_envs.environment_class(name).task.data_options
    return {option: value for option, value in arguments.items() if option in options}


def _num_plain_problems(environment: SuiteEnvironment) -> int:
    """The number of problems of an environment without tokens; if the environment draws problems, the suite sets the number."""
    env = make_plain(environment.name, environment.split, environment.arguments)
    count = getattr(env.unwrapped, "num_problems", environment.problems)
    if count is None:
        raise InvalidArgumentError(
            f"{environment.name} draws its problems: say how many to draw, by problems in its table [[environments]]"
        )
    return int(count)


def _recorded_problems(folder: Path) -> int:
    """The number of problems of the evaluation in a folder; 0 if there is no evaluation."""
    path = folder / MANIFEST
    return int(read_manifest(path)["settings"].get("problems", 0)) if path.is_file() else 0


def _run_folder(out: Path, agent: str, seed: int) -> Path:
    return out / "training" / f"{short_name(agent)}-seed-{seed}"


def _training_lines(train: SuiteTraining, out: Path) -> Iterator[tuple[str, list[str]]]:
    """The agents to train, each with the options that would follow its name in `rlvr train`."""
    for agent in train.agents:
        for seed in train.seeds:
            folder = _run_folder(out, agent, seed)
            own = {
                "env": train.env,
                **({} if train.model == _UNTRAINED else {"model": train.model}),
                "seed": seed,
                "steps": _MOST_STEPS,
                "token-budget": train.tokens,
                "run-folder": folder,
                "resume": (folder / "config.json").is_file(),
            }
            taken = {name.replace("_", "-") for name in train.options} & own.keys()
            if taken:
                raise InvalidArgumentError(
                    f"{min(taken)!r} can't be among the options of [train]: rlvr bench sets it itself"
                )
            yield agent, [word for name, value in (own | dict(train.options)).items() for word in _words(name, value)]


def _training(agent: str, line: Sequence[str]) -> Any:
    """The command of a training, parsed and checked as by `rlvr train`."""
    from agents.commands.train import AGENT_COMMANDS

    command = parse_command(AGENT_COMMANDS.load(agent, *line), line, f"rlvr train {agent}")
    check_before_loading(command, line)
    return command


def _words(name: str, value: object) -> list[str]:
    """An option as words of a command line."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag[2:]}"]
    return [flag, *map(str, value)] if isinstance(value, list) else [f"{flag}={value}"]
