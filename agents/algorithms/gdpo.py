"""GDPO: Group reward-Decoupled Normalization Policy Optimization (Liu et al. 2026, arXiv:2601.05242).

If the score is a weighted sum of several rewards, GRPO's z-score of the sum cannot tell combinations of rewards apart, and the
reward with the largest spread dominates. GDPO normalises each reward within the group separately, and then normalises the
weighted sum of these z-scores over the batch. Both divisions bias the direction of the expected gradient. The departures from
the paper are the same as for GRPO.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gymnasium.vector import VectorEnv

import rlvr_envs
from agents.advantages import multi_reward
from agents.algorithms.group_relative import ClippedGroupAgent, ClippedGroupConfig, at_every_token
from agents.batch import Batch
from agents.policies.trainable import TrainablePolicy
from agents.rollouts.problem_parts import problem_parts
from agents.rollouts.vector_adapter import with_token_info
from agents.settings.config_checks import require_plain_scores
from agents.types import Sampler, Trajectory, reward_parts
from verifiers import InvalidArgumentError, Outcome, verify_batch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class GDPOConfig(ClippedGroupConfig):
    """Settings of GDPO."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_plain_scores(self, "GDPO compares the parts of a score rather than their sum")


_WITHOUT_PARTS = (
    "GDPO needs a score of several parts, the same in every verdict: give the environment "
    """verifier=("weighted_sum", {"parts": {...}}), on the command line --verifier weighted_sum --verifier-args """
    "'parts={...}', or choose an agent for a single score, such as grpo"
)


class GDPO(ClippedGroupAgent):
    """GRPO for several rewards, each normalised separately."""

    name = "gdpo"
    config: GDPOConfig

    def __init__(self, policy: TrainablePolicy, config: GDPOConfig, *, sampler: Sampler | None = None) -> None:
        super().__init__(policy, config, sampler=sampler)
        self._weights: dict[str, float] | None = None  # the weight of each part, from the first verdict

    def check_env(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Refuse an environment if the verdict on an empty completion shows that scores have no parts."""
        if "observation" in with_token_info(env).single_observation_space.spaces:  # type: ignore[attr-defined] # checked there
            raise InvalidArgumentError(
                "GDPO needs a score of several parts, which only the verifier of an environment with tokens gives, and this "
                "environment shows vectors and pays one number: choose an agent for a single score, such as grpo"
            )
        if isinstance(env.unwrapped, rlvr_envs.TokenVectorEnv) and not _may_have_parts(env.unwrapped):
            raise InvalidArgumentError(_WITHOUT_PARTS)

    def check_episode(self, trajectory: Trajectory) -> None:
        """Reject a score that has no parts, or whose parts or weights differ from earlier scores."""
        if trajectory.errored:
            return
        if not trajectory.reward_parts:
            raise InvalidArgumentError(_WITHOUT_PARTS)
        weights = {name: weight for name, (_, weight) in trajectory.reward_parts.items()}
        if self._weights is None:
            self._weights = weights
        # The order matters: a batch stores weights by index.
        if list(weights.items()) != list(self._weights.items()):
            raise InvalidArgumentError(
                f"{_WITHOUT_PARTS}; problem {trajectory.problem_id!r} has the weights {weights}, and earlier problems have "
                f"{self._weights}"
            )

    def advantages(self, batch: Batch) -> Tensor:
        """The weighted sum of the parts' z-scores, normalised over the batch.

        Raises:
            InvalidArgumentError: If the verdicts have no parts.
        """
        if not batch.valid.any():
            return at_every_token(batch.scores.nan_to_num(0.0), batch)
        if batch.components is None or batch.component_weights is None:
            raise InvalidArgumentError(_WITHOUT_PARTS)
        return at_every_token(multi_reward(batch.components, batch.component_weights, batch.groups, batch.valid), batch)


def _may_have_parts(env: rlvr_envs.TokenVectorEnv) -> bool:
    """Whether the score of an empty completion has parts, or the verifier broke, in each environment of a mixture."""
    verifier, data, parts = env.streams.rules.verifier, env.streams.dataset, problem_parts(env)
    if verifier is None or parts is None:
        return False
    asked = [data[indices.start] for indices in parts.ranges]
    verdicts = verify_batch(verifier, [""] * len(asked), asked)
    return all(verdict.outcome is Outcome.VERIFIER_ERROR or reward_parts(verdict) for verdict in verdicts)
