"""RFT: rejection-sampling fine-tuning. Sample completions, keep the right completions, and learn them like given examples.

The loss of a kept completion is its negative log-likelihood; the loss of any other completion is 0. By default the loss is a
mean over all samples. The expected gradient of the first optimiser step on a batch is then the policy gradient of the share of
right completions, as in REINFORCE with rewards 0 and 1 and no baseline. `mean_over="kept"` divides by the number of kept
completions instead, as supervised learning does. This changes the length of a step, not its direction.

The settings select one of a family of methods:

* RAFT (Dong et al. 2023, arXiv:2304.06767): `selection="best"` keeps the completion of each group with the highest score.
* ReST (Gulcehre et al. 2023, arXiv:2308.08998): completions with a score of at least `threshold` are learned in several
  `epochs` over each batch, and the threshold rises to `threshold_end`. ReST-EM (Singh et al. 2023, arXiv:2312.06585) keeps
  right completions and trains the initial weights with each batch.
* STaR (Zelikman et al. 2022, arXiv:2203.14465): with `from_start=True`, the completions of each batch train the initial weights
  instead of the current weights, so that errors do not add up.
* RFT (Yuan et al. 2023, arXiv:2308.01825): `unique=True` and `per_problem` limit how often a problem is learned.

Departures from the papers: a batch is one training step, while the papers sample the whole data set before they train; STaR's
rationalisation, which shows the answers of unsolved problems, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from agents.batch import Batch
from agents.deferred import torch
from agents.learn.agent import Agent
from agents.losses import Aggregation, policy_gradient
from agents.policies.trainable import TrainablePolicy
from agents.settings.agent import AgentConfig
from agents.settings.config_checks import require_defaults
from agents.settings.learning_rate import has_adapter
from agents.settings.schedules import Schedule
from agents.types import Sampler
from verifiers import FINITE, AtLeast, InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


Selection = Literal["right", "best"]
MeanOver = Literal["sampled", "kept"]


@dataclass(frozen=True)
class RFTConfig(AgentConfig):
    """Settings of rejection-sampling fine-tuning."""

    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM
    selection: Selection = "right"
    """The completions of a group to keep: `right` keeps all completions with a score of at least `threshold`, and `best` keeps
    the best completion (RAFT)."""
    threshold: Annotated[float, FINITE] = 1.0
    """Lowest score of a kept completion."""
    threshold_end: Annotated[float | None, FINITE] = None
    """Lowest score of a kept completion at the end of the run (ReST; see `schedule_steps`). The threshold rises linearly; None
    keeps the threshold constant."""
    per_problem: Annotated[int | None, AtLeast(1)] = None
    """Maximum number of completions to keep of a group, in order; None keeps all."""
    unique: bool = False
    """Whether to keep equal completions of a group only once."""
    mean_over: MeanOver = "sampled"
    """The completions over which the loss is averaged: `sampled` is all completions, which gives the policy gradient, and
    `kept` is the kept completions alone."""
    from_start: bool = False
    """Whether each batch trains the initial weights instead of the current weights (STaR, ReST-EM). If so, set several epochs
    or minibatches."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.selection == "best":
            names = ("threshold", "threshold_end", "per_problem", "unique")
            require_defaults(self, names, "selection='best' keeps one completion of each group")
        if self.from_start and self.reference_sync_every is not None:
            raise InvalidArgumentError("from_start trains the weights of the start: leave reference_sync_every out")

    @property
    def needs_reference(self) -> bool:
        """Whether to keep a copy of the initial weights."""
        return self.from_start or super().needs_reference

    @property
    def has_schedule(self) -> bool:
        """Whether a setting, such as the threshold, changes over the run."""
        return self.threshold_end is not None or super().has_schedule

    def threshold_schedule(self, run_steps: int | None = None) -> Schedule:
        """The threshold as a function of training steps; `run_steps` is the number of optimiser steps of a whole run."""
        return self._schedule(self.threshold, self.threshold_end, run_steps)


class RFT(Agent):
    """Rejection-sampling fine-tuning."""

    name = "rft"
    config: RFTConfig

    def __init__(self, policy: TrainablePolicy, config: RFTConfig, *, sampler: Sampler | None = None) -> None:
        if config.from_start and has_adapter(policy.model):
            raise InvalidArgumentError(
                "from_start needs a copy of the weights of the start: it does not work with an adapter"
            )
        super().__init__(policy, config, sampler=sampler)

    def advantages(self, batch: Batch) -> Tensor:
        """1 for tokens of kept completions and 0 for other tokens; with `mean_over="kept"`, sampled / kept in place of 1."""
        kept = self.kept(batch).double()
        if self.config.mean_over == "kept":
            kept = kept * (batch.valid.sum() / kept.sum().clamp(min=1))
        return kept[:, None].expand(batch.tokens.shape)

    def kept(self, batch: Batch) -> Tensor:
        """bool[b], whether each completion is kept."""
        config = self.config
        kept = torch.zeros(len(batch), dtype=torch.bool)
        least = config.threshold_schedule(self.learner.run_steps)(self.steps)
        for group in batch.groups.unique():
            rows = ((batch.groups == group) & batch.valid).nonzero().flatten().tolist()
            if config.selection == "best":
                chosen = [max(rows, key=lambda row: float(batch.scores[row]))] if rows else []
            else:
                chosen = [row for row in rows if batch.scores[row] >= least]
            if config.unique:
                chosen = list({_own_tokens(batch, row): row for row in reversed(chosen)}.values())[::-1]
            kept[chosen[: config.per_problem]] = True
        return kept

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """-log pi(y_t) of kept completions."""
        return policy_gradient(logprobs, advantages)

    def optimize(self, batch: Batch, advantages: Tensor) -> dict[str, float]:
        """Take the optimiser steps of a batch. With `from_start`, begin with the initial weights and a fresh optimiser."""
        if self.config.from_start:
            assert self.models.reference is not None
            self.policy.model.load_state_dict(self.models.reference.policy.model.state_dict())
            self.policy.weights_changed()
            self.learner.optimizer.state.clear()
        kept = (advantages != 0).any(dim=1) & batch.valid
        return super().optimize(batch, advantages) | {"kept": float(kept.sum()) / max(int(batch.valid.sum()), 1)}


def _own_tokens(batch: Batch, row: int) -> tuple[int, ...]:
    return tuple(batch.tokens[row][batch.loss_mask[row]].tolist())
