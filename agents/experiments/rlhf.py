"""Runs reinforcement learning from human feedback, and compares it with verifiable rewards on the same problems.

The pipeline has the steps of Ouyang et al. 2022 (arXiv:2203.02155): a supervised warm start; pairs of a preferred and a
rejected completion; a reward model fitted to the pairs; and PPO on the reward model's score with a KL penalty. Four models take
part in the last step: policy, reference, reward model and critic. Preferences come from a verifier instead of people. This is
the environment's own verifier (right completions are preferred to wrong completions), or a judge (reinforcement learning from
AI feedback, Lee et al. 2023, arXiv:2309.00267). The environment's verifier also scores every completion of PPO, but PPO does
not train on these scores.

The control is PPO from the same start, with the environment's verifier as the reward.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table

import rlvr_envs
from agents import policies, preferences
from agents.algorithms.ppo import PPO, PPOConfig
from agents.console.progress import progress
from agents.experiments.supervised import SupervisedConfig, train_supervised
from agents.preferences.pairs import held_out, pairs_of, read_pairs, scored_completions, write_pairs
from agents.preferences.report import PreferenceReport
from agents.preferences.reward_model import RewardModelConfig
from agents.rollouts.evaluation import evaluate
from agents.rollouts.loop import rollout
from agents.rollouts.problem_order import episodes_of_step
from agents.runs.evaluation import Evaluation
from agents.runs.files.json_files import write_json
from agents.runs.run import Run
from agents.settings.learner import LearnerConfig
from verifiers import AtLeast, Between, DataError, check_types

VerifierChoice = tuple[str, Mapping[str, Any]]
"""A verifier's name and its arguments, for `verifiers.make`."""
_WINDOW = 10
"""Number of final steps whose metrics are averaged in the table."""


@dataclass(frozen=True)
class RLHFConfig:
    """Settings of the pipeline.

    Raises:
        InvalidArgumentError: If a number is out of range.
    """

    warm_start_steps: Annotated[int, AtLeast(0)] = 150
    """Number of supervised steps on gold completions at the beginning. 0 uses the model unchanged."""
    problems: Annotated[int, AtLeast(1)] = 4000
    """Number of problems whose completions are compared."""
    samples: Annotated[int, AtLeast(2)] = 4
    """Number of sampled completions of each compared problem."""
    held_out: Annotated[float, Between(0, 1, open_low=True, open_high=True)] = 0.1
    """Share of the compared problems whose pairs are held out to test the reward model."""
    reward_model_epochs: Annotated[int, AtLeast(1)] = 4
    """Number of passes over the pairs."""
    members: Annotated[int, AtLeast(1)] = 1
    """Number of reward models, which differ in their seeds. The minimum of their scores counts."""
    steps: Annotated[int, AtLeast(1)] = 100
    """Number of steps of PPO."""
    kl_coefficient: float = 0.3
    """Weight of the KL divergence from the warm start in the reward of PPO, in units of the reward model's scores."""
    completions: Annotated[int, AtLeast(1)] = 128
    """Number of completions in a step of PPO."""
    test_problems: Annotated[int, AtLeast(1)] = 300
    """Number of held-out problems that the policies answer before and after training."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Seed of the order of problems, of sampling and of the reward models."""

    def __post_init__(self) -> None:
        check_types(self)
        self.ppo()  # raises if PPO's settings are out of range

    def ppo(self, *, penalised: bool = True) -> PPOConfig:
        """The settings of PPO; without `penalised`, there is no KL penalty, and the divergence is only measured."""
        return PPOConfig(
            problems_per_step=self.completions,
            minibatches=4 if self.completions % 4 == 0 else 1,
            kl_coefficient=self.kl_coefficient if penalised else 0.0,
            measure_kl=True,
            seed=self.seed,
            learner=LearnerConfig(micro_batch_size=256),
        )


