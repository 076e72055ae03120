"""Check your own verifiers, data sets and environments by trial, in the tests of your package.

Each check returns None, or raises an `InvalidArgumentError` that states the expected and the actual result and the usual cause.
`agents.testing` has these checks, and also checks of agents and policies, which need torch.
"""

from rlvr_envs.testing.dataset import check_dataset
from rlvr_envs.testing.token_env import check_token_env
from rlvr_envs.testing.verifier import check_verifier

__all__ = ["check_dataset", "check_token_env", "check_verifier"]
