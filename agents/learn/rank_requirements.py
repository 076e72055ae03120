"""Checks that several ranks can divide an agent's weights, and can gather episodes without tokens."""

from __future__ import annotations

from agents.distributed.ranks import Ranks
from agents.learn.algorithm import Algorithm
from agents.policies.trainable import Shardable, TrainablePolicy
from agents.types import Sampler, TakesLayers
from verifiers import InvalidArgumentError


def check_sharding(algorithm: Algorithm, policy: TrainablePolicy, sampler: Sampler, ranks: Ranks) -> None:
    """Check that an agent's weights can be divided among its ranks, if they are to be."""
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
    """Why an agent needs the tokens of all episodes on every rank; None if it does not."""
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
