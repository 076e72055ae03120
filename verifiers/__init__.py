"""What is a right answer? Scoring of completions against problems; knows nothing of reinforcement learning.

`make` builds a verifier by name, `verify` judges one completion in one line, `register` adds a verifier of your own.
"""

from verifiers.errors import (
    CheckpointError,
    DataError,
    IllegalTokenError,
    InvalidArgumentError,
    MissingDataError,
    MissingDependencyError,
    PromptTooLongError,
    RLVRError,
    SandboxUnavailableError,
    UnknownNameError,
    VerifierContractError,
    missing_dependency,
    unknown_name,
)
from verifiers.registry import from_function, make, register, registered_names, verifier_error, verify, verify_batch
from verifiers.types import BatchVerifier, Message, Outcome, Problem, Verdict, Verifier

__distribution__ = "rlvr-envs"

__all__ = [
    "BatchVerifier",
    "CheckpointError",
    "DataError",
    "IllegalTokenError",
    "InvalidArgumentError",
    "Message",
    "MissingDataError",
    "MissingDependencyError",
    "Outcome",
    "Problem",
    "PromptTooLongError",
    "RLVRError",
    "SandboxUnavailableError",
    "UnknownNameError",
    "Verdict",
    "Verifier",
    "VerifierContractError",
    "from_function",
    "make",
    "missing_dependency",
    "register",
    "registered_names",
    "unknown_name",
    "verifier_error",
    "verify",
    "verify_batch",
]
