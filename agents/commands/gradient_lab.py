"""`rlvr gradient-lab`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from agents.agent import Agent
from agents.config import AgentConfig
from agents.gradient_lab import Finding, GradientLab, examine
from agents.losses import Aggregation
from agents.models import tiny_model
from agents.policy import CausalLMPolicy
from agents.progress import progress
from agents.registry import agent_classes
from rlvr_envs import CharTokenizer, Rules, TokenStreams, TokenVectorEnv
from verifiers import InvalidArgumentError, Problem, from_function

HORIZON = 3


@dataclass(frozen=True)
class Estimator:
    """One row of the table."""

    name: str
    agent: str
    settings: Mapping[str, Any]
    values: str = "exact"
    """What stands for the critic's values: `"exact"` ones, or `"wrong"` ones, off by a fixed random amount in each state."""
    best_of: int = 1
    """The objective whose gradient it is compared with: the expected best return of so many completions."""


ESTIMATORS = (
    Estimator("REINFORCE, no baseline", "reinforce", {"baseline": "none"}),
    Estimator("REINFORCE, constant", "reinforce", {"baseline": "constant", "constant": 0.5}),
    Estimator("REINFORCE, batch mean", "reinforce", {"baseline": "batch-mean"}),
    Estimator("REINFORCE, exact value", "reinforce", {"baseline": "value"}),
    Estimator("REINFORCE, wrong value", "reinforce", {"baseline": "value"}, values="wrong"),
    Estimator("RLOO", "rloo", {}),
    Estimator("ReMax", "remax", {}),
    Estimator("OPO", "opo", {}),
    Estimator("A2C, GAE 1, exact value", "a2c", {"trace_decay": 1.0}),
    Estimator("A2C, GAE 1, wrong value", "a2c", {"trace_decay": 1.0}, values="wrong"),
    Estimator("A2C, GAE 0.5, wrong value", "a2c", {"trace_decay": 0.5}, values="wrong"),
    Estimator("A2C, GAE 0, exact value", "a2c", {"trace_decay": 0.0}),
    Estimator("A2C, GAE 0, wrong value", "a2c", {"trace_decay": 0.0}, values="wrong"),
    Estimator("PPO, exact value", "ppo", {"epochs": 1, "minibatches": 1}),
    Estimator("GRPO", "grpo", {}),
    Estimator("GRPO, centred", "grpo", {"scale": "none"}),
    Estimator("REINFORCE++", "reinforce++", {}),
    Estimator("MaxRL", "maxrl", {}),
    Estimator("pass@2", "pass-at-k", {"k": 2}, best_of=2),
)


def small_env() -> TokenVectorEnv:
    """One problem: two letters and an end, at most three tokens; every token counts for the return."""

    def score(completion: str, problem: Problem) -> float:
        return 0.2 + 0.3 * completion.count("a") + 0.7 * completion.count("ab") - 0.1 * completion.count("bb")

    rules = Rules(
        tokenizer=CharTokenizer("ab"),
        render_prompt=lambda problem: str(problem.prompt),
        max_prompt_tokens=1,
        max_new_tokens=HORIZON,
        verifier=from_function(score),
    )
    return TokenVectorEnv(TokenStreams([Problem("lab", "a", None)], rules, 16))


def small_policy(vocab_size: int, seed: int = 0) -> CausalLMPolicy:
    """A transformer of about a thousand weights, whose distributions are far from uniform."""
    model = tiny_model(vocab_size, layers=1, hidden_size=8, heads=2, intermediate_size=16, seed=seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)
    return CausalLMPolicy(model)


def small_lab() -> GradientLab:
    """The 15 completions of `small_env` under `small_policy`."""
    env = small_env()
    return GradientLab(small_policy(env.streams.vocab_size), env, horizon=HORIZON)


def build(policy: CausalLMPolicy, estimator: Estimator, groups: int, group_size: int) -> Agent:
    """The agent of an estimator, on the scale of the gradient: losses of tokens summed, and averaged over completions."""
    kind, config_kind = agent_classes(estimator.agent)
    settings: dict[str, Any] = {
        "problems_per_step": groups,
        "group_size": group_size,
        "aggregation": Aggregation.SEQUENCE_MEAN_TOKEN_SUM,
        "entropy_coefficient": 0.0,
        **estimator.settings,
    }
    return kind(policy, config_kind(**settings))


