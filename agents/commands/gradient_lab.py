"""The command `rlvr gradient-lab`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

import rlvr_envs
from agents import policies
from agents.commands.common import env_arguments, make_vec
from agents.console.progress import progress
from agents.deferred import torch
from agents.experiments.court import judge, load
from agents.experiments.gradient_lab import BiasReport, GradientLab, examine
from agents.learn.agent import Agent
from agents.losses import Aggregation
from agents.registry import agent_classes
from verifiers import AtLeast, InvalidArgumentError, Problem, from_function, import_attribute, is_attribute_path

if TYPE_CHECKING:
    from torch import Tensor


HORIZON = 3
_NOTES = """\
each agent uses its own aggregation; epochs, minibatches and entropy bonus are set so that a batch is one gradient estimate;
token-mean divides by the batch's tokens and sequence-mean-token-sum-norm by a constant, which changes the mean's scale;
sequence-mean-token-mean divides by each length, which also changes its direction; --aggregation sets one for all agents
means are compared with the gradient of the expected return; that of pass@2 with the gradient of the expected best of two, and
that of "log p" with the gradient of the log-likelihood of a success, truncated to group_size - 1 terms; estimators that divide
by a mean or a standard deviation optimise a different objective from the return; their bias shows how different it is
"bias" is the distance of the mean from the gradient, relative to the gradient's norm; "direction" is the mean's part across the
gradient, relative to its part along it, whose size is "scale"; "below" is the largest bias that batches without a sign of one
leave possible: more batches leave less; z is the largest deviation in standard errors
"variance" is relative to the gradient's norm, "relative" to the mean's part along the gradient"""
_NOTES_OF_ONE = 4
"""Number of lines at the end of the notes that also hold for a single estimator."""
Objective = Literal["return", "best of 2", "log-likelihood"]
CriticValues = Literal["exact", "wrong", "half"]
"""Values of a critic: exact; exact plus a fixed random error in each state; or half the exact values, like those of a critic
that started at 0 and is still learning."""


@dataclass(frozen=True)
class Estimator:
    """An estimator to examine, for one row of the table."""

    name: str
    agent: str
    settings: Mapping[str, Any]
    values: CriticValues = "exact"
    """The values used in place of the critic's values."""
    objective: Objective = "return"
    """The objective whose gradient the estimate is compared with: the expected return, the expected best of two completions, or
    the log-likelihood of a success, truncated to the terms that a group can estimate."""
    scores: Literal["graded", "binary"] = "graded"
    """How completions are scored: `graded`, from -0.2 to 1.2, or `binary`, 1 for a success and 0 otherwise."""


ESTIMATORS = (
    Estimator("REINFORCE, no baseline", "reinforce", {"baseline": "none"}),
    Estimator("REINFORCE, constant", "reinforce", {"baseline": "constant", "constant": 0.5}),
    Estimator("REINFORCE, batch mean", "reinforce", {"baseline": "batch-mean"}),
    Estimator("REINFORCE, moving average", "reinforce", {"baseline": "moving-average"}),
    Estimator("REINFORCE, exact value", "reinforce", {"baseline": "value"}),
    Estimator("REINFORCE, wrong value", "reinforce", {"baseline": "value"}, values="wrong"),
    Estimator("RLOO", "rloo", {}),
    Estimator("ReMax", "remax", {}),
    Estimator("OPO", "opo", {}),
    Estimator("A2C, GAE 1, exact value", "a2c", {"gae_lambda": 1.0}),
    Estimator("A2C, GAE 1, wrong value", "a2c", {"gae_lambda": 1.0}, values="wrong"),
    Estimator("A2C, GAE 1, half value", "a2c", {"gae_lambda": 1.0}, values="half"),
    Estimator("A2C, GAE 0.5, half value", "a2c", {"gae_lambda": 0.5}, values="half"),
    Estimator("A2C, 2 steps, half value", "a2c", {"steps_ahead": 2}, values="half"),
    Estimator("Actor-critic, half value", "actor-critic", {"trace_decay": 0.0}, values="half"),
    Estimator("Actor-critic, wrong value", "actor-critic", {"trace_decay": 0.0}, values="wrong"),
    Estimator("Actor-critic, exact value", "actor-critic", {"trace_decay": 0.0}),
    Estimator("PPO, exact value", "ppo", {"epochs": 1, "minibatches": 1}),
    Estimator("GRPO", "grpo", {}),
    Estimator("GRPO, centred", "grpo", {"scale": "none"}),
    Estimator("Dr. GRPO", "dr-grpo", {}),
    Estimator("REINFORCE++", "reinforce++", {}),
    Estimator("MaxRL", "maxrl", {}),
    Estimator("MaxRL, log p of a success", "maxrl", {}, objective="log-likelihood", scores="binary"),
    Estimator("pass@2", "pass-at-k", {"k": 2}, objective="best of 2"),
)


