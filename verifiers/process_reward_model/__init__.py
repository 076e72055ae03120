"""Scores the single steps of a completion with a learned process reward model: `ProcessRewardModelVerifier`."""

from verifiers.process_reward_model.verifier import ProcessRewardModelVerifier

__all__ = ["ProcessRewardModelVerifier"]
