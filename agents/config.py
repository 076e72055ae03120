"""`AgentConfig`: what every agent is told."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from agents.critic import CriticConfig
from agents.importance import Correction
from agents.kl import KLEstimator
from agents.learner import LearnerConfig
from agents.losses import Aggregation
from agents.schedules import Schedule
from agents.truncation import Truncation
from verifiers import InvalidArgumentError, unknown_name

ChoiceT = TypeVar("ChoiceT", bound=enum.StrEnum)


@dataclass(frozen=True)
class AgentConfig:
    """What every agent is told. Names of choices may be given as text.

    Raises:
        InvalidArgumentError: If a value is out of range.
        UnknownNameError: If a choice does not exist; the message offers the nearest.
    """

    problems_per_step: int = 16
    """Different problems in the batch of one step."""
    group_size: int = 8
    """Completions for each problem."""
    epochs: int = 1
    """Passes over each batch."""
    minibatches: int = 1
    """Optimiser steps in each pass, each on its part of the batch."""
    aggregation: Aggregation = Aggregation.TOKEN_MEAN
    """How the losses of tokens become one."""
    max_tokens: int | None = None
    """The longest completion: the constant length that `Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM` divides by, and the limit
    of `Truncation.SOFT_OVERLONG`."""
    truncation: Truncation = Truncation.SCORE
    """What an episode counts whose budget ran out."""
    truncation_reward: float = 0.0
    """The reward of `Truncation.FIXED_REWARD`."""
    overlong_margin: int | None = None
    """The tokens before `max_tokens` over which the penalty of `Truncation.SOFT_OVERLONG` grows."""
    kl_coefficient: float = 0.0
    """The weight of the divergence from the reference policy, the one at the start; at 0 none is kept."""
    kl_coefficient_end: float | None = None
    """Where that weight gets to at `schedule_steps` of the learner; None: it stays."""
    kl_estimator: KLEstimator = KLEstimator.K3
    """How the divergence is estimated from the tokens that were sampled."""
    kl_placement: Literal["loss", "reward"] = "loss"
    """A term of the loss, or taken from the reward of each token."""
    kl_target: float | None = None
    """Nats per token: the weight is then steered so that the divergence gets there (Ziegler et al. 2019)."""
    kl_horizon: int = 10_000
    """Completions over which it is steered."""
    reference_sync_every: int | None = None
    """Steps after which the reference moves to the policy; None: never."""
    reference_sync_mix: float = 1.0
    """How far it moves, 1 being all the way."""
    entropy_coefficient: float = 0.0
    """The weight of the entropy that is added to what is maximised."""
    entropy_coefficient_end: float | None = None
    """Where that weight gets to at `schedule_steps` of the learner; None: it stays."""
    importance_correction: Correction = Correction.NONE
    """How tokens are weighed that another engine or older weights sampled; with `NONE` the sampler's log-probabilities are
    taken for the learner's, which they are where the policy samples itself."""
    importance_cap: float = 2.0
    """The largest of these weights."""
    seed: int = 0
    """Decides the order of problems and the sampling."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    critic: CriticConfig | None = None
    """How values are learned; None for an agent without a critic."""

    def __post_init__(self) -> None:
        for name in ("problems_per_step", "group_size", "epochs", "minibatches"):
            if getattr(self, name) < 1:
                raise InvalidArgumentError(f"{name} is at least 1, got {getattr(self, name)}")
        for name, choices in _CHOICES.items():
            object.__setattr__(self, name, choice(name, getattr(self, name), choices))
        for name in ("kl_coefficient", "entropy_coefficient", "importance_cap"):
            if not getattr(self, name) >= 0:
                raise InvalidArgumentError(f"{name} is at least 0, got {getattr(self, name)}")
        if self.aggregation is Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM and self.max_tokens is None:
            raise InvalidArgumentError(f"aggregation {self.aggregation.value!r} needs max_tokens, its constant length")
        self._check_truncation()
        self._check_kl()
        self.entropy_schedule()  # raises on what does not fit

    def _check_truncation(self) -> None:
        if self.truncation is Truncation.BOOTSTRAP and self.critic is None:
            raise InvalidArgumentError(
                "truncation 'bootstrap' goes on from a critic's value: set critic=CriticConfig()"
            )
        if self.truncation is Truncation.SOFT_OVERLONG and (self.max_tokens is None or self.overlong_margin is None):
            raise InvalidArgumentError("truncation 'soft-overlong' needs max_tokens and overlong_margin")

    def _check_kl(self) -> None:
        if self.kl_placement not in ("loss", "reward"):
            raise unknown_name("kl_placement", self.kl_placement, ["loss", "reward"])
        if self.kl_target is not None and not (self.kl_target > 0 and self.kl_coefficient > 0):
            raise InvalidArgumentError(
                f"kl_target is greater than 0 and steers a kl_coefficient that starts above 0; got "
                f"kl_target={self.kl_target}, kl_coefficient={self.kl_coefficient}"
            )
        if not 0 < self.reference_sync_mix <= 1:
            raise InvalidArgumentError(f"reference_sync_mix is in (0, 1], got {self.reference_sync_mix}")
        self.kl_schedule()  # raises on what does not fit

    @property
    def needs_reference(self) -> bool:
        """Whether the divergence from a reference policy counts at any step."""
        return self.kl_coefficient > 0 or bool(self.kl_coefficient_end)

    def kl_schedule(self) -> Schedule:
        """The weight of the KL term over training steps."""
        return self._schedule(self.kl_coefficient, self.kl_coefficient_end)

    def entropy_schedule(self) -> Schedule:
        """The weight of the entropy bonus over training steps."""
        return self._schedule(self.entropy_coefficient, self.entropy_coefficient_end)

    def _schedule(self, start: float, end: float | None) -> Schedule:
        if end is None:
            return Schedule(start, start, "constant")
        return Schedule(start, end, "linear", self.learner.schedule_steps)


_CHOICES: dict[str, type[enum.StrEnum]] = {
    "aggregation": Aggregation,
    "truncation": Truncation,
    "kl_estimator": KLEstimator,
    "importance_correction": Correction,
}


def choice(name: str, value: str, choices: type[ChoiceT]) -> ChoiceT:
    """Read a choice that may be given as text.

    Raises:
        UnknownNameError: If there is no such choice.
    """
    if value not in list(choices):
        raise unknown_name(name, value, [str(each) for each in choices])
    return choices(value)