def graded(completion: str, problem: Problem) -> float:
    """A completion's score, to which every token contributes."""
    return 0.2 + 0.3 * completion.count("a") + 0.7 * completion.count("ab") - 0.1 * completion.count("bb")


def binary(completion: str, problem: Problem) -> float:
    """A completion's score: 1 for a success, 0 otherwise."""
    return float("ab" in completion)


def small_env(score: Callable[[str, Problem], float] = graded) -> rlvr_envs.TokenVectorEnv:
    """An environment with one problem, whose completions have at most three tokens: two letters and an end token."""
    rules = rlvr_envs.Rules(
        tokenizer=rlvr_envs.CharTokenizer("ab"),
        render_prompt=lambda problem: str(problem.prompt),
        max_prompt_tokens=1,
        max_new_tokens=HORIZON,
        verifier=from_function(score),
    )
    return rlvr_envs.TokenVectorEnv(rlvr_envs.TokenStreams([Problem("lab", "a", None)], rules, 16))


def small_policy(vocab_size: int, seed: int = 0) -> policies.CausalLMPolicy:
    """A transformer with about a thousand weights, whose distributions are far from uniform."""
    model = policies.tiny_model(vocab_size, layers=1, hidden_size=8, heads=2, intermediate_size=16, seed=seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)
    return policies.CausalLMPolicy(model)


def small_lab(score: Callable[[str, Problem], float] = graded) -> GradientLab:
    """A lab of the 15 completions of `small_env` under `small_policy`."""
    env = small_env(score)
    return GradientLab(small_policy(env.streams.vocab_size), env, horizon=HORIZON)


def build(
    policy: policies.CausalLMPolicy,
    estimator: Estimator,
    groups: int,
    group_size: int,
    horizon: int = HORIZON,
    aggregation: Aggregation | None = None,
) -> Agent:
    """Build the agent of an estimator, without entropy bonus; `aggregation=None` uses the agent's own aggregation."""
    cls, config_cls = agent_classes(estimator.agent)
    settings: dict[str, Any] = {
        "problems_per_step": groups,
        "group_size": group_size,
        "entropy_coefficient": 0.0,
        "aggregation": config_cls.aggregation if aggregation is None else aggregation,
        **estimator.settings,
    }
    if settings["aggregation"] is Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM:
        settings["max_tokens"] = horizon
    return cls(policy, config_cls(**settings))


def target(lab: GradientLab, objective: Objective, group_size: int) -> Tensor:
    """The gradient f64[p] of an estimator's objective."""
    match objective:
        case "return":
            return lab.gradient
        case "best of 2":
            return lab.gradient_of(lab.best_of(2))
        case "log-likelihood":
            return lab.gradient_of(lab.log_likelihood(group_size - 1))


def stand_in_values(lab: GradientLab, values: CriticValues) -> Tensor:
    """Values f64[c l] of the states of a lab's completions."""
    match values:
        case "exact":
            return lab.values
        case "wrong":
            return wrong_values(lab)
        case "half":
            return 0.5 * lab.values


