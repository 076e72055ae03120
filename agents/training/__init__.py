"""The components of a training run besides its mathematics.

Names load when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers import lazy_face

if TYPE_CHECKING:
    from agents.training import contexts as contexts
    from agents.training.batch_passes import token_logprobs as token_logprobs
    from agents.training.checkpoint import load_checkpoint as load_checkpoint, save_checkpoint as save_checkpoint
    from agents.training.critic import make_critic as make_critic
    from agents.training.disk import CheckpointSize as CheckpointSize, checkpoint_size as checkpoint_size
    from agents.training.lag import LaggedSampling as LaggedSampling
    from agents.training.learner import Learner as Learner
    from agents.training.natural_gradient import (
        conjugate_gradient as conjugate_gradient,
        fisher_vector_product as fisher_vector_product,
        flat_gradient as flat_gradient,
        flat_parameters as flat_parameters,
        mean_kl as mean_kl,
        set_flat_parameters as set_flat_parameters,
    )
    from agents.training.reference import ReferencePolicy as ReferencePolicy
    from agents.training.replay import ReplayBuffer as ReplayBuffer

__getattr__, __dir__, __all__ = lazy_face(__name__)
