"""The command `rlvr verify`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console

import verifiers
from agents.commands.common import DEVICE, Device, on_device, verifier_arguments
from agents.console.printable import printable
from agents.runs.files.json_files import to_json
from verifiers import (
    InvalidArgumentError,
    Outcome,
    Problem,
    UnknownArgumentError,
    Verdict,
    Verifier,
    VerifierContractError,
)
from verifiers.completion import NOTHING

_WHERE = (
    "An answer is in \\boxed{}, after ####, in <answer> tags, after a phrase such as 'the answer is', or the whole completion; "
    "math with --args extraction=flexible also takes the last number"
)


@dataclass(frozen=True)
class Verify:
    """Verify one completion against one reference, and explain the verdict."""

    completion: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="COMPLETION")]
    """Completion to verify."""
    reference: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="REFERENCE")]
    """Gold answer to compare with. If the verifier does not take it as text, a JSON object or list, such as tests of a program,
    is parsed first."""
    verifier: str = "math"
    """Verifier's name, rewards.py:function, or a file that describes a verifier, such as my_verifier.toml."""
    args: Annotated[tuple[str, ...], tyro.conf.arg(aliases=("--verifier-args",))] = ()
    """Arguments of the verifier, each as name=value."""
    prompt: str = ""
    """The problem's prompt, for verifiers that read prompts, such as judges and reward models."""
    device: Device = DEVICE

    @on_device
    def run(self, console: Console) -> int:
        """Print the verdict; return 0 if it is correct or scored, 2 if the verifier broke, otherwise 1."""
        try:
            verifier = verifiers.make(self.verifier, **verifier_arguments(self.args))
        except (UnknownArgumentError, VerifierContractError):
            raise
        except TypeError as error:
            raise InvalidArgumentError(
                f"the verifier {self.verifier!r} does not accept these arguments: {error}"
            ) from error
        verdict = self._verdict(verifier)
        console.print(f"{verdict.outcome} (score {verdict.score:g})")
        console.print(f"answer: {verdict.answer!r}")
        console.print(printable(to_json(verdict.detail, indent=2)))
        if NOTHING in (verdict.detail.get("extraction"), verdict.detail.get("reason")):
            console.print(_WHERE)
        if verdict.outcome is Outcome.VERIFIER_ERROR:
            return 2
        return 0 if verdict.outcome in (Outcome.CORRECT, Outcome.SCORED) else 1

    def _verdict(self, verifier: Verifier) -> Verdict:
        """The verdict with the reference as text, or read as JSON if the verifier does not take it as text."""
        try:
            verdict = self._judged(verifier, self.reference)
        except VerifierContractError as contract:
            if self.reference.lstrip()[:1] not in ("{", "["):
                raise
            try:
                value = json.loads(self.reference)
            except (ValueError, RecursionError) as error:
                raise VerifierContractError(f"{contract}; as JSON the reference is invalid: {error}") from contract
            return self._judged(verifier, value)
        value = _json_value(self.reference) if verdict.outcome is Outcome.VERIFIER_ERROR else None
        return verdict if value is None else self._judged(verifier, value)

    def _judged(self, verifier: Verifier, reference: object) -> Verdict:
        (verdict,) = verifiers.verify_batch(verifier, [self.completion], [Problem("", self.prompt, reference)])
        return verdict


def _json_value(text: str) -> object:
    """The JSON object or list that a text contains; None if the text is neither."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None