def wrong_values(lab: GradientLab, size: float = 0.3) -> Tensor:
    """Values f64[c l] with a fixed random error in each state, the same for completions that share the state."""
    generator = torch.Generator().manual_seed(1)
    errors: dict[bytes, float] = {}
    values = lab.values.clone()
    for row, completion in enumerate(lab.completions):
        for position in range(completion.prompt_length, len(completion.tokens)):
            prefix = completion.tokens[:position].tobytes()
            if prefix not in errors:
                errors[prefix] = size * float(torch.randn((), generator=generator))
            values[row, position] += errors[prefix]
    return values


@dataclass(frozen=True)
class GradientLabCommand:
    """Compare gradient estimators with the exact gradient, on a problem whose completions can all be enumerated."""

    batches: Annotated[int, AtLeast(2)] = 4000
    """Number of batches drawn for each estimator."""
    groups: Annotated[int, AtLeast(1)] = 4
    """Number of groups in a batch."""
    group_size: Annotated[int, AtLeast(1)] = 4
    """Number of completions in a group."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Seed of all random draws."""
    estimator: str | None = None
    """One estimator to examine in place of the table: an agent's name, such as grpo; a custom agent as module:Class, whose
    config is module:ClassConfig or AgentConfig; or module:function, which is examined as with --court."""
    court: bool = False
    """Examine an agent by the exact expectation over all batches of many small cases (the court), instead of batches drawn for
    one problem. Functions are always examined in this way."""
    aggregation: Aggregation | None = None
    """How the losses of the tokens are reduced to one loss; None uses each agent's own default. Only
    sequence-mean-token-sum has the scale of the gradient."""
    env: str | None = None
    """Environment small enough that all completions can be enumerated, such as Maze with --env-args max_new_tokens=5;
    None uses a built-in problem with 15 completions, each with its own score."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as n=2 or max_new_tokens=2."""
    problem: Annotated[int, AtLeast(0)] = 0
    """Index of the environment's problem; the first is 0."""

    def run(self, console: Console) -> int:
        """Examine all estimators and print a table."""
        if self._in_court():
            return self._judge(console)
        labs = self._labs()
        lab = labs["graded"]
        console.print(
            f"{len(lab.completions)} completions, expected return {lab.expected_return:.4f}, gradient of size "
            f"{float(lab.gradient.norm()):.4g}; {self.batches} batches of {self.groups} x {self.group_size}"
        )
        table = Table(box=None, padding=(0, 1, 0, 0))
        table.add_column("estimator", no_wrap=True)
        for column in ("bias", "direction", "z", "scale", "variance", "relative"):
            table.add_column(column, no_wrap=column in ("bias", "direction"))
        aggregations: dict[str, list[str]] = {}
        for agent, report in self._reports(labs, console):
            numbers = (report.z, report.scale, report.raw_variance, report.variance)
            texts = (report.bias_text, report.direction_text)
            table.add_row(report.name, *texts, *(f"{number:.3g}" for number in numbers))
            aggregations.setdefault(str(agent.config.aggregation), []).append(report.name)
        console.print(table)
        for aggregation, names in aggregations.items():
            console.print(f"{aggregation}: {'; '.join(names)}")
        console.print(_NOTES if self.estimator is None else "\n".join(_NOTES.splitlines()[-_NOTES_OF_ONE:]))
        return 0

    def _in_court(self) -> bool:
        """Whether the estimator is tried in the court: always for a function, and for an agent if `court` is set."""
        if self.estimator is None:
            if self.court:
                raise InvalidArgumentError("the court tries one estimator: name it with --estimator")
            return False
        named = is_attribute_path(self.estimator) and import_attribute(self.estimator, "estimator")
        if not self.court and not named:
            return False
        return self.court or not isinstance(named, type)

    def _judge(self, console: Console) -> int:
        """Print every comparison of the court with its verdict, and the findings with code that shows them."""
        assert self.estimator is not None
        estimator = load(self.estimator)
        with progress(estimator.name, 1.0) as advance:
            judgement = judge(estimator, lambda done, total: advance(done / total))
        table = Table(box=None, padding=(0, 1, 0, 0))
        for column in ("case", "groups of", "expected gradient", "scale", "cosine", "variance"):
            table.add_column(column, no_wrap=True)
        for one in judgement.comparisons:
            numbers = (one.scale, one.cosine, one.relative_variance)
            table.add_row(
                one.case.name, str(one.case.group_size), one.verdict, *(f"{number:.4g}" for number in numbers)
            )
        console.print(table)
        for finding in judgement.findings:
            console.print(f"* {finding.sentence}")
        if code := judgement.code():
            console.print(f"\nTo see this:\n\n{code}")
        return 0

    def _labs(self) -> dict[str, GradientLab]:
        """The labs, by the way completions are scored; the lab `binary` exists only if all scores are 1 or 0."""
        if self.env is None:
            if self.env_args or self.problem:
                raise InvalidArgumentError("env_args and problem need an environment: set --env")
            return {"graded": small_lab(), "binary": small_lab(binary)}
        env = make_vec(self.env, 64, env_arguments(self.env_args))
        lab = lab_of(env, self.problem)
        return {"graded": lab} | ({"binary": lab} if ((lab.returns == 0) | (lab.returns == 1)).all() else {})

    def _agents(self, labs: Mapping[str, GradientLab], console: Console) -> list[tuple[Estimator, GradientLab, Agent]]:
        """Build all agents before drawing any batch, so that an invalid setting ends the command at once."""
        agents: list[tuple[Estimator, GradientLab, Agent]] = []
        for estimator in ESTIMATORS if self.estimator is None else (_named(self.estimator),):
            if estimator.scores not in labs:
                console.print(f"{estimator.name} is left out: it needs returns of 1 and 0")
                continue
            lab = labs[estimator.scores]
            agent = build(lab.policy, estimator, self.groups, self.group_size, lab.horizon, self.aggregation)
            agents.append((estimator, lab, agent))
        return agents

    def _reports(self, labs: Mapping[str, GradientLab], console: Console) -> Iterator[tuple[Agent, BiasReport]]:
        for estimator, lab, agent in self._agents(labs, console):
            try:
                for completion in lab.completions:
                    agent.check_episode(completion)
            except InvalidArgumentError as error:
                if self.estimator is not None:
                    raise
                console.print(f"{estimator.name} is left out: {error}")
                continue
            with progress(estimator.name, self.batches) as advance:
                report = examine(
                    lab,
                    estimator.name,
                    agent,
                    batches=self.batches,
                    seed=self.seed,
                    values=stand_in_values(lab, estimator.values),
                    target=target(lab, estimator.objective, self.group_size),
                    progress=advance,
                )
            yield agent, report


def lab_of(env: rlvr_envs.TokenVectorEnv, problem: int) -> GradientLab:
    """A lab of all completions of an environment's problem under `small_policy`."""
    if not 0 <= problem < len(env.streams.dataset):
        raise InvalidArgumentError(f"the environment has problems 0 to {len(env.streams.dataset) - 1}, got {problem}")
    _, info = env.reset(options={"problems": np.full(env.num_envs, problem)})
    actions = np.flatnonzero(info["action_mask"][0]).tolist() if "action_mask" in info else None
    policy = small_policy(env.streams.vocab_size)
    return GradientLab(policy, env, problem=problem, horizon=env.streams.rules.max_new_tokens, actions=actions)


def _named(name: str) -> Estimator:
    """An agent with its default settings, except that each batch has one optimiser step and so gives one gradient estimate."""
    cls, config_cls = agent_classes(name)
    one_step = {"epochs": 1, "minibatches": 1} if config_cls.epochs * config_cls.minibatches > 1 else {}
    return Estimator(cls.__name__, name, one_step)
