"""The process of a verifier with a deadline; `serve` speaks the protocol of `verifiers._workers`."""

from __future__ import annotations

from typing import IO

from verifiers._verifier_process import serve_verifier
from verifiers._workers import decode, encode
from verifiers.errors import VerifierContractError
from verifiers.functions import verifier_error
from verifiers.registry import verify_batch
from verifiers.types import Verifier


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer requests until there are no more; the verifier's output is discarded."""
    serve_verifier(requests, replies, lambda verifier, _, payload: _judged(verifier, payload))


def _judged(verifier: Verifier, payload: str) -> str | list[str]:
    """The verdict, pickled; or the class and the message of what the parent has to raise."""
    try:
        completion, problem = decode(payload)
        (verdict,) = verify_batch(verifier, [completion], [problem])
        return encode(verdict)
    except VerifierContractError as error:
        return [type(error).__name__, str(error)]
    except Exception as error:  # noqa: BLE001 - recorded in the verdict, never scored
        return encode(verifier_error(error))