def wrong_values(lab: GradientLab, size: float = 0.3) -> Tensor:
    """Values f64[c l] off by a fixed random amount in each state, the same for completions that share it."""
    generator = torch.Generator().manual_seed(1)
    errors: dict[bytes, float] = {}
    values = lab.values.clone()
    for row, each in enumerate(lab.completions):
        for position in range(each.prompt_length, len(each.tokens)):
            prefix = each.tokens[:position].tobytes()
            if prefix not in errors:
                errors[prefix] = size * float(torch.randn((), generator=generator))
            values[row, position] += errors[prefix]
    return values


@dataclass(frozen=True)
class GradientLabCommand:
    """Compare gradient estimators with the exact gradient, where all 15 completions of a problem are written down."""

    batches: int = 4000
    """Batches drawn for each estimator."""
    groups: int = 4
    """Groups in a batch."""
    group_size: int = 4
    """Completions in a group."""
    seed: int = 0
    """Decides what is drawn."""
    estimator: str | None = None
    """An agent of your own in place of the built-in ones, as module:Class; its config is module:ClassConfig, or AgentConfig."""

    def run(self, console: Console) -> int:
        """Examine each estimator and print a table."""
        lab = small_lab()
        console.print(
            f"{len(lab.completions)} completions, expected return {lab.expected_return:.4f}, gradient of size "
            f"{float(lab.gradient.norm()):.4f}; {self.batches} batches of {self.groups} x {self.group_size}",
            highlight=False,
        )
        table = Table()
        for column in ("estimator", "mean", "largest z", "scale", "cosine", "variance of a batch"):
            table.add_column(column)
        for finding in self._findings(lab):
            told = "unbiased" if finding.unbiased else f"bias {finding.bias:.1%}"
            numbers = (finding.z, finding.scale, finding.cosine, finding.variance)
            table.add_row(finding.name, told, *(f"{number:.3g}" for number in numbers))
        console.print(table)
        console.print(
            "bias and variance are relative to the gradient's size; the variance to that of the estimate's part along it",
            highlight=False,
        )
        return 0

    def _findings(self, lab: GradientLab) -> Iterator[Finding]:
        wrong = wrong_values(lab)
        for estimator, agent in self._agents(lab.policy):
            with progress(estimator.name, self.batches) as advance:
                yield examine(
                    lab,
                    estimator.name,
                    agent,
                    batches=self.batches,
                    seed=self.seed,
                    values=wrong if estimator.values == "wrong" else None,
                    target=None if estimator.best_of == 1 else lab.gradient_of(lab.best_of(estimator.best_of)),
                    progress=advance,
                )

    def _agents(self, policy: CausalLMPolicy) -> Iterator[tuple[Estimator, Agent]]:
        if self.estimator is None:
            for each in ESTIMATORS:
                yield each, build(policy, each, self.groups, self.group_size)
            return
        kind, config_kind = _imported(self.estimator)
        config = config_kind(
            problems_per_step=self.groups,
            group_size=self.group_size,
            aggregation=Aggregation.SEQUENCE_MEAN_TOKEN_SUM,
        )
        yield Estimator(kind.__name__, self.estimator, {}), kind(policy, config)


def _imported(name: str) -> tuple[type[Agent], type[AgentConfig]]:
    module_name, colon, kind_name = name.partition(":")
    if not colon:
        raise InvalidArgumentError(f"an estimator is module:Class, such as my_agents:MyAgent, got {name!r}")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InvalidArgumentError(f"can't import {module_name!r}: {error}") from error
    kind = getattr(module, kind_name, None)
    if not (isinstance(kind, type) and issubclass(kind, Agent)):
        raise InvalidArgumentError(f"{name!r} is no subclass of agents.Agent")
    return kind, getattr(module, f"{kind_name}Config", AgentConfig)