@dataclass(frozen=True)
class Task:
    """The problems, and the verifier whose preferences count."""

    env: str
    """Id of the environment."""
    arguments: Mapping[str, Any]
    """Arguments of the environment."""
    preferences: VerifierChoice | None = None
    """The verifier whose scores decide which completion is preferred; None for the environment's own verifier."""

    def vec(
        self, split: str, tokenizer: Any, num_envs: int, verifier: VerifierChoice | None = None
    ) -> rlvr_envs.TokenVectorEnv:
        """Build an environment of these problems with a verifier, by default the environment's own verifier."""
        judged_by = {} if verifier is None else {"verifier": verifier}
        options = {"prompt": "auto", **self.arguments, "split": split, "tokenizer": tokenizer, **judged_by}
        return rlvr_envs.environment_class(self.env).make_vec(num_envs, copy=False, **options)

    def proxy(self, verifier: VerifierChoice) -> VerifierChoice:
        """Combine a verifier whose scores are the reward with the environment's own verifier."""
        return "with_gold", {"proxy": verifier, "gold": rlvr_envs.OWN_VERIFIER}


@dataclass(frozen=True)
class PipelineResult:
    """The results of a pipeline, in addition to its folder."""

    accuracy: Mapping[str, Evaluation]
    """Scores of the environment's verifier on held-out problems, by policy: `start`, `rlhf`, `rlvr`."""
    reward_models: Sequence[PreferenceReport]
    """Reports on the reward models, from held-out pairs."""


def run_rlhf(
    task: Task,
    config: RLHFConfig,
    folder: Path,
    console: Console,
    policy: policies.CausalLMPolicy,
    streams: rlvr_envs.TokenStreams,
) -> PipelineResult:
    """Run the pipeline and its control, print a table, and return the results.

    The folder gets `start` (the warm start), `pairs.jsonl`, `reward-model-1` and so on, the runs `rlhf` and `rlvr`, and
    `results.json`.

    Raises:
        DataError: If there is no pair with a preference, or a problem of the warm start has no gold completion.
    """
    start = folder / "start"
    warm_start(config, start, policy, streams)
    pairs = sample_pairs(task, config, start, folder / "pairs.jsonl")
    console.print(f"{pairs} pairs in {folder / 'pairs.jsonl'}", markup=False)
    reports = [
        fit_reward_model(folder / "pairs.jsonl", start, folder / f"reward-model-{1 + member}", config, member)
        for member in range(config.members)
    ]
    for report in reports:
        console.print(f"reward model: {report}")
    folders = [folder / f"reward-model-{1 + member}" for member in range(config.members)]
    rewards = {"rlhf": task.proxy(reward_of(folders)), "rlvr": None}
    accuracy = {"start": score(task, config, start)}
    last: dict[str, Mapping[str, float]] = {}
    for name, verifier in rewards.items():
        last[name] = train_ppo(
            task, config.ppo(penalised=verifier is not None), start, folder / name, verifier, config.steps
        )
        accuracy[name] = score(task, config, folder / name)
    result = PipelineResult(accuracy, reports)
    write_json(folder / "results.json", {"task": task, "config": config, "result": result, "last_steps": last})
    console.print(_table(task, config, accuracy, last))
    return result


def warm_start(
    config: RLHFConfig, folder: Path, policy: policies.CausalLMPolicy, streams: rlvr_envs.TokenStreams
) -> None:
    """Fit a policy to gold completions, and save it with its tokenizer."""
    if config.warm_start_steps:
        settings = SupervisedConfig(steps=config.warm_start_steps, seed=config.seed)
        with progress("supervised warm start", config.warm_start_steps) as advance:
            train_supervised(policy, streams, settings, on_step=lambda step, loss: advance(step, f"loss {loss:.3f}"))
    policies.save_model(folder, policy.model, streams.rules.tokenizer)


def sample_pairs(task: Task, config: RLHFConfig, start: Path, path: Path) -> int:
    """Sample completions of the warm start, write pairs by the preferring verifier's scores, and return their number."""
    policy, tokenizer = policies.load_policy(start)
    env = task.vec("train", tokenizer, min(256, config.problems * config.samples), task.preferences)
    problems = min(config.problems, env.num_problems)
    episodes = episodes_of_step(env, 0, problems, config.samples, config.seed)
    with progress("completions to compare", len(episodes)) as advance:
        done: list[object] = []

        def count(trajectory: object) -> None:
            done.append(trajectory)
            advance(len(done))

        played = rollout(env, policy, episodes, on_episode=count)
    pairs = pairs_of(scored_completions(played, env.streams.dataset), seed=config.seed)
    if len({pair.prompt for pair in pairs}) < 2:
        raise DataError(
            f"{len(played)} completions of {problems} problems give {len(pairs)} pairs of different scores: sample more, or "
            "change the number of warm-start steps, so that some are right and some wrong"
        )
    write_pairs(path, pairs)
    env.close()
    return len(pairs)


