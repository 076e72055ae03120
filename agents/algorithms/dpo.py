"""DPO: Direct Preference Optimization (Rafailov et al. 2023, arXiv:2305.18290, equation 7).

The objective is the expected reward minus beta times the KL divergence from a reference policy. The policy pi(y) = pi_ref(y)
exp(r(y) / beta) / Z maximises this objective. So beta log(pi / pi_ref) is a reward up to a constant of the prompt, and the
policy itself gives the likelihood of preferences under Bradley and Terry's model. DPO needs neither a reward model nor
sampling. The reference is the policy at the start.

Pairs come from a file (`pairs`), or are made online from the policy's own verified completions: in each group, the best and the
worst completion, or all pairs with different scores (Guo et al. 2024, "Direct Language Model Alignment from Online AI
Feedback", arXiv:2402.04792, ask a judge about two completions). A group of equal scores has no pair.

The gradient of a pair's loss at the pair's margin h is dL/dh (grad log pi(chosen) - grad log pi(rejected)). This is a policy
gradient in which the slope of the loss gives the advantages, and is computed so: one pass gives the margins at the current
weights, and the learner's pass is the usual policy-gradient pass. So the two completions of a pair need not share a
micro-batch.

`preference_loss="ipo"` and `label_smoothing` are two variants; see `agents.losses.preference_loss`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from gymnasium.vector import VectorEnv

import rlvr_envs
from agents import learn
from agents.batch import Batch
from agents.deferred import torch
from agents.importance import Correction
from agents.learn.agent import Agent
from agents.learn.algorithm import Plays
from agents.learn.metrics import merge
from agents.losses import Aggregation, PreferenceLoss, policy_gradient, preference_loss
from agents.policies.trainable import TrainablePolicy
from agents.preferences.pairs import PreferencePair, read_pairs
from agents.rollouts.given import given_episode
from agents.rollouts.problem_order import problems_of_step
from agents.settings.agent import AgentConfig
from agents.settings.choices import choice
from agents.settings.config_checks import require_defaults
from agents.types import Sampler, Trajectory
from verifiers import Above, Between, DataError, InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


Pairing = Literal["best-worst", "all"]


@dataclass(frozen=True)
class DPOConfig(AgentConfig):
    """Settings of DPO."""

    pairs: str | None = None
    """Source of preference pairs in place of the policy's own completions: a .jsonl or .parquet file, or a folder of rlvr eval.
    A step has `problems_per_step` pairs."""
    beta: Annotated[float, Above(0)] = 0.1
    """Weight of the KL divergence from the reference in DPO's objective. A small weight allows large changes."""
    pairing: Pairing = "best-worst"
    """The pairs to make from a group of the policy's own completions: `best-worst` pairs the best with the worst completion,
    and `all` makes all pairs with different scores."""
    preference_loss: PreferenceLoss = PreferenceLoss.SIGMOID
    """Loss of a pair: `sigmoid` (DPO), or `ipo`, which has a finite optimum even if preferences are certain."""
    label_smoothing: Annotated[float, Between(0, 0.5, open_high=True)] = 0.0
    """Probability with which a preference is assumed to be wrong, from 0 to below 0.5."""
    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM
    importance_correction: Correction | None = Correction.NONE

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "preference_loss", choice("preference_loss", self.preference_loss, PreferenceLoss))
        if self.minibatches > 1:
            raise InvalidArgumentError(
                f"a pair must not be divided: minibatches must be 1, got {self.minibatches}; choose a smaller problems_per_step"
            )
        require_defaults(self, ("aggregation",), "The log-probability of a completion is the sum over its tokens")
        require_defaults(self, ("importance_correction",), "The loss does not depend on who sampled the pairs")
        require_defaults(self, ("kl_coefficient", "kl_coefficient_end"), "The weight of the KL divergence is beta")
        if self.pairs is None and self.group_size < 2:
            raise InvalidArgumentError(
                f"group_size must be at least 2, since pairs are made of a group; got {self.group_size}"
            )
        if self.pairs is not None and self.lag:
            raise InvalidArgumentError(f"nothing is sampled if pairs are given: lag must be 0, got {self.lag}")
        if self.pairs is not None:
            require_defaults(self, ("problem_sampler",), "The problems are those of the pairs")

    @property
    def needs_reference(self) -> bool:
        """True, since DPO is relative to a reference."""
        return True


