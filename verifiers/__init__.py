"""What is a right answer? This package scores completions against problems; it is independent of reinforcement learning.

`make` builds a verifier by name, `verify` judges one completion in one line, `register` adds a verifier of your own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from verifiers._settings import check_types, checked
from verifiers.bounds import (
    FINITE,
    Above,
    AtLeast,
    Between,
    Bound,
    Count,
    HTTPAddress,
    Seconds,
    UsedIf,
    bounds_of,
    check_uses,
)
from verifiers.errors import (
    CheckpointError,
    DataError,
    DivergedError,
    EngineDiedError,
    EngineError,
    IllegalTokenError,
    InvalidArgumentError,
    MissingDataError,
    MissingDependencyError,
    PromptTooLongError,
    RankError,
    RLVRError,
    SandboxUnavailableError,
    UnknownArgumentError,
    UnknownNameError,
    UnreadableReferenceError,
    VerifierContractError,
    VerifierFailureError,
    missing_dependency,
    unknown_argument,
    unknown_name,
)
from verifiers.files import is_verifier_file, verifier_record
from verifiers.functions import check_reading, convention_of, from_function, verifier_error
from verifiers.imports import import_attribute, is_attribute_path
from verifiers.lazy import lazy_face as lazy_face, lazy_module as lazy_module
from verifiers.redaction import Secret, redacted, secret
from verifiers.registry import check_spec, factory, make, preferring, register, registered_names, verify, verify_batch
from verifiers.types import (
    AnswerVerifier,
    AssistantMessage,
    BatchVerifier,
    Completion,
    MadeCall,
    Message,
    Outcome,
    Problem,
    ToolMessage,
    Verdict,
    Verifier,
    dialogue_of,
)

if TYPE_CHECKING:
    from verifiers.audit import AuditReport, audit_verifier

__distribution__ = "rlvr-envs"
__version__ = "0.1.0"

__all__ = [
    "FINITE",
    "Above",
    "AnswerVerifier",
    "AssistantMessage",
    "AtLeast",
    "AuditReport",
    "BatchVerifier",
    "Between",
    "Bound",
    "CheckpointError",
    "Completion",
    "Count",
    "DataError",
    "DivergedError",
    "EngineDiedError",
    "EngineError",
    "HTTPAddress",
    "IllegalTokenError",
    "InvalidArgumentError",
    "MadeCall",
    "Message",
    "MissingDataError",
    "MissingDependencyError",
    "Outcome",
    "Problem",
    "PromptTooLongError",
    "RLVRError",
    "RankError",
    "SandboxUnavailableError",
    "Seconds",
    "Secret",
    "ToolMessage",
    "UnknownArgumentError",
    "UnknownNameError",
    "UnreadableReferenceError",
    "UsedIf",
    "Verdict",
    "Verifier",
    "VerifierContractError",
    "VerifierFailureError",
    "audit_verifier",
    "bounds_of",
    "check_reading",
    "check_spec",
    "check_types",
    "check_uses",
    "checked",
    "convention_of",
    "dialogue_of",
    "factory",
    "from_function",
    "import_attribute",
    "is_attribute_path",
    "is_verifier_file",
    "make",
    "missing_dependency",
    "preferring",
    "redacted",
    "register",
    "registered_names",
    "secret",
    "unknown_argument",
    "unknown_name",
    "verifier_error",
    "verifier_record",
    "verify",
    "verify_batch",
]


def __getattr__(name: str) -> object:
    # Few programs need the audit, so it is imported when it is first used.
    if name in ("AuditReport", "audit_verifier"):
        return getattr(importlib.import_module("verifiers.audit"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
