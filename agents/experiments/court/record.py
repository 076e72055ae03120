"""The court's interface: the record of a batch for an estimator, and the estimator with its claims."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agents.deferred import torch

if TYPE_CHECKING:
    from torch import Tensor


Objective = Literal["return", "best of 2", "log-likelihood"]
"""An objective: the expected return, the expected best return of two episodes, or the log-probability of a success, limited to
the terms that a group can estimate."""
Reduction = Literal["mean", "sum"]


@dataclass(frozen=True)
class Record:
    """A record of b episodes of up to l tokens, group by group. Each episode has one prompt token, and is right-padded with 0.

    Index t of a tensor refers to token t itself or, for values, to the state before token t. Every number is a float64. `mask`
    is False for the prompt, tokens of the environment, padding, and all tokens of an episode whose verifier broke. There,
    log-probabilities and values are meaningless numbers, as from a model that computes whole rows.
    """

    tokens: Tensor
    """i64[b l], the tokens."""
    lengths: Tensor
    """i64[b], number of tokens before the padding."""
    mask: Tensor
    """bool[b l], the policy's own tokens."""
    turns: Tensor
    """i64[b l], the number (from 0) of the turn that each token belongs to or follows; -1 before the first turn."""
    groups: Tensor
    """i64[b], the number of the group. Episodes of one group answer the same problem."""
    valid: Tensor
    """bool[b], False for episodes on which the verifier broke."""
    truncated: Tensor
    """bool[b], whether the budget ran out before the episode ended."""
    rewards: Tensor
    """f64[b l], the reward of each token. Tokens of the environment may have rewards, too."""
    scores: Tensor
    """f64[b], the sum of the rewards; NaN for episodes on which the verifier broke."""
    components: Tensor
    """f64[b 2], two parts whose sum is the score; NaN for episodes on which the verifier broke."""
    baselines: Tensor
    """f64[b], the score of the problem's likeliest episode. As a baseline, this score does not depend on the samples."""
    values: Tensor
    """f64[b l], values of a critic."""
    logits: Tensor
    """f64[b l v], the learner's logits before the temperature, with gradient."""
    logprobs: Tensor
    """f64[b l], the learner's log-probabilities at the temperature, with gradient."""
    old_logprobs: Tensor
    """f64[b l], log-probabilities before the update. Ratios are relative to these log-probabilities."""
    sampler_logprobs: Tensor
    """f64[b l], log-probabilities under the policy that sampled."""
    reference_logprobs: Tensor
    """f64[b l], log-probabilities under the reference policy."""
    temperature: float
    """The temperature of sampling."""
    kl_coefficient: float
    """Weight of the divergence from the reference in the objective; 0 except in the cases about this divergence."""
    max_tokens: int
    """The maximum number of own tokens in an episode of the case."""
    step_completions: int
    """Number of valid episodes of the whole step. This record may be one micro-batch of the step, or one rank's part."""
    step_tokens: int
    """Number of tokens of the whole step for which `mask` is True."""
    advantages: Tensor | None = None
    """f64[b l], the estimator's own advantages, for its loss; None for an estimator without advantages."""

    @property
    def entropies(self) -> Tensor:
        """The entropies f64[b l] of the learner's distributions at the temperature, in nats, with gradient."""
        logs = (self.logits / self.temperature).log_softmax(-1)
        return -(logs.exp() * logs).sum(-1)

    def rows(self, indices: slice) -> Record:
        """Select some episodes, and drop columns that are padding in all selected episodes."""
        width = int(self.lengths[indices].max())
        return self._map(
            lambda name, value: value[indices][:, :width] if value.ndim > 1 and name != "components" else value[indices]
        )

    def numpy(self) -> Record:
        """Return the record with NumPy arrays in place of tensors, for advantages that are computed without torch."""
        return self._map(lambda name, value: value.detach().numpy())

    def _map(self, function: Callable[[str, Tensor], Any]) -> Record:
        fields = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        tensors = {name: value for name, value in fields.items() if isinstance(value, torch.Tensor)}
        return dataclasses.replace(self, **{name: function(name, value) for name, value in tensors.items()})


@dataclass(frozen=True)
class Estimator:
    """An estimator on trial, with its claims. At least one of `advantages` and `loss` must be given.

    With advantages alone, the loss is the sum of -A log pi over an episode's own tokens, averaged over the valid episodes of
    the step. A loss alone is computed from whole groups. With both, advantages are computed for the whole step, and the loss
    may be computed for some of the step's rows.
    """

    name: str
    advantages: Callable[[Record], Any] | None = None
    """Function from a record to one number for each episode [b] or for each token [b l], as a tensor or a NumPy array."""
    loss: Callable[[Record], Tensor] | None = None
    """Function from a record to one number with gradient, the loss to minimise."""
    objective: Objective = "return"
    """The objective that the estimator claims to maximise."""
    reduction: Reduction = "mean"
    """How the gradients of micro-batches and ranks are reduced to the step's gradient: averaged, or summed if the loss is
    already divided by counts of the whole step."""
    binary: bool = False
    """Whether all scores must be 1 or 0."""
    group_sizes: Sequence[int] = range(2, 9)
    """The group sizes that the estimator supports."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """The reasons why the estimator makes no claim about some cases, by the names of these cases."""
    address: str = ""
    """The module:attribute from which the estimator can be imported, for the program that shows a finding."""
