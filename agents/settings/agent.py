"""`AgentConfig`: the settings shared by all agents."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from agents.settings.choices import Aggregation, Correction, KLEstimator, Truncation, choice
from agents.settings.critic import CriticConfig
from agents.settings.learner import LearnerConfig
from agents.settings.schedules import Schedule
from verifiers import InvalidArgumentError, check_types, unknown_name

MAX_COMPLETIONS = 1_000_000
"""Largest number of completions in one step."""


_MOST_LAG = 1000
"""Batches sampled ahead are kept in memory and in checkpoints."""


def no_effect(name: str, value: object, otherwise: str) -> InvalidArgumentError:
    """The error about a setting without effect.

    Args:
        name: The setting.
        value: What it was set to.
        otherwise: Why it has no effect, and what to set so that it has one.
    """
    return InvalidArgumentError(f"{name}={value} has no effect, since {otherwise}, or leave it out")


@dataclass(frozen=True)
class AgentConfig:
    """Settings shared by all agents. Enum settings may be given as text.

    Raises:
        InvalidArgumentError: If a value is out of range.
        UnknownNameError: If a setting has no such choice; the message suggests the nearest.
    """

    problems_per_step: int = 16
    """Number of different problems in the batch of one step; with `group_size`, 128 completions by default for every agent."""
    group_size: int = 8
    """Number of completions sampled for each problem."""
    epochs: int = 1
    """Number of passes over each batch."""
    minibatches: int = 1
    """Number of optimiser steps in each pass, each on an equal part of the batch."""
    aggregation: Aggregation = Aggregation.TOKEN_MEAN
    """How the losses of the tokens are reduced to one loss: `token-mean` averages over all tokens of the batch; the others
    average over completions, of which each counts with the mean of its tokens, their sum, or their sum divided by
    `max_tokens` (`-norm`)."""
    max_tokens: int | None = None
    """Length of the longest completion: the constant that the aggregation `sequence-mean-token-sum-norm` divides by,
    and the limit of the truncation rule `soft-overlong`. Generation is limited by `max_new_tokens` of the environment."""
    truncation: Truncation = Truncation.SCORE
    """How an episode counts that ran out of tokens before it ended: with its own `score`, not at all (`mask`), with the
    critic's value of its last state added (`bootstrap`), or with `truncation_reward` (`fixed-reward`). `soft-overlong`
    takes up to 1 from every score, growing over the last `overlong_margin` tokens before `max_tokens`."""
    truncation_reward: float = 0.0
    """Reward of a truncated episode under the truncation rule `fixed-reward`."""
    overlong_margin: int | None = None
    """Number of tokens before `max_tokens` over which the penalty of the truncation rule `soft-overlong` grows."""
    kl_coefficient: float = 0.0
    """Weight of the KL divergence from the reference policy, which is the policy at the start; no reference is kept at 0."""
    kl_coefficient_end: float | None = None
    """Weight of the KL divergence at the end of the run (see `schedule_steps`), reached linearly; None keeps it constant."""
    kl_estimator: KLEstimator = KLEstimator.K3
    """How the KL divergence is estimated from a sampled token with the ratio r of reference to policy: -log r (`k1`),
    (log r)^2 / 2 (`k2`), r - 1 - log r (`k3`), or `k3` weighted by the ratio of policy to sampler (`k3-ratio`)."""
    kl_placement: Literal["loss", "reward"] = "loss"
    """Whether the KL estimate is a term of the loss or is subtracted from the reward of each token."""
    kl_target: float | None = None
    """Divergence, in nats per token, to which an adaptive controller steers the KL weight (Ziegler et al. 2019,
    arXiv:1909.08593); None keeps the weight fixed or scheduled."""
    kl_horizon: int = 10_000
    """Number of completions over which the adaptive controller adjusts the KL weight."""
    measure_kl: bool = False
    """Keep the reference policy and log the KL divergence from it also where the divergence has no weight."""
    reference_sync_every: int | None = None
    """Number of steps after which the reference moves towards the policy; None never moves it."""
    reference_sync_mix: float = 1.0
    """How far the reference moves at each sync, 1 being all the way to the policy."""
    entropy_coefficient: float = 0.0
    """Weight of the entropy bonus."""
    entropy_coefficient_end: float | None = None
    """Weight of the entropy bonus at the end of the run (see `schedule_steps`), reached linearly; None keeps it constant."""
    lag: int = 0
    """Number of updates between the weights that sample a batch and those that learn from it; above 0, batches are sampled
    while earlier ones are verified and learned from."""
    carried_groups: int = 0
    """Number of groups that a step plays beside `problems_per_step`, and at most as many. The step ends as soon as
    `problems_per_step` groups are done; the others are carried over the update and played on with the new weights (partial
    rollouts). 0 carries none."""
    segment_tokens: int = 256
    """Number of tokens by which unfinished episodes go on before the groups that are done are counted, if `carried_groups` is
    above 0."""
    max_carried_steps: int = 4
    """Largest number of updates that a group is carried over; the step after the last of them waits for it."""
    importance_correction: Correction | None = None
    """How off-policy tokens are weighted, which are those that another engine or older weights sampled; `none` takes the
    sampler's log-probabilities for the learner's. By default it is `none` if the policy itself samples with the current weights
    alone, and `token-truncate` if an engine or older weights do."""
    importance_cap: float = 2.0
    """Largest importance weight."""
    importance_floor: float = 0.0
    """Smallest importance weight, from 0 to 1; truncation raises smaller weights to it, and masking sets them to 0."""
    max_error_share: float = 0.5
    """Largest share of episodes on which the verifier may break; 1 sets no limit. Training stops with a
    `VerifierFailureError` if the share is exceeded over the last step (over the last steps with 32 episodes together, where a
    step has fewer), or at the end of training."""
    seed: int = 0
    """Seed of the order of problems and of sampling."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """Settings of the optimiser."""
    critic: CriticConfig | None = None
    """Settings of the critic; None for an agent without one."""

    control: ClassVar[Mapping[str, Any]] = {}
    """The defaults of `for_control` that are an agent's own."""

    own_uses: ClassVar[frozenset[str]] = frozenset()
    """Shared settings that an agent's own code reads, so that they have an effect whatever the other settings are."""

    learns_values: ClassVar[bool] = False
    """Whether the policy's own outputs are values, so that a truncated episode can go on without a critic."""

    @classmethod
    def for_control(cls, **settings: Any) -> Self:
        """Settings with other defaults, for environments with vectors as observations, such as CartPole-v1.

        Episodes there are long, returns large and models small: a step has 16 episodes, the learning rate is 1e-3 and the
        gradient's norm at most 0.5. Where an agent can, it discounts by 0.99, has a separate critic, and continues the return
        of an episode that reached the time limit with the critic's value, since a time limit is no termination.

        Args:
            settings: Settings that differ from these defaults.
        """
        learner = LearnerConfig(learning_rate=1e-3, max_grad_norm=0.5)
        episodes = 16 if cls.group_size == 1 else 16 // cls.group_size
        return cls(**{"problems_per_step": episodes, "learner": learner, **cls.control, **settings})

    def __post_init__(self) -> None:
        check_types(self)
        for name in _AT_LEAST_1:
            if getattr(self, name) < 1:
                raise InvalidArgumentError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) is not None or name not in _OPTIONAL:
                object.__setattr__(self, name, choice(name, getattr(self, name), choices))
        for name in ("kl_coefficient", "entropy_coefficient", "kl_coefficient_end", "entropy_coefficient_end"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise InvalidArgumentError(f"{name} must be finite and at least 0, got {value}")
        if not self.importance_cap >= 1:
            raise InvalidArgumentError(
                f"importance_cap must be at least 1, the weight of on-policy samples, got {self.importance_cap}"
            )
        if not 0 <= self.lag <= _MOST_LAG:
            raise InvalidArgumentError(f"lag must be from 0 to {_MOST_LAG}, got {self.lag}")
        if not 0 <= self.carried_groups <= self.problems_per_step:
            raise InvalidArgumentError(
                f"carried_groups must be from 0 to problems_per_step={self.problems_per_step}, so that the groups carried to a "
                f"step fit into its batch, got {self.carried_groups}"
            )
        if not 0 <= self.importance_floor <= 1:
            raise InvalidArgumentError(
                f"importance_floor must be from 0 to 1, the weight of on-policy samples, got {self.importance_floor}"
            )
        if not 0 <= self.max_error_share <= 1:
            raise InvalidArgumentError(f"max_error_share must be from 0 to 1, got {self.max_error_share}")
        if self.seed < 0:
            raise InvalidArgumentError(f"seed must be at least 0, got {self.seed}")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InvalidArgumentError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if self.problems_per_step * self.group_size > MAX_COMPLETIONS:
            raise InvalidArgumentError(
                f"a step can have at most {MAX_COMPLETIONS} completions, which are held in memory together, got "
                f"problems_per_step={self.problems_per_step} x group_size={self.group_size}"
            )
        if self.problems_per_step * self.group_size % self.minibatches:
            raise InvalidArgumentError(
                f"the batch of problems_per_step={self.problems_per_step} x group_size={self.group_size} completions can't be "
                f"divided into minibatches={self.minibatches} of equal size"
            )
        if self.aggregation is Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM and self.max_tokens is None:
            raise InvalidArgumentError(
                f"aggregation {self.aggregation.value!r} needs max_tokens, its constant length: set it to the "
                "most tokens of a completion, such as the environment's max_new_tokens"
            )
        self._check_truncation()
        self._check_kl()
        self.entropy_schedule()  # raises if the settings are inconsistent
        self._check_effects()

    def _check_effects(self) -> None:
        """Reject settings that differ from this agent's defaults and have no effect."""
        if self.learner.schedule_steps is not None and not self.has_schedule:
            raise InvalidArgumentError(
                f"schedule_steps={self.learner.schedule_steps} has no effect, since nothing changes on a schedule: set "
                "schedule, kl_coefficient_end or entropy_coefficient_end, or leave it out"
            )
        defaults = {setting.name: setting.default for setting in dataclasses.fields(self)}
        for name, (is_used, otherwise) in _USED_IF.items():
            value = getattr(self, name)
            if value != defaults[name] and name not in self.own_uses and not is_used(self):
                raise no_effect(name, value, otherwise)

    def _check_truncation(self) -> None:
        if self.truncation is Truncation.BOOTSTRAP and self.critic is None and not self.learns_values:
            raise InvalidArgumentError(
                f"truncation 'bootstrap' needs a critic's value, and this {type(self).__name__} has no critic: choose an agent "
                "with a critic (actor-critic, a2c, npg, trpo, ppo, reinforce with baseline='value', or your own with "
                "`value_targets` and critic=CriticConfig()), or another rule, such as 'mask'"
            )
        if not math.isfinite(self.truncation_reward):
            raise InvalidArgumentError(f"truncation_reward must be finite, got {self.truncation_reward}")
        if self.truncation is Truncation.SOFT_OVERLONG:
            if self.max_tokens is None or self.overlong_margin is None:
                raise InvalidArgumentError("truncation 'soft-overlong' needs max_tokens and overlong_margin")
            if not 1 <= self.overlong_margin <= self.max_tokens:
                raise InvalidArgumentError(
                    f"overlong_margin must be from 1 to max_tokens={self.max_tokens}, got {self.overlong_margin}"
                )

    def _check_kl(self) -> None:
        if self.kl_placement not in ("loss", "reward"):
            raise unknown_name("kl_placement", self.kl_placement, ["loss", "reward"])
        if self.kl_target is not None and not (self.kl_target > 0 and self.kl_coefficient > 0):
            raise InvalidArgumentError(
                f"kl_target and the kl_coefficient that it adapts must be greater than 0; got "
                f"kl_target={self.kl_target}, kl_coefficient={self.kl_coefficient}"
            )
        if self.kl_target is not None and self.kl_coefficient_end is not None:
            raise InvalidArgumentError(
                "kl_target and kl_coefficient_end both determine the weight of the KL term: set only one of them"
            )
        if not self.kl_horizon * 5 > self.problems_per_step * self.group_size:
            raise InvalidArgumentError(
                f"kl_horizon must be more than a fifth of the completions of a step, got {self.kl_horizon} for "
                f"{self.problems_per_step} x {self.group_size}"
            )
        if self.has_kl_term and self.kl_placement == "loss" and self.kl_estimator is KLEstimator.K1:
            raise InvalidArgumentError(
                "kl_estimator 'k1' as a term of the loss has a gradient with mean 0, which constrains nothing: set "
                "kl_estimator='k3-ratio' or 'k2', or kl_placement='reward'"
            )
        if self.reference_sync_every is not None and self.reference_sync_every < 1:
            raise InvalidArgumentError(
                f"reference_sync_every must be at least 1, or None, got {self.reference_sync_every}"
            )
        if not 0 < self.reference_sync_mix <= 1:
            raise InvalidArgumentError(f"reference_sync_mix must be in (0, 1], got {self.reference_sync_mix}")
        self.kl_schedule()  # raises if the settings are inconsistent

    @property
    def older_weights(self) -> str | None:
        """The setting by which older weights than those that learn sample some tokens; None if there is none."""
        return next(
            (f"{name}={getattr(self, name)}" for name in ("lag", "carried_groups") if getattr(self, name)), None
        )

    @property
    def has_kl_term(self) -> bool:
        """Whether the KL term has a positive weight at any step."""
        return self.kl_coefficient > 0 or bool(self.kl_coefficient_end)

    @property
    def needs_reference(self) -> bool:
        """Whether a reference policy is kept."""
        return self.has_kl_term or self.measure_kl

    @property
    def has_schedule(self) -> bool:
        """Whether a setting changes over the run, until `schedule_steps`."""
        ends = (self.kl_coefficient_end, self.entropy_coefficient_end)
        return self.learner.schedule != "constant" or any(end is not None for end in ends)

    def for_model(self, model: Any) -> Self:
        """Return these settings with the learning rate chosen for a torch model, if none is set and one is needed."""
        return dataclasses.replace(self, learner=self.learner.for_model(model))

    def kl_schedule(self, run_steps: int | None = None) -> Schedule:
        """The weight of the KL term over training steps; `run_steps` is the number of optimiser steps of a whole run."""
        return self._schedule(self.kl_coefficient, self.kl_coefficient_end, run_steps)

    def entropy_schedule(self, run_steps: int | None = None) -> Schedule:
        """The weight of the entropy bonus over training steps; `run_steps` is the number of optimiser steps of a whole run."""
        return self._schedule(self.entropy_coefficient, self.entropy_coefficient_end, run_steps)

    def _schedule(self, start: float, end: float | None, run_steps: int | None) -> Schedule:
        if end is None:
            return Schedule(start, start, "constant")
        total = run_steps if self.learner.schedule_steps is None else self.learner.schedule_steps
        # The learner counts optimiser steps, these schedules training steps.
        steps = None if total is None else math.ceil(total / (self.epochs * self.minibatches))
        return Schedule(start, end, "linear", steps)


_Use = tuple[Callable[[AgentConfig], bool], str]
_CHOICES: dict[str, type[enum.StrEnum]] = {
    "aggregation": Aggregation,
    "truncation": Truncation,
    "kl_estimator": KLEstimator,
    "importance_correction": Correction,
}
_AT_LEAST_1 = ("problems_per_step", "group_size", "epochs", "minibatches", "segment_tokens", "max_carried_steps")
_CARRIED: _Use = (
    lambda config: config.carried_groups > 0,
    "no groups are carried over updates: set carried_groups",
)
_KL: _Use = (
    lambda config: config.has_kl_term,
    "the divergence from the reference policy has no weight: set kl_coefficient",
)
_IMPORTANCE: _Use = (
    lambda config: config.importance_correction is not Correction.NONE,
    "importance_correction='none' gives every token the weight 1: choose another",
)
_USED_IF: dict[str, _Use] = {
    "segment_tokens": _CARRIED,
    "max_carried_steps": _CARRIED,
    "kl_estimator": _KL,
    "kl_placement": _KL,
    "kl_horizon": (
        lambda config: config.kl_target is not None,
        "nothing adapts the weight of the divergence: set kl_target",
    ),
    "reference_sync_every": (
        lambda config: config.needs_reference,
        "no reference policy is kept: set kl_coefficient",
    ),
    "reference_sync_mix": (
        lambda config: config.reference_sync_every is not None,
        "the reference policy never moves: set reference_sync_every",
    ),
    "truncation_reward": (
        lambda config: config.truncation is Truncation.FIXED_REWARD,
        "only the truncation rule 'fixed-reward' pays it: set truncation='fixed-reward'",
    ),
    "overlong_margin": (
        lambda config: config.truncation is Truncation.SOFT_OVERLONG,
        "only the truncation rule 'soft-overlong' has a margin: set truncation='soft-overlong'",
    ),
    "max_tokens": (
        lambda config: (
            config.aggregation is Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM
            or config.truncation is Truncation.SOFT_OVERLONG
        ),
        "only aggregation='sequence-mean-token-sum-norm' and truncation='soft-overlong' use it: set one of them (the "
        "environment's max_new_tokens limits generation)",
    ),
    "importance_cap": _IMPORTANCE,
    "importance_floor": _IMPORTANCE,
}
"""When a setting has an effect, and why it has none otherwise, with what to set."""
_OPTIONAL = {"importance_correction"}
"""Enum settings that may be None."""
