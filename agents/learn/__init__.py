"""How an agent learns: the algorithm that a paper defines, and the parts that every agent adds to it.

The module that defines a name is imported when the name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers import lazy_face

if TYPE_CHECKING:
    from agents.learn import contexts as contexts
    from agents.learn.batch_passes import token_logprobs as token_logprobs
    from agents.learn.checkpoint import load_checkpoint as load_checkpoint, save_checkpoint as save_checkpoint
    from agents.learn.critic import make_critic as make_critic
    from agents.learn.disk import CheckpointSize as CheckpointSize, checkpoint_size as checkpoint_size
    from agents.learn.lag import LaggedSampling as LaggedSampling
    from agents.learn.learner import Learner as Learner
    from agents.learn.natural_gradient import (
        conjugate_gradient as conjugate_gradient,
        fisher_vector_product as fisher_vector_product,
        flat_gradient as flat_gradient,
        flat_parameters as flat_parameters,
        mean_kl as mean_kl,
        set_flat_parameters as set_flat_parameters,
    )
    from agents.learn.reference import ReferencePolicy as ReferencePolicy
    from agents.learn.replay import ReplayBuffer as ReplayBuffer

__getattr__, __dir__, __all__ = lazy_face(__name__)