class DPO(Agent):
    """Direct Preference Optimization."""

    name = "dpo"
    config: DPOConfig

    def __init__(self, policy: TrainablePolicy, config: DPOConfig, *, sampler: Sampler | None = None) -> None:
        super().__init__(policy, config, sampler=sampler)
        self.pairs: list[PreferencePair] | None = (
            None if config.pairs is None else read_pairs(config.pairs, seed=config.seed)
        )
        """The pairs from the file; None if pairs are made from the policy's own completions."""

    # Pairs

    def sample_batch(
        self, sampling: Plays, env: VectorEnv[Any, Any, Any], first_round: int
    ) -> tuple[list[Trajectory], int]:
        """Sample groups, or take the file's next pairs, with score 1 for the preferred completion and 0 for the other."""
        if self.pairs is None:
            return super().sample_batch(sampling, env, first_round)
        world = env.unwrapped
        if not isinstance(world, rlvr_envs.TokenVectorEnv):
            raise InvalidArgumentError(
                f"pairs need an environment that renders prompts, a TokenVectorEnv; got {type(world).__name__}"
            )
        indices = problems_of_step(len(self.pairs), first_round, self.config.problems_per_step, self.config.seed)
        return [
            one for group, index in enumerate(indices) for one in pair_episodes(world.streams, self.pairs[index], group)
        ], 1

    def chosen_and_rejected(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The rows of the chosen and of the rejected completions of n pairs, each i64[n]."""
        chosen: list[int] = []
        rejected: list[int] = []
        scores = batch.scores.tolist()
        for group in batch.groups.unique().tolist():
            rows = ((batch.groups == group) & batch.valid).nonzero().flatten().tolist()
            for better, worse in self._pairs_of(rows, scores):
                chosen.append(better)
                rejected.append(worse)
        return torch.tensor(chosen, dtype=torch.int64), torch.tensor(rejected, dtype=torch.int64)

    def _pairs_of(self, rows: Sequence[int], scores: Sequence[float]) -> list[tuple[int, int]]:
        if self.config.pairing == "all":
            return [(one, other) for one in rows for other in rows if scores[one] > scores[other]]
        best, worst = (pick(rows, key=lambda row: scores[row], default=0) for pick in (max, min))
        return [(best, worst)] if rows and scores[best] > scores[worst] else []

    # The loss

    def prepare(self, batch: Batch) -> Batch:
        """Add the reference's and the policy's log-probabilities.

        For a file's completions, the policy counts as the sampler.
        """
        batch = super().prepare(batch)
        current = learn.token_logprobs(self.policy, batch, self.config.learner.micro_batch_size)
        if self.pairs is not None:
            return dataclasses.replace(batch, logprobs=current, old_logprobs=None)
        return dataclasses.replace(batch, old_logprobs=current)

    def advantages(self, batch: Batch) -> Tensor:
        """The negative derivative of the loss by each completion's log-probability, scaled for a mean over rows, not pairs."""
        return self._slopes(batch, batch.old)[0]

    def _slopes(self, batch: Batch, logprobs: Tensor) -> tuple[Tensor, dict[str, float]]:
        """The advantages f64[b l] at log-probabilities f32[b l], and metrics of the pairs."""
        assert batch.reference_logprobs is not None
        gains = torch.where(batch.loss_mask, (logprobs - batch.reference_logprobs).double(), 0.0).sum(dim=1)
        chosen, rejected = self.chosen_and_rejected(batch)
        slopes = torch.zeros_like(gains)
        if not len(chosen):
            return slopes[:, None].expand(batch.tokens.shape), {"pairs": 0.0}
        margins = (gains[chosen] - gains[rejected]).detach().requires_grad_()
        config = self.config
        with torch.enable_grad():
            losses = preference_loss(margins, config.beta, config.preference_loss, config.label_smoothing)
            (slope,) = torch.autograd.grad(losses.sum(), margins)
        slopes.index_add_(0, chosen, -slope).index_add_(0, rejected, slope)
        scale = int(batch.valid.sum()) / len(chosen)
        rewards = config.beta * gains
        return (scale * slopes)[:, None].expand(batch.tokens.shape), {
            "loss": float(losses.detach().mean()),
            "rewards/chosen": float(rewards[chosen].mean()),
            "rewards/rejected": float(rewards[rejected].mean()),
            "rewards/margins": config.beta * float(margins.detach().mean()),
            "rewards/accuracies": float((margins > 0).double().mean()),
            "pairs": float(len(chosen)),
        }

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """-A log pi(y_t), summed over the completion.

        At the current weights, its gradient equals the gradient of the loss of pairs.
        """
        return policy_gradient(logprobs, advantages)

    def optimize(self, batch: Batch, advantages: Tensor) -> dict[str, float]:
        """Take one optimiser step in each epoch, with the margins at the current weights.

        The pair metrics come from the first step.
        """
        steps: list[dict[str, float]] = []
        _, metrics = self._slopes(batch, batch.old)
        for epoch in range(self.config.epochs):
            if epoch > 0:
                current = learn.token_logprobs(self.policy, batch, self.config.learner.micro_batch_size)
                advantages, _ = self._slopes(batch, current)
            steps.append(self.learner.step(batch, advantages, self.updating.loss()))
        metrics = merge(steps) | metrics
        if self.pairs is not None:
            # Nothing was sampled, so the policy's score and divergence are unknown.
            metrics["reward"] = math.nan
            metrics.pop("kl", None)
        return metrics


def pair_episodes(streams: rlvr_envs.TokenStreams, pair: PreferencePair, group: int) -> tuple[Trajectory, Trajectory]:
    """Make the episodes of a pair, with the score 1 for the preferred completion and 0 for the other."""
    problem = pair.problem
    prompt = streams.encode_prompt(problem)
    made = (
        given_episode(streams, problem, prompt, pair.chosen, group=group, ended=pair.chosen_ended, score=1.0),
        given_episode(streams, problem, prompt, pair.rejected, group=group, ended=pair.rejected_ended),
    )
    rules = streams.rules
    longest = max(int(one.policy_mask.sum()) for one in made)
    if len(prompt) > rules.max_prompt_tokens or longest > rules.max_new_tokens:
        raise DataError(
            f"a pair of the prompt {str(pair.prompt)[:60]!r} has {len(prompt)} tokens of prompt and up to {longest} of "
            f"completion, but the environment has max_prompt_tokens={rules.max_prompt_tokens} and "
            f"max_new_tokens={rules.max_new_tokens}: raise them, or leave the pair out"
        )
    return made
