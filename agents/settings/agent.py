"""`AgentConfig`: the settings shared by all agents."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self

from agents.settings.choices import Aggregation, Correction, KLEstimator, Truncation, choice
from agents.settings.learner import CriticConfig, LearnerConfig
from agents.settings.schedules import Schedule
from verifiers import FINITE, Above, AtLeast, Between, InvalidArgumentError, UsedIf, check_types, check_uses

MAX_COMPLETIONS = 1_000_000
"""Largest number of completions in one step."""


_MOST_LAG = 1000
"""Maximum of `lag`, since batches that are sampled ahead are kept in memory and in checkpoints."""
_NOTHING_CARRIED = "no groups are carried over updates: set carried_groups"
_ALL_UNIFORM = "problem_sampler='uniform' draws all problems uniformly: choose another"
_NO_DIFFICULTY = "no choice of problems depends on it: set problem_sampler='difficulty'"
_NO_KL = "the divergence from the reference policy has no weight: set kl_coefficient"
_NO_TARGET = "nothing adapts the weight of the divergence: set kl_target"
_NO_REFERENCE = "no reference policy is kept: set kl_coefficient"
_NO_SYNC = "the reference policy never moves: set reference_sync_every"
_NO_TRUNCATION_REWARD = "only the truncation rule 'fixed-reward' pays it: set truncation='fixed-reward'"
_NO_MARGIN = "only the truncation rule 'soft-overlong' has a margin: set truncation='soft-overlong'"
_NO_WEIGHTS = "importance_correction='none' gives every token the weight 1: choose another"
_NO_MAX_TOKENS = (
    "only aggregation='sequence-mean-token-sum-norm' and truncation='soft-overlong' use it: set one of them (the "
    "environment's max_new_tokens limits generation)"
)


def no_effect(name: str, value: object, otherwise: str) -> InvalidArgumentError:
    """Make the error for a setting without effect.

    Args:
        name: The setting.
        value: The value that it was set to.
        otherwise: Why the setting has no effect, and what to set to give it an effect.
    """
    return InvalidArgumentError(f"{name}={value} has no effect, since {otherwise}, or leave it out")


@dataclass(frozen=True)
class AgentConfig:
    """Settings shared by all agents. Enum settings may be given as text.

    Raises:
        InvalidArgumentError: If a value is out of range.
        UnknownNameError: If a setting has no such choice; the message suggests the nearest choice.
    """

    problems_per_step: Annotated[int, AtLeast(1)] = 16
    """Number of different problems in the batch of one step. By default, `problems_per_step` times `group_size` is 128
    completions for every agent."""
    group_size: Annotated[int, AtLeast(1)] = 8
    """Number of sampled completions of each problem."""
    epochs: Annotated[int, AtLeast(1)] = 1
    """Number of passes over each batch."""
    minibatches: Annotated[int, AtLeast(1)] = 1
    """Number of optimiser steps in each pass, each on an equal part of the batch."""
    aggregation: Aggregation = Aggregation.TOKEN_MEAN
    """How the losses of the tokens are reduced to one loss. `token-mean` averages over all tokens of the batch. The other
    choices average over completions; the loss of a completion is the mean of its tokens' losses, or the sum, or the sum divided
    by `max_tokens` (`-norm`)."""
    max_tokens: Annotated[int | None, AtLeast(1), UsedIf("uses_max_tokens", _NO_MAX_TOKENS)] = None
    """Length of the longest completion, which is the divisor of the aggregation `sequence-mean-token-sum-norm` and the limit of
    the truncation rule `soft-overlong`. This setting does not limit generation; `max_new_tokens` of the environment does."""
    truncation: Truncation = Truncation.SCORE
    """How an episode counts that ran out of tokens before its end: with its own score (`score`), not at all (`mask`), with the
    critic's value of the last state added (`bootstrap`), or with `truncation_reward` (`fixed-reward`). `soft-overlong`
    subtracts up to 1 from every score; this penalty grows over the last `overlong_margin` tokens before `max_tokens`."""
    truncation_reward: Annotated[float, FINITE, UsedIf("pays_truncation", _NO_TRUNCATION_REWARD)] = 0.0
    """Reward of a truncated episode under the truncation rule `fixed-reward`."""
    overlong_margin: Annotated[int | None, AtLeast(1), UsedIf("shapes_length", _NO_MARGIN)] = None
    """Number of tokens before `max_tokens` over which the penalty of the truncation rule `soft-overlong` grows."""
    kl_coefficient: Annotated[float, AtLeast(0)] = 0.0
    """Weight of the KL divergence from the reference policy, which is the initial policy. With 0, no reference is kept."""
    kl_coefficient_end: Annotated[float | None, AtLeast(0)] = None
    """Weight of the KL divergence at the end of the run (see `schedule_steps`); the weight changes linearly until then. None
    keeps the weight constant."""
    kl_estimator: Annotated[KLEstimator, UsedIf("has_kl_term", _NO_KL)] = KLEstimator.K3
    """Estimator of the KL divergence from a sampled token. r is the token's probability under the reference, divided by its
    probability under the policy. The estimators are -log r (`k1`), (log r)^2 / 2 (`k2`), r - 1 - log r (`k3`), and `k3`
    weighted by the ratio of policy to sampler (`k3-ratio`)."""
    kl_placement: Annotated[Literal["loss", "reward"], UsedIf("has_kl_term", _NO_KL)] = "loss"
    """Whether the KL estimate is a term of the loss or is subtracted from the reward of each token."""
    kl_target: Annotated[float | None, Above(0)] = None
    """Target for the divergence, in nats per token. An adaptive controller changes the KL weight to reach the target (Ziegler
    et al. 2019, arXiv:1909.08593). None keeps the weight fixed or scheduled."""
    kl_horizon: Annotated[int, AtLeast(1), UsedIf("kl_target", _NO_TARGET)] = 10_000
    """Number of completions over which the adaptive controller adjusts the KL weight."""
    measure_kl: bool = False
    """Keep the reference policy, and log the KL divergence from this policy, even if the divergence has no weight."""
    reference_sync_every: Annotated[int | None, AtLeast(1), UsedIf("needs_reference", _NO_REFERENCE)] = None
    """Number of steps after which the reference moves towards the policy; None never moves it."""
    reference_sync_mix: Annotated[float, Between(0, 1, open_low=True), UsedIf("reference_sync_every", _NO_SYNC)] = 1.0
    """How far the reference moves towards the policy at each sync. 1 makes the reference equal to the policy."""
    entropy_coefficient: Annotated[float, AtLeast(0)] = 0.0
    """Weight of the entropy bonus."""
    entropy_coefficient_end: Annotated[float | None, AtLeast(0)] = None
    """Weight of the entropy bonus at the end of the run (see `schedule_steps`); the weight changes linearly until then. None
    keeps the weight constant."""
    lag: Annotated[int, Between(0, _MOST_LAG)] = 0
    """Number of updates between the weights that sample a batch and the weights that learn from the batch. If `lag` is above 0,
    a batch is sampled while earlier batches are verified and learned from."""
    carried_groups: Annotated[int, AtLeast(0)] = 0
    """Number of additional groups in a step, at most `problems_per_step`. The step ends as soon as `problems_per_step` groups
    are done. The other groups are carried over the update and continue with the new weights (partial rollouts). 0 carries no
    groups over."""
    segment_tokens: Annotated[int, AtLeast(1), UsedIf("carried_groups", _NOTHING_CARRIED)] = 256
    """With `carried_groups` above 0, the number of tokens that unfinished episodes play between two counts of finished
    groups."""
    max_carried_steps: Annotated[int, AtLeast(1), UsedIf("carried_groups", _NOTHING_CARRIED)] = 4
    """Maximum number of updates that a group is carried over. The next step then waits until the group is done."""
    importance_correction: Correction | None = None
    """Weighting of off-policy tokens, which another engine or older weights sampled. `none` treats the sampler's
    log-probabilities as the learner's. The default is `none` if the policy itself samples with its current weights, and
    `token-truncate` if another engine or older weights sample."""
    importance_cap: Annotated[float, AtLeast(1, infinite=True), UsedIf("weighs_samples", _NO_WEIGHTS)] = 2.0
    """Largest importance weight."""
    importance_floor: Annotated[float, Between(0, 1), UsedIf("weighs_samples", _NO_WEIGHTS)] = 0.0
    """Smallest importance weight, from 0 to 1. Truncation raises smaller weights to this value, and masking sets smaller
    weights to 0."""
    max_error_share: Annotated[float, Between(0, 1)] = 0.5
    """Largest share of episodes on which the verifier may break; 1 sets no limit. If the share is larger, training stops with a
    `VerifierFailureError`. The share is computed at each step over at least the last 32 episodes, and at the end of
    training."""
    problem_sampler: Literal["uniform", "learnability", "difficulty"] = "uniform"
    """How the problems of a step are chosen. `uniform` takes each problem once before any problem is repeated. The other
    choices draw in proportion to p(1 - p), where p is the share of a problem's completions that were right recently
    (`learnability`) or in an evaluation (`difficulty`)."""
    difficulty: Annotated[str | None, UsedIf("reads_difficulty", _NO_DIFFICULTY)] = None
    """Folder of the evaluation for the problem sampler `difficulty`, as written by `rlvr eval --split train --samples 8`."""
    floor: Annotated[float, Between(0, 1), UsedIf("adapts_problems", _ALL_UNIFORM)] = 0.1
    """Share of the problems to draw uniformly, so that no problem is neglected."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Seed of the order of problems and of sampling."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """Settings of the optimiser."""
    critic: CriticConfig | None = None
    """Settings of the critic; None for an agent without a critic."""

    control: ClassVar[Mapping[str, Any]] = {}
    """An agent's own defaults for `for_control`."""

    own_uses: ClassVar[frozenset[str]] = frozenset()
    """Shared settings that an agent's own code reads. These settings have an effect whatever the other settings are."""

    learns_values: ClassVar[bool] = False
    """Whether the policy's own outputs are values, which can continue the return of a truncated episode without a critic."""

    @classmethod
    def for_control(cls, **settings: Any) -> Self:
        """Make settings with other defaults, for environments with vectors as observations, such as CartPole-v1.

        In these environments episodes are long, returns large and models small. So a step has 16 episodes, the learning rate is
        1e-3 and the gradient's norm is at most 0.5. If the agent supports it, the discount is 0.99, and there is a separate
        critic. The critic's value continues the return of an episode that reached the time limit, which is not a termination.

        Args:
            settings: Settings that differ from these defaults.
        """
        learner = LearnerConfig(learning_rate=1e-3, max_grad_norm=0.5)
        episodes = 16 if cls.group_size == 1 else 16 // cls.group_size
        return cls(**{"problems_per_step": episodes, "learner": learner, **cls.control, **settings})

    def __post_init__(self) -> None:
        check_types(self)
        for name, choices in _CHOICES.items():
            if getattr(self, name) is not None or name not in _OPTIONAL:
                object.__setattr__(self, name, choice(name, getattr(self, name), choices))
        if self.carried_groups > self.problems_per_step:
            raise InvalidArgumentError(
                f"carried_groups must be from 0 to problems_per_step={self.problems_per_step}, so that the groups carried to a "
                f"step fit into its batch, got {self.carried_groups}"
            )
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
        if self.reads_difficulty and self.difficulty is None:
            raise InvalidArgumentError(
                "problem_sampler 'difficulty' needs difficulty, the folder of an evaluation on the problems that are learned"
            )
        self._check_truncation()
        self._check_kl()
        self.entropy_schedule()  # raises if the settings are inconsistent
        self._check_effects()

    def _check_effects(self) -> None:
        """Reject settings that differ from this agent's defaults but have no effect."""
        if self.learner.schedule_steps is not None and not self.has_schedule:
            raise InvalidArgumentError(
                f"schedule_steps={self.learner.schedule_steps} has no effect, since nothing changes on a schedule: set "
                "schedule or a setting whose name ends in _end, or leave it out"
            )
        check_uses(self, self.own_uses)

    def _check_truncation(self) -> None:
        if self.truncation is Truncation.BOOTSTRAP and self.critic is None and not self.learns_values:
            raise InvalidArgumentError(
                f"truncation 'bootstrap' needs a critic's value, and this {type(self).__name__} has no critic: choose an agent "
                "with a critic (actor-critic, a2c, npg, trpo, ppo, reinforce with baseline='value', or your own with "
                "`value_targets` and critic=CriticConfig()), or another rule, such as 'mask'"
            )
        if self.truncation is Truncation.SOFT_OVERLONG:
            if self.max_tokens is None or self.overlong_margin is None:
                raise InvalidArgumentError("truncation 'soft-overlong' needs max_tokens and overlong_margin")
            if self.overlong_margin > self.max_tokens:
                raise InvalidArgumentError(
                    f"overlong_margin must be from 1 to max_tokens={self.max_tokens}, got {self.overlong_margin}"
                )

    def _check_kl(self) -> None:
        if self.kl_target is not None and self.kl_coefficient == 0:
            raise InvalidArgumentError("kl_target adapts kl_coefficient, which must be greater than 0, got 0")
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
        self.kl_schedule()  # raises if the settings are inconsistent

    @property
    def older_weights(self) -> str | None:
        """The setting that lets weights older than the learner's sample some tokens; None if there is no such setting."""
        return next(
            (f"{name}={getattr(self, name)}" for name in ("lag", "carried_groups") if getattr(self, name)), None
        )

    @property
    def reads_difficulty(self) -> bool:
        """Whether the choice of problems depends on an evaluation."""
        return self.problem_sampler == "difficulty"

    @property
    def adapts_problems(self) -> bool:
        """Whether the choice of problems depends on their difficulty."""
        return self.problem_sampler != "uniform"

    @property
    def has_kl_term(self) -> bool:
        """Whether the KL term has a positive weight at any step."""
        return self.kl_coefficient > 0 or bool(self.kl_coefficient_end)

    @property
    def uses_max_tokens(self) -> bool:
        """Whether the aggregation or the rule for truncated episodes uses `max_tokens`."""
        constant = self.aggregation is Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM
        return constant or self.shapes_length

    @property
    def shapes_length(self) -> bool:
        """Whether a length penalty lowers scores before `max_tokens`."""
        return self.truncation is Truncation.SOFT_OVERLONG

    @property
    def pays_truncation(self) -> bool:
        """Whether a truncated episode gets a fixed reward."""
        return self.truncation is Truncation.FIXED_REWARD

    @property
    def weighs_samples(self) -> bool:
        """Whether samples from other weights may get importance weights."""
        return self.importance_correction is not Correction.NONE

    @property
    def needs_reference(self) -> bool:
        """Whether to keep a reference policy."""
        return self.has_kl_term or self.measure_kl

    @property
    def has_schedule(self) -> bool:
        """Whether a setting changes over the run, until `schedule_steps`."""
        ends = (self.kl_coefficient_end, self.entropy_coefficient_end)
        return self.learner.schedule != "constant" or any(end is not None for end in ends)

    def for_model(self, model: Any) -> Self:
        """Return these settings, with a learning rate chosen for a torch model if none is set but one is needed."""
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
        # These schedules count training steps, whereas the learner counts optimiser steps.
        steps = None if total is None else math.ceil(total / (self.epochs * self.minibatches))
        return Schedule(start, end, "linear", steps)


_CHOICES: dict[str, type[enum.StrEnum]] = {
    "aggregation": Aggregation,
    "truncation": Truncation,
    "kl_estimator": KLEstimator,
    "importance_correction": Correction,
}
_OPTIONAL = {"importance_correction"}
"""Enum settings that may be None."""
