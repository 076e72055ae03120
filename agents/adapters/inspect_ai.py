"""Inspect: use a verifier as a scorer.

```
Task(dataset=..., solver=generate(), scorer=agents.adapters.inspect_ai.verifier_scorer("math"))
```

A sample that the verifier could not judge is unscored. Inspect leaves unscored samples out of the metrics, and reports their
number.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import verifiers
from agents.runs.files.json_files import plain
from agents.runs.verdicts import error_cause
from verifiers import Message, Outcome, Problem, Verifier

if TYPE_CHECKING:
    from inspect_ai.scorer import Scorer


def verifier_scorer(verifier: str | Verifier, **arguments: Any) -> Scorer:
    """Make a scorer from a verifier, with the metrics `mean` and `stderr` of its scores.

    The reference is the sample's `metadata["reference"]` or, if there is none, the sample's target. The sample's metadata
    becomes the problem's metadata.

    Args:
        verifier: As for `verifiers.make`.
        **arguments: Arguments of the verifier.
    """
    from inspect_ai.scorer import Score, Target, mean, scorer, stderr
    from inspect_ai.solver import TaskState

    made = verifiers.make(verifier, **arguments)

    async def score(state: TaskState, target: Target) -> Score:
        problem = _problem(state, target)
        # A verifier may be slow. In a thread, it leaves Inspect free to process other samples.
        (verdict,) = await asyncio.to_thread(verifiers.verify_batch, made, [state.output.completion], [problem])
        details = {"outcome": verdict.outcome.value, "detail": plain(verdict.detail)}
        if verdict.outcome is Outcome.VERIFIER_ERROR:
            return Score(
                value=float("nan"), explanation=f"verifier error: {error_cause(verdict.detail)}", metadata=details
            )
        return Score(value=verdict.score, answer=verdict.answer, explanation=verdict.outcome.value, metadata=details)

    name = verifier if isinstance(verifier, str) else type(verifier).__name__

    registered: Scorer = scorer(metrics=[mean(), stderr()], name=f"rlvr/{name}")(lambda: score)()
    return registered


def _problem(state: Any, target: Any) -> Problem:
    """Convert a sample to a problem."""
    prompt = (
        state.input
        if isinstance(state.input, str)
        else tuple(Message(message.role, message.text) for message in state.input)
    )
    reference = state.metadata.get("reference", target.text)
    return Problem(str(state.sample_id), prompt, reference, state.metadata)