def fit_reward_model(pairs: Path, start: Path, folder: Path, config: RLHFConfig, member: int = 0) -> PreferenceReport:
    """Fit a reward model initialised from the warm start, save it, and test it on held-out pairs.

    Args:
        pairs: The file of pairs.
        start: Folder of the warm start.
        folder: Folder of the reward model.
        config: Settings.
        member: Number of the reward model, which sets its seed. The held-out pairs are the same for all reward models.
    """
    train, test = held_out(read_pairs(pairs), config.held_out, config.seed)
    seed = config.seed * config.members + member
    made = preferences.new_reward_model(start, seed=seed)
    settings = RewardModelConfig(epochs=config.reward_model_epochs, seed=seed).for_model(made.model, trained=True)
    with progress(folder.name, preferences.num_steps(len(train), settings)) as advance:
        preferences.train_reward_model(
            made, train, settings, on_step=lambda step, loss: advance(step, f"loss {loss:.3f}")
        )
    made.save(folder)
    return preferences.evaluate_reward_model(made.verifier(), test)


def reward_of(folders: Sequence[Path]) -> VerifierChoice:
    """The verifier that gives a reward model's score or, for several, the minimum (Coste et al. 2024, arXiv:2310.02743)."""
    single: list[VerifierChoice] = [("reward_model", {"model": str(one), "batch_size": 256}) for one in folders]
    if len(single) == 1:
        return single[0]
    return "ensemble", {"parts": single, "reduction": "min"}


def train_ppo(
    task: Task, config: PPOConfig, start: Path, folder: Path, verifier: VerifierChoice | None, steps: int
) -> dict[str, float]:
    """Train the warm start with PPO in a run's folder; return the mean metrics of the last steps."""
    policy, tokenizer = policies.load_policy(start, dtype="float32")
    env = task.vec("train", tokenizer, config.problems_per_step, verifier)
    agent = PPO(policy, config.for_model(policy.model))
    record = {"agent": "ppo", "env": task.env, "config": dataclasses.asdict(agent.config), "environment": env.manifest}
    seen: list[Mapping[str, float]] = []
    with Run(folder, record, loggers=(), keep=1, log_rollouts=4) as run, progress(folder.name, steps) as advance:

        def show(step: int, metrics: Mapping[str, float]) -> None:
            seen.append(metrics)
            gold = metrics.get("gold_reward")
            advance(step, f"reward {metrics['reward']:.2f}" + ("" if gold is None else f", gold {gold:.2f}"))

        agent.learn(env, steps=steps, run=run, callbacks=[show])
    env.close()
    last = seen[-_WINDOW:]
    return {name: sum(row[name] for row in last) / len(last) for name in last[-1] if all(name in row for row in last)}


def score(task: Task, config: RLHFConfig, model: Path) -> Evaluation:
    """Evaluate a model's sampled completions of held-out problems, with the environment's own verifier."""
    policy, tokenizer = policies.load_policy(model)
    env = task.vec("test", tokenizer, min(256, 2 * config.test_problems))
    result = evaluate(env, policy, problems=min(config.test_problems, env.num_problems), samples=2, seed=config.seed)
    env.close()
    return result


def _table(
    task: Task, config: RLHFConfig, accuracy: Mapping[str, Evaluation], last: Mapping[str, Mapping[str, float]]
) -> Table:
    table = Table(title=f"{task.env}, sampled completions of held-out problems by the environment's verifier")
    for column in ("", "score", "reward", "gold reward", "KL"):
        table.add_column(column)
    names = {"start": "start", "rlhf": "RLHF", "rlvr": "RLVR"}
    for name, shown in names.items():
        result, metrics = accuracy[name], last.get(name, {})
        cells = [metrics.get(metric) for metric in ("reward", "gold_reward", "kl")]
        interval = f"{result.score:.3f} [{result.interval[0]:.3f}, {result.interval[1]:.3f}]"
        table.add_row(shown, interval, *("" if cell is None else f"{cell:.3f}" for cell in cells))
    table.caption = (
        "RLHF: PPO on the reward model. RLVR: PPO on the verifier. score: with its 95 % interval. The others are means over "
        f"the last {min(_WINDOW, config.steps)} steps of training; KL is per token, from the start."
    )
    return table
