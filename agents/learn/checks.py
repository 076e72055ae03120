"""Checks that an agent's settings fit each other, its policy, its sampler and its ranks."""

from __future__ import annotations

from typing import get_type_hints

from agents.distributed.ranks import Ranks
from agents.importance import Correction
from agents.learn.algorithm import Algorithm
from agents.policies.trainable import Shardable, TrainablePolicy, check_members
from agents.settings.agent import AgentConfig, no_effect
from agents.settings.learning_rate import has_adapter
from agents.types import Sampler, TakesLayers
from verifiers import InvalidArgumentError


def correction_of(config: AgentConfig, policy: TrainablePolicy, sampler: Sampler) -> Correction:
    """The config's importance correction; by default, samples are weighted if another sampler or older weights made them."""
    if config.importance_correction is not None:
        return config.importance_correction
    on_policy = sampler is policy and config.older_weights is None
    return Correction.NONE if on_policy else Correction.TOKEN_TRUNCATE


def check_use(algorithm: Algorithm, policy: TrainablePolicy, sampler: Sampler, ranks: Ranks) -> None:
    """Reject a policy that agents can't train, settings of another agent, and settings that would have no effect."""
    check_members(policy)
    config, cls = algorithm.config, type(algorithm)
    wanted = get_type_hints(cls).get("config", AgentConfig)
    if not isinstance(config, wanted):
        raise InvalidArgumentError(f"{cls.__name__} expects a {wanted.__name__}, got {type(config).__name__}")
    if sampler.learner is not policy:
        raise InvalidArgumentError(
            "the sampler uses the weights of a policy other than the one that learns: build it from the agent's policy"
        )
    if config.problems_per_step < ranks.size:
        raise InvalidArgumentError(
            f"rank {config.problems_per_step} would have nothing to play: a step has "
            f"problems_per_step={config.problems_per_step} groups of completions for {ranks.size} ranks, and each "
            "rank plays whole groups; raise problems_per_step, or use fewer processes"
        )
    if config.critic is not None and cls.value_targets is Algorithm.value_targets:
        raise InvalidArgumentError(f"{cls.__name__} does not use a critic: leave `critic` out")
    if config.reference_sync_every is not None and has_adapter(policy.model):
        raise InvalidArgumentError(
            "the reference of a model with an adapter is the model without the adapter, which can't be synced: leave "
            "`reference_sync_every` out"
        )
    if config.carried_groups and cls.sample_batch is not Algorithm.sample_batch:
        raise InvalidArgumentError(
            f"carried_groups={config.carried_groups} interrupts the episodes of a step, and {cls.__name__} plays a "
            "step in a way of its own: leave `carried_groups` out"
        )
    _check_importance(config, correction_of(config, policy, sampler))
    objection = objection_to_rows(algorithm) if ranks.gathers == "rows" else None
    if objection is not None:
        raise InvalidArgumentError(
            f"only the numbers of rows are to be gathered, and {objection}: gather trajectories instead"
        )
    check_sharding(algorithm, policy, sampler, ranks)


def _check_importance(config: AgentConfig, correction: Correction) -> None:
    for name in ("importance_cap", "importance_floor"):
        if getattr(config, name) != getattr(type(config), name) and correction is Correction.NONE:
            raise no_effect(
                name,
                getattr(config, name),
                "the policy itself samples, with the weights that learn: set importance_correction, or a lag",
            )


def check_sharding(algorithm: Algorithm, policy: TrainablePolicy, sampler: Sampler, ranks: Ranks) -> None:
    """Check that an agent's weights can be divided among its ranks, if the settings divide them."""
    config = algorithm.config
    if ranks.sharding is None:
        return
    if ranks.size == 1:
        raise InvalidArgumentError(
            "weights can't be divided among a single process: start several, or leave `shard` out"
        )
    if not isinstance(policy, Shardable):
        raise InvalidArgumentError(
            f"weights of a {type(policy).__name__} can't be divided among ranks, only those of a transformers model: "
            "leave `shard` out"
        )
    if isinstance(sampler, TakesLayers):
        sampler.check_layers()
    elif sampler is not policy:
        raise InvalidArgumentError(
            f"a {type(sampler).__name__} takes its weights from one process that has all of them, and here they are "
            "divided among ranks: sample with the policy itself or a VLLMPolicy, or leave `shard` out"
        )
    if config.lag and sampler is policy:
        raise InvalidArgumentError(
            f"lag={config.lag} samples beside learning, and without an engine that takes all weights on every rank, which are "
            "divided here: sample with a VLLMPolicy, or leave one of the two out"
        )
    if config.lag > 1:
        raise InvalidArgumentError(
            f"lag={config.lag} makes samples older than lag=1 and saves no time if weights are divided among ranks, since an "
            "engine gets them between two batches: set lag=1"
        )
    if algorithm.needs_whole_weights:
        raise InvalidArgumentError(
            f"{type(algorithm).__name__} computes with vectors as long as all weights together, and with derivatives of passes "
            "at other weights than the model's, so its weights can't be divided among ranks: leave `shard` out, or choose "
            "an agent that follows the gradient itself, such as ppo"
        )


def objection_to_rows(algorithm: Algorithm) -> str | None:
    """The reason why an agent needs the tokens of all episodes on every rank; None if the agent does not need them."""
    config = algorithm.config
    if config.critic is not None:
        return "advantages are whitened over the critic's values of all tokens"
    if config.needs_reference and config.kl_placement == "reward":
        return "with kl_placement='reward' the rewards of all tokens depend on their log-probabilities"
    if config.older_weights:
        return f"with {config.older_weights} a checkpoint holds episodes that were not learned from, with all tokens"
    if not algorithm.advantages_from_rewards:
        return f"{type(algorithm).__name__} does not say, by `advantages_from_rewards = True`, that rewards are all it needs"
    return None
