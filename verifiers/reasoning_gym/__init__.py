"""Problems of reasoning-gym, made and scored in the sandbox because its scorers evaluate answers as Python.

`jailed.py` is the program that runs in the sandbox; it imports nothing from this distribution.
"""

from verifiers.reasoning_gym.problems import VERSION, MadeProblem, make_problem, require_reasoning_gym
from verifiers.reasoning_gym.reference import MAX_SEED, ReasoningGymReference, check_choice
from verifiers.reasoning_gym.verifier import ReasoningGymVerifier

__all__ = [
    "MAX_SEED",
    "VERSION",
    "MadeProblem",
    "ReasoningGymReference",
    "ReasoningGymVerifier",
    "check_choice",
    "make_problem",
    "require_reasoning_gym",
]
